"""Synthetic scenes with salient objects of very different sizes, and two simulated methods."""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.common.arguments import check_int

Image = NDArray[np.uint8]
_GAP = 4  # pixels between objects, so that each is a component of its own


@dataclass(frozen=True, eq=False)
class Scene:
    """A colour image (BGR), its mask (0 or 255), and its objects numbered from 1."""

    name: str
    image: Image
    mask: Image
    labels: NDArray[np.int32]


def make_scenes(count: int, *, seed: int = 0, shape: tuple[int, int] = (240, 320)) -> list[Scene]:
    """Return scenes of one or two large objects and two to five small ones, the same for a seed.

    Args:
        count: number of scenes.
        seed: of all random numbers.
        shape: height and width of a scene.

    Example:
        >>> scene = make_scenes(1, seed=3)[0]
        >>> scene.image.shape, scene.mask.shape, int(scene.labels.max()) >= 3
        ((240, 320, 3), (240, 320), True)
    """
    check_scenes(count, seed, shape)
    rng = np.random.default_rng(seed)
    return [_scene(f"scene{index:03d}", shape, rng) for index in range(count)]


def check_scenes(count: int, seed: int, shape: tuple[int, int]) -> None:
    """Raise if no scenes can be generated with this count, seed and shape."""
    check_int("count", count, least=0)
    check_int("seed", seed, least=0)
    height, width = shape
    for side in (height, width):
        check_int("every side of shape", side, least=8)  # smaller objects would all look the same


def sees_only_large(scene: Scene) -> Image:
    """Simulated method A: sharp on large objects, blind to those under 1.5 % of the image."""
    areas = np.bincount(scene.labels.ravel())
    large = np.flatnonzero(areas >= 0.015 * scene.labels.size)
    detected = np.isin(scene.labels, large[large > 0])
    return cv2.GaussianBlur(detected.astype(np.uint8) * 255, (0, 0), 0.8).astype(np.uint8)


def sees_all_coarsely(scene: Scene) -> Image:
    """Simulated method B: finds every object, with the blurred edges of a map made at low resolution."""
    height, width = scene.mask.shape
    small = cv2.resize(scene.mask, (width // 8, height // 8), interpolation=cv2.INTER_AREA)
    coarse = cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC).astype(np.float64)
    return np.clip(coarse * 2.5, 0, 255).astype(np.uint8)


def _scene(name: str, shape: tuple[int, int], rng: np.random.Generator) -> Scene:
    reach = min(shape)
    n_large, n_small = int(rng.integers(1, 3)), int(rng.integers(2, 6))
    radii = [*rng.uniform(0.14, 0.24, n_large) * reach, *rng.uniform(0.02, 0.045, n_small) * reach]
    labels = np.zeros(shape, dtype=np.int32)
    for radius in radii:
        _draw_blob(labels, float(radius), rng)
    mask = (labels > 0).astype(np.uint8) * np.uint8(255)
    return Scene(name, _paint(labels, rng), mask, labels)


def _draw_blob(labels: NDArray[np.int32], radius: float, rng: np.random.Generator) -> None:
    """Draw one blob that touches no other; leave it out after many tries."""
    height, width = labels.shape
    taken = cv2.dilate((labels > 0).astype(np.uint8), np.ones((2 * _GAP + 1, 2 * _GAP + 1)))
    angles = np.linspace(0, 2 * np.pi, 72, endpoint=False)
    for _ in range(60):
        waves = [
            rng.uniform(0, 0.12) * np.cos(k * angles + rng.uniform(0, 2 * np.pi)) for k in (2, 3, 5)
        ]
        reach = radius * (1 + np.sum(waves, axis=0))
        y = rng.uniform(radius * 1.3, height - radius * 1.3)
        x = rng.uniform(radius * 1.3, width - radius * 1.3)
        points = np.stack([x + reach * np.cos(angles), y + reach * np.sin(angles)], axis=1)
        blob = np.zeros(labels.shape, dtype=np.uint8)
        cv2.fillPoly(blob, [np.rint(points).astype(np.int32)], 1)
        if not np.logical_and(blob, taken).any():
            labels[blob > 0] = labels.max() + 1
            return


def _paint(labels: NDArray[np.int32], rng: np.random.Generator) -> Image:
    """Colour the background and every object, each with a texture of its own."""
    canvas = _texture(labels.shape, rng, hue=float(rng.uniform(35, 85)), grain=14.0, value=95)
    for index in range(1, int(labels.max()) + 1):
        hue = float(rng.choice([5.0, 15.0, 150.0, 170.0]))
        coat = _texture(labels.shape, rng, hue=hue, grain=3.0, value=170)
        canvas[labels == index] = coat[labels == index]
    return cv2.GaussianBlur(canvas, (0, 0), 0.7).astype(np.uint8)


def _texture(
    shape: tuple[int, ...], rng: np.random.Generator, *, hue: float, grain: float, value: int
) -> Image:
    smooth = np.asarray(cv2.GaussianBlur(rng.normal(size=shape), (0, 0), grain))
    noise = smooth / smooth.std()
    speckle = rng.normal(scale=6, size=shape)
    layers = [hue + 4 * noise, 130 + 15 * noise, value + 22 * noise + speckle]
    hsv = np.clip(np.stack(layers, axis=-1), 0, [179, 255, 255])
    return cv2.cvtColor(hsv.astype(np.uint8), cv2.COLOR_HSV2BGR).astype(np.uint8)

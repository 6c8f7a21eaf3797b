"""Synthetic scenes with salient objects of very different sizes, and two simulated methods.

Those of `make_scenes` are easy. Those of `textured_scenes` are made for training: salient objects differ
in hue from the scene's background; patches that are only lighter or darker are not salient, nor are
specks of a few pixels, whatever their hue. So a small object is hard to tell from a speck, and a network
easily misses it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.common.arguments import check_int
from sisod.common.output import write_png

Image = NDArray[np.uint8]
Plane = NDArray[np.float32]
_BLOB_GAP, _GAP = 4, 3  # pixels between objects, so that each is a component of its own
# of textured scenes
_SMALLEST, _LARGEST = 0.001, 0.25  # of the image
_FINE = 4  # shapes are drawn at this multiple of the resolution
_TRIES = 30  # to find room for an object; after that the scene goes without it


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
    _check_scenes(count, seed, shape)
    rng = np.random.default_rng(seed)
    return [_scene(f"scene{index:03d}", shape, rng) for index in range(count)]


def _check_scenes(count: int, seed: int, shape: tuple[int, int]) -> None:
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


def _grow(labels: NDArray[np.int32], gap: int) -> Image:
    """Return 1 for the pixels of all objects and those within a gap of them."""
    kernel = np.ones((2 * gap + 1, 2 * gap + 1), np.uint8)
    return np.asarray(cv2.dilate((labels > 0).astype(np.uint8), kernel), dtype=np.uint8)


def _draw_blob(labels: NDArray[np.int32], radius: float, rng: np.random.Generator) -> None:
    """Draw one blob that touches no other; leave it out after many tries."""
    height, width = labels.shape
    taken = _grow(labels, _BLOB_GAP)
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


# --------------------------------------------------------------------------------------------- textured


def textured_scenes(
    count: int, *, seed: int = 0, shape: tuple[int, int] = (128, 128)
) -> Iterator[Scene]:
    """Yield scenes of one to six objects; a scene depends on the seed and its index only.

    Args:
        count: number of scenes.
        seed: of all random numbers.
        shape: height and width of a scene.

    Example:
        >>> scene = next(textured_scenes(1, seed=1))
        >>> scene.image.shape, scene.mask.shape, 1 <= int(scene.labels.max()) <= 6
        ((128, 128, 3), (128, 128), True)
    """
    _check_scenes(count, seed, shape)
    for index in range(count):
        rng = np.random.default_rng((seed, index))
        yield _textured_scene(f"made{index:05d}", shape, rng)


def write_scenes(
    folder: Path | str, count: int, *, seed: int = 0, shape: tuple[int, int] = (128, 128)
) -> Path:
    """Write scenes as a data set, `image/` and `mask/`, and return its folder.

    Args:
        folder: is created if it does not exist.
        count: number of scenes.
        seed: of all random numbers.
        shape: height and width of a scene.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as root:
        ...     sorted(path.name for path in write_scenes(root, 2).rglob("*.png"))
        ['made00000.png', 'made00000.png', 'made00001.png', 'made00001.png']
    """
    target = Path(folder)
    for kind in ("image", "mask"):
        (target / kind).mkdir(parents=True, exist_ok=True)
    for scene in textured_scenes(count, seed=seed, shape=shape):
        for kind, picture in (("image", scene.image), ("mask", scene.mask)):
            write_png(target / kind / f"{scene.name}.png", picture)
    return target


def _textured_scene(name: str, shape: tuple[int, int], rng: np.random.Generator) -> Scene:
    hue = float(rng.uniform(0, 180))
    layers = [  # hue, saturation and value of the background
        hue + 6 * _noise(shape, rng),
        rng.uniform(70, 110) + 18 * _noise(shape, rng),
        rng.uniform(100, 150) + 22 * _noise(shape, rng),
    ]
    canvas = np.stack(layers, axis=-1).astype(np.float32)
    for share in _shares(int(rng.integers(1, 5)), rng):  # light and shadow
        window, cover = _stamp(share * shape[0] * shape[1], shape, rng)
        light = np.float32(rng.choice([-1, 1]) * rng.uniform(25, 60))
        canvas[window][..., 2] += light * cover
    labels = np.zeros(shape, dtype=np.int32)
    for share in sorted(_shares(int(rng.integers(1, 7)), rng), reverse=True):
        _paint_object(canvas, labels, share * labels.size, hue, rng)
    if not labels.any():
        _paint_object(canvas, labels, 0.05 * labels.size, hue, rng)
    _sprinkle(canvas, labels, rng)
    mask = (labels > 0).astype(np.uint8) * np.uint8(255)
    return Scene(name, _to_photo(canvas, rng), mask, labels)


def _shares(count: int, rng: np.random.Generator) -> list[float]:
    """Draw areas as shares of the image, uniform in their logarithm."""
    logs = rng.uniform(np.log(_SMALLEST), np.log(_LARGEST), count)
    return [float(share) for share in np.exp(logs)]


def _paint_object(
    canvas: Plane, labels: NDArray[np.int32], area: float, hue: float, rng: np.random.Generator
) -> None:
    """Paint one object that touches no other."""
    taken = _grow(labels, _GAP)
    for _ in range(_TRIES):
        window, cover = _stamp(area, labels.shape, rng)
        inside = cover >= 0.5
        n_parts, _ = cv2.connectedComponents(inside.astype(np.uint8), connectivity=8)
        if n_parts == 2 and not taken[window][inside].any():  # the outside, and one object
            break
    else:
        return
    labels[window][inside] = labels.max() + 1
    shape = cover.shape
    hue_shift = rng.uniform(25, 90) * rng.choice([-1, 1])
    layers = [
        hue + hue_shift + 5 * _noise(shape, rng),
        rng.uniform(70, 130) + 12 * _pattern(shape, rng),
        rng.uniform(90, 160) + 22 * _pattern(shape, rng),
    ]
    part = cover[..., None]
    canvas[window] = (1 - part) * canvas[window] + part * np.stack(layers, axis=-1)


def _sprinkle(canvas: Plane, labels: NDArray[np.int32], rng: np.random.Generator) -> None:
    """Scatter specks of any hue outside the objects, too small to be objects."""
    free = np.argwhere(_grow(labels, _GAP) == 0)
    for y, x in free[rng.integers(0, len(free), int(labels.size / 400))].tolist():
        high, wide = rng.integers(1, 4, 2).tolist()
        canvas[y : y + high, x : x + wide, 0] += np.float32(rng.uniform(25, 155))


def _stamp(
    area: float, shape: tuple[int, ...], rng: np.random.Generator
) -> tuple[tuple[slice, slice], Plane]:
    """Return a window of the image and how much of each of its pixels a random shape covers."""
    outline = _outline(area, rng)
    reach = np.abs(outline).max(axis=0)  # x, y
    high, wide = (min(2 * int(np.ceil(r)) + 3, side) for r, side in zip(reach[::-1], shape, strict=True))
    y, x = int(rng.integers(0, shape[0] - high + 1)), int(rng.integers(0, shape[1] - wide + 1))
    centre = np.array([wide, high]) / 2 + rng.uniform(-0.5, 0.5, 2)
    fine = np.zeros((high * _FINE, wide * _FINE), dtype=np.uint8)
    cv2.fillPoly(fine, [np.rint((outline + centre) * _FINE - 0.5).astype(np.int32)], 255)
    cover = np.asarray(cv2.resize(fine, (wide, high), interpolation=cv2.INTER_AREA), dtype=np.float32)
    return (slice(y, y + high), slice(x, x + wide)), cover / np.float32(255)


def _outline(area: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the corners of a turned ellipse, box, star or wavy blob of about that area, around 0."""
    angles = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    kind = rng.integers(0, 4) if area > 80 else 0  # a small star would fall apart
    radius = np.ones_like(angles)
    if kind == 1:
        radius = 1 / np.maximum(np.abs(np.cos(angles)), np.abs(np.sin(angles)))
    elif kind == 2:
        radius = 1 + 0.35 * np.cos(int(rng.integers(4, 8)) * angles)
    elif kind == 3:
        waves = [rng.uniform(0, 0.2) * np.cos(k * angles + rng.uniform(0, 6.3)) for k in (2, 3, 5)]
        radius = 1 + np.sum(waves, axis=0)
    stretch = np.exp(rng.uniform(-0.5, 0.5))
    points = np.stack([radius * np.cos(angles) * stretch, radius * np.sin(angles) / stretch])
    covered = 0.5 * abs(np.sum(points[0] * np.roll(points[1], -1) - points[1] * np.roll(points[0], -1)))
    turn = rng.uniform(0, 2 * np.pi)
    matrix = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    outline: NDArray[np.float64] = (matrix @ points * np.sqrt(area / covered)).T
    return outline


def _noise(shape: tuple[int, ...], rng: np.random.Generator) -> Plane:
    """Return a texture of several grains, mean about 0 and deviation about 1."""
    total = np.zeros(shape, dtype=np.float32)
    for grain, weight in ((32, 0.7), (12, 0.5), (4, 0.4), (1, 0.3)):
        small = [max(2, -(-side // grain)) for side in shape]
        field = rng.standard_normal(small, dtype=np.float32)
        total += weight * cv2.resize(field, shape[::-1], interpolation=cv2.INTER_CUBIC)
    return total


def _pattern(shape: tuple[int, ...], rng: np.random.Generator) -> Plane:
    """Return stripes, checks or noise."""
    kind = rng.integers(0, 3)
    if kind == 0:
        return _noise(shape, rng)
    y, x = np.mgrid[: shape[0], : shape[1]].astype(np.float32)
    turn, pace = rng.uniform(0, np.pi), rng.uniform(0.5, 1.6)
    along, across = x * np.cos(turn) + y * np.sin(turn), y * np.cos(turn) - x * np.sin(turn)
    waves = np.sign(np.sin(pace * along))
    if kind == 2:
        waves = waves * np.sign(np.sin(pace * across))
    return np.asarray(waves, dtype=np.float32)


def _to_photo(canvas: Plane, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Turn hue, saturation and value into BGR, as a lens and a sensor would: blurred, then noisy."""
    hsv = np.clip(canvas, 0, 255)
    hsv[..., 0] = canvas[..., 0] % 180  # a hue goes round
    colours = cv2.cvtColor(hsv.astype(np.uint8), cv2.COLOR_HSV2BGR)
    soft = np.asarray(cv2.GaussianBlur(colours, (0, 0), 0.6), dtype=np.float32)
    noisy = soft + 8 * rng.standard_normal(soft.shape, dtype=np.float32)
    return np.asarray(np.clip(np.rint(noisy), 0, 255), dtype=np.uint8)

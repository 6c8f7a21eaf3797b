"""Maps and masks for the outside witnesses of objects and boundaries; needs NumPy only, 1.26 or 2.

Integers of PCG64 and integer arithmetic, so that both versions of NumPy build the same bytes.
"""

import hashlib
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Map = NDArray[np.uint8]
Mask = NDArray[np.bool_]
Pixels = TypeVar("Pixels", Map, Mask)
SHAPE = (48, 64)
N_RANDOM = 12


def object_maps() -> dict[str, tuple[Map, Mask]]:
    """Return predictions and ground truths by name: random ones, then special cases."""
    return {f"random{seed}": random_pair(seed) for seed in range(N_RANDOM)} | special_pairs()


def boundary_maps() -> dict[str, tuple[Map, Mask]]:
    """Return the pairs of `object_maps`, enlarged: bands, radii and tolerances exceed a pixel."""
    pairs = {}
    for number, (name, (pred, gt)) in enumerate(object_maps().items()):
        shape = (384, 512) if number < 4 else (192, 256)
        pairs[name] = resized(pred, shape), resized(gt, shape)
    return pairs


def digest(pred: Map, gt: Mask) -> str:
    """Return a short hash of the pixels of a pair."""
    return hashlib.sha256(pred.tobytes() + gt.tobytes()).hexdigest()[:16]


def resized(image: Pixels, shape: tuple[int, ...]) -> Pixels:
    """Return the image at another size, every pixel a copy of the one at its place."""
    rows, columns = (np.arange(new) * old // new for new, old in zip(shape, image.shape, strict=True))
    pixels: Pixels = image[rows[:, None], columns]
    return pixels


def random_pair(seed: int) -> tuple[Map, Mask]:
    """Return a map on which objects are found, shifted, grown, split and missed, and false ones."""
    rng = np.random.Generator(np.random.PCG64(seed))
    gt = np.zeros(SHAPE, dtype=np.bool_)
    pred = rng.integers(0, 100, SHAPE).astype(np.uint8)
    for _ in range(int(rng.integers(4, 13))):
        y, x = int(rng.integers(0, SHAPE[0])), int(rng.integers(0, SHAPE[1]))
        height, width = (int(radius) for radius in rng.integers(0, 8, 2))
        grey, fate = int(rng.integers(110, 256)), int(rng.integers(0, 7))
        shape = ellipse(y, x, height, width)
        if fate != 0:  # 0 is a false object
            gt |= shape
        if fate in (0, 2, 3):
            pred[shape] = grey
        elif fate == 4:  # shifted
            dy, dx = (int(shift) for shift in rng.integers(-2, 3, 2))
            pred[ellipse(y + dy, x + dx, height, width)] = grey
        elif fate == 5:  # grown
            pred[ellipse(y, x, height + 1, width + 2)] = grey
        elif fate == 6:  # split in two, unless it is a single row
            pred[shape] = grey
            pred[y, :] = 0
    if seed % 4 == 3:  # specks, many of which touch by a corner only
        pred[rng.integers(0, 8, SHAPE) == 0] = 200
        gt |= rng.integers(0, 25, SHAPE) == 0
    return pred, gt


def ellipse(y: int, x: int, height: int, width: int) -> Mask:
    """Return the pixels of an ellipse with these half axes around a pixel."""
    rows, columns = np.indices(SHAPE)
    a, b = 2 * height + 1, 2 * width + 1
    return np.asarray(4 * ((rows - y) * b) ** 2 + 4 * ((columns - x) * a) ** 2 <= (a * b) ** 2)


def special_pairs() -> dict[str, tuple[Map, Mask]]:
    """Return pairs at the edge of the definitions."""
    _, gt = random_pair(0)
    empty, full = np.zeros(SHAPE, dtype=np.bool_), np.ones(SHAPE, dtype=np.bool_)
    half, twice = empty.copy(), empty.copy()
    half[10:14, 10:20] = twice[10:14, 10:30] = True  # IoU 40 / 80
    half[30, 5] = twice[30, 8] = True  # centroids exactly 3 apart
    corner = empty.copy()
    corner[5:9, 5:9] = corner[9:13, 9:13] = True  # one 8-connected object, two 4-connected ones
    block = empty.copy()
    block[5:9, 5:9] = True
    left_right, between = empty.copy(), empty.copy()
    left_right[20:24, 10:14] = left_right[20:24, 19:23] = True
    between[20:24, 10:18] = between[20:24, 19:23] = True  # column 16 is equally near to both
    masks = {
        "empty truth": (gt, empty),
        "empty prediction": (empty, gt),
        "both empty": (empty, empty),
        "equal": (gt, gt),
        "everything predicted": (full, gt),
        "everything salient": (gt, full),
        "everything": (full, full),
        "one half": (twice, half),
        "corner": (corner, block),
        "tie": (between, left_right),
    }
    return {
        name: (np.where(pred, 255, 0).astype(np.uint8), truth) for name, (pred, truth) in masks.items()
    }

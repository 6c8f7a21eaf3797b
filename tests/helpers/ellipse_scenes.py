"""Maps and masks of ellipses, for comparisons with other tools."""

import cv2
import numpy as np
from numpy.typing import NDArray

Grey = NDArray[np.uint8]


def ellipse_scene(seed: int, *, height: int, width: int) -> tuple[Grey, Grey]:
    """Return a map and a mask of ellipses of several sizes.

    The map is blurred, shifted and noisy, and its left side is weak.
    """
    rng = np.random.default_rng(seed)
    gt = np.zeros((height, width), np.uint8)
    for _ in range(2 + seed % 4):
        centre = int(rng.integers(5, width - 5)), int(rng.integers(5, height - 5))
        axes = int(rng.integers(2, 14)), int(rng.integers(2, 10))
        cv2.ellipse(gt, centre, axes, float(rng.integers(180)), 0, 360, 255, -1)
    pred = cv2.GaussianBlur(np.roll(gt, 2, axis=1), (0, 0), 1 + seed / 3).astype(float)
    pred[:, : width // 3] *= 0.6
    return np.clip(0.8 * pred + rng.normal(20, 12, pred.shape), 3, 250).astype(np.uint8), gt

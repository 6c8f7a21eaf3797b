"""Metrics of boundaries at p > 0.5: boundary IoU, mean boundary accuracy, normalised surface distance.

Like those of `structure`, each takes the pixels and the frames, and returns the image's value followed
by one value per frame (boundary IoU) or the image's alone. Masks are cut to the box around their objects
before anything else: outside it there is no boundary.
"""

import math
from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.scoring.arrays import Mask, Values, Window
from sisod.scoring.families.pixels import WHOLE, Pixels
from sisod.scoring.partition import Frame

Bytes = NDArray[np.uint8]  # 0 and 1
_N_RADII = 5  # of mean boundary accuracy
_SQUARE = np.ones((3, 3), dtype=np.uint8)
_CROSS = cv2.getStructuringElement(cv2.MORPH_CROSS, (3, 3))


def boundary_iou(pixels: Pixels, frames: Sequence[Frame]) -> Values:
    """Boundary IoU (Cheng et al., CVPR 2021) at p > 0.5, of inner bands 2 % of the diagonal wide.

    In a frame it is 2 % of the frame's diagonal, and pixels outside the frame count as not salient and
    not predicted. Undefined without a salient pixel.
    """
    windows = [WHOLE, *(frame.window for frame in frames)]
    return np.array([_boundary_iou(pixels.binary[window], pixels.gt[window]) for window in windows])


def _boundary_iou(pred: Mask, gt: Mask) -> float:
    if not gt.any():
        return math.nan
    width = max(1, round(0.02 * math.hypot(*gt.shape)))
    box = common_box(pred, gt)
    pred_band, gt_band = (_inner_band(mask[box], width) for mask in (pred, gt))
    common = cv2.countNonZero(pred_band & gt_band)
    return common / (cv2.countNonZero(pred_band) + cv2.countNonZero(gt_band) - common)


def _inner_band(mask: Mask, width: int) -> Bytes:
    """Return the mask less its erosion, 3 x 3 as often as `width` says; around it are zeros."""
    grey = np.ascontiguousarray(mask).view(np.uint8)
    eroded = cv2.erode(grey, _SQUARE, iterations=width, borderType=cv2.BORDER_CONSTANT, borderValue=(0,))
    return grey - np.asarray(eroded, dtype=np.uint8)


def mean_boundary_accuracy(pixels: Pixels, frames: Sequence[Frame]) -> Values:  # noqa: ARG001
    """Accuracy near the boundary (Cheng et al., CVPR 2020) at p > 0.5, mean over five distances.

    Near are the pixels where the morphological gradient of the ground truth is not zero; the distances
    grow with the image. Undefined without a boundary.
    """
    height, width = pixels.gt.shape
    largest = (width + height) / 300
    radii = [1 + int((largest - 1) / _N_RADII * step) for step in range(_N_RADII)]
    if pixels.gt.all() or not pixels.gt.any():
        return np.array([math.nan])
    gt, pred = (
        np.ascontiguousarray(mask[common_box(pixels.gt, margin=radii[-1])]).view(np.uint8)
        for mask in (pixels.gt, pixels.binary)
    )
    correct = 1 - (gt ^ pred)
    accuracies = {}
    for radius in set(radii):
        ellipse = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1))
        near = np.asarray(cv2.morphologyEx(gt, cv2.MORPH_GRADIENT, ellipse), dtype=np.uint8)
        accuracies[radius] = cv2.countNonZero(correct & near) / cv2.countNonZero(near)
    return np.array([sum(accuracies[radius] for radius in radii) / _N_RADII])


def normalized_surface_distance(pixels: Pixels, frames: Sequence[Frame]) -> Values:  # noqa: ARG001
    """Normalised surface distance (Nikolov et al., 2018) at p > 0.5, tolerance 2 % of the diagonal."""
    height, width = pixels.gt.shape
    # 0.02 = 1 / 50; distances on a grid are roots of integers, so nothing is rounded
    return np.array([surface_dice(pixels.binary, pixels.gt, (height**2 + width**2) // 50**2)])


def surface_dice(pred: Mask, gt: Mask, squared_tolerance: int) -> float:
    """Return the share of border pixels of both masks whose distance to the other border is tolerated.

    Border pixels are those of a mask with a neighbour, one of four, outside it or outside the image.
    Undefined without a salient pixel.

    Example:
        A square of 8 border pixels, and one of its pixels. The nearest border pixels are at the distance
        0 (the corner), 1 (two of them), 2 (another two), and beyond:

        >>> gt = np.ones((3, 3), dtype=bool)
        >>> pred = np.zeros((3, 3), dtype=bool)
        >>> pred[0, 0] = True
        >>> [surface_dice(pred, gt, tolerance**2) for tolerance in (0, 1, 3)]
        [0.2222222222222222, 0.4444444444444444, 1.0]
    """
    if not gt.any():
        return math.nan
    box = common_box(pred, gt)
    pred_border, gt_border = _border(pred[box]), _border(gt[box])
    near = _count_near(pred_border, gt_border, squared_tolerance)
    near += _count_near(gt_border, pred_border, squared_tolerance)
    return near / (cv2.countNonZero(pred_border) + cv2.countNonZero(gt_border))


def _border(mask: Mask) -> Bytes:
    grey = np.ascontiguousarray(mask).view(np.uint8)
    inside = cv2.erode(grey, _CROSS, borderType=cv2.BORDER_CONSTANT, borderValue=(0,))
    return grey - np.asarray(inside, dtype=np.uint8)


def _count_near(border: Bytes, other: Bytes, squared_tolerance: int) -> int:
    """Count the pixels of a border whose squared distance to the other border is tolerated."""
    if not other.any():
        return 0
    # float32 tells integer squared distances apart up to 2^20, a tolerance of 1024 pixels
    distances = cv2.distanceTransform(1 - other, cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    near = np.asarray(distances)[border > 0] <= math.sqrt(squared_tolerance + 0.5)
    return int(np.count_nonzero(near))


def common_box(*masks: Mask, margin: int = 0) -> Window:
    """Return the window around all objects of the masks and a margin, as far as the image reaches."""
    height, width = masks[0].shape
    boxes = [cv2.boundingRect(np.ascontiguousarray(mask).view(np.uint8)) for mask in masks]
    boxes = [box for box in boxes if box[2]]
    x0, y0 = (min((box[axis] for box in boxes), default=0) for axis in (0, 1))
    x1, y1 = (max((box[axis] + box[axis + 2] for box in boxes), default=0) for axis in (0, 1))
    rows = slice(max(y0 - margin, 0), min(y1 + margin, height))
    return rows, slice(max(x0 - margin, 0), min(x1 + margin, width))

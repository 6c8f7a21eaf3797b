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
_LARGEST_OF_OPENCV = 6  # the radius up to which its morphology is faster
_LOOKUPS = 2  # pairs of a pixel and a distance in columns that take as long as a pixel's distance
_EXACT = 1 << 20  # squared distances that the distance transform, in float32, tells apart
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
        near = near_boundary(gt, radius)
        accuracies[radius] = cv2.countNonZero(correct & near) / cv2.countNonZero(near)
    return np.array([sum(accuracies[radius] for radius in radii) / _N_RADII])


def near_boundary(gt: Bytes, radius: int) -> Bytes:
    """Return where the morphological gradient of an elliptic element is not zero.

    The time of OpenCV grows with the area of the element. An ellipse is a stack of rows: it holds both
    values if its middle column does, or if one of its rows is longer than the way to the other value.
    """
    ellipse = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1))
    if radius <= _LARGEST_OF_OPENCV:
        return np.asarray(cv2.morphologyEx(gt, cv2.MORPH_GRADIENT, ellipse), dtype=np.uint8)
    reaches = np.count_nonzero(ellipse, axis=1) // 2
    column, row = np.ones((len(ellipse), 1), dtype=np.uint8), np.ones((1, 3), dtype=np.uint8)
    near = np.asarray(cv2.morphologyEx(gt, cv2.MORPH_GRADIENT, column), dtype=np.uint8)
    in_row = np.asarray(cv2.morphologyEx(gt, cv2.MORPH_GRADIENT, row), dtype=np.uint8)
    for reach in range(1, radius + 1):  # `in_row`: the other value is at most so many steps away
        for shift in (np.flatnonzero(reaches == reach) - radius).tolist():
            y0, y1 = max(0, -shift), min(len(gt), len(gt) - shift)
            near[y0:y1] |= in_row[y0 + shift : y1 + shift]
        in_row = np.asarray(cv2.dilate(in_row, row), dtype=np.uint8)
    return near


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
    """Count the pixels of a border whose squared distance to the other border is tolerated.

    Column by column, from the nearest one on: a disc is a stack of vertical lines, and sums down the
    columns tell at once whether a line holds a pixel of the other border. Where this would take longer
    than the distance transform, because many pixels are far (noise, for example), that is used.
    """
    height, width = other.shape
    rows, columns = np.divmod(np.flatnonzero(border.view(np.bool_)), width)
    n_pixels = len(rows)
    if not other.any():
        return 0
    sums = np.zeros((height + 1, width), dtype=np.int32)
    np.cumsum(other, axis=0, out=sums[1:])
    n_steps = min(math.isqrt(squared_tolerance), width - 1) + 1
    for step in range(n_steps):
        if not len(rows):
            break
        if len(rows) * (n_steps - step) > _LOOKUPS * other.size and squared_tolerance <= _EXACT:
            distances = cv2.distanceTransform(1 - other, cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
            far = np.asarray(distances)[rows, columns] > math.sqrt(squared_tolerance + 0.5)
            return n_pixels - int(np.count_nonzero(far))
        reach = math.isqrt(squared_tolerance - step * step)
        for side in (step, -step)[: 1 + (step > 0)]:
            top, bottom = np.maximum(rows - reach, 0), np.minimum(rows + reach + 1, height)
            # beyond the edge of the image, the column at the edge: it is nearer, so nothing is gained
            beside = np.clip(columns + side, 0, width - 1)
            far = sums[top, beside] == sums[bottom, beside]
            rows, columns = rows[far], columns[far]
    return n_pixels - len(rows)


def common_box(*masks: Mask, margin: int = 0) -> Window:
    """Return the window around all objects of the masks and a margin, as far as the image reaches."""
    height, width = masks[0].shape
    boxes = [cv2.boundingRect(np.ascontiguousarray(mask).view(np.uint8)) for mask in masks]
    boxes = [box for box in boxes if box[2]]
    x0, y0 = (min((box[axis] for box in boxes), default=0) for axis in (0, 1))
    x1, y1 = (max((box[axis] + box[axis + 2] for box in boxes), default=0) for axis in (0, 1))
    rows = slice(max(y0 - margin, 0), min(y1 + margin, height))
    return rows, slice(max(x0 - margin, 0), min(x1 + margin, width))

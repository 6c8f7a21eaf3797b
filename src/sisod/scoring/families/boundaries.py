"""Metrics of boundaries at p > 0.5: BIoU, MBA, normalised surface distance, human correction effort.

Like those of `structure`, each takes the pixels and the frames, and returns the image's value followed
by one value per frame (boundary IoU) or the image's alone. Masks are cut to the box around their objects
before anything else: outside it there is no boundary.
"""

import functools
import math
from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.scoring import kernel
from sisod.scoring.arrays import Mask, Values, Window
from sisod.scoring.families.family import WHOLE, Pixels
from sisod.scoring.partition import Frame

Bytes = NDArray[np.uint8]  # 0 and 1
_N_RADII = 5  # of mean boundary accuracy
_RELAX = 5  # pixels; of human correction effort, as the next
_EPSILON = 2.0  # largest distance in pixels of a polygon from the outline that it corrects
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
    if kernel.is_usable(gt):
        near = kernel.count_near(pred_border, gt_border, squared_tolerance)
        near += kernel.count_near(gt_border, pred_border, squared_tolerance)
        return near / (cv2.countNonZero(pred_border) + cv2.countNonZero(gt_border))
    near = 0
    for border, other in ((pred_border, gt_border), (gt_border, pred_border)):
        distance = np.asarray(cv2.distanceTransform(1 - other, cv2.DIST_L2, cv2.DIST_MASK_PRECISE))
        # roots of integers, rounded: between two of them nothing depends on it
        is_near = distance < math.sqrt(squared_tolerance + 0.5)
        near += cv2.countNonZero(border & is_near)
    return near / (cv2.countNonZero(pred_border) + cv2.countNonZero(gt_border))


def _border(mask: Mask) -> Bytes:
    grey = np.ascontiguousarray(mask).view(np.uint8)
    inside = cv2.erode(grey, _CROSS, borderType=cv2.BORDER_CONSTANT, borderValue=(0,))
    return grey - np.asarray(inside, dtype=np.uint8)


def common_box(*masks: Mask, margin: int = 0) -> Window:
    """Return the window around all objects of the masks and a margin, as far as the image reaches."""
    height, width = masks[0].shape
    boxes = [cv2.boundingRect(np.ascontiguousarray(mask).view(np.uint8)) for mask in masks]
    boxes = [box for box in boxes if box[2]]
    x0, y0 = (min((box[axis] for box in boxes), default=0) for axis in (0, 1))
    x1, y1 = (max((box[axis] + box[axis + 2] for box in boxes), default=0) for axis in (0, 1))
    rows = slice(max(y0 - margin, 0), min(y1 + margin, height))
    return rows, slice(max(x0 - margin, 0), min(x1 + margin, width))


def human_correction_effort(pixels: Pixels, frames: Sequence[Frame]) -> Values:  # noqa: ARG001
    """Human correction effort (Qin et al., ECCV 2022), the clicks that correct the map at p > 0.5."""
    box = common_box(pixels.binary, pixels.gt, margin=_RELAX)
    pred, gt = (np.ascontiguousarray(mask[box]).view(np.uint8) for mask in (pixels.binary, pixels.gt))
    correct, false, missed = pred & gt, pred & (1 - gt), gt & (1 - pred)
    inside = np.asarray(cv2.erode(pred | gt, _CROSS, iterations=_RELAX), dtype=np.uint8)
    false_regions = false & _grown(false & inside, 1 - gt)
    missed_regions = missed & _grown(missed & inside, 1 - pred)
    missed_regions |= skeleton(gt.view(np.bool_)).view(np.uint8) & missed
    kept = correct | missed_regions
    effort = _count_clicks(false_regions, kept)
    effort += _count_clicks(missed_regions, 1 - (kept | false_regions))
    return np.array([float(effort)])


def _grown(seeds: Bytes, within: Bytes) -> Bytes:
    """Return regions grown by `_RELAX` pixels, not beyond a mask."""
    for _ in range(_RELAX if seeds.any() else 0):
        seeds = np.asarray(cv2.dilate(seeds, _CROSS), dtype=np.uint8) & within
    return seeds


def _count_clicks(regions: Bytes, opposite: Bytes) -> int:
    """Count the corners of the outlines that touch the opposite side, and the regions without one.

    Args:
        regions: what has to be corrected.
        opposite: what a corrected region is to be joined with, or cut off from.
    """
    if not regions.any():
        return 0
    contours, _ = cv2.findContours(regions, cv2.RETR_TREE, cv2.CHAIN_APPROX_NONE)
    points = np.concatenate(contours).reshape(-1, 2).astype(np.int32, copy=False)
    owner = np.repeat(np.arange(len(contours)), [len(contour) for contour in contours])
    columns, rows = points.T
    touching = np.asarray(cv2.dilate(opposite, _CROSS))[rows, columns] > 0
    touching &= _is_first(rows * regions.shape[1] + columns, regions.size)
    n_labels, labels = cv2.connectedComponents(regions, connectivity=8)
    n_touching = len(np.unique(np.asarray(labels)[rows[touching], columns[touching]]))
    corners = 0
    for lines in _lines(points, owner, touching):
        corners += sum(len(cv2.approxPolyDP(line, _EPSILON, closed=False)) for line in lines)
    return corners + n_labels - 1 - n_touching


def _is_first(places: NDArray[np.intp], size: int) -> Mask:
    """Tell for each pixel of the contours whether it was not listed before."""
    index = np.arange(len(places))
    first = np.empty(size, dtype=np.intp)
    first[places[::-1]] = index[::-1]
    return np.asarray(first[places] == index)


def _lines(
    points: NDArray[np.int32], owner: NDArray[np.intp], touching: Mask
) -> list[list[NDArray[np.int32]]]:
    """Return the touching parts of each contour, pixel after pixel; those of one contour together."""
    index = np.flatnonzero(touching)
    cuts = np.flatnonzero((np.diff(index) > 1) | np.diff(owner[index]).astype(bool)) + 1
    parts = np.split(index, cuts) if len(index) else []
    contours: dict[int, list[NDArray[np.int32]]] = {}
    for part in parts:
        contours.setdefault(int(owner[part[0]]), []).append(points[part])
    for lines in contours.values():
        # a contour has no beginning: a line that was cut there is one line
        if len(lines) > 1 and np.abs(lines[0][0] - lines[-1][-1]).max() == 1:
            lines[-1] = np.concatenate([lines[-1], lines[0][::-1]])
            del lines[0]
    return list(contours.values())


# the bit of each neighbour, clockwise from the upper left one
_BITS = np.array([[1, 2, 4], [128, 0, 8], [64, 32, 16]], dtype=np.uint8)
# neighbourhoods where scikit-image differs from the paper -> what removes the pixel
_DIFFERENT = {
    3: 1, 6: 1, 10: 3, 11: 1, 12: 1, 14: 1, 24: 2, 26: 2, 40: 3, 48: 0, 56: 2, 96: 2, 104: 2, 108: 2,
    129: 0, 130: 3, 131: 1, 134: 1, 160: 3, 161: 1, 176: 2, 192: 2, 194: 1, 198: 1, 224: 2,
}  # fmt: skip


@functools.cache
def _removing_passes() -> NDArray[np.uint8]:
    """Return, for each neighbourhood, what removes the pixel: 1 the first pass, 2 the second, 3 both."""
    table = np.zeros(256, dtype=np.uint8)
    for code in range(256):
        ring = [code >> bit & 1 for bit in range(8)]
        n_starts = sum(ring[bit - 1] < ring[bit] for bit in range(8))
        if 2 <= sum(ring) <= 6 and n_starts == 1:  # on the edge of an object, neither end nor bridge
            up, right, down, left = ring[1::2]
            first = not (right and down and (up or left))
            second = not (up and left and (right or down))
            table[code] = first + 2 * second
        table[code] = _DIFFERENT.get(code, table[code])
    return table


def skeleton(mask: Mask) -> Mask:
    """Return the lines in the middle of the objects of a mask.

    Two passes take turns until neither removes a pixel.

    Example:
        >>> bar = np.zeros((4, 8), dtype=bool)
        >>> bar[:3, :7] = True
        >>> skeleton(bar).astype(int)
        array([[0, 0, 0, 0, 0, 1, 0, 0],
               [1, 1, 1, 1, 1, 0, 0, 0],
               [0, 0, 0, 0, 0, 0, 0, 0],
               [0, 0, 0, 0, 0, 0, 0, 0]])
    """
    box, passes = common_box(mask), _removing_passes()
    lines = np.zeros_like(mask)
    left = np.pad(mask[box].view(np.uint8), 1)
    is_done = kernel.is_usable(left)
    if is_done:
        kernel.thin(left, passes)
    while not is_done:
        before = left.copy()
        for number in (1, 2):
            codes = np.asarray(cv2.filter2D(left, -1, _BITS, borderType=cv2.BORDER_CONSTANT))
            left[passes[codes] & number > 0] = 0
        is_done = bool((left == before).all())
    lines[box] = left[1:-1, 1:-1]
    return lines

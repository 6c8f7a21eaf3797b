"""A slow oracle of the metrics of boundaries: loops over pixels, by the formulas in docs."""

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
Pixel = tuple[int, int]


def pixels_of(mask: Mask) -> set[Pixel]:
    """Return the rows and columns of the pixels of a mask."""
    return {(y, x) for y, x in np.ndindex(*mask.shape) if mask[y, x]}


def boundary_iou(pred: Mask, gt: Mask) -> float:
    """IoU of the pixels with a pixel outside their mask, or outside the image, at most d away."""
    if not gt.any():
        return math.nan
    d = max(1, round(0.02 * math.sqrt(gt.shape[0] ** 2 + gt.shape[1] ** 2)))
    p, g = _band(pred, d), _band(gt, d)
    return len(p & g) / len(p | g)


def _band(mask: Mask, d: int) -> set[Pixel]:
    inside = pixels_of(mask)
    reach = range(-d, d + 1)
    return {(y, x) for y, x in inside if any((y + i, x + j) not in inside for i in reach for j in reach)}


def si_boundary_iou(pred: Mask, gt: Mask, boxes: Iterable[tuple[int, ...]]) -> float:
    """Mean over the frames where it is defined."""
    values = [boundary_iou(pred[y0:y1, x0:x1], gt[y0:y1, x0:x1]) for y0, x0, y1, x1 in boxes]
    defined = [value for value in values if not math.isnan(value)]
    return sum(defined) / len(defined) if defined else math.nan


def boundary_accuracy(pred: Mask, gt: Mask) -> float:
    """Mean over five radii of the share of correct pixels that have both kinds within the radius."""
    height, width = gt.shape
    accuracies = []
    for i in range(5):
        r = 1 + int(((width + height) / 300 - 1) / 5 * i)
        # rows of an ellipse, each rounded to whole pixels
        steps = [(dy, round(math.sqrt(r * r - dy * dy))) for dy in range(-r, r + 1)]
        n_near = n_correct = 0
        for y, x in np.ndindex(height, width):
            around = {
                bool(gt[y + dy, x + dx])
                for dy, half in steps
                for dx in range(-half, half + 1)
                if 0 <= y + dy < height and 0 <= x + dx < width
            }
            if len(around) == 2:
                n_near += 1
                n_correct += bool(pred[y, x] == gt[y, x])
        accuracies.append(n_correct / n_near if n_near else math.nan)
    return sum(accuracies) / 5


def surface_distance(pred: Mask, gt: Mask, tolerance: float | None = None) -> float:
    """Share of border pixels whose nearest border pixel of the other mask is at most tau away."""
    if not gt.any():
        return math.nan
    tau = 0.02 * math.sqrt(gt.shape[0] ** 2 + gt.shape[1] ** 2) if tolerance is None else tolerance
    p, g = _border(pred), _border(gt)
    near = sum(_distance(pixel, g) <= tau + 1e-9 for pixel in p)
    near += sum(_distance(pixel, p) <= tau + 1e-9 for pixel in g)
    return near / (len(p) + len(g))


def _border(mask: Mask) -> set[Pixel]:
    inside = pixels_of(mask)
    sides = ((-1, 0), (0, -1), (0, 1), (1, 0))
    return {(y, x) for y, x in inside if any((y + dy, x + dx) not in inside for dy, dx in sides)}


def _distance(pixel: Pixel, others: set[Pixel]) -> float:
    return min((math.dist(pixel, other) for other in others), default=math.inf)

"""Weighted F (Margolin et al., CVPR 2014): errors weighed by where they are.

An error outside the objects weighs up to twice as much, the further it is from them. An error inside an
object counts as the blurred error around it if that is less; for the blur, a pixel outside has the error
of the nearest pixel of an object.

The errors of an 8-bit map are integers, divided by the range of the map at the end.
"""

import functools
import itertools
from collections.abc import Sequence

import cv2
import numpy as np

from sisod.scoring import kernel
from sisod.scoring.arrays import Values
from sisod.scoring.counting.components import Boxes
from sisod.scoring.families.family import EPS, Pixels
from sisod.scoring.partition import Frame

_STRIP = 1 << 16  # pixels that are summed at a time
_REACH = 3  # of the 7 x 7 Gaussian of sigma 5
_GAUSSIAN = np.exp(-(np.arange(-_REACH, _REACH + 1) ** 2) / 50.0)
_GAUSSIAN /= _GAUSSIAN.sum()
_CROSS = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]], dtype=np.uint8)
_FURTHEST = 4  # rows or columns from a pixel in reach of the filter to the nearest pixel of an object
_FAR = 301  # pixels from an object, from where on the weight of an error does not change
# Steps from a pixel of an object to those that may have it as their nearest; the best come last. Of
# equally near ones that on the left counts, then the upper one: so does SciPy's distance transform, and
# therefore PySODMetrics. The longest step reaches the corner of the filter.
_STEPS = sorted(
    (
        (dy, dx)
        for dy, dx in itertools.product(range(-_FURTHEST, _FURTHEST + 1), repeat=2)
        if 0 < dy * dy + dx * dx <= 2 * _REACH**2
    ),
    key=lambda step: (-(step[0] ** 2) - step[1] ** 2, step[1], step[0]),
)


def weighted_f(pixels: Pixels, frames: Sequence[Frame], *, beta2: float = 1.0) -> Values:
    """Weighted F, beta 1, as PySODMetrics; undefined without an object.

    Errors and weights are computed on the whole image; a frame only sums them over its pixels. On a
    crop, the zero padding would reward missing a small object.

    Args:
        pixels: prediction and ground truth.
        frames: the objects' frames.
        beta2: the square of the weight of recall.

    Returns:
        The value of the image, then those of the frames.
    """
    if not pixels.gt.any():
        return np.full(1 + len(frames), np.nan)
    boxes = pixels.boxes(frames)
    if pixels.pred.dtype == np.uint8 and kernel.is_usable(pixels.gt):
        errors = kernel.weighted_errors(
            pixels.pred, pixels.gt, boxes, _GAUSSIAN, _weights(), pixels.ends
        )
        inside, outside = errors.T / pixels.range
    else:
        x, y, width, height = cv2.boundingRect(pixels.gt.view(np.uint8))
        objects = y, x, y + height, x + width
        window = slice(y, y + height), slice(x, x + width)
        inside = _box_sums(_missed(pixels)[window], objects, boxes) / pixels.range
        outside = _box_sums(_false(pixels), boxes[0].tolist(), boxes) / pixels.range
    counts = np.array([np.count_nonzero(pixels.gt[y0:y1, x0:x1]) for y0, x0, y1, x1 in boxes])
    n_salient = np.where(counts == 0, np.nan, counts)
    detected = n_salient - inside
    recall = 1 - inside / n_salient
    precision = detected / (detected + outside + EPS)
    return np.asarray((1 + beta2) * recall * precision / (recall + beta2 * precision + EPS))


def _false(pixels: Pixels) -> Values:
    """Return the weighted errors of pixels that are not salient, 0 for others."""
    outside = 1 - pixels.gt.view(np.uint8)
    distances = cv2.distanceTransform(outside, cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    near = np.asarray(distances, dtype=np.float32)
    np.minimum(near, _FAR, out=near)
    # distances are roots of integers, rounded to float32
    squared = np.asarray(cv2.multiply(near, near, dtype=cv2.CV_32S), dtype=np.int32)
    errors = _weights().take(squared, mode="clip")
    errors *= pixels.levels * outside
    return errors


def _missed(pixels: Pixels) -> Values:
    """Return the errors of salient pixels, reduced to their blurred value, 0 for other pixels."""
    salient = pixels.gt.view(np.uint8)
    errors = (pixels.range - pixels.levels) * salient
    padded, spread = np.pad(salient, _FURTHEST), np.pad(errors, _FURTHEST)
    # nearest to a pixel outside can only be one whose neighbour in a row or column is outside
    rows, columns = np.nonzero(padded > np.asarray(cv2.erode(padded, _CROSS)))
    at_edge = spread[rows, columns]
    for dy, dx in _STEPS:
        spread[rows + dy, columns + dx] = at_edge
    spread = np.ascontiguousarray(spread[_FURTHEST:-_FURTHEST, _FURTHEST:-_FURTHEST])
    np.copyto(spread, errors, where=pixels.gt)
    blurred = cv2.sepFilter2D(spread, cv2.CV_64F, _GAUSSIAN, _GAUSSIAN, borderType=cv2.BORDER_CONSTANT)
    reduced = np.asarray(blurred)
    return np.minimum(reduced, errors, out=reduced)


def _box_sums(values: Values, area: Sequence[int], boxes: Boxes) -> Values:
    """Return the sum over each box of the values of an area; outside it they are 0.

    The sums of strips of rows are added, whose rounding errors are small.
    """
    top, left, bottom, right = area
    n_rows = max(1, _STRIP // (right - left))
    sums = []
    for y0, x0, y1, x1 in boxes.tolist():
        columns = slice(max(x0 - left, 0), max(x1 - left, 0))
        strips = (
            values[max(y0, y) - top : max(min(y1, y + n_rows), y) - top, columns]
            for y in range(top, bottom, n_rows)
        )
        sums.append(sum(float(strip.sum()) for strip in strips))
    return np.array(sums)


@functools.cache
def _weights() -> Values:
    """Return the weight of an error by its squared distance to the object: 2 - 2^(-d/5), 1 inside."""
    return 2 - np.asarray(0.5 ** (np.sqrt(np.arange(_FAR**2)) / 5))

"""Weighted F (Margolin et al., CVPR 2014): errors weighed by where they are.

An error outside the objects weighs up to twice as much, the further it is from them. An error inside an
object counts as the blurred error around it if that is less; for the blur, a pixel outside has the error
of the nearest pixel of an object.

Nothing of the size of the image is made but the distances and the inverted ground truth: the rest is
computed in strips, and the errors of an 8-bit map are integers, divided by the range of the map
at the end.
"""

import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.scoring import kernel
from sisod.scoring.arrays import Mask, Values, Window
from sisod.scoring.families.family import EPS, Pixels
from sisod.scoring.partition import Frame

Box = tuple[int, int, int, int]  # y0, x0, y1, x1, half-open
Errors = NDArray[Any]  # uint8 in grey levels, or float64 in [0, 1]
_STRIP = 1 << 16  # pixels that are computed at a time: they stay in the cache
_REACH = 3  # of the 7 x 7 Gaussian of sigma 5
_GAUSSIAN = np.exp(-(np.arange(-_REACH, _REACH + 1) ** 2) / 50.0)
_GAUSSIAN /= _GAUSSIAN.sum()
_CROSS = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]], dtype=np.uint8)
_FURTHEST = 4  # rows or columns from a pixel in reach of the filter to the nearest pixel of an object
_PADDING = 2 * _FURTHEST
_SQUARABLE = 46340  # the largest distance whose square is an int32
# Steps from a pixel of an object to those that may have it as their nearest; the best come last. Of
# equally near ones that on the left counts, then the upper one: so does SciPy's distance transform, and
# therefore PySODMetrics. The longest step reaches the corner of the filter.
_STEPS = np.array(
    sorted(
        (
            (dy, dx)
            for dy, dx in itertools.product(range(-_FURTHEST, _FURTHEST + 1), repeat=2)
            if 0 < dy * dy + dx * dx <= 2 * _REACH**2
        ),
        key=lambda step: (-(step[0] ** 2) - step[1] ** 2, step[1], step[0]),
    )
)


def weighted_f(pixels: Pixels, frames: Sequence[Frame], *, beta2: float = 1.0) -> Values:
    """Weighted F, beta 1, as PySODMetrics; undefined without an object.

    Errors and weights are computed on the whole image; a frame only sums them over its pixels. On a
    crop, the zero padding would reward missing a small object.
    """
    if not pixels.gt.any():
        return np.full(1 + len(frames), np.nan)
    rows = pixels.boxes(frames)
    boxes = [(y0, x0, y1, x1) for y0, x0, y1, x1 in rows.tolist()]
    inside: Sequence[float]
    outside: Sequence[float]
    if pixels.pred.dtype == np.uint8 and kernel.is_usable(pixels.gt):
        levels = kernel.weighted_errors(pixels.pred, pixels.gt, rows, _GAUSSIAN, _weights(), pixels.ends)
        inside, outside = (levels / pixels.range).T.tolist()
    else:
        errors = _WeightedErrors.from_pixels(pixels)
        inside, outside = errors.inside(boxes), errors.outside(boxes)
    sums = zip(boxes, inside, outside, strict=True)
    return np.array(
        [_score(pixels.gt[y0:y1, x0:x1], *both, beta2=beta2) for (y0, x0, y1, x1), *both in sums]
    )


def _score(gt: Mask, missed: float, false: float, *, beta2: float) -> float:
    n_salient = int(np.count_nonzero(gt))
    if n_salient == 0:
        return float("nan")
    detected = n_salient - missed
    recall = 1 - missed / n_salient
    precision = detected / (detected + false + EPS)
    return (1 + beta2) * recall * precision / (recall + beta2 * precision + EPS)


@dataclass(frozen=True, eq=False)
class _WeightedErrors:
    """The weighted errors of an image, summed over boxes.

    Attributes:
        pixels: prediction and ground truth.
        is_salient: 1 where the ground truth is salient.
        is_outside: 1 where it is not.
        distances: from each pixel to the nearest object: roots of integers, rounded to float32.
    """

    pixels: Pixels
    is_salient: NDArray[np.uint8]
    is_outside: NDArray[np.uint8]
    distances: NDArray[np.float32]

    @classmethod
    def from_pixels(cls, pixels: Pixels) -> "_WeightedErrors":
        salient = pixels.gt.view(np.uint8)
        outside = 1 - salient
        transform = cv2.distanceTransform(outside, cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
        distances = np.asarray(transform, dtype=np.float32)
        if sum(distances.shape) > _SQUARABLE:
            np.minimum(distances, _SQUARABLE, out=distances)
        return cls(pixels, salient, outside, distances)

    def outside(self, boxes: Sequence[Box]) -> list[float]:
        """Return the sum over the pixels of each box that are not salient."""
        height, width = self.is_outside.shape
        sums = [0.0] * len(boxes)
        for strip in _strips((0, 0, height, width)):
            near = self.distances[_window(strip)]
            # the weight is constant long before the rounding of float32 loses the integer
            squared = np.asarray(cv2.multiply(near, near, dtype=cv2.CV_32S), dtype=np.int32)
            weighted = _weights().take(squared, mode="clip")
            weighted *= self.pixels.levels(_window(strip)) * self.is_outside[_window(strip)]
            _add_sums(sums, weighted, strip, boxes)
        return [total / self.pixels.range for total in sums]

    def inside(self, boxes: Sequence[Box]) -> list[float]:
        """Return the sum over the salient pixels of each box."""
        x, y, width, height = cv2.boundingRect(self.is_salient)
        sums = [0.0] * len(boxes)
        for strip in _strips((y, x, y + height, x + width)):
            _add_sums(sums, self._softened(strip), strip, boxes)
        return [total / self.pixels.range for total in sums]

    def _softened(self, box: Box) -> Values:
        """Return errors reduced to their blurred value, of the salient pixels of a box; else 0."""
        near = self._grown(box, _REACH)
        error = self._spread_errors(near)
        kind = cv2.CV_64F
        smooth = cv2.sepFilter2D(error, kind, _GAUSSIAN, _GAUSSIAN, borderType=cv2.BORDER_CONSTANT)
        softened = np.asarray(smooth)[_window(box, near)]
        return np.minimum(softened, self._missed(box), out=softened)

    def _missed(self, box: Box) -> Errors:
        """Return the errors of salient pixels, 0 for others."""
        return self.pixels.missing_levels(_window(box)) * self.is_salient[_window(box)]

    def _spread_errors(self, box: Box) -> Errors:
        """Return the errors of salient pixels, and around them that of the nearest salient pixel."""
        wide = self._grown(box, _FURTHEST)
        salient = _padded(self.is_salient[_window(wide)], box, wide)
        error = _padded(self._missed(wide), box, wide)
        # nearest to a pixel outside can only be one whose neighbour in a row or column is outside
        edge = np.flatnonzero(salient > cv2.erode(salient, _CROSS))
        targets = _STEPS @ (salient.shape[1], 1)
        targets = targets[:, None] + edge
        spread = error.copy()
        # of several values assigned to one pixel NumPy keeps the last
        spread.ravel()[targets.ravel()] = np.tile(error.ravel()[edge], len(targets))
        np.copyto(spread, error, where=salient.view(np.bool_))
        return spread[_PADDING:-_PADDING, _PADDING:-_PADDING]

    def _grown(self, box: Box, margin: int) -> Box:
        """Return the box with a margin, as far as the image goes."""
        height, width = self.is_salient.shape
        y0, x0, y1, x1 = box
        return (
            max(y0 - margin, 0),
            max(x0 - margin, 0),
            min(y1 + margin, height),
            min(x1 + margin, width),
        )


def _strips(box: Box) -> Iterator[Box]:
    """Cut a box into strips of whole rows."""
    y0, x0, y1, x1 = box
    n_rows = max(1, _STRIP // (x1 - x0))
    return ((y, x0, min(y + n_rows, y1), x1) for y in range(y0, y1, n_rows))


def _window(box: Box, outer: Box = (0, 0, 0, 0)) -> Window:
    """Return the pair of slices that cuts a box out of an array of a larger one, or of the image."""
    y, x = outer[:2]
    return slice(box[0] - y, box[2] - y), slice(box[1] - x, box[3] - x)


def _add_sums(sums: list[float], values: Values, strip: Box, boxes: Sequence[Box]) -> None:
    """Add to the sum of each box the values of a strip that lie in it."""
    for index, box in enumerate(boxes):
        y0, x0 = max(box[0], strip[0]), max(box[1], strip[1])
        y1, x1 = min(box[2], strip[2]), min(box[3], strip[3])
        if y0 < y1 and x0 < x1:
            sums[index] += float(values[_window((y0, x0, y1, x1), strip)].sum())


def _padded(array: NDArray[Any], box: Box, wide: Box) -> NDArray[Any]:
    """Complete an array of `wide` with zeros, to a margin of `_PADDING` around the box."""
    top, left = _PADDING - (box[0] - wide[0]), _PADDING - (box[1] - wide[1])
    bottom, right = _PADDING - (wide[2] - box[2]), _PADDING - (wide[3] - box[3])
    return np.asarray(cv2.copyMakeBorder(array, top, bottom, left, right, cv2.BORDER_CONSTANT))


@functools.cache
def _weights() -> Values:
    """Return the weight of an error by its squared distance to the object: 2 - 2^(-d/5), 1 inside."""
    return 2 - np.asarray(0.5 ** (np.sqrt(np.arange(301**2)) / 5))  # constant from there on

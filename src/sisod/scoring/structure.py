"""The metrics that need pixels, not only counts: S-measure, weighted F, multi-scale IoU.

Each takes the pixels and the frames, and returns the image's value followed by one value per frame
(multi-scale IoU, which has no size-invariant form, the image's alone).
"""

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.scoring.arrays import Map, Normalize, grey_table, unit_values
from sisod.scoring.histograms import LEVELS, count_codes
from sisod.scoring.partition import Frame

Values = NDArray[np.float64]
Mask = NDArray[np.bool_]
Window = tuple[slice, slice]
_EPS = float(np.spacing(1))  # added where PySODMetrics adds it
_WHOLE = (slice(None), slice(None))


@dataclass(frozen=True, eq=False)
class Pixels:
    """A checked prediction and its ground truth."""

    pred: Map
    gt: Mask
    normalize: Normalize

    def values(self) -> Values:
        """Return p, a new array that may be written to."""
        return unit_values(self.pred, normalize=self.normalize)

    def moments(self, window: Window) -> "tuple[Moments, Moments]":
        """Return the moments of p over the window's pixels that are not salient, and over the others."""
        gt = self.gt[window]
        if self.pred.dtype != np.uint8:
            p = self._float_values[window]
            return Moments.from_values(p[~gt]), Moments.from_values(p[gt])
        grey, salient = self.pred[window], gt.view(np.uint8)
        both, inside = count_codes(grey, LEVELS), count_codes(grey, LEVELS, salient)
        return Moments.from_values(self._table, both - inside), Moments.from_values(self._table, inside)

    @functools.cached_property
    def _float_values(self) -> Values:
        return self.values()

    @functools.cached_property
    def _table(self) -> Values:
        return grey_table(int(self.pred.min()), int(self.pred.max()), normalize=self.normalize)


@dataclass(frozen=True)
class Moments:
    """Number, mean, and sum of squared deviations from the mean."""

    count: float
    mean: float
    spread: float

    @classmethod
    def from_values(cls, values: Values, counts: Values | None = None) -> "Moments":
        """Return the moments of values, each occurring as often as `counts` says."""
        if counts is not None:
            values, counts = values[counts > 0], counts[counts > 0]
        else:
            counts = np.ones(len(values))
        count = float(counts.sum())
        if count == 0:
            return cls(0.0, 0.0, 0.0)
        if values.min() == values.max():  # constant: a rounded mean must not give a spread
            return cls(count, float(values[0]), 0.0)
        mean = float((counts * values).sum()) / count
        return cls(count, mean, float((counts * (values - mean) ** 2).sum()))

    def plus(self, other: "Moments") -> "Moments":
        """Return the moments of both sets together."""
        count = self.count + other.count
        if count == 0 or other.count == 0:
            return self
        step = other.mean - self.mean
        share = other.count / count
        spread = self.spread + other.spread + step * step * self.count * share
        return Moments(count, self.mean + step * share, spread)


def s_measure(pixels: Pixels, frames: Sequence[Frame], *, alpha: float = 0.5) -> Values:
    """Structure measure (Fan et al., ICCV 2017), object and region similarity in equal parts."""
    windows = [_WHOLE, *(frame.window for frame in frames)]
    return np.array([_s_of_window(pixels, window, alpha) for window in windows])


def _s_of_window(pixels: Pixels, window: Window, alpha: float) -> float:
    gt = pixels.gt[window]
    regions = [pixels.moments(part) for part in _quadrants(gt, window)]
    outside, inside = regions[0]
    for others in regions[1:]:
        outside, inside = outside.plus(others[0]), inside.plus(others[1])
    if inside.count == 0:
        return 1 - outside.mean
    if outside.count == 0:
        return inside.mean
    share = inside.count / gt.size
    foreground, background = _object(inside.mean, inside), _object(1 - outside.mean, outside)
    object_similarity = share * foreground + (1 - share) * background
    region_similarity = sum(
        (negative.count + positive.count) / gt.size * _region(negative, positive)
        for negative, positive in regions
    )
    return max(0.0, alpha * object_similarity + (1 - alpha) * region_similarity)


def _object(mean: float, values: Moments) -> float:
    deviation = math.sqrt(values.spread / (values.count - 1)) if values.count > 1 else 0.0
    return 2 * mean / (mean * mean + 1 + deviation + _EPS)


def _quadrants(gt: Mask, window: Window) -> list[Window]:
    """Return the four parts around the centroid of the salient pixels, without empty ones."""
    height, width = gt.shape
    n_salient = int(np.count_nonzero(gt))
    if n_salient == 0:
        return [window]
    y = round(int(np.arange(height) @ np.count_nonzero(gt, axis=1)) / n_salient) + 1
    x = round(int(np.arange(width) @ np.count_nonzero(gt, axis=0)) / n_salient) + 1
    top, left = window[0].start or 0, window[1].start or 0
    rows = [slice(top, top + y), slice(top + y, top + height)]
    columns = [slice(left, left + x), slice(left + x, left + width)]
    return [(r, c) for r in rows for c in columns if r.start < r.stop and c.start < c.stop]


def _region(negative: Moments, positive: Moments) -> float:
    """Return SSIM without its constants: 1 if both are constant and black, 0 if only one is constant."""
    both = negative.plus(positive)
    g_mean = positive.count / both.count
    # sums of (g - mean)^2 and of (p - mean)(g - mean), for g of 0 and 1
    g_spread = positive.count * (1 - g_mean)
    joint = g_spread * (positive.mean - negative.mean)
    numerator = 4 * both.mean * g_mean * joint / (both.count - 1 + _EPS)
    denominator = (both.mean**2 + g_mean**2) * (both.spread + g_spread) / (both.count - 1 + _EPS)
    if numerator != 0:
        return numerator / (denominator + _EPS)
    return 1.0 if denominator == 0 else 0.0


def weighted_f(pixels: Pixels, frames: Sequence[Frame], *, beta2: float = 1.0) -> Values:
    """Weighted F (Margolin et al., CVPR 2014), beta 1, as PySODMetrics; undefined without an object.

    Errors and weights are computed on the whole image; a frame only sums them over its pixels. On a
    crop, the zero padding would reward missing a small object.
    """
    gt = pixels.gt
    if not gt.any():
        return np.full(1 + len(frames), np.nan)
    error = _weighted_error(pixels)
    windows = [_WHOLE, *(frame.window for frame in frames)]
    return np.array([_weighted_f_of_window(error[window], gt[window], beta2) for window in windows])


def _weighted_f_of_window(error: Values, gt: Mask, beta2: float) -> float:
    n_salient = int(np.count_nonzero(gt))
    if n_salient == 0:
        return float("nan")
    missed = float(error[gt].sum())
    detected = n_salient - missed
    recall = 1 - missed / n_salient
    precision = detected / (detected + float(error[~gt].sum()) + _EPS)
    return (1 + beta2) * recall * precision / (recall + beta2 * precision + _EPS)


def _weighted_error(pixels: Pixels) -> Values:
    gt = pixels.gt
    salient = gt.view(np.uint8)
    error = pixels.values()
    error -= gt
    np.abs(error, out=error)
    distance = cv2.distanceTransform(1 - salient, cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    # float32 roots of integers; the weight is constant long before rounding loses the integer
    rounded = np.asarray(cv2.multiply(distance, distance, dtype=cv2.CV_32S), dtype=np.int32)
    weights = _weights()
    squared = np.minimum(rounded, len(weights) - 1, out=rounded)
    # errors inside the object are reduced to their blurred value; nothing outside the window matters
    x, y, width, height = cv2.boundingRect(salient)
    rows = slice(max(y - _REACH, 0), y + height + _REACH)
    window = rows, slice(max(x - _REACH, 0), x + width + _REACH)
    near = _extended(error[window], gt[window], squared[window])
    smooth = cv2.sepFilter2D(near, -1, _GAUSSIAN, _GAUSSIAN, borderType=cv2.BORDER_CONSTANT)
    softened = error[window]
    np.minimum(softened, smooth, out=softened, where=gt[window])
    # errors outside weigh up to twice as much, the further they are from the object
    for start in range(0, len(error), 32):  # strip by strip: no second map of the image's size
        strip = slice(start, start + 32)
        error[strip] *= weights[squared[strip]]
    return error


_REACH = 3  # of the 7 x 7 Gaussian of sigma 5
_GAUSSIAN = np.exp(-(np.arange(-_REACH, _REACH + 1) ** 2) / 50.0)
_GAUSSIAN /= _GAUSSIAN.sum()
# steps of each squared length, in the order in which SciPy's distance transform, and therefore
# PySODMetrics, breaks ties: left first, then up; the longest step reaches the corner of the filter
_STEPS: dict[int, list[tuple[int, int]]] = {}
for _dx, _dy in itertools.product(range(-4, 5), repeat=2):
    if 0 < _dx * _dx + _dy * _dy <= 2 * _REACH**2:
        _STEPS.setdefault(_dx * _dx + _dy * _dy, []).append((_dx, _dy))


@functools.cache
def _weights() -> Values:
    """Return the weight of an error by its squared distance to the object: 2 - 2^(-d/5), 1 inside."""
    return 2 - np.asarray(0.5 ** (np.sqrt(np.arange(301**2)) / 5))  # constant from there on


def _extended(error: Values, gt: Mask, squared: NDArray[np.int32]) -> Values:
    """Give every outside pixel within the filter's reach the error of the nearest object pixel."""
    height, width = gt.shape
    margin = 4
    wide = width + 2 * margin
    inside = np.zeros((height + 2 * margin, wide), dtype=np.bool_)
    inside[margin:-margin, margin:-margin] = gt
    inside = inside.ravel()
    rows, columns = np.nonzero((squared > 0) & (squared <= 2 * _REACH**2))
    lengths = squared[rows, columns]
    start = (rows + margin) * wide + columns + margin
    nearest = np.empty_like(start)
    for length, steps in _STEPS.items():
        remaining = np.flatnonzero(lengths == length)
        for dx, dy in steps:
            target = start[remaining] + dy * wide + dx
            hit = inside[target]
            nearest[remaining[hit]] = target[hit]
            remaining = remaining[~hit]
    extended = error.copy()
    near_rows, near_columns = np.divmod(nearest, wide)
    extended[rows, columns] = error[near_rows - margin, near_columns - margin]
    return extended


def multiscale_iou(pixels: Pixels, frames: Sequence[Frame]) -> Values:  # noqa: ARG001
    """Multi-scale IoU of edges at p > 0.5 (Ahmadzadeh et al., ICIP 2021), as PySODMetrics."""
    if not pixels.gt.any():
        return np.full(1, np.nan)
    pred_edges, gt_edges = edge_pyramid(pixels.values() > 0.5), edge_pyramid(pixels.gt)
    return np.array([compare_edges(pred_edges, gt_edges)])


def edge_pyramid(mask: Mask) -> list[Mask]:
    """Return the edges of a mask at ten scales: cells of 1, 2, 4 ... 512 pixels that hold an edge."""
    scales = [_edges(mask)]
    for _ in range(9):
        scales.append(_halved(scales[-1]))
    return scales


def compare_edges(pred_edges: Sequence[Mask], gt_edges: Sequence[Mask]) -> float:
    """Return the area under the curve of edge recall over the scales; one is added to both counts."""
    ratios = [
        (np.count_nonzero(pred & gt) + 1) / (np.count_nonzero(gt) + 1)
        for pred, gt in zip(pred_edges, gt_edges, strict=True)
    ]
    return float(np.trapezoid(ratios, dx=1 / (len(ratios) - 1)))


def _edges(mask: Mask) -> Mask:
    """Return the pixels with a Sobel gradient other than zero, on an image padded with zeros."""
    grey, zeros = mask.view(np.uint8), cv2.BORDER_CONSTANT
    dx = cv2.Sobel(grey, cv2.CV_16S, 1, 0, borderType=zeros)
    dy = cv2.Sobel(grey, cv2.CV_16S, 0, 1, borderType=zeros)
    return np.asarray((dx != 0) | (dy != 0))


def _halved(cells: Mask) -> Mask:
    """Join cells 2 x 2, counted from the lower right corner; a cell is set if any of its parts is."""
    height, width = cells.shape
    even = np.pad(cells, ((height % 2, 0), (width % 2, 0)))
    rows = even[0::2] | even[1::2]
    return np.asarray(rows[:, 0::2] | rows[:, 1::2])

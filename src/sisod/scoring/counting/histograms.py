"""The one pass over pixels: counts per grey level, salient or not, for the image and every frame.

A prediction becomes a map of at most 258 *codes* in the order of p. Every threshold of a metric (256
grey levels, p > 0.5, the adaptive one) is a cut in that order, so the counts per code are sufficient.
For an 8-bit map the code is the grey value itself.
"""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sisod.scoring import kernel
from sisod.scoring.arrays import Map, Mask, Normalize, Values, grey_table, unit_values
from sisod.scoring.partition import Partition

Codes = NDArray[Any]  # uint8 or uint16
LEVELS = 256
BINARY, ADAPTIVE = LEVELS, LEVELS + 1  # columns after the 256 thresholds
COLUMNS = LEVELS + 2
_THRESHOLDS = np.arange(LEVELS)


@dataclass(frozen=True, eq=False)
class Histogram:
    """Sufficient statistics of one image.

    Rows are the image, then its frames, then the union of the frames.

    Attributes:
        counts: shape (rows, 2, codes): pixels not salient and salient of each code.
        cuts: the least code that is predicted at each threshold t = 0..255, at p > 0.5, and at the
            adaptive threshold.
        absolute: sum of |p - gt| per row.
        squared: sum of (p - gt)^2 per row.
    """

    counts: Values
    cuts: NDArray[np.int64]
    absolute: Values
    squared: Values

    @functools.cached_property
    def above(self) -> Values:
        """Shape (rows, 2, 258): pixels not salient and salient that are predicted at each threshold."""
        rows, classes, codes = self.counts.shape
        below = np.zeros((rows, classes, codes + 1))
        np.cumsum(self.counts, axis=2, out=below[..., 1:])
        return np.asarray(below[..., -1:] - below.take(self.cuts, axis=2))

    @functools.cached_property
    def totals(self) -> Values:
        """Shape (rows, 2): pixels not salient and salient."""
        return np.asarray(self.counts.sum(axis=2))


def histogram(
    pred: Map, gt: Mask, partition: Partition, *, normalize: Normalize = "minmax"
) -> Histogram:
    """Count one checked prediction against its ground truth, per code, for the image and its frames.

    Args:
        pred: the prediction, checked by `as_map`.
        gt: the ground truth, of the same shape.
        partition: the frames.
        normalize: `"minmax"` stretches the prediction to [0, 1].

    Returns:
        All that a metric of counts needs.

    Example:
        A 1 x 4 map, the last two pixels salient: three pixels are predicted at t = 100.

        >>> from sisod.scoring.partition import partition
        >>> gt = np.array([[False, False, True, True]])
        >>> pred = np.array([[0, 200, 100, 255]], dtype=np.uint8)
        >>> histogram(pred, gt, partition(gt)).above[0, :, 100]  # not salient, salient
        array([1., 2.])
    """
    if pred.dtype == np.uint8:
        ends = int(pred.min()), int(pred.max())
        return grey_histogram(count_rows(pred, gt, partition, LEVELS), ends, gt.size, normalize)
    return _float_histogram(unit_values(pred, normalize=normalize), gt, partition)


def grey_histogram(counts: Values, ends: tuple[int, int], size: int, normalize: Normalize) -> Histogram:
    """Return the histogram of an 8-bit map from its counts per grey value.

    Args:
        counts: as in `Histogram`.
        ends: the extreme grey values.
        size: pixels of the image.
        normalize: as for `histogram`.
    """
    p, fixed_cuts = grey_cuts(*ends, normalize)
    grey = counts[0, 0] + counts[0, 1]
    adaptive = min(2.0 * float((grey * p).sum()) / size, 1.0)
    cuts = fixed_cuts.copy()
    cuts[ADAPTIVE] = p.searchsorted(adaptive)
    # not a BLAS matrix product: equal rows must give equal sums, to the last bit
    flat, (error, square) = counts.reshape(len(counts), -1), _grey_errors(*ends, normalize)
    return Histogram(counts, cuts, np.einsum("rc,c->r", flat, error), np.einsum("rc,c->r", flat, square))


@functools.lru_cache
def _grey_errors(low: int, high: int, normalize: Normalize) -> tuple[Values, Values]:
    """Return the errors of each grey level, not salient then salient, and their squares."""
    p = grey_table(low, high, normalize=normalize)
    error = np.concatenate([p, 1 - p])
    return error, error * error


@functools.lru_cache
def grey_cuts(low: int, high: int, normalize: Normalize) -> tuple[Values, NDArray[np.int64]]:
    """Return p of each grey level, and the cuts that depend on minimum and maximum only."""
    p = grey_table(low, high, normalize=normalize)
    cuts = np.zeros(COLUMNS, dtype=np.int64)
    cuts[:LEVELS] = np.searchsorted(np.floor(255 * p), _THRESHOLDS)
    cuts[BINARY] = np.searchsorted(p, 0.5, side="right")
    return p, cuts


def _float_histogram(p: Values, gt: Mask, partition: Partition) -> Histogram:
    adaptive = min(2.0 * float(p.mean()), 1.0)
    # a sum of step functions of p, so codes have the order of p
    codes = np.floor(255 * p).astype(np.uint16) + (p > 0.5) + (p >= adaptive)
    cuts = np.empty(COLUMNS, dtype=np.int64)
    level = int(255 * adaptive)
    cuts[:LEVELS] = _THRESHOLDS + (_THRESHOLDS >= 128) + (level < _THRESHOLDS)
    cuts[BINARY] = 128 + (adaptive <= 0.5)
    cuts[ADAPTIVE] = level + (adaptive > 0.5) + 1
    error = p - gt
    return Histogram(
        counts=count_rows(codes, gt, partition, COLUMNS),
        cuts=cuts,
        absolute=_row_sums(np.abs(error), partition),
        squared=_row_sums(error * error, partition),
    )


def count_rows(codes: Codes, gt: Mask, partition: Partition, n_codes: int) -> Values:
    """Return the number of pixels per row of a histogram, class and code."""
    if partition.regions is None and kernel.is_usable(gt):
        return kernel.count(codes, gt, partition.boxes, n_codes)
    counts = np.empty((len(partition) + 2, 2, n_codes))
    if partition.regions is not None:
        cells = (partition.regions * 2 + gt) * n_codes + codes
        counts[1:-1] = np.bincount(cells.ravel(), minlength=counts[1:-1].size).reshape(-1, 2, n_codes)
        counts[0] = counts[-1] = counts[1:-1].sum(axis=0)
        return counts
    for row, (y0, x0, y1, x1) in enumerate(partition.boxes.tolist(), start=1):
        counts[row] = count_classes(codes[y0:y1, x0:x1], gt[y0:y1, x0:x1], n_codes)
    counts[0] = count_classes(codes, gt, n_codes)
    outside = partition.background
    counts[-1] = counts[0] - count_classes(codes[outside], gt[outside], n_codes)
    return counts


def count_classes(codes: Codes, gt: Mask, n_codes: int) -> Values:
    """Return the number of pixels not salient and salient per code, shape (2, codes).

    Example:
        >>> codes = np.array([[0, 2, 2]], dtype=np.uint8)
        >>> count_classes(codes, np.array([[False, True, True]]), 3)
        array([[1., 0., 0.],
               [0., 0., 2.]])
    """
    cells = np.multiply(gt, n_codes, dtype=np.uint16) + codes
    return np.bincount(cells.ravel(), minlength=2 * n_codes).reshape(2, n_codes).astype(np.float64)


def _row_sums(values: Values, partition: Partition) -> Values:
    """Return the sums over the rows of a histogram."""
    sums = np.empty(len(partition) + 2)
    sums[0] = values.sum()
    if partition.regions is not None:
        weights = values.ravel()
        sums[1:-1] = np.bincount(partition.regions.ravel(), weights, minlength=len(partition))
        sums[-1] = sums[0]
        return sums
    for row, (y0, x0, y1, x1) in enumerate(partition.boxes.tolist(), start=1):
        sums[row] = values[y0:y1, x0:x1].sum()
    if partition.disjoint:
        sums[-1] = sums[1:-1].sum()
    else:
        sums[-1] = values[~partition.background].sum()
    return sums

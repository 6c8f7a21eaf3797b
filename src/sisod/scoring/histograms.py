"""The one pass over pixels: counts per grey level, salient or not, for the image and every frame.

A prediction becomes a map of at most 258 *codes* in the order of p. Every threshold of a metric (256
grey levels, p > 0.5, the adaptive one) is a cut in that order, so the counts per code are sufficient.
For an 8-bit map the code is the grey value itself.
"""

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.scoring.arrays import Map, Normalize, grey_table, unit_values
from sisod.scoring.components import Components, Integers
from sisod.scoring.partition import Partition

Values = NDArray[np.float64]
Codes = NDArray[Any]  # uint8 or uint16
LEVELS = 256
BINARY, ADAPTIVE = LEVELS, LEVELS + 1  # columns after the 256 thresholds
COLUMNS = LEVELS + 2
_THRESHOLDS = np.arange(LEVELS)
_FLOAT32_EXACT = 1 << 24
_NO_QUADRANTS = np.empty((0, 4, 2, LEVELS))
_FEW_BOXES = 31  # places with and without salient pixels, in four parts: 256 numbers
FEW_COMPONENTS = 63  # whose pixels `count_grey` counts
_SPILLED, _SALIENT = 1, 2  # kinds of their pixels; 0 for the others


@dataclass(frozen=True, eq=False)
class Histogram:
    """Sufficient statistics of one image.

    Rows are the image, then its frames, then the union of the frames.

    Attributes:
        above: shape (rows, 2, 258): pixels not salient and salient that are predicted at each
            threshold t = 0..255, at p > 0.5, and at the adaptive threshold.
        totals: shape (rows, 2): pixels not salient and salient.
        absolute: sum of |p - gt| per row.
        squared: sum of (p - gt)^2 per row.
        quadrants: shape (rows, 4, 2, 256): pixels not salient and salient per grey value, of the four
            parts around the centroid of the salient pixels. Only the first rows, of an 8-bit map, and
            only if S needs them.
    """

    above: Values
    totals: Values
    absolute: Values
    squared: Values
    quadrants: Values

    def without_quadrants(self) -> "Histogram":
        """Return the same counts without those of the quadrants, which are large."""
        return Histogram(self.above, self.totals, self.absolute, self.squared, _NO_QUADRANTS)


def histogram(
    pred: Map,
    gt: NDArray[np.bool_],
    partition: Partition,
    *,
    normalize: Normalize = "minmax",
    n_quartered: int = 0,
) -> Histogram:
    """Count one checked prediction against its ground truth, per code, for the image and its frames.

    The first `n_quartered` rows of an 8-bit map are also counted by quadrant.

    Example:
        A 1 x 4 map, the last two pixels salient: three pixels are predicted at t = 100.

        >>> from sisod.scoring.partition import partition
        >>> gt = np.array([[False, False, True, True]])
        >>> pred = np.array([[0, 200, 100, 255]], dtype=np.uint8)
        >>> histogram(pred, gt, partition(gt)).above[0, :, 100]  # not salient, salient
        array([1., 2.])
    """
    if pred.dtype == np.uint8:
        return _grey_histogram(pred, gt, partition, normalize, n_quartered)
    return _float_histogram(unit_values(pred, normalize=normalize), gt, partition)


def _grey_histogram(
    pred: Codes, gt: NDArray[np.bool_], partition: Partition, normalize: Normalize, n_quartered: int
) -> Histogram:
    quadrants = np.empty((n_quartered, 4, 2, LEVELS))
    counts = count_rows(pred, gt, partition, LEVELS, quadrants)
    grey = counts[0].sum(axis=0)
    used = np.flatnonzero(grey)
    p, fixed_cuts = grey_cuts(int(used[0]), int(used[-1]), normalize)
    adaptive = min(2.0 * float((grey * p).sum()) / pred.size, 1.0)
    cuts = fixed_cuts.copy()
    cuts[ADAPTIVE] = np.searchsorted(p, adaptive)
    error = np.concatenate([p, 1 - p])
    # not a BLAS matrix product: equal rows must give equal sums, to the last bit
    flat = counts.reshape(len(counts), -1)
    absolute = np.einsum("rc,c->r", flat, error)
    squared = np.einsum("rc,c->r", flat, error * error)
    return Histogram(_above(counts, cuts), counts.sum(axis=2), absolute, squared, quadrants)


@functools.lru_cache
def grey_cuts(low: int, high: int, normalize: Normalize) -> tuple[Values, NDArray[np.intp]]:
    """Return p of each grey level, and the cuts that depend on minimum and maximum only."""
    p = grey_table(low, high, normalize=normalize)
    cuts = np.zeros(COLUMNS, dtype=np.intp)
    cuts[:LEVELS] = np.searchsorted(np.floor(255 * p), _THRESHOLDS)
    cuts[BINARY] = np.searchsorted(p, 0.5, side="right")
    return p, cuts


def _float_histogram(p: Values, gt: NDArray[np.bool_], partition: Partition) -> Histogram:
    adaptive = min(2.0 * float(p.mean()), 1.0)
    # a sum of step functions of p, so codes have the order of p
    levels = 255 * p
    codes = np.floor(levels, out=levels).astype(np.uint16)
    del levels  # in place and freed early: a copy of a large map is expensive
    codes += p > 0.5
    codes += p >= adaptive
    cuts = np.empty(COLUMNS, dtype=np.intp)
    level = int(255 * adaptive)
    cuts[:LEVELS] = _THRESHOLDS + (_THRESHOLDS >= 128) + (level < _THRESHOLDS)
    cuts[BINARY] = 128 + (adaptive <= 0.5)
    cuts[ADAPTIVE] = level + (adaptive > 0.5) + 1
    counts = count_rows(codes, gt, partition, COLUMNS)
    del codes
    error = np.subtract(p, gt)
    absolute = _row_sums(np.abs(error, out=error), partition)
    squared = _row_sums(np.multiply(error, error, out=error), partition)
    return Histogram(_above(counts, cuts), counts.sum(axis=2), absolute, squared, _NO_QUADRANTS)


def _above(counts: Values, cuts: NDArray[np.intp]) -> Values:
    """Return the number of pixels whose code is at or above each cut."""
    rows, classes, codes = counts.shape
    below = np.zeros((rows, classes, codes + 1))
    np.cumsum(counts, axis=2, out=below[..., 1:])
    return np.asarray(below[..., -1:] - below.take(cuts, axis=2))


def count_rows(
    codes: Codes,
    gt: NDArray[np.bool_],
    partition: Partition,
    n_codes: int,
    quadrants: Values = _NO_QUADRANTS,
) -> Values:
    """Return the number of pixels per row, class and code: integers in float64, exact.

    `quadrants` is filled: as many rows as it has are counted by quadrant, and then added.
    """
    counts = np.empty((len(partition) + 2, 2, n_codes))
    boxes = [(0, 0, *gt.shape), *partition.boxes.tolist()]
    uncounted: Iterable[int] = range(1 if partition.regions is not None else len(boxes))
    places = None
    if partition.regions is None and codes.dtype == np.uint8 and len(partition) <= _FEW_BOXES:
        places = _count_places(codes, gt, boxes[1:], n_codes, quadrants)
        counts[0], counts[1:-1] = places.sum(axis=0), places[1:]
        # a frame is not complete if a later one covers a part of it
        is_covered = places[1:].sum(axis=(1, 2)) < partition.frame_areas
        is_covered[: max(len(quadrants) - 1, 0)] = True
        uncounted = (np.flatnonzero(is_covered) + 1).tolist()
    for row in uncounted:
        y0, x0, y1, x1 = boxes[row]
        part_codes, part_gt = codes[y0:y1, x0:x1], gt[y0:y1, x0:x1]
        if row < len(quadrants):
            for quadrant, window in zip(quadrants[row], quarter(part_gt), strict=True):
                quadrant[:] = _count_classes(part_codes[window], part_gt[window], n_codes)
            counts[row] = quadrants[row].sum(axis=0)
        else:
            counts[row] = _count_classes(part_codes, part_gt, n_codes)
    if partition.regions is not None:
        cells = partition.regions.astype(np.int64) * (2 * n_codes) + _joint_codes(codes, gt, n_codes)
        counts[1:-1] = np.bincount(cells.ravel(), minlength=counts[1:-1].size).reshape(-1, 2, n_codes)
        counts[-1] = counts[0]
    elif places is not None:
        counts[-1] = counts[0] - places[0]
    elif partition.disjoint:
        counts[-1] = counts[1:-1].sum(axis=0)
    else:
        joint = _joint_codes(codes, gt, n_codes)[~partition.background]
        counts[-1] = np.bincount(joint, minlength=2 * n_codes).reshape(2, n_codes)
    return counts


def _count_places(
    codes: NDArray[np.uint8],
    gt: NDArray[np.bool_],
    boxes: Sequence[Sequence[int]],
    n_codes: int,
    quadrants: Values,
) -> Values:
    """Return the number of pixels per place, class and code, in one pass.

    The first place is what lies in no box. The others are the boxes, each without the pixels of those
    after it. The first row of `quadrants` is filled, if there is one.
    """
    n_classes = 2 * (len(boxes) + 1)
    numbers = np.zeros(gt.shape, dtype=np.uint8)
    for place, (y0, x0, y1, x1) in enumerate(boxes, start=1):
        numbers[y0:y1, x0:x1] = 2 * place
    numbers += gt.view(np.uint8)
    if len(quadrants):
        n_parts = 4
        for part, window in enumerate(quarter(gt)):
            numbers[window] += np.uint8(part * n_classes)
    else:
        # every other column has counters of its own: most neighbours are alike, and a processor waits
        # for the counter that it has just raised
        n_parts = 2
        numbers += (np.arange(gt.shape[1]) % n_parts * n_classes).astype(np.uint8)
    counts = count_joint([numbers, codes], [n_parts * n_classes, n_codes])
    parts = counts.reshape(n_parts, -1, 2, n_codes)
    if len(quadrants):
        quadrants[0] = parts.sum(axis=1)
    return np.asarray(parts.sum(axis=0))


def _joint_codes(codes: Codes, gt: NDArray[np.bool_], n_codes: int) -> NDArray[np.uint16]:
    joint = np.multiply(gt, n_codes, dtype=np.uint16)
    joint += codes
    return joint


def _count_classes(codes: Codes, gt: NDArray[np.bool_], n_codes: int) -> Values:
    """Return the number of pixels not salient and salient per code."""
    if codes.dtype == np.uint8:
        return count_joint([gt.view(np.uint8), codes], [2, n_codes])
    return count_codes(_joint_codes(codes, gt, n_codes), 2 * n_codes).reshape(2, n_codes)


def quarter(gt: NDArray[np.bool_]) -> list[tuple[slice, slice]]:
    """Return the four parts around the centroid of the salient pixels; some may be empty.

    Without salient pixels the first part is all.

    Example:
        >>> quarter(np.array([[False, True, False, False]]))[1]
        (slice(0, 1, None), slice(2, 4, None))
    """
    height, width = gt.shape
    y, x = height, width
    salient = gt.view(np.uint8)
    in_rows = cv2.reduce(salient, 1, cv2.REDUCE_SUM, dtype=cv2.CV_32S).ravel()
    if n_salient := int(in_rows.sum()):
        in_columns = cv2.reduce(salient, 0, cv2.REDUCE_SUM, dtype=cv2.CV_32S).ravel()
        y = round(int(np.arange(height) @ in_rows) / n_salient) + 1
        x = round(int(np.arange(width) @ in_columns) / n_salient) + 1
    rows, columns = (slice(0, y), slice(y, height)), (slice(0, x), slice(x, width))
    return [(r, c) for r in rows for c in columns]


def count_codes(codes: Codes, n_codes: int) -> Values:
    """Return how often each code occurs."""
    return count_joint([codes], [n_codes])


def count_joint(
    channels: Sequence[Codes], sizes: Sequence[int], mask: NDArray[np.uint8] | None = None
) -> Values:
    """Return how often each combination of codes occurs: everywhere, or where the mask is not zero.

    Args:
        channels: arrays of the same shape and type.
        sizes: number of codes of each.
        mask: by default all pixels are counted.
    """
    # OpenCV counts faster than NumPy, but in float32: in strips small enough to be exact
    total = np.zeros(sizes)
    height, width = channels[0].shape
    if height * width == 0:
        return total
    rows = max(1, _FLOAT32_EXACT // width)
    ranges = [edge for size in sizes for edge in (0, size)]
    for start in range(0, height, rows):
        strip = slice(start, start + rows)
        strip_mask = None if mask is None else mask[strip]
        counts = cv2.calcHist(
            [channel[strip] for channel in channels], range(len(sizes)), strip_mask, sizes, ranges
        )
        total += np.asarray(counts).reshape(sizes)  # of one channel, a column in OpenCV 4
    return total


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


@dataclass(frozen=True, eq=False)
class PixelCounts:
    """Counts of the pixels of each predicted object.

    Attributes:
        salient: pixels that are salient.
        spilled: pixels that are not salient and lie outside the bounding box of every true object.
        means: mean of p.
        peaks: largest p.
    """

    salient: Integers
    spilled: Integers
    means: Values
    peaks: Values


def count_grey(
    grey: NDArray[np.uint8],
    above: NDArray[np.bool_],
    gt: NDArray[np.bool_],
    components: Components,
    partition: Partition,
    kept: NDArray[np.intp],
    table: Values,
) -> PixelCounts:
    """Count the pixels of an 8-bit map by component, kind and grey value, all at once."""
    window = components.window
    kinds = (partition.outside_boxes[window] > gt[window]).view(np.uint8)
    kinds += gt[window] * np.uint8(_SALIENT)
    counts = count_joint(
        [components.labels.astype(np.uint8), kinds, grey[window]],
        [len(components) + 1, 3, LEVELS],
        above.view(np.uint8)[window],
    )[kept + 1]
    by_kind = counts.sum(axis=2).astype(np.int64)
    means, peaks = _grey_statistics(counts.sum(axis=1), table)
    return PixelCounts(by_kind[:, _SALIENT], by_kind[:, _SPILLED], means, peaks)


def count_pixels(
    values: NDArray[Any],
    above: NDArray[np.bool_],
    gt: NDArray[np.bool_],
    components: Components,
    partition: Partition,
    number: NDArray[np.intp],
    n_kept: int,
    table: Values | None,
) -> PixelCounts:
    """Count the pixels of any map, with any number of components."""
    owner = np.repeat(number[components.runs.owner], components.runs.lengths)
    inside, window = above[components.window], components.window
    is_salient = gt[window][inside]
    salient = _count(owner[is_salient], n_kept)
    is_spilled = partition.outside_boxes[window][inside] & ~is_salient
    pixels = values[window][inside]
    if table is None:
        means, peaks = _float_statistics(pixels, owner, n_kept)
    else:
        cells = np.bincount(owner * 256 + pixels, minlength=(n_kept + 1) * 256)
        means, peaks = _grey_statistics(cells.reshape(-1, 256)[:n_kept], table)
    spilled = _count(owner[is_spilled], n_kept)
    return PixelCounts(salient, spilled, means, peaks)


def _count(owner: NDArray[np.intp], n_kept: int) -> Integers:
    return np.bincount(owner, minlength=n_kept + 1)[:n_kept]


def _grey_statistics(counts: NDArray[Any], table: Values) -> tuple[Values, Values]:
    """Return mean and largest p of each object; the same bits in whatever order its pixels come."""
    means = np.einsum("rc,c->r", counts, table) / np.maximum(counts.sum(axis=1), 1)
    return means, table[255 - np.argmax(counts[:, ::-1] > 0, axis=1)]


def _float_statistics(p: Values, owner: NDArray[np.intp], n_kept: int) -> tuple[Values, Values]:
    sums = np.bincount(owner, weights=p, minlength=n_kept + 1)[:n_kept]
    peaks = np.zeros(n_kept + 1)
    np.maximum.at(peaks, owner, p)
    return sums / np.maximum(_count(owner, n_kept), 1), peaks[:n_kept]

"""Pixels of the predicted objects of one image: how many, how salient, where, and their values of p."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sisod.scoring.components import Components, Integers
from sisod.scoring.histograms import count_codes
from sisod.scoring.partition import Partition

Values = NDArray[np.float64]
Mask = NDArray[np.bool_]
FEW_COMPONENTS = 31  # whose pixels `count_grey` can count


@dataclass(frozen=True, eq=False)
class PixelCounts:
    """Counts of the pixels of each predicted object.

    Attributes:
        salient: pixels that are salient.
        n_salient: salient pixels in all components, also in those too small for a predicted object.
        spilled: pixels that are not salient and lie outside the bounding box of every true object.
        means: mean of p.
        peaks: largest p.
    """

    salient: Integers
    n_salient: int
    spilled: Integers
    means: Values
    peaks: Values


def count_grey(
    grey: NDArray[np.uint8],
    gt: Mask,
    components: Components,
    partition: Partition,
    kept: NDArray[np.intp],
    table: Values,
) -> PixelCounts:
    """Count the pixels of an 8-bit map by component, place, salience and grey value, all at once."""
    window = components.window
    codes = components.labels.astype(np.uint16)
    codes *= np.uint16(1024)
    codes += np.multiply(partition.outside_boxes[window], 512, dtype=np.uint16)
    codes += np.multiply(gt[window], 256, dtype=np.uint16)
    codes += grey[window]
    n_labels = len(components) + 1
    counts = count_codes(codes, 1024 * n_labels).astype(np.int64).reshape(n_labels, 2, 2, 256)
    n_salient = int(counts[1:, :, 1].sum())
    counts = counts[kept + 1]
    by_place = counts.sum(axis=3)
    means, peaks = _grey_statistics(counts.sum(axis=(1, 2)), table)
    return PixelCounts(by_place[:, :, 1].sum(axis=1), n_salient, by_place[:, 1, 0], means, peaks)


def count_pixels(
    values: NDArray[Any],
    above: Mask,
    gt: Mask,
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
    salient = np.bincount(owner[is_salient], minlength=n_kept + 1)
    is_spilled = partition.outside_boxes[window][inside] & ~is_salient
    pixels = values[window][inside]
    if table is None:
        means, peaks = _float_statistics(pixels, owner, n_kept)
    else:
        cells = np.bincount(owner * 256 + pixels, minlength=(n_kept + 1) * 256)
        means, peaks = _grey_statistics(cells.reshape(-1, 256)[:n_kept], table)
    spilled = _count(owner[is_spilled], n_kept)
    return PixelCounts(salient[:n_kept], int(salient.sum()), spilled, means, peaks)


def _count(owner: NDArray[np.intp], n_kept: int) -> Integers:
    return np.bincount(owner, minlength=n_kept + 1)[:n_kept]


def _grey_statistics(counts: Integers, table: Values) -> tuple[Values, Values]:
    """Return mean and largest p of each object; the same bits in whatever order its pixels come."""
    means = np.einsum("rc,c->r", counts, table) / np.maximum(counts.sum(axis=1), 1)
    return means, table[255 - np.argmax(counts[:, ::-1] > 0, axis=1)]


def _float_statistics(p: Values, owner: NDArray[np.intp], n_kept: int) -> tuple[Values, Values]:
    sums = np.bincount(owner, weights=p, minlength=n_kept + 1)[:n_kept]
    peaks = np.zeros(n_kept + 1)
    np.maximum.at(peaks, owner, p)
    return sums / np.maximum(_count(owner, n_kept), 1), peaks[:n_kept]

"""Counts of several images -> every curve and value of theirs, each once, for all images together."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sisod.scoring.histograms import BINARY, COLUMNS, LEVELS, Histogram
from sisod.scoring.metrics import Family, counts_of
from sisod.scoring.partition import Partition
from sisod.scoring.size_invariant import separable

Values = NDArray[np.float64]
_ROWS_AT_ONCE = 48  # of a histogram: what the arrays of all families together leave in the cache


@dataclass(frozen=True, eq=False)
class ImageStatistics:
    """All that is kept of the pixels of one image.

    Attributes:
        histogram: its counts and sums of errors.
        partition: its frames.
        own_frames: the caller brought the frames; the protocol's rules did not choose them.
        structural: the metrics that no count holds, by key.
        looks_binary: an integer prediction with maximum 1.
    """

    histogram: Histogram
    partition: Partition
    own_frames: bool
    structural: dict[str, float]
    looks_binary: bool


@dataclass(frozen=True, eq=False)
class BatchCurves:
    """What the counts of some images give.

    Attributes:
        names: families with a curve.
        plain: images x names x columns of a histogram.
        si: the same, size-invariant.
        frames: values of the frames, image after image, that the object table shows.
        scalars: metrics without a curve, one value per image.
    """

    names: tuple[str, ...]
    plain: Values
    si: Values
    frames: dict[str, Values]
    scalars: dict[str, Values]


def measure(counted: Sequence[ImageStatistics], families: Sequence[Family], first: int) -> BatchCurves:
    """Return all that the families need of some images; size-invariant curves begin at `first`."""
    curved = [family for family in families if family.kind == "curve" and not family.separable]
    single = [family for family in families if family.kind == "scalar"]
    stacked = _stack(counted)
    plain, si, per_row = _composites(stacked, curved, single, first)
    separables = [family for family in families if family.separable]
    plain_means, si_means = _separables(counted, separables)
    frames = {key: values[~stacked.is_image] for key, values in per_row.items()}
    scalars = {"si_f_max_frame": stacked.means(frames["f_max"])}
    for family in single:
        scalars[family.key] = per_row[family.key][stacked.is_image]
        scalars[f"si_{family.key}"] = stacked.means(frames[family.key])
    summed = [family for family in separables if family.kind == "curve"]
    for at, family in enumerate(family for family in separables if family.kind == "error"):
        scalars[family.key], scalars[f"si_{family.key}"] = plain_means[:, at], si_means[:, at]
    shape = (len(counted), len(summed), COLUMNS)
    n_errors = len(separables) - len(summed)
    return BatchCurves(
        names=tuple(family.key for family in curved + summed),
        plain=np.concatenate([plain, plain_means[:, n_errors:].reshape(shape)], axis=1),
        si=np.concatenate([si, si_means[:, n_errors:].reshape(shape)], axis=1),
        frames=frames,
        scalars=scalars,
    )


@dataclass(frozen=True, eq=False)
class _Stack:
    """The histograms of some images as one: a row for the image, then one for each of its frames."""

    above: Values
    totals: Values
    owner: NDArray[np.intp]
    is_image: NDArray[np.bool_]

    def means(self, values: Values) -> Values:
        """Return the mean over the frames of each image where it is defined."""
        defined = ~np.isnan(values)
        owner, n_images = self.owner[~self.is_image][defined], self.owner[-1] + 1
        with np.errstate(invalid="ignore"):
            return np.asarray(
                np.bincount(owner, values[defined], n_images) / np.bincount(owner, minlength=n_images)
            )


def _stack(counted: Sequence[ImageStatistics]) -> _Stack:
    n_rows = [len(one.partition) + 1 for one in counted]
    is_image = np.zeros(sum(n_rows), dtype=np.bool_)
    is_image[np.cumsum([0, *n_rows[:-1]])] = True
    return _Stack(
        above=np.concatenate([one.histogram.above[:-1] for one in counted]),
        totals=np.concatenate([one.histogram.totals[:-1] for one in counted]),
        owner=np.repeat(np.arange(len(counted)), n_rows),
        is_image=is_image,
    )


def _composites(
    stacked: _Stack, curved: Sequence[Family], single: Sequence[Family], first: int
) -> tuple[Values, Values, dict[str, Values]]:
    """Curves of the images, their means over frames, and what is kept of every row."""
    index = {family.key: row for row, family in enumerate(curved)}
    n_images, n_rows = int(stacked.owner[-1]) + 1, len(stacked.owner)
    plain = np.empty((n_images, len(curved), COLUMNS))
    total, n_defined = np.zeros_like(plain), np.zeros((n_images, len(curved), 1))
    kept = ("f_mean", "f_max", "iou", "recall", *(family.key for family in single))
    per_row = {key: np.empty(n_rows) for key in kept}
    with np.errstate(divide="ignore", invalid="ignore"):
        for start in range(0, n_rows, _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            owner, is_image = stacked.owner[rows], stacked.is_image[rows]
            counts = counts_of(stacked.above[rows], stacked.totals[rows], is_image)
            for family in single:
                per_row[family.key][rows] = family.function(counts)
            values = np.stack([family.function(counts) for family in curved], axis=1)
            thresholds = values[:, index["f"], first:LEVELS]
            per_row["f_mean"][rows] = thresholds.mean(axis=1)
            per_row["f_max"][rows] = thresholds.max(axis=1)
            for key in ("iou", "recall"):
                per_row[key][rows] = values[:, index[key], BINARY]
            plain[owner[is_image]] = values[is_image]
            undefined = np.isnan(values[:, :, :1])  # a row is undefined at all thresholds or at none
            if undefined.any():
                values[undefined[:, :, 0]] = 0.0
            # row by row, in order: the same sums whatever else is scored at the same time
            for row in np.flatnonzero(~is_image).tolist():
                total[owner[row]] += values[row]
                n_defined[owner[row]] += ~undefined[row]
        return plain, total / n_defined, per_row


def _separables(counted: Sequence[ImageStatistics], families: Sequence[Family]) -> tuple[Values, Values]:
    """Plain and size-invariant means over pixels: errors, then columns of curves."""
    plain, si = [], []
    for one in counted:
        counts = one.histogram
        sums = [
            family.function(counts)[:, None]
            if family.kind == "error"
            else family.function(counts_of(counts.above, counts.totals))
            for family in families
        ]
        columns = np.concatenate(sums, axis=1) if sums else np.empty((len(counts.totals), 0))
        plain.append(columns[0] / one.partition.background.size)
        si.append(separable(columns, one.partition))
    return np.stack(plain), np.stack(si)

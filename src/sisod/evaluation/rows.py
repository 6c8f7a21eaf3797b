"""Scores of many images, column-wise: joined, written to bytes and back, summed for the summary."""

import functools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sisod.scoring.arrays import as_mask, has_grey_area
from sisod.scoring.metrics import METRICS
from sisod.scoring.scores import Scores

Values = NDArray[np.float64]
IMAGE_CURVES = ("f", "si_f")  # kept for every image, so that intervals of maxima need no pixels


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums of the defined values over images, with twice the digits of a float64.

    Each sum is an unevaluated pair high + low. The spare digits make it, once rounded, the same in
    whatever order and grouping the images were added.
    """

    high: Values
    low: Values
    n_defined: NDArray[np.int64]

    @classmethod
    def from_values(cls, values: Values) -> "Sums":
        """Return the sums over the first axis, the images."""
        defined = ~np.isnan(values)
        filled = np.where(defined, values, 0.0)
        high, lost = filled[0], np.zeros_like(filled[0])
        for added in filled[1:]:
            total = high + added
            part = total - high
            lost += (high - (total - part)) + (added - part)
            high = total
        total = high + lost
        return cls(total, lost - (total - high), np.count_nonzero(defined, axis=0).astype(np.int64))

    def plus(self, other: "Sums") -> "Sums":
        """Return the sums over the images of both."""
        total = self.high + other.high
        part = total - self.high
        lost = (self.high - (total - part)) + (other.high - part) + self.low + other.low
        high = total + lost
        return Sums(high, lost - (high - total), self.n_defined + other.n_defined)

    def means(self) -> Values:
        """Return the means, NaN where nothing was defined."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.high / self.n_defined)


@dataclass(frozen=True, slots=True)
class PixelFacts:
    """What is noticed in the pixels of one pair, beside its scores.

    Attributes:
        resized: the prediction had another size than the ground truth.
        grey_mask: the ground truth is grey in more than the edges of its objects.
        emptied_mask: none of its pixels is salient, though it is grey or, as 8-bit file, not all black.
        looks_swapped: the ground truth is such a mask, but the prediction is not.
    """

    resized: bool
    grey_mask: bool
    emptied_mask: bool
    looks_swapped: bool

    @classmethod
    def from_arrays(
        cls, pred: NDArray[Any], gt: NDArray[Any], *, is_grey: bool, level: int
    ) -> "PixelFacts":
        """Return the facts of a checked pair, as it was read.

        Args:
            pred: the prediction.
            gt: the ground truth, not yet a mask.
            is_grey: what `has_grey_area` says of the ground truth.
            level: a pixel of the ground truth is salient from here on.
        """
        is_dark = gt.dtype == np.uint8 and 0 < int(gt.max()) < level
        return cls(
            resized=pred.shape != gt.shape,
            grey_mask=is_grey,
            emptied_mask=is_dark or (is_grey and not as_mask(gt, level=level).any()),
            looks_swapped=is_grey and not has_grey_area(pred),
        )


@dataclass(frozen=True, eq=False)
class Totals:
    """Sums and counts that the summary is computed from; small, however many images there are.

    Attributes:
        keys: the metrics.
        curve_names: the curves.
        values: sums of the metrics.
        curves: sums of the curves.
        count_widths: name of each count of objects -> its columns: 1, or one for each threshold.
        counts: sums of the counts of objects, column by column; none if the protocol has none.
        n_images: number of images.
        n_objects: number of frames in all of them.
        n_resized: predictions that had to be resized.
        n_binary: integer predictions with maximum 1.
        n_tiny: frames that exist only because their image has no component that is large enough;
            frames of a partition that the caller passed are never counted.
        n_left_out: components without a frame, because they are below the least area.
        n_grey_masks: ground truths that are grey in more than the edges of their objects.
        n_emptied_masks: ground truths that are grey or dark and have no salient pixel.
        n_swapped: those of them whose prediction is not.
    """

    keys: tuple[str, ...]
    curve_names: tuple[str, ...]
    values: Sums
    curves: Sums
    count_widths: dict[str, int]
    counts: Sums
    n_images: int
    n_objects: int
    n_resized: int
    n_binary: int
    n_tiny: int = 0
    n_left_out: int = 0
    n_grey_masks: int = 0
    n_emptied_masks: int = 0
    n_swapped: int = 0

    def plus(self, other: "Totals") -> "Totals":
        """Return the totals over the images of both."""
        return Totals(
            keys=self.keys,
            curve_names=self.curve_names,
            values=self.values.plus(other.values),
            curves=self.curves.plus(other.curves),
            count_widths=self.count_widths,
            counts=self.counts.plus(other.counts),
            **{name: getattr(self, name) + getattr(other, name) for name in _COUNTS},
        )

    def mean_curves(self) -> dict[str, Values]:
        """Return the mean curves by name."""
        return dict(zip(self.curve_names, self.curves.means(), strict=True))

    def summary(self) -> dict[str, float]:
        """Return each metric over the images.

        The value is the mean of the images where it is defined; for `*_max`, the maximum of the mean
        curve; for metrics of objects, the value of the counts summed over images.
        """
        summary = dict(zip(self.keys, self.values.means().tolist(), strict=True))
        curves, sums = self.mean_curves(), self.object_sums()
        for key in self.keys:
            if METRICS[key].family.kind == "objects":
                summary[key] = float(METRICS[key].family.function(sums))
            elif METRICS[key].form == "max":
                family = METRICS[key].family.key
                curve = curves[f"si_{family}" if METRICS[key].size_invariant else family]
                defined = curve[~np.isnan(curve)]
                summary[key] = float(defined.max()) if len(defined) else math.nan
        return summary

    def object_sums(self) -> dict[str, Values]:
        """Return the counts of objects summed over the images, by name."""
        return split_counts(self.counts.high, self.count_widths)

    def defined(self) -> dict[str, int]:
        """Return on how many images each metric was defined."""
        return dict(zip(self.keys, self.values.n_defined.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Rows:
    """Scores of several images, column-wise.

    Attributes:
        names: of the images; None for an image without a name.
        shapes: height and width.
        n_objects: frames of each image.
        alphas: weight of the background of each image.
        values: images x metrics.
        curves: images x 2 x 256, the F and SI-F curves in float32.
        counts: images x columns of the counts of objects; see `Totals.count_widths`.
        objects: columns of the object table.
        predicted: columns of the table of predicted objects.
        totals: sums over the images, with the names of metrics and curves.
    """

    names: tuple[str | None, ...]
    shapes: NDArray[np.int64]
    n_objects: NDArray[np.int64]
    alphas: Values
    values: Values
    curves: NDArray[np.float32]
    counts: Values
    objects: dict[str, NDArray[np.generic]]
    predicted: dict[str, NDArray[np.generic]]
    totals: Totals

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def from_scores(
        cls,
        names: Sequence[str | None],
        scores: Scores,
        files: "Sequence[PixelFacts]",
    ) -> "Rows":
        """Return the rows of scored images, and what was noticed in the pixels of each."""
        kept = [scores.curve_names.index(key) for key in IMAGE_CURVES]
        widths, counts = join_counts(scores.object_counts, len(names))
        totals = Totals(
            keys=scores.keys,
            curve_names=scores.curve_names,
            values=Sums.from_values(scores.values),
            curves=Sums.from_values(scores.curves),
            count_widths=widths,
            counts=Sums.from_values(counts),
            n_images=len(names),
            n_objects=int(scores.n_objects.sum()),
            n_resized=sum(one.resized for one in files),
            n_binary=int(np.count_nonzero(scores.looks_binary)),
            n_tiny=int(scores.n_tiny.sum()),
            n_left_out=int(scores.n_left_out.sum()),
            n_grey_masks=sum(one.grey_mask for one in files),
            n_emptied_masks=sum(one.emptied_mask for one in files),
            n_swapped=sum(one.looks_swapped for one in files),
        )
        return cls(
            names=tuple(names),
            shapes=scores.shapes,
            n_objects=scores.n_objects,
            alphas=scores.alphas,
            values=scores.values,
            curves=scores.curves[:, kept].astype(np.float32),
            counts=counts,
            objects=scores.objects,
            predicted=scores.predicted,
            totals=totals,
        )

    @classmethod
    def joined(cls, parts: "Sequence[Rows]") -> "Rows":
        """Return the images of all parts, in their order."""
        arrays: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in _ARRAYS
        }
        return cls(
            names=tuple(name for part in parts for name in part.names),
            objects=_concatenated([part.objects for part in parts]),
            predicted=_concatenated([part.predicted for part in parts]),
            totals=functools.reduce(Totals.plus, (part.totals for part in parts)),
            **arrays,
        )

    def to_bytes(self) -> bytes:
        """Return everything as bytes: a line of JSON, then the raw arrays.

        NumPy's own format for several arrays is a zip archive, which takes longer to write than an
        image takes to score.
        """
        totals = self.totals
        arrays: dict[str, NDArray[Any]] = {
            **{name: getattr(self, name) for name in _ARRAYS},
            **{f"values_{name}": getattr(totals.values, name) for name in _SUMS},
            **{f"curves_{name}": getattr(totals.curves, name) for name in _SUMS},
            **{f"counts_{name}": getattr(totals.counts, name) for name in _SUMS},
            **{f"object_{key}": column for key, column in self.objects.items()},
            **{f"predicted_{key}": column for key, column in self.predicted.items()},
        }
        header = {
            "names": self.names,
            "keys": totals.keys,
            "curve_names": totals.curve_names,
            "objects": list(self.objects),
            "predicted": list(self.predicted),
            "count_widths": totals.count_widths,
            "counts": {name: getattr(totals, name) for name in _COUNTS},
            "arrays": {name: (array.dtype.str, array.shape) for name, array in arrays.items()},
        }
        return b"".join([json.dumps(header).encode(), b"\n", *(a.tobytes() for a in arrays.values())])

    @classmethod
    def from_bytes(cls, data: bytes) -> "Rows":
        """Return the rows that `to_bytes` wrote."""
        end = data.index(b"\n")
        header = json.loads(data[:end])
        arrays, offset = {}, end + 1
        for name, (kind, shape) in header["arrays"].items():
            flat = np.frombuffer(data, np.dtype(kind), math.prod(shape), offset)
            arrays[name] = flat.reshape(shape)
            offset += flat.nbytes
        totals = Totals(
            keys=tuple(header["keys"]),
            curve_names=tuple(header["curve_names"]),
            values=Sums(*(arrays[f"values_{name}"] for name in _SUMS)),
            curves=Sums(*(arrays[f"curves_{name}"] for name in _SUMS)),
            count_widths=header["count_widths"],
            counts=Sums(*(arrays[f"counts_{name}"] for name in _SUMS)),
            **header["counts"],
        )
        return cls(
            names=tuple(header["names"]),
            objects={key: arrays[f"object_{key}"] for key in header["objects"]},
            predicted={key: arrays[f"predicted_{key}"] for key in header["predicted"]},
            totals=totals,
            **{name: arrays[name] for name in _ARRAYS},
        )


def join_counts(counts: dict[str, Values], n_images: int) -> tuple[dict[str, int], Values]:
    """Return the width of every count of objects, and all of them as one matrix, images x columns."""
    columns = [values.reshape(n_images, -1) for values in counts.values()]
    widths = {key: column.shape[1] for key, column in zip(counts, columns, strict=True)}
    return widths, np.concatenate([np.empty((n_images, 0)), *columns], axis=1)


def split_counts(matrix: Values, widths: dict[str, int]) -> dict[str, Values]:
    """Return columns of a matrix, the last axis, by the name of their count; of width 1, without it."""
    ends = np.cumsum(list(widths.values()), dtype=np.intp)[:-1]
    parts = np.split(matrix, ends, axis=-1)[: len(widths)]
    return {
        key: part[..., 0] if width == 1 else part
        for (key, width), part in zip(widths.items(), parts, strict=True)
    }


def _concatenated(tables: Sequence[dict[str, NDArray[np.generic]]]) -> dict[str, NDArray[np.generic]]:
    return {key: np.concatenate([table[key] for table in tables]) for key in tables[0]}


_ARRAYS = ("shapes", "n_objects", "alphas", "values", "curves", "counts")
_SUMS = ("high", "low", "n_defined")
_COUNTS = (
    *("n_images", "n_objects", "n_resized", "n_binary", "n_tiny", "n_left_out"),
    *("n_grey_masks", "n_emptied_masks", "n_swapped"),
)

"""Scores of many images, column-wise: added up, joined, kept as bytes, turned into tables."""

import dataclasses
import functools
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sisod.common.exceptions import InputError
from sisod.data.files import StoredFile
from sisod.scoring.arrays import as_mask, has_grey_area
from sisod.scoring.counting.histograms import LEVELS
from sisod.scoring.counting.object_counts import OBJECT_CLASSES
from sisod.scoring.metrics import METRICS
from sisod.scoring.scores import Scores

if TYPE_CHECKING:
    import polars as pl

Values = NDArray[np.float64]
Columns = dict[str, NDArray[Any]]
IMAGE_CURVES = ("f", "si_f")  # kept for every image, so that intervals of maxima need no pixels
_FACT_NAMES = (
    *("resized", "looks_binary", "kept_below_min_area", "left_out"),
    *("grey_masks", "emptied_masks", "looks_swapped", "looks_inverted"),
)
FACTS, FILES = "facts", "files"  # tables: what the record of a result sums up, the files of the images


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
        """Return the sums over the first axis, the images.

        Example:
            >>> Sums.from_values(np.array([[1.0, np.nan], [2.0, 4.0]])).means()
            array([1.5, 4. ])
        """
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


@dataclass(frozen=True, eq=False)
class Totals:
    """Sums that the summary is computed from; small, however many images there are.

    Attributes:
        keys: the metrics.
        curve_names: the curves.
        count_widths: name of each count of objects -> its columns: 1, or one for each threshold; none if
            the protocol has none.
        sums: of the metrics, of the curves and of the counts of objects, as one vector.
    """

    keys: tuple[str, ...]
    curve_names: tuple[str, ...]
    count_widths: dict[str, int]
    sums: Sums

    @classmethod
    def from_scores(cls, scores: Scores) -> "Totals":
        """Return the sums over the images of a batch."""
        n_images = len(scores.values)
        widths, counts = join_counts(scores.object_counts, n_images)
        curves = scores.curves.reshape(n_images, -1)
        sums = Sums.from_values(np.concatenate([scores.values, curves, counts], axis=1))
        return cls(scores.keys, scores.curve_names, widths, sums)

    def plus(self, other: "Totals") -> "Totals":
        """Return the totals over the images of both."""
        return dataclasses.replace(self, sums=self.sums.plus(other.sums))

    def mean_curves(self) -> dict[str, Values]:
        """Return the mean curves by name."""
        shape, start = (len(self.curve_names), LEVELS), len(self.keys)
        curves = self.sums.means()[start : start + shape[0] * shape[1]].reshape(shape)
        return dict(zip(self.curve_names, curves, strict=True))

    def summary(self) -> dict[str, float]:
        """Return each metric over the images.

        The value is the mean of the images where it is defined; for `*_max`, the maximum of the mean
        curve; for metrics of objects, the value of the counts summed over images.
        """
        summary = dict(zip(self.keys, self.sums.means().tolist(), strict=False))
        n_counts = sum(self.count_widths.values())
        counts = self.sums.high[len(self.sums.high) - n_counts :]
        curves, sums = self.mean_curves(), split_counts(counts, self.count_widths)
        for key in self.keys:
            if METRICS[key].family.kind == "objects":
                summary[key] = float(METRICS[key].family.function(sums))
            elif METRICS[key].form == "max":
                family = METRICS[key].family.key
                curve = curves[f"si_{family}" if METRICS[key].size_invariant else family]
                defined = curve[~np.isnan(curve)]
                summary[key] = float(defined.max()) if len(defined) else math.nan
        return summary


def diagnose_pair(pred: NDArray[Any], gt: NDArray[Any], *, is_grey: bool, level: int) -> dict[str, bool]:
    """Return what is noticed in the pixels of one pair, beside its scores, by the names of the facts.

    The prediction has another size than the ground truth (`resized`); the ground truth is grey in more
    than the edges of its objects (`grey_masks`), or none of its pixels is salient, though it is grey or,
    as an 8-bit file, not all black (`emptied_masks`); it is grey, but the prediction is not
    (`looks_swapped`).

    Args:
        pred: the prediction, as it was read.
        gt: the ground truth, not yet a mask.
        is_grey: what `has_grey_area` says of the ground truth.
        level: a pixel of the ground truth is salient at this value or above.
    """
    is_dark = gt.dtype == np.uint8 and 0 < int(gt.max()) < level
    return {
        "resized": pred.shape != gt.shape,
        "grey_masks": is_grey,
        "emptied_masks": is_dark or (is_grey and not as_mask(gt, level=level).any()),
        "looks_swapped": is_grey and not has_grey_area(pred),
    }


@dataclass(frozen=True, eq=False)
class Rows:
    """Scores of several images.

    Attributes:
        names: of the images; None for an image without a name.
        values: images x metrics.
        tables: the other columns of `images`, `objects`, `predicted` and `counts` (unless the protocol
            has none), `curves`, `facts` and, for images that are files, `files`; without the names of
            the images.
        totals: sums over the images.
        extra: names of predictions that have no ground truth.
    """

    names: tuple[str | None, ...]
    values: Values
    tables: dict[str, Columns]
    totals: Totals
    extra: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def from_scores(
        cls,
        names: Sequence[str | None],
        scores: Scores,
        noticed: Sequence[dict[str, bool]],
        files: Sequence[tuple[StoredFile, StoredFile]] = (),
    ) -> "Rows":
        """Return the rows of scored images.

        Args:
            names: of the images.
            scores: of the images.
            noticed: what was noticed in the pixels of each image.
            files: prediction and ground truth of each image, if they are files.
        """
        facts = {
            "looks_binary": scores.looks_binary,
            "kept_below_min_area": scores.n_tiny,
            "left_out": scores.n_left_out,
            "looks_inverted": scores.looks_inverted,
            **{name: np.array([one[name] for one in noticed]) for name in noticed[0]},
        }
        tables: dict[str, Columns] = {
            "images": {
                "height": scores.shapes[:, 0],
                "width": scores.shapes[:, 1],
                "n_objects": scores.n_objects,
                "alpha": scores.alphas,
            },
            "objects": scores.objects,
            "curves": {
                key: scores.curves[:, scores.curve_names.index(key)].astype(np.float32)
                for key in IMAGE_CURVES
            },
            FACTS: {name: facts[name].astype(np.int64) for name in _FACT_NAMES},
        }
        if scores.predicted:
            tables |= {"predicted": scores.predicted, "counts": dict(scores.object_counts)}
        if files:
            tables[FILES] = {
                "prediction": np.array([pred.path.encode() for pred, _ in files]),
                "prediction_stamp": np.array([pred.stamp.encode() for pred, _ in files]),
                "ground_truth": np.array([gt.path.encode() for _, gt in files]),
                "ground_truth_stamp": np.array([gt.stamp.encode() for _, gt in files]),
            }
        return cls(tuple(names), scores.values, tables, Totals.from_scores(scores))

    @classmethod
    def joined(cls, parts: "Sequence[Rows]") -> "Rows":
        """Return the images of all parts, in their order."""
        extra = tuple(name for part in parts for name in part.extra)
        scored = [part for part in parts if part.names]
        if len(scored) == 1:
            return dataclasses.replace(scored[0], extra=extra)
        if not scored:
            nothing = np.zeros(0)
            totals = Totals((), (), {}, Sums(nothing, nothing, nothing.astype(np.int64)))
            return cls((), np.zeros((0, 0)), {}, totals, extra)
        tables = {
            table: {
                name: np.concatenate([part.tables[table][name] for part in scored]) for name in columns
            }
            for table, columns in scored[0].tables.items()
        }
        return cls(
            names=tuple(name for part in scored for name in part.names),
            values=np.concatenate([part.values for part in scored]),
            tables=tables,
            totals=functools.reduce(Totals.plus, (part.totals for part in scored)),
            extra=extra,
        )

    def to_tables(self, *, by_name: bool = False) -> "dict[str, pl.DataFrame]":
        """Return all tables but the facts with the names of the images; nameless ones are numbered.

        Args:
            by_name: sort the images by name, and raise if two have the same.
        """
        import polars as pl

        names, taken = list[str](), set(self.names)
        for index, name in enumerate(self.names):
            number = f"{index:06d}"
            while name is None and number in taken:  # it is the name of another image
                number += "_"
            names.append(number if name is None else name)
        metrics = dict(zip(self.totals.keys, self.values.T, strict=True))
        columns_of = self.tables | {"images": self.tables["images"] | metrics}
        n_rows = {"objects": self.tables["images"]["n_objects"]}
        if "predicted" in self.tables:
            n_rows["predicted"] = self.tables["counts"]["predicted"].astype(np.int64)
        columns_of.pop(FACTS)
        tables = {}
        for table, columns in columns_of.items():
            first: dict[str, Any] = {"image": names}
            if table in n_rows:
                counts = n_rows[table].tolist()
                first = {
                    "image": [name for name, n in zip(names, counts, strict=True) for _ in range(n)],
                    "index": np.concatenate([np.arange(n) for n in counts]),
                }
            rest: dict[str, Any] = {key: np.ascontiguousarray(column) for key, column in columns.items()}
            if table == FILES:
                rest = {key: [text.decode() for text in column] for key, column in columns.items()}
            if table == "objects" and "error" in columns:  # the names of the classes of errors
                classes = pl.Series("error", OBJECT_CLASSES, dtype=pl.Enum(OBJECT_CLASSES))
                rest["error"] = classes[columns["error"].astype(np.int64)]
            tables[table] = pl.DataFrame(first | rest, schema_overrides={"image": pl.String})
        if by_name and any(name >= after for name, after in pairwise(names)):
            for name, after in pairwise(sorted(names)):
                if name == after:
                    raise InputError(
                        f"the image {name!r} was scored twice, from two shards or tables; keep one of "
                        "them"
                    )
            # the objects of an image keep their order
            return {name: table.sort("image", maintain_order=True) for name, table in tables.items()}
        return tables

    def to_bytes(self) -> bytes:
        """Return everything as bytes, one NumPy file after the other; the first lists the others."""
        totals = self.totals
        arrays = {
            "names": np.array(self.names, dtype=np.str_),
            "extra": np.array(self.extra, dtype=np.str_),
            "keys": np.array(totals.keys, dtype=np.str_),
            "curve_names": np.array(totals.curve_names, dtype=np.str_),
            "count_names": np.array(list(totals.count_widths), dtype=np.str_),
            "count_widths": np.array(list(totals.count_widths.values()), dtype=np.int64),
            **{f"sums {name}": array for name, array in vars(totals.sums).items()},
            "values": self.values,
        }
        for table, columns in self.tables.items():
            arrays |= {f"{table}/{name}": column for name, column in columns.items()}
        file = io.BytesIO()
        for array in (np.array(list(arrays)), *arrays.values()):
            np.save(file, array, allow_pickle=False)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes, *, where: str) -> "Rows":
        """Return the rows that `to_bytes` wrote; `where` the bytes are from is for messages."""
        file = io.BytesIO(data)
        try:
            labels = np.load(file, allow_pickle=False).tolist()
            arrays = {label: np.load(file, allow_pickle=False) for label in labels}
            texts = {
                label: tuple(arrays.pop(label).tolist())
                for label in ("names", "extra", "keys", "curve_names", "count_names", "count_widths")
            }
            widths = dict(zip(texts["count_names"], texts["count_widths"], strict=True))
            sums = Sums(*(arrays.pop(f"sums {field.name}") for field in dataclasses.fields(Sums)))
            values = arrays.pop("values")
        except (ValueError, KeyError, EOFError, OSError) as error:
            raise InputError(
                f"{where} is damaged, or of another version; remove it and score it again"
            ) from error
        tables: dict[str, Columns] = {}
        for label, column in arrays.items():
            table, _, name = label.partition("/")
            tables.setdefault(table, {})[name] = column
        totals = Totals(texts["keys"], texts["curve_names"], widths, sums)
        return cls(texts["names"], values, tables, totals, texts["extra"])


def join_counts(counts: dict[str, Values], n_images: int) -> tuple[dict[str, int], Values]:
    """Return the width of every count of objects, and all of them as one matrix, images x columns.

    Example:
        >>> join_counts({"found": np.ones(2), "found_at": np.zeros((2, 3))}, 2)[0]
        {'found': 1, 'found_at': 3}
    """
    columns = [values.reshape(n_images, -1) for values in counts.values()]
    widths = {key: column.shape[1] for key, column in zip(counts, columns, strict=True)}
    return widths, np.concatenate([np.empty((n_images, 0)), *columns], axis=1)


def split_counts(matrix: Values, widths: dict[str, int]) -> dict[str, Values]:
    """Return columns of a matrix, the last axis, by the name of their count; of width 1, without it.

    Example:
        >>> split_counts(np.array([[1.0, 2.0, 3.0]]), {"found": 1, "found_at": 2})
        {'found': array([1.]), 'found_at': array([[2., 3.]])}
    """
    ends = np.cumsum(list(widths.values()), dtype=np.intp)[:-1]
    parts = np.split(matrix, ends, axis=-1)[: len(widths)]
    return {
        key: part[..., 0] if width == 1 else part
        for (key, width), part in zip(widths.items(), parts, strict=True)
    }

"""Scores of many images, column-wise: joined, turned into tables, summed for the summary."""

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sisod.common.exceptions import InputError
from sisod.scoring.arrays import as_mask, has_grey_area
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
SUMS, FACTS = "sums", "facts"  # tables of a batch that become the summary and the record of a result


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


@dataclass(frozen=True, eq=False)
class Totals:
    """Sums that the summary is computed from; small, however many images there are.

    Attributes:
        keys: the metrics.
        curve_names: the curves.
        values: sums of the metrics.
        curves: sums of the curves.
        count_widths: name of each count of objects -> its columns: 1, or one for each threshold.
        counts: sums of the counts of objects, column by column; none if the protocol has none.
    """

    keys: tuple[str, ...]
    curve_names: tuple[str, ...]
    values: Sums
    curves: Sums
    count_widths: dict[str, int]
    counts: Sums

    def plus(self, other: "Totals") -> "Totals":
        """Return the totals over the images of both."""
        sums = (
            getattr(self, name).plus(getattr(other, name)) for name in ("values", "curves", "counts")
        )
        values, curves, counts = sums
        return Totals(self.keys, self.curve_names, values, curves, self.count_widths, counts)

    def mean_curves(self) -> dict[str, Values]:
        """Return the mean curves by name."""
        return dict(zip(self.curve_names, self.curves.means(), strict=True))

    def summary(self) -> dict[str, float]:
        """Return each metric over the images.

        The value is the mean of the images where it is defined; for `*_max`, the maximum of the mean
        curve; for metrics of objects, the value of the counts summed over images.
        """
        summary = dict(zip(self.keys, self.values.means().tolist(), strict=True))
        curves, sums = self.mean_curves(), split_counts(self.counts.high, self.count_widths)
        for key in self.keys:
            if METRICS[key].family.kind == "objects":
                summary[key] = float(METRICS[key].family.function(sums))
            elif METRICS[key].form == "max":
                family = METRICS[key].family.key
                curve = curves[f"si_{family}" if METRICS[key].size_invariant else family]
                defined = curve[~np.isnan(curve)]
                summary[key] = float(defined.max()) if len(defined) else math.nan
        return summary

    def to_table(self) -> "pl.DataFrame":
        """Return the sums as a table of three rows, for `from_table` of another process."""
        import polars as pl

        sums = (self.values, self.curves, self.counts)
        rows = {
            "names": [list(self.keys), list(self.curve_names), list(self.count_widths)],
            "widths": [[], [], list(self.count_widths.values())],
            "high": [part.high.ravel() for part in sums],
            "low": [part.low.ravel() for part in sums],
            "n_defined": [part.n_defined.ravel() for part in sums],
        }
        kinds = (pl.String, pl.Int64, pl.Float64, pl.Float64, pl.Int64)
        types = {name: pl.List(kind) for name, kind in zip(rows, kinds, strict=True)}
        return pl.DataFrame(rows, schema=types)

    @classmethod
    def from_table(cls, table: "pl.DataFrame") -> "Totals":
        """Return the sums that `to_table` wrote."""
        keys, curves, counts = (tuple(names) for names in table["names"].to_list())
        widths = dict(zip(counts, table["widths"][2].to_list(), strict=True))
        values, curve_sums, count_sums = (
            Sums(*(table[name][row].to_numpy().reshape(shape) for name in ("high", "low", "n_defined")))
            for row, shape in enumerate(((-1,), (len(curves), -1), (-1,)))
        )
        return cls(keys, curves, values, curve_sums, widths, count_sums)


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
        tables: the columns of `images`, `objects`, `curves`, `facts` and, unless the protocol has none,
            `predicted` and `counts`; without the names of the images.
        totals: sums over the images.
    """

    names: tuple[str | None, ...]
    tables: dict[str, Columns]
    totals: Totals

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def from_scores(
        cls, names: Sequence[str | None], scores: Scores, noticed: Sequence[dict[str, bool]]
    ) -> "Rows":
        """Return the rows of scored images, and what was noticed in the pixels of each."""
        kept = [scores.curve_names.index(key) for key in IMAGE_CURVES]
        curves = scores.curves[:, kept].astype(np.float32)
        widths, counts = join_counts(scores.object_counts, len(names))
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
                **dict(zip(scores.keys, scores.values.T, strict=True)),
            },
            "objects": scores.objects,
            "curves": {key: curves[:, index] for index, key in enumerate(IMAGE_CURVES)},
            FACTS: {name: facts[name].astype(np.int64) for name in _FACT_NAMES},
        }
        if scores.predicted:
            tables |= {"predicted": scores.predicted, "counts": split_counts(counts, widths)}
        totals = Totals(
            keys=scores.keys,
            curve_names=scores.curve_names,
            values=Sums.from_values(scores.values),
            curves=Sums.from_values(scores.curves),
            count_widths=widths,
            counts=Sums.from_values(counts),
        )
        return cls(tuple(names), tables, totals)

    @classmethod
    def joined(cls, parts: "Sequence[Rows]") -> "Rows":
        """Return the images of all parts, in their order."""
        tables = {
            table: {
                name: np.concatenate([part.tables[table][name] for part in parts]) for name in columns
            }
            for table, columns in parts[0].tables.items()
        }
        names = tuple(name for part in parts for name in part.names)
        return cls(names, tables, functools.reduce(Totals.plus, (part.totals for part in parts)))

    def to_tables(self) -> "dict[str, pl.DataFrame]":
        """Return all tables with the names of the images; those without a name are numbered."""
        import polars as pl

        names, taken = list[str](), set(self.names)
        for index, name in enumerate(self.names):
            number = f"{index:06d}"
            while name is None and number in taken:  # it is the name of another image
                number += "_"
            names.append(number if name is None else name)
        n_rows = {"objects": self.tables["images"]["n_objects"]}
        if "counts" in self.tables:
            n_rows["predicted"] = self.tables["counts"]["predicted"].astype(np.int64)
        tables = {SUMS: self.totals.to_table()}
        for table, columns in self.tables.items():
            first: dict[str, Any] = {"image": names}
            if table in n_rows:
                counts = n_rows[table].tolist()
                first = {
                    "image": [name for name, n in zip(names, counts, strict=True) for _ in range(n)],
                    "index": np.concatenate([np.arange(n) for n in counts]),
                }
            rest: dict[str, Any] = {key: np.ascontiguousarray(column) for key, column in columns.items()}
            if table == "objects" and "error" in columns:  # the names of the classes of errors
                classes = pl.Series("error", OBJECT_CLASSES, dtype=pl.Enum(OBJECT_CLASSES))
                rest["error"] = classes[columns["error"].astype(np.int64)]
            tables[table] = pl.DataFrame(first | rest, schema_overrides={"image": pl.String})
        return tables


def join_tables(parts: "Sequence[dict[str, pl.DataFrame]]") -> "dict[str, pl.DataFrame]":
    """Return the tables of all parts together, the images in the order of their names."""
    import polars as pl

    tables = {}
    for name in parts[0]:
        if name == SUMS:
            totals = (Totals.from_table(part[SUMS]) for part in parts)
            tables[name] = functools.reduce(Totals.plus, totals).to_table()
        else:
            tables[name] = pl.concat([part[name] for part in parts])
    names = tables["images"]["image"].to_list()
    if any(name >= after for name, after in pairwise(names)):
        for name, table in tables.items():
            if name != SUMS:  # the objects of an image keep their order
                tables[name] = table.sort("image", maintain_order=True)
        names = tables["images"]["image"].to_list()
    for name, after in pairwise(names):
        if name == after:
            raise InputError(
                f"the image {name!r} was scored twice, from two shards or tables; keep one of them"
            )
    return tables


def pack(cells: "Mapping[str, pl.DataFrame | bytes]") -> bytes:
    """Return several tables as the bytes of one Arrow file: one row, a cell for each of them."""
    import polars as pl

    row = {
        name: [cell if isinstance(cell, bytes) else cell.write_ipc(None).getvalue()]
        for name, cell in cells.items()
    }
    return pl.DataFrame(row, schema=dict.fromkeys(row, pl.Binary)).write_ipc(None).getvalue()


def unpack(data: bytes, *, where: str, raw: Iterable[str] = ()) -> dict[str, Any]:
    """Return the tables, or for names in `raw` the bytes, that `pack` wrote; `where` is for messages."""
    import polars as pl

    try:
        row = pl.read_ipc(data).row(0, named=True)
        return {name: cell if name in raw else pl.read_ipc(cell) for name, cell in row.items()}
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, TypeError) as error:
        raise InputError(
            f"{where} is damaged, or of another version; remove it and score it again"
        ) from error


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

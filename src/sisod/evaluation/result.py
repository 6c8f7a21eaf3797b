"""The result of an evaluation: summary, tables, curves; saved to a folder and loaded from it."""

import dataclasses
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sisod.common.errors import InputError, counted
from sisod.common.folders import write_folder
from sisod.common.grid import number
from sisod.common.output import write_json
from sisod.common.parquet import join_tables, sort_tables, write_table
from sisod.data.pairs import Pair
from sisod.evaluation.rows import IMAGE_CURVES, Rows, Totals, split_counts
from sisod.evaluation.saved import FILES, read_saved
from sisod.scoring.custom import CustomMetric, custom_record
from sisod.scoring.errors import OBJECT_CLASSES
from sisod.scoring.histograms import LEVELS
from sisod.scoring.metrics import METRICS, PAPER_KEYS, arrow, is_custom, named_set
from sisod.scoring.protocols import Protocol

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from sisod.report.style import Width

KIND = "evaluation"  # what run.json says of the folder
_ROW_GROUP = 2048  # rows of a joined table that are held in memory at a time


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The scores of a set of images.

    Attributes:
        summary: metric key -> value over the images: the mean of those where it is defined, or for
            `*_max` the maximum of the mean curve; metrics of objects are those of counts summed over
            images.
        defined: metric key -> on how many images it was defined.
        images: one row per image.
        objects: one row per frame; results of older versions and of the protocol `official` have no
            columns `error` and `missed_pixels`.
        curves: the mean curves, one row per threshold.
        image_curves: F and SI-F curves of every image, in float32.
        protocol: the conventions used.
        run: version, settings, inputs, and counts of what was resized, missing, undefined.
        files: one row per image: the files of its prediction and its ground truth, below the folders
            that `run` names, and a stamp of each that differs once it has changed; None for a result
            of arrays in memory.
        predicted: one row per predicted object; None under the protocol `official`, and in results
            that were saved before there were any.
        counts: one row per image: its counts of objects, from whose sums the metrics of objects are
            computed; None where `predicted` is.
    """

    summary: dict[str, float]
    defined: dict[str, int]
    images: "pl.DataFrame"
    objects: "pl.DataFrame"
    curves: "pl.DataFrame"
    image_curves: "pl.DataFrame"
    protocol: Protocol
    run: dict[str, Any] = field(default_factory=dict)
    files: "pl.DataFrame | None" = None
    predicted: "pl.DataFrame | None" = None
    counts: "pl.DataFrame | None" = None

    @classmethod
    def from_rows(
        cls, rows: Rows, *, protocol: Protocol, custom: Sequence[CustomMetric] = ()
    ) -> "Evaluation":
        """Return the result with its tables; `custom` are the metrics of the user in it."""
        tables = make_tables(rows)
        return cls(
            summary=rows.totals.summary(),
            defined=rows.totals.defined(),
            images=tables["images"],
            objects=tables["objects"],
            curves=curve_table(rows.totals),
            image_curves=tables["curves"],
            protocol=protocol,
            run=run_record(rows.totals, protocol, custom),
            predicted=tables.get("predicted"),
            counts=tables.get("counts"),
        )

    def save(self, folder: Path | str, *, overwrite: bool = False) -> None:
        """Write the result to a folder, whole or not at all."""
        with write_folder(Path(folder), kind=KIND, overwrite=overwrite) as inside:
            writer = ResultWriter(inside)
            writer.add(
                {"images": self.images, "objects": self.objects, "curves": self.image_curves}
                | ({} if self.predicted is None else {"predicted": self.predicted})
                | ({} if self.counts is None else {"counts": self.counts})
            )
            writer.finish(self.summary, self.defined, self.curves, self.files, self.run)

    @classmethod
    def load(cls, folder: Path | str) -> "Evaluation":
        """Read what `save`, or `sisod evaluate`, wrote."""
        saved = read_saved(Path(folder))
        return cls(
            summary=saved.summary,
            defined=saved.defined,
            images=saved.tables["images"],
            objects=saved.tables["objects"],
            curves=saved.tables["dataset_curves"],
            image_curves=saved.tables["curves"],
            protocol=saved.protocol,
            run=saved.run,
            files=saved.tables.get(FILES),
            predicted=saved.tables.get("predicted"),
            counts=saved.tables.get("counts"),
        )

    def plot(
        self, figure: str | None = None, *, metrics: Sequence[str] = (), width: "Width" = "double"
    ) -> "Figure":
        """Draw this result.

        Args:
            figure: name of a figure of `sisod plot`, such as `"size-log"`; None for an overview of F
                and PR curves in both forms, MAE of objects by size and SI-MAE by number.
            metrics: scores to draw, for figures of scores.
            width: `"single"` or `"double"`, that of a column or of the text of a two-column paper.
        """
        from sisod.report.notebook import evaluation_figure

        return evaluation_figure(self, figure, metrics=metrics, width=width)

    def __repr__(self) -> str:
        n_images = self.images.height
        sizes = f"{counted(n_images, 'image')}, {counted(self.objects.height, 'object')}"
        custom = [key for key in self.summary if is_custom(key)]
        first = named_set(self.summary.keys() - set(custom)) or PAPER_KEYS
        keys = [key for key in (*first, *custom) if key in self.summary]
        keys = keys or list(self.summary)[: len(PAPER_KEYS)]
        names = [f"{METRICS[key].title} {arrow(key)}".rstrip() for key in keys]
        width = max(map(len, names), default=0)
        lines = [f"Evaluation{self._name()}: {sizes}, protocol {self.protocol.name}"]
        for key, name in zip(keys, names, strict=True):
            n_undefined = n_images - self.defined[key]
            note = f"  (undefined on {counted(n_undefined, 'image')})" if n_undefined else ""
            lines.append(f"  {name:{width}}  {number(self.summary[key]):>7}{note}")
        if len(keys) < len(self.summary):
            lines.append(f"  and {counted(len(self.summary) - len(keys), 'more metric')} in .summary")
        return "\n".join(lines)

    def _name(self) -> str:
        """What was scored, as far as the record says: the folder of predictions."""
        folder = Path(self.run.get("inputs", {}).get("predictions", ""))
        return f" of {folder.name!r}" if folder.name else ""

    def _repr_html_(self) -> str:
        from sisod.report.notebook import summary_caption, summary_grid

        return summary_grid(self).html(summary_caption(self))


def sorted_by_name(result: Evaluation) -> Evaluation:
    """Return the same result with the images in the order of their names, which must differ."""
    names = ("images", "objects", "image_curves", "files", "predicted", "counts")
    tables = {name: getattr(result, name) for name in names}
    in_order: dict[str, Any] = {
        name: table.sort("image", maintain_order=True)  # the objects of an image keep their order
        for name, table in tables.items()
        if table is not None
    }
    _check_names_differ(in_order["images"])
    return dataclasses.replace(result, **in_order)


def _check_names_differ(images: "pl.DataFrame") -> None:
    for name, after in pairwise(images["image"].to_list()):
        if name == after:
            raise InputError(
                f"the image {name!r} was scored twice, from two shards or tables; keep one of them"
            )


class ResultWriter:
    """Writes the files of a result into an existing folder, with little memory.

    The tables that grow with the data set are added in parts, which are joined at the end without
    reading all of them. With `by_name`, the images are sorted by name; if the parts were added in
    another order, all of a table is read.
    """

    def __init__(self, folder: Path, *, by_name: bool = False) -> None:
        self._folder = folder
        self._is_in_order = True
        self._by_name = by_name
        self._last: str | None = None  # name of the last image that was added
        self._parts = folder / "parts"
        self._parts.mkdir()
        self._n_parts = 0
        self._names: tuple[str, ...] = ()

    def add(self, tables: "Mapping[str, pl.DataFrame]") -> None:
        """Write the next rows of the tables that have rows for every image."""
        self._names = tuple(tables)
        for name, table in tables.items():
            write_table(table, self._parts / f"{name}-{self._n_parts:07d}.parquet")
        self._n_parts += 1
        if self._by_name:
            names = tables["images"]["image"].to_list()
            before = names if self._last is None else [self._last, *names]
            self._is_in_order &= all(name < after for name, after in pairwise(before))
            self._last = names[-1]

    def finish(
        self,
        summary: Mapping[str, float],
        defined: Mapping[str, int],
        curves: "pl.DataFrame",
        files: "pl.DataFrame | None",
        run: Mapping[str, Any],
    ) -> None:
        """Join the parts and write everything else; the arguments are attributes of `Evaluation`."""
        for name in self._names:
            path = self._folder / f"{name}.parquet"
            parts = sorted(self._parts.glob(f"{name}-*.parquet"))
            if not self._is_in_order:
                table = sort_tables(parts, path, by="image", row_group_size=_ROW_GROUP)
                if name == "images":
                    _check_names_differ(table)
            elif len(parts) == 1:
                parts[0].rename(path)
            else:
                join_tables(parts, path, row_group_size=_ROW_GROUP)
        shutil.rmtree(self._parts)
        write_table(curves, self._folder / "dataset_curves.parquet")
        if files is not None:
            write_table(files, self._folder / f"{FILES}.parquet")
        values = {key: None if math.isnan(value) else value for key, value in summary.items()}
        rows = {key: {"value": value, "images": defined[key]} for key, value in values.items()}
        write_json(self._folder / "summary.json", rows)
        write_json(self._folder / "run.json", run)


def make_tables(rows: Rows) -> "dict[str, pl.DataFrame]":
    """Return the tables with a row per image or object; images without a name are numbered."""
    import polars as pl

    names = _fill_names(rows.names)
    images: dict[str, Any] = {
        "image": names,
        "height": rows.shapes[:, 0],
        "width": rows.shapes[:, 1],
        "n_objects": rows.n_objects,
        "alpha": rows.alphas,
    }
    images |= {key: np.ascontiguousarray(rows.values[:, i]) for i, key in enumerate(rows.totals.keys)}
    curves = {key: np.ascontiguousarray(rows.curves[:, i]) for i, key in enumerate(IMAGE_CURVES)}
    tables = {
        "images": pl.DataFrame(images),
        "objects": _numbered_rows(names, rows.n_objects, _named_errors(rows.objects)),
        "curves": pl.DataFrame({"image": names, **curves}),
    }
    if rows.predicted:
        counts = split_counts(rows.counts, rows.totals.count_widths)
        n_predicted = counts["predicted"].astype(np.int64)
        tables["predicted"] = _numbered_rows(names, n_predicted, rows.predicted)
        columns = {key: np.ascontiguousarray(values) for key, values in counts.items()}
        tables["counts"] = pl.DataFrame({"image": names, **columns})
    return tables


def _numbered_rows(
    names: list[str], n_rows: NDArray[np.int64], columns: Mapping[str, Any]
) -> "pl.DataFrame":
    """Return a table with several rows per image, numbered from 0 on in each."""
    import polars as pl

    rows: dict[str, Any] = {
        "image": np.repeat(np.array(names, dtype=object), n_rows).tolist(),
        "index": np.concatenate([np.arange(n) for n in n_rows.tolist()]),
    }
    return pl.DataFrame({**rows, **columns}, schema_overrides={"image": pl.String})


def _named_errors(columns: dict[str, NDArray[np.generic]]) -> dict[str, Any]:
    """Return the columns of the object table with the names of the classes of errors, if it has any.

    A table that is changed would start the threads of polars, which a forked process cannot use.
    """
    import polars as pl

    if "error" not in columns:
        return dict(columns)
    classes = pl.Series("error", OBJECT_CLASSES, dtype=pl.Enum(OBJECT_CLASSES))
    return columns | {"error": classes[columns["error"].astype(np.int64)]}


def _fill_names(names: Sequence[str | None]) -> list[str]:
    """Number images without a name; a number that is the name of another gets an underscore."""
    taken = set(names)

    def numbered(index: int) -> str:
        name = f"{index:06d}"
        while name in taken:
            name += "_"
        return name

    return [numbered(index) if name is None else name for index, name in enumerate(names)]


def curve_table(totals: Totals) -> "pl.DataFrame":
    """Return the mean curves, one row per threshold."""
    import polars as pl

    return pl.DataFrame({"threshold": np.arange(LEVELS), **totals.mean_curves()})


def file_table(pairs: Sequence[Pair]) -> "pl.DataFrame":
    """Return the files of each image, each with a stamp that differs once the file has changed."""
    import polars as pl

    return pl.DataFrame(
        {
            "image": [pair.name for pair in pairs],
            "prediction": [pair.pred.path for pair in pairs],
            "prediction_stamp": [pair.pred.stamp for pair in pairs],
            "ground_truth": [pair.gt.path for pair in pairs],
            "ground_truth_stamp": [pair.gt.stamp for pair in pairs],
        }
    )


def run_record(
    totals: Totals, protocol: Protocol, custom: Sequence[CustomMetric] = ()
) -> dict[str, Any]:
    """Return the part of run.json that every result has."""
    from sisod.common.version import __version__

    undefined = {key: totals.n_images - n for key, n in totals.defined().items() if n < totals.n_images}
    record = {
        "sisod": __version__,
        "kind": KIND,
        "protocol": dataclasses.asdict(protocol),
        "metrics": list(totals.keys),
        "images": totals.n_images,
        "objects": totals.n_objects,
        "resized": totals.n_resized,
        "looks_binary": totals.n_binary,
        "tiny": totals.n_tiny,
        "components": totals.n_objects + totals.n_left_out,
        "left_out": totals.n_left_out,
        "grey_masks": totals.n_grey_masks,
        "emptied_masks": totals.n_emptied_masks,
        "looks_swapped": totals.n_swapped,
        "undefined": undefined,
    }
    if totals.count_widths:
        record["predicted"] = int(totals.object_sums()["predicted"])
    if custom:
        record["custom"] = custom_record(custom)
    return record

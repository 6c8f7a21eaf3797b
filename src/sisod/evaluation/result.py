"""The result of an evaluation: summary, tables, curves; saved to a folder and loaded from it."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sisod.common import DRAWINGS
from sisod.common.arguments import check_utf8
from sisod.common.exceptions import pluralize
from sisod.common.grid import Grid, number
from sisod.common.output import json_bytes, table_bytes
from sisod.common.run_folder import DIGESTS, FORMAT, Run, open_run
from sisod.common.version import __version__
from sisod.evaluation.rows import FACTS, FILES, Rows
from sisod.scoring.counting.histograms import LEVELS
from sisod.scoring.custom import CustomMetric, custom_record
from sisod.scoring.metrics import METRICS, PAPER_KEYS, arrow, is_custom, named_set
from sisod.scoring.protocols import Protocol

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from sisod.report.style import Width


KIND = "evaluation"  # what run.json says of the folder
SUMMARY_FILE = "summary.json"
# name of a file -> field of the result
_TABLES = {name: name for name in ("images", "objects", "files", "predicted", "counts")}
_TABLES |= {"curves": "image_curves", "dataset_curves": "curves"}


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The scores of a set of images.

    Attributes:
        summary: metric key -> value over the images: the mean of those where it is defined, or for
            `*_max` the maximum of the mean curve; metrics of objects are those of counts summed over
            images.
        defined: metric key -> on how many images it was defined.
        images: one row per image.
        objects: one row per frame; under the protocol `official` without the columns `error` and
            `missed_pixels`.
        curves: the mean curves, one row per threshold.
        image_curves: F and SI-F curves of every image, in float32.
        protocol: the conventions used.
        run: version, settings, inputs, and counts of what was resized, missing, undefined.
        files: one row per image: the files of its prediction and its ground truth, below the folders
            that `run` names, and a stamp of each that differs once it has changed; None for a result
            of arrays in memory.
        predicted: one row per predicted object; None under the protocol `official`.
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
        cls,
        rows: Rows,
        protocol: Protocol,
        *,
        custom: Sequence[CustomMetric] = (),
        record: Mapping[str, Any] | None = None,
        by_name: bool = False,
    ) -> "Evaluation":
        """Return the result of scored images.

        Args:
            rows: the scores of all images.
            protocol: by which they were scored.
            custom: the metrics of the user among them.
            record: further fields of `run`.
            by_name: sort the images by name, and raise if two have the same.
        """
        import polars as pl

        tables, totals = rows.to_tables(by_name=by_name), rows.totals
        n_images, n_objects = len(rows.names), tables["objects"].height
        # the metrics are the first of the sums
        defined = dict(zip(totals.keys, totals.sums.n_defined.tolist(), strict=False))
        facts = {name: int(column.sum()) for name, column in rows.tables[FACTS].items()}
        run = {
            "format": FORMAT,
            "sisod": __version__,
            "kind": KIND,
            "protocol": dataclasses.asdict(protocol),
            "metrics": list(totals.keys),
            "images": n_images,
            "objects": n_objects,
            **facts,
            "components": n_objects + facts["left_out"],
            "undefined": {key: n_images - n for key, n in defined.items() if n < n_images},
        }
        if "predicted" in tables:
            run["predicted"] = tables["predicted"].height
        if custom:
            run["custom"] = custom_record(custom)
        return cls(
            summary=totals.summary(),
            defined=defined,
            images=tables["images"],
            objects=tables["objects"],
            curves=pl.DataFrame({"threshold": np.arange(LEVELS), **totals.mean_curves()}),
            image_curves=tables["curves"],
            protocol=protocol,
            run=run | dict(record or {}),
            files=tables.get(FILES),
            predicted=tables.get("predicted"),
            counts=tables.get("counts"),
        )

    def save(self, folder: Path | str, *, overwrite: bool = False) -> None:
        """Write the result to a folder, whole or not at all.

        Args:
            folder: for the tables (Parquet), summary.json and run.json.
            overwrite: replace an earlier result, and nothing else.

        Example:
            >>> import tempfile
            >>> import sisod
            >>> evaluator = sisod.Evaluator(metrics="mae")
            >>> evaluator.update(np.eye(4, dtype=bool), np.eye(4, dtype=bool), name="a")
            >>> folder = Path(tempfile.mkdtemp()) / "D" / "EDN"
            >>> evaluator.result().save(folder)
            >>> Evaluation.load(folder).summary
            {'mae': 0.0}
        """
        with open_run(folder, kind=KIND, overwrite=overwrite) as run:
            run.begin()
            self.write(run)

    def write(self, run: Run, **record: Any) -> None:
        """Write the files of the result into the folder of a run, and finish it.

        Args:
            run: that has begun.
            record: further fields of run.json.
        """
        for name, field_name in _TABLES.items():
            if (table := getattr(self, field_name)) is not None:
                (run.path / f"{name}.parquet").write_bytes(table_bytes(table))
        values = {key: None if math.isnan(value) else value for key, value in self.summary.items()}
        rows = {key: {"value": value, "images": self.defined[key]} for key, value in values.items()}
        (run.path / SUMMARY_FILE).write_bytes(json_bytes(rows))
        run.finish(digest=("*.parquet", SUMMARY_FILE), **self.run, **record)

    @classmethod
    def load(cls, folder: Path | str) -> "Evaluation":
        """Read what `save`, or `sisod evaluate`, wrote.

        Args:
            folder: of one result.

        Raises:
            InputError: it is no result, of another version, or a file in it was changed.
        """
        folder = Path(folder)
        check_utf8(str(folder.absolute()), "the folder name")
        from sisod.evaluation.saved import read_run, read_summary, read_tables

        run = read_run(folder)
        summary, defined = read_summary(folder, run)
        tables = read_tables(folder, run)
        for key in (DIGESTS, "config", "finished", "files"):  # of the folder, not of the result
            run.pop(key, None)
        return cls(
            summary=summary,
            defined=defined,
            protocol=Protocol(**run["protocol"]),
            run=run,
            **{field_name: tables[name] for name, field_name in _TABLES.items() if name in tables},
        )

    def with_metrics_of(self, other: "Evaluation") -> "Evaluation":
        """Return this result with the further metrics of another one of the same files and protocol.

        Args:
            other: whose columns, curves and values are added unless they are here already.
        """
        import polars as pl

        tables = {}
        for name in _TABLES.values():
            mine, others = getattr(self, name), getattr(other, name)
            if mine is not None and others is not None:
                more = [column for column in others.columns if column not in mine.columns]
                tables[name] = pl.concat([mine, others.select(more)], how="horizontal")
        added = [key for key in other.summary if key not in self.summary]
        run = self.run | {"metrics": [*self.run["metrics"], *added]}
        for key in ("undefined", "custom"):
            if key in self.run or key in other.run:
                run[key] = other.run.get(key, {}) | self.run.get(key, {})
        return dataclasses.replace(
            self,
            summary=self.summary | {key: other.summary[key] for key in added},
            defined=self.defined | {key: other.defined[key] for key in added},
            run=run,
            **tables,
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
        made: Figure = DRAWINGS["evaluation"](self, figure, metrics=metrics, width=width)
        return made

    def __repr__(self) -> str:
        n_images = self.images.height
        sizes = f"{pluralize(n_images, 'image')}, {pluralize(self.objects.height, 'object')}"
        custom = [key for key in self.summary if is_custom(key)]
        first = named_set(self.summary.keys() - set(custom)) or PAPER_KEYS
        keys = [key for key in (*first, *custom) if key in self.summary]
        keys = keys or list(self.summary)[: len(PAPER_KEYS)]
        names = [f"{METRICS[key].title} {arrow(key)}".rstrip() for key in keys]
        width = max(map(len, names), default=0)
        folder = Path(self.run.get("inputs", {}).get("predictions", ""))
        scored = f" of {folder.name!r}" if folder.name else ""
        lines = [f"Evaluation{scored}: {sizes}, protocol {self.protocol.name}"]
        for key, name in zip(keys, names, strict=True):
            n_undefined = n_images - self.defined[key]
            note = f"  (undefined on {pluralize(n_undefined, 'image')})" if n_undefined else ""
            lines.append(f"  {name:{width}}  {number(self.summary[key]):>7}{note}")
        if len(keys) < len(self.summary):
            lines.append(f"  and {pluralize(len(self.summary) - len(keys), 'more metric')} in .summary")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """A row for each metric; beside a mean over fewer images their number."""
        rows: dict[str, dict[bool, str]] = {}
        for key, value in self.summary.items():
            text, defined = number(value), self.defined[key]
            if defined != self.images.height:
                text += f" ({pluralize(defined, 'image')})"
            name = f"{METRICS[key].title} {arrow(key)}".rstrip().removeprefix("SI-")
            rows.setdefault(name, {})[METRICS[key].size_invariant] = text
        cells = tuple((name, row.get(False, ""), row.get(True, "")) for name, row in rows.items())
        sizes = f"{pluralize(self.images.height, 'image')}, {pluralize(self.objects.height, 'object')}"
        grid = Grid(("metric", "plain", "size-invariant"), cells, n_text=1)
        return grid.html(f"{sizes}, protocol {self.protocol.name}")

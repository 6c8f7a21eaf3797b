"""Results -> the paper's tables with our numbers beside them: differences between losses are compared.

Absolute values depend on random seeds and on details that the paper does not state; the difference
between the losses is the paper's claim.
"""

import itertools
from dataclasses import dataclass
from typing import Any

import polars as pl

from sisod import paper
from sisod.analysis.scores import heading
from sisod.common.exceptions import InputError
from sisod.common.grid import Grid, number
from sisod.common.output import table_bytes, write_output
from sisod.evaluation.saved import read_run, read_summary
from sisod.reproduction.cells import grid
from sisod.reproduction.run import PROTOCOLS, Reproduction
from sisod.scoring.metrics import PAPER_KEYS

_TITLES = {"plain": "plain", "si": "SI", "alpha0": "alpha = 0", "alpha1": "alpha = 1"}
_ROW = ("protocol", "dataset", "network")


@dataclass(frozen=True, eq=False)
class Tables:
    """The scores of all finished cells, as tables.

    Attributes:
        scores: one row per protocol, data set and cell: its `network` and `loss` (`plain`, `si`, and of
            the ablation `alpha0`, `alpha1`), the number of `images`, the paper's metrics.
        differences: one row per protocol, data set, network, loss and metric: the `value`, its
            `difference` from the plain loss, and the `published_difference`; NaN where there is none.
        caption: how the numbers were obtained.
    """

    scores: pl.DataFrame
    differences: pl.DataFrame
    caption: str

    def grids(self, protocol: str = "official") -> dict[str, Grid]:
        """Return title -> table, laid out as in the paper: the data sets, then alpha on each."""
        table = self.differences.filter(protocol=protocol)
        is_alpha = pl.col("loss").str.starts_with("alpha")
        ablated = table.filter(is_alpha.any().over("dataset", "network"))
        return {
            dataset: _grid(part)
            for (dataset,), part in table.filter(~is_alpha).group_by("dataset", maintain_order=True)
        } | {
            f"{dataset}, alpha of {network}": _grid(part)
            for (dataset, network), part in ablated.group_by("dataset", "network", maintain_order=True)
        }

    def write(self, work: Reproduction) -> None:
        """Write Markdown and Parquet into `tables/`."""
        folder = work.out / "tables"
        for name, frame in (("scores", self.scores), ("differences", self.differences)):
            write_output(folder / f"{name}.parquet", table_bytes(frame))
        for protocol in PROTOCOLS:
            parts = [f"# The paper's tables, protocol {protocol}", self.caption]
            for title, table in self.grids(protocol).items():
                parts += [f"## {title}", table.markdown()]
            write_output(folder / f"{protocol}.md", ("\n\n".join(parts) + "\n").encode())


def make_tables(work: Reproduction) -> Tables:
    """Read the results of the finished cells; nothing is scored."""
    rows = []
    cells = [cell for cell in grid() if cell.kind == "train"]
    for protocol, dataset, cell in itertools.product(PROTOCOLS, paper.datasets(), cells):
        folder = work.out / "results" / protocol / dataset / cell.method
        if not (folder / "summary.json").exists():
            continue
        summary, defined = read_summary(folder, read_run(folder))
        row: dict[str, Any] = dict(zip(_ROW, (protocol, dataset, cell.title), strict=True))
        row |= {"cell": cell.name, "loss": cell.name.rpartition("-")[2]}
        row["images"] = defined["mae"]  # MAE is defined on every image
        rows.append(row | {key: summary[key] for key in PAPER_KEYS})
    if not rows:
        raise InputError(f"{str(work.out)!r} holds no result yet; run a cell first")
    scores = pl.DataFrame(rows)
    text = "Synthetic scenes and two steps per run: the pipeline works, the numbers mean nothing."
    if work.scale == "full":
        text = (
            "One run for each row; 'sisod compare' gives a pair's difference with its interval. SI is "
            "sisod's normalised loss; the paper prints Eq. 16 without the division by K + alpha."
        )
        text += f" There were {work.sets.incomplete}." if work.sets.incomplete else ""
    return Tables(scores, difference_table(scores), text)


def difference_table(scores: pl.DataFrame) -> pl.DataFrame:
    """Return what every loss changes; NaN if it and the plain loss were scored on different images."""
    is_si = pl.col("size_invariant")
    losses = paper.table("quantitative").with_columns(
        loss=pl.when(is_si).then(pl.lit("si")).otherwise(pl.lit("plain"))
    )
    ablation = paper.table("ablation").with_columns(
        loss="alpha" + pl.col("alpha"), network=pl.lit("EDN")
    )
    published = _long(pl.concat([losses, ablation], how="diagonal"), "dataset", "network")
    ours = _long(scores, *_ROW, "images")
    same = pl.col("images") == _of_plain("images").over(_ROW)
    table = ours.with_columns(difference=pl.when(same).then("difference")).join(
        published.select("dataset", "network", "loss", "metric", published_difference="difference"),
        on=("dataset", "network", "loss", "metric"),
        how="left",
        maintain_order="left",
    )
    return table.drop("images").with_columns(
        pl.col("difference", "published_difference").fill_null(float("nan"))
    )


def _long(scores: pl.DataFrame, *index: str) -> pl.DataFrame:
    """Return one row per metric, with the difference from the plain loss."""
    keys = [name for name in index if name != "images"]
    long = scores.unpivot(PAPER_KEYS, index=[*index, "loss"], variable_name="metric")
    return long.with_columns(difference=pl.col("value") - _of_plain("value").over(*keys, "metric"))


def _of_plain(column: str) -> pl.Expr:
    return pl.col(column).filter(pl.col("loss") == "plain").first()


def _grid(table: pl.DataFrame) -> Grid:
    rows = []
    for (network, loss), part in table.group_by("network", "loss", maintain_order=True):
        title = _TITLES[loss]
        lines = {title: "value", f"{title} - plain": "difference", "the paper's": "published_difference"}
        for name, column in lines.items():
            if loss != "plain" or column == "value":
                numbers = (number(value, sign=column != "value") for value in part[column])
                rows.append((network, name, *numbers))
    head = ("network", "", *map(heading, PAPER_KEYS))
    return Grid(head, tuple(rows), n_text=2)

"""Results -> the paper's tables with our numbers beside them: differences between losses are compared.

Absolute values depend on random seeds and on details that the paper does not state; the difference
between the losses is the paper's claim.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import polars as pl

from sisod import paper
from sisod.analysis.bootstrap import heading
from sisod.common.exceptions import InputError
from sisod.common.grid import Grid, json_rows, number
from sisod.common.output import json_bytes, readable_errors, write_atomically
from sisod.common.parquet import table_bytes
from sisod.evaluation.saved import read_summary
from sisod.reproduction.cells import ABLATED, ABLATION, find_cell, grid, paper_name
from sisod.reproduction.loss_time import Bench
from sisod.reproduction.run import PROTOCOLS, Reproduction
from sisod.scoring.metrics import METRICS, PAPER_KEYS

# protocol, data set -> cell -> number of images and scores
Scores = dict[tuple[str, str], dict[str, dict[str, float]]]
_ALPHAS = {"plain": "plain", "0": "alpha = 0", "1": "alpha = 1", "ratio": "alpha = back / fore"}


@dataclass(frozen=True, eq=False)
class Tables:
    """The scores of all finished cells, as tables.

    Attributes:
        scores: one row per protocol, data set and cell.
        differences: one row per protocol, data set, network and metric: size-invariant minus plain loss,
            ours and published.
        ablation: the same for each alpha, minus the plain loss.
        bench: training times with both losses; None if not measured.
        caption: how the numbers were obtained.
    """

    scores: pl.DataFrame
    differences: pl.DataFrame
    ablation: pl.DataFrame
    bench: Bench | None
    caption: str

    def grids(self, protocol: str = "official") -> dict[str, Grid]:
        """Return title -> table, laid out as in the paper: data sets, then alpha on each, then times."""
        grids = {}
        for (dataset,), part in self._parts(self.differences, protocol, "dataset"):
            rows = [
                (network, title, *_texts(lines, column, PAPER_KEYS))
                for (network,), lines in part.group_by("network", maintain_order=True)
                for title, column in (
                    ("plain", "plain"),
                    ("SI", "si"),
                    ("SI - plain", "difference"),
                    ("the paper's", "published_difference"),
                )
            ]
            grids[dataset] = _grid("network", PAPER_KEYS, rows)
        for (dataset,), part in self._parts(self.ablation, protocol, "dataset"):
            keys = part["metric"].unique(maintain_order=True).to_list()
            rows = []
            for (alpha,), lines in part.group_by("alpha", maintain_order=True):
                rows.append((_ALPHAS[alpha], "", *_texts(lines, "value", keys)))
                if alpha != "plain":
                    rows.append((_ALPHAS[alpha], "- plain", *_texts(lines, "difference", keys)))
                    published = _texts(lines, "published_difference", keys)
                    rows += [(_ALPHAS[alpha], "the paper's", *published)] * (set(published) != {"-"})
            grids[f"{dataset}, alpha of {paper_name(ABLATED)}"] = _grid("loss", keys, rows)
        if self.bench is not None:
            grids |= dict(zip(("Training cost", "Preprocessing"), self.bench.grids(), strict=True))
        return grids

    @staticmethod
    def _parts(table: pl.DataFrame, protocol: str, key: str) -> Any:
        return table.filter(protocol=protocol).group_by(key, maintain_order=True)

    def write(self, work: Reproduction) -> None:
        """Write Markdown, JSON and Parquet into `tables/`."""
        folder = work.out / "tables"
        frames = {name: getattr(self, name) for name in ("scores", "differences", "ablation")}
        content: dict[str, Any] = {"scale": work.scale.name, "caption": self.caption}
        content |= {name: json_rows(frame) for name, frame in frames.items()}
        content["time"] = None if self.bench is None else self.bench.content()
        with readable_errors(folder, "make room there and write them again with --cell tables"):
            folder.mkdir(parents=True, exist_ok=True)
            for name, frame in frames.items():
                write_atomically(folder / f"{name}.parquet", table_bytes(frame))
            write_atomically(folder / "reproduction.json", json_bytes(content))
            for protocol in PROTOCOLS:
                parts = [f"# The paper's tables, protocol {protocol}", self.caption]
                for title, table in self.grids(protocol).items():
                    parts += [f"## {title}", table.markdown()]
                parts += [] if self.bench is None else [self.bench.caption()]
                write_atomically(folder / f"{protocol}.md", ("\n\n".join(parts) + "\n").encode())


def make_tables(work: Reproduction) -> Tables:
    """Read the results of the finished cells; nothing is scored."""
    scores = _read_scores(work)
    if not scores:
        raise InputError(f"{str(work.out)!r} holds no result yet; run a cell first")
    bench = None
    if work.time_file.exists():
        try:
            bench = msgspec.json.decode(work.time_file.read_bytes(), type=Bench)
        except ValueError as error:
            raise InputError(
                f"{str(work.time_file)!r} is damaged; remove it, and run the cell 'time' again: {error}"
            ) from None
    differences, ablation = difference_table(scores), _ablation_table(scores)
    return Tables(_score_table(scores), differences, ablation, bench, _caption(work, scores))


def _read_scores(work: Reproduction) -> Scores:
    scores: Scores = {}
    for protocol in PROTOCOLS:
        for dataset in paper.datasets():
            for cell in (cell for cell in grid() if cell.kind == "train"):
                folder = work.result(cell, dataset, protocol)
                if (folder / "summary.json").exists():
                    summary, defined = read_summary(folder, needed=PAPER_KEYS)
                    # MAE is defined on every image
                    values = {"images": defined["mae"]} | {key: summary[key] for key in PAPER_KEYS}
                    scores.setdefault((protocol, dataset), {})[cell.name] = values
    return scores


def _caption(work: Reproduction, scores: Scores) -> str:
    text = "Synthetic scenes and two steps per run: the pipeline works, the numbers mean nothing."
    if not work.scale.synthetic:
        text = (
            "One run for each row; 'sisod compare' gives a pair's difference with its interval. SI is "
            "sisod's normalised loss; the paper prints Eq. 16 without the division by K + alpha."
        )
        text += f" There were {work.sets.incomplete}." if work.sets.incomplete else ""
    return " ".join([text, *uneven_pairs(scores)])


def uneven_pairs(scores: Scores) -> list[str]:
    """Return a sentence on each pair of cells that were scored on different numbers of images."""
    sentences = []
    for (protocol, dataset), by_cell in scores.items():
        for name in paper.networks() if protocol == "official" else ():
            before, after = _pair(by_cell, name)
            if before and after and before["images"] != after["images"]:
                sentences.append(
                    f"{name} on {dataset} was scored on {before['images']} images with the plain and on "
                    f"{after['images']} with the size-invariant loss: run both cells again."
                )
    return sentences


def _pair(by_cell: dict[str, dict[str, float]], network: str) -> list[dict[str, float]]:
    """Return the scores of a network with the plain and the SI loss; empty where there are none."""
    return [by_cell.get(f"{network.lower()}-{loss}", {}) for loss in ("plain", "si")]


def _score_table(scores: Scores) -> pl.DataFrame:
    rows = []
    for (protocol, dataset), by_cell in scores.items():
        for name, values in by_cell.items():
            cell = find_cell(name)
            labels = {"protocol": protocol, "dataset": dataset, "cell": name, "network": cell.network}
            alpha = "" if cell.loss == "plain" else str(cell.alpha)
            rows.append({**labels, "loss": cell.loss, "alpha": alpha, **values})
    return pl.DataFrame(rows)


def difference_table(scores: Scores) -> pl.DataFrame:
    """Return both losses and their difference, which is NaN if they were scored on different images."""
    rows = []
    for (protocol, dataset), by_cell in scores.items():
        for name in paper.networks():
            before, after = _pair(by_cell, name)
            same = before.get("images") == after.get("images")
            published = [paper.row(dataset, name, size_invariant=si).values for si in (False, True)]
            for key in PAPER_KEYS if before or after else ():
                plain, si = before.get(key, math.nan), after.get(key, math.nan)
                change = published[1][key] - published[0][key]
                rows.append(
                    (protocol, dataset, name, key, plain, si, si - plain if same else math.nan, change)
                )
    numbers = ("plain", "si", "difference", "published_difference")
    return _table(("protocol", "dataset", "network", "metric"), numbers, rows)


def _ablation_table(scores: Scores) -> pl.DataFrame:
    printed = {(row["dataset"], row["alpha"]): row for row in paper.table("ablation").to_dicts()}
    keys = [key for key in paper.table("ablation").columns if key in METRICS]
    rows = []
    for (protocol, dataset), by_cell in scores.items():
        if ABLATION["0"] not in by_cell and ABLATION["1"] not in by_cell:
            continue  # the other two are in the quantitative tables
        ours = {alpha: by_cell.get(cell, {}) for alpha, cell in ABLATION.items()}
        for alpha, values in ours.items():
            for key in keys:
                value, base = (line.get(key, math.nan) for line in (values, ours["plain"]))
                published, published_base = (
                    printed.get((dataset, name), {}).get(key, math.nan) for name in (alpha, "plain")
                )
                rows.append(
                    (protocol, dataset, alpha, key, value, value - base, published - published_base)
                )
    numbers = ("value", "difference", "published_difference")
    return _table(("protocol", "dataset", "alpha", "metric"), numbers, rows)


def _table(labels: Sequence[str], numbers: Sequence[str], rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    schema = dict.fromkeys(labels, pl.String) | dict.fromkeys(numbers, pl.Float64)
    return pl.DataFrame(rows, schema=schema, orient="row")


def _grid(first: str, keys: Sequence[str], rows: list[tuple[str, ...]]) -> Grid:
    return Grid((first, "", *map(heading, keys)), tuple(rows), n_text=2)


def _texts(table: pl.DataFrame, column: str, keys: Sequence[str]) -> list[str]:
    values = dict(table.select("metric", column).iter_rows())
    return [number(values.get(key, math.nan), sign=column.endswith("difference")) for key in keys]

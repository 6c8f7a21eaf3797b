"""Results -> the paper's tables with our numbers beside them: differences between losses are compared.

Absolute values depend on random seeds and on details that the paper does not state; the difference
between the losses is the paper's claim.
"""

import itertools
import json
import math
from dataclasses import dataclass
from typing import Any

import polars as pl

from sisod import paper
from sisod.common.errors import InputError
from sisod.common.forks import check_not_forked
from sisod.common.grid import Grid, json_rows, number
from sisod.common.output import readable_errors, write_atomically
from sisod.common.parquet import table_bytes
from sisod.evaluation.saved import read_summary
from sisod.reproduction.cells import ABLATED, ABLATION, find_cell, grid
from sisod.reproduction.loss_time import Bench, read_bench
from sisod.reproduction.run import PROTOCOLS, Work, read_json
from sisod.scoring.metrics import METRICS, PAPER_KEYS, arrow

Scores = dict[tuple[str, str, str], dict[str, float]]  # protocol, data set, cell -> metric -> value
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
        uneven: a sentence on each pair of cells that were scored on different numbers of images and
            have no difference.
    """

    scores: pl.DataFrame
    differences: pl.DataFrame
    ablation: pl.DataFrame
    bench: Bench | None
    uneven: tuple[str, ...] = ()

    def grids(self, protocol: str = "official") -> dict[str, Grid]:
        """Return title -> table, laid out as in the paper: data sets, then alpha on each, then times."""
        grids = {}
        for dataset in _dataset_names(self.differences, protocol):
            grids[dataset] = self._quantitative(protocol, dataset)
        for dataset in _dataset_names(self.ablation, protocol):
            grids[f"{dataset}, alpha of {paper_name(ABLATED)}"] = self._alphas(protocol, dataset)
        if self.bench is not None:
            grids |= dict(zip(("Training cost", "Preprocessing"), self.bench.grids(), strict=True))
        return grids

    def _quantitative(self, protocol: str, dataset: str) -> Grid:
        rows = []
        part = self.differences.filter(protocol=protocol, dataset=dataset)
        for network in part["network"].unique(maintain_order=True):
            scores = part.filter(network=network)
            for title, column in (
                ("plain", "plain"),
                ("SI", "si"),
                ("SI - plain", "difference"),
                ("the paper's", "published_difference"),
            ):
                rows.append((network, title, *_number_texts(scores, column, PAPER_KEYS)))
        return Grid(("network", "", *(_heading(key) for key in PAPER_KEYS)), tuple(rows), n_text=2)

    def _alphas(self, protocol: str, dataset: str) -> Grid:
        rows = []
        part = self.ablation.filter(protocol=protocol, dataset=dataset)
        keys = part["metric"].unique(maintain_order=True).to_list()
        for alpha in part["alpha"].unique(maintain_order=True):
            scores = part.filter(alpha=alpha)
            rows.append((_ALPHAS[alpha], "", *_number_texts(scores, "value", keys)))
            if alpha != "plain":
                rows.append((_ALPHAS[alpha], "- plain", *_number_texts(scores, "difference", keys)))
            if alpha != "plain" and scores["published_difference"].is_not_nan().any():
                rows.append(
                    (_ALPHAS[alpha], "the paper's", *_number_texts(scores, "published_difference", keys))
                )
        return Grid(("loss", "", *(_heading(key) for key in keys)), tuple(rows), n_text=2)


def make_tables(work: Work) -> Tables:
    """Read the results of the finished cells; nothing is scored."""
    check_not_forked()
    scores = _read_scores(work)
    if not scores:
        raise InputError(f"{str(work.out)!r} holds no result yet; run a cell first")
    bench = None
    if work.time_file.exists():
        try:
            bench = read_bench(read_json(work.time_file))
        except (KeyError, TypeError):
            raise InputError(
                f"{str(work.time_file)!r} is damaged; remove it, and run the cell 'time' again"
            ) from None
    return Tables(
        _score_table(scores),
        _difference_table(scores),
        _ablation_table(scores),
        bench,
        _uneven(scores),
    )


def has_results(work: Work) -> bool:
    """Say whether any cell was scored."""
    return bool(_read_scores(work))


def write_tables(tables: Tables, work: Work) -> None:
    """Write Markdown, JSON and Parquet into `tables/`."""
    folder = work.out / "tables"
    frames = {
        "scores": tables.scores,
        "differences": tables.differences,
        "ablation": tables.ablation,
    }
    content: dict[str, Any] = {"scale": work.scale.name, "caption": caption(work, tables)}
    content |= {name: json_rows(frame) for name, frame in frames.items()}
    content["time"] = None if tables.bench is None else tables.bench.content()
    with readable_errors(folder, "make room there and write them again with --cell tables"):
        folder.mkdir(parents=True, exist_ok=True)
        for name, frame in frames.items():
            write_atomically(folder / f"{name}.parquet", table_bytes(frame))
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        write_atomically(folder / "reproduction.json", text.encode())
        for protocol in PROTOCOLS:
            write_atomically(folder / f"{protocol}.md", _markdown(tables, work, protocol).encode())


def caption(work: Work, tables: Tables) -> str:
    """Return how the numbers were obtained."""
    if work.scale.synthetic:
        text = "Synthetic scenes and two steps per run: the pipeline works, the numbers mean nothing."
    else:
        text = (
            "One run for each row; 'sisod compare' gives a pair's difference with its interval. SI is "
            "the normalised loss, the paper prints Eq. 16 without the division by K + alpha."
        )
        text += f" There were {work.sets.incomplete}." if work.sets.incomplete else ""
    return text + "".join(f" {note}." for note in tables.uneven)


def paper_name(network: str) -> str:
    """Return the name of a network as the paper spells it."""
    return next(name for name in paper.networks() if name.lower() == network)


def _markdown(tables: Tables, work: Work, protocol: str) -> str:
    parts = [f"# The paper's tables, protocol {protocol}", caption(work, tables)]
    for title, table in tables.grids(protocol).items():
        parts += [f"## {title}", table.markdown()]
    if tables.bench is not None:
        parts.append(tables.bench.caption())
    return "\n\n".join(parts) + "\n"


def _read_scores(work: Work) -> Scores:
    scores: Scores = {}
    for protocol in PROTOCOLS:
        for dataset in paper.datasets():
            for cell in grid():
                folder = work.result(cell, dataset, protocol)
                if (folder / "summary.json").exists():
                    summary, defined = read_summary(folder, needed=PAPER_KEYS)
                    values = {key: summary[key] for key in PAPER_KEYS}
                    # MAE is defined on every image
                    scores[protocol, dataset, cell.name] = {"images": float(defined["mae"]), **values}
    return scores


def _pair(scores: Scores, protocol: str, dataset: str, network: str) -> list[dict[str, float]]:
    """Return the scores of a network with the plain and the SI loss; empty where there are none."""
    names = (f"{network.lower()}-{loss}" for loss in ("plain", "si"))
    return [scores.get((protocol, dataset, name), {}) for name in names]


def _uneven(scores: Scores) -> tuple[str, ...]:
    sentences = []
    for dataset, name in itertools.product(paper.datasets(), paper.networks()):
        before, after = _pair(scores, "official", dataset, name)
        if before and after and before["images"] != after["images"]:
            sentences.append(
                f"{name} on {dataset} was scored on {before['images']:.0f} images with the plain and on "
                f"{after['images']:.0f} with the size-invariant loss: run both cells again"
            )
    return tuple(sentences)


def _score_table(scores: Scores) -> pl.DataFrame:
    rows = []
    for (protocol, dataset, name), values in scores.items():
        cell = find_cell(name)
        alpha = "" if cell.loss == "plain" else str(cell.alpha)
        labels = {"protocol": protocol, "dataset": dataset, "cell": name, "network": cell.network}
        count = {"images": int(values["images"])}
        rows.append({**labels, "loss": cell.loss, "alpha": alpha, **values, **count})
    return pl.DataFrame(rows)


def _difference_table(scores: Scores) -> pl.DataFrame:
    rows = []
    for protocol, dataset in dict.fromkeys((key[0], key[1]) for key in scores):
        for name in paper.networks():
            before, after = _pair(scores, protocol, dataset, name)
            comparable = before.get("images") == after.get("images")
            published = paper.row(dataset, name).values
            published_si = paper.row(dataset, name, size_invariant=True).values
            rows += [
                {
                    "protocol": protocol,
                    "dataset": dataset,
                    "network": name,
                    "metric": key,
                    "plain": before.get(key, math.nan),
                    "si": after.get(key, math.nan),
                    "difference": after[key] - before[key] if comparable else math.nan,
                    "published_difference": published_si[key] - published[key],
                }
                for key in (PAPER_KEYS if before or after else ())
            ]
    return pl.DataFrame(rows, schema=_DIFFERENCES)


def _ablation_table(scores: Scores) -> pl.DataFrame:
    published = {(row["dataset"], row["alpha"]): row for row in paper.table("ablation").to_dicts()}
    keys = [key for key in paper.table("ablation").columns if key in METRICS]
    rows = []
    for protocol, dataset in dict.fromkeys((key[0], key[1]) for key in scores):
        by_alpha = {alpha: scores.get((protocol, dataset, cell)) for alpha, cell in ABLATION.items()}
        if by_alpha["0"] is None and by_alpha["1"] is None:
            continue  # the other two are in the quantitative tables
        plain_scores = by_alpha["plain"]
        for alpha, values in by_alpha.items():
            for key in keys:
                value = math.nan if values is None else values[key]
                base = math.nan if plain_scores is None else plain_scores[key]
                printed = published.get((dataset, alpha), {}).get(key, math.nan)
                printed_base = published.get((dataset, "plain"), {}).get(key, math.nan)
                rows.append(
                    {
                        "protocol": protocol,
                        "dataset": dataset,
                        "alpha": alpha,
                        "metric": key,
                        "value": value,
                        "difference": value - base,
                        "published_difference": printed - printed_base,
                    }
                )
    return pl.DataFrame(rows, schema=_ABLATION)


_TEXT, _NUMBER = pl.String(), pl.Float64()
_DIFFERENCES = dict.fromkeys(("protocol", "dataset", "network", "metric"), _TEXT) | dict.fromkeys(
    ("plain", "si", "difference", "published_difference"), _NUMBER
)
_ABLATION = dict.fromkeys(("protocol", "dataset", "alpha", "metric"), _TEXT) | dict.fromkeys(
    ("value", "difference", "published_difference"), _NUMBER
)


def _dataset_names(table: pl.DataFrame, protocol: str) -> list[str]:
    names = table.filter(protocol=protocol)["dataset"].unique()
    return [name for name in paper.datasets() if name in names]


def _number_texts(table: pl.DataFrame, column: str, keys: Any) -> list[str]:
    values = dict(table.select("metric", column).iter_rows())
    sign = column.endswith("difference")
    return [number(values.get(key, math.nan), sign=sign) for key in keys]


def _heading(key: str) -> str:
    return f"{METRICS[key].title} {arrow(key)}"

"""Writes all tables of docs/real-data.md from the saved rows; nothing is trained or scored again.

`python -m benchmarks.real_data.tables` writes `benchmarks/results/real_data/*.md`; `python
tools/quotes.py` puts them into the page.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import sisod
from benchmarks.real_data.runs import TABLES, TESTS
from benchmarks.timing import markdown
from sisod import paper
from sisod.analysis.comparison import compare
from sisod.analysis.groups import by_number, by_size, is_found
from sisod.common.files import read_table
from sisod.scoring.metrics import METRICS, PAPER_KEYS, arrow

SMALL = 0.01  # share of the image
EDGES = (0.0, 0.003, 0.01, 0.03, 0.1, 1.0)
_MARKED = 0.05  # share of the background; small objects are counted at the threshold that marks it
LOSSES = {
    "plain": "plain",
    "si": "size-invariant",
    "printed": "size-invariant, Eq. 16 as printed",
    "released": "loss of the released code",
    "warm": "size-invariant, first epoch plain",
    "alpha1": "size-invariant, alpha = 1",
    "alpha0": "size-invariant, alpha = 0",
    "long-plain": "plain, 8 epochs",
    "long-si": "size-invariant, 8 epochs",
    "bce-plain": "plain, BCE alone",
    "bce-si": "size-invariant, BCE alone",
}
# title -> beginning of the names of its runs, name of the network in the paper
_PAIRS = {
    "EDN": ("edn", "EDN"),
    "EDN, 8 epochs": ("edn-long", "EDN"),
    "EDN, BCE alone": ("edn-bce", "EDN"),
    "LDF": ("ldf", "LDF"),
    "PoolNet": ("poolnet", "PoolNet"),
    "ICON": ("icon", "ICON"),
    "GateNet": ("gatenet", "GateNet"),
}
_ALPHAS = {"0": "edn-alpha0-0", "1": "edn-alpha1-0", "ratio": "edn-si-0"}  # as the paper names them
_SHOWN = ("mae", "si_mae", "f_mean", "si_f_mean", "si_auc")


class Results:
    """The saved rows, as results for the analysis."""

    def __init__(self, folder: Path = TABLES) -> None:
        self.images = read_table(folder / "images.parquet")
        self.objects = read_table(folder / "objects.parquet")
        self.marked = read_table(folder / "marked.parquet")
        self.records = json.loads((folder / "runs.json").read_text())["runs"]

    def seeds(self, network: str) -> list[int]:
        """Return the seeds with which a network was trained with both losses."""
        names = [f"{network}-{loss}-" for loss in ("plain", "si")]
        return [seed for seed in range(9) if all(f"{name}{seed}" in self.records for name in names)]

    def by_seed(self, loss: str, dataset: str, network: str = "edn") -> list[sisod.Evaluation]:
        """Return the results of a network with a loss on a data set, one for each seed."""
        return [self.result(f"{network}-{loss}-{seed}", dataset) for seed in self.seeds(network)]

    def threshold(self, run: str, dataset: str, most: float) -> int:
        """Return the lowest threshold that marks at most a share of the background."""
        chosen = (pl.col("run") == run) & (pl.col("dataset") == dataset) & (pl.col("marked") <= most)
        lowest = self.marked.filter(chosen)["threshold"].min()
        return 256 if lowest is None else int(lowest)  # type: ignore[arg-type]

    def result(self, run: str, dataset: str) -> sisod.Evaluation:
        """Return the result of a run on a data set."""
        chosen = (pl.col("run") == run) & (pl.col("dataset") == dataset)
        images = self.images.filter(chosen).drop("run", "dataset")
        images = images.with_columns(pl.col(pl.Float32).cast(pl.Float64))
        objects = self.objects.filter(chosen).drop("run", "dataset")
        objects = objects.with_columns(pl.col(pl.Float32).cast(pl.Float64))
        return sisod.Evaluation(
            summary={key: _mean(images[key].to_numpy()) for key in PAPER_KEYS},
            defined={key: int(np.isfinite(images[key].to_numpy()).sum()) for key in PAPER_KEYS},
            images=images,
            objects=objects,
            curves=pl.DataFrame(),
            image_curves=pl.DataFrame(),
            protocol=sisod.PROTOCOLS["default"],
        )


def main() -> None:
    """Write all tables."""
    results = Results()
    for name, make in MAKERS.items():
        (TABLES / f"{name}.md").write_text(make(results) + "\n")


def table1(results: Results) -> str:
    """Return the paper's Table 1: means over seeds, ours and the published difference."""
    rows = []
    for dataset in TESTS:
        plain, si = (_over_seeds(results, loss, dataset) for loss in ("plain", "si"))
        before = paper.row(dataset, "EDN").values
        after = paper.row(dataset, "EDN", size_invariant=True).values
        rows.append([dataset, "plain", *(f"{plain[key]:.4f}" for key in PAPER_KEYS)])
        rows.append(["", "size-invariant", *(f"{si[key]:.4f}" for key in PAPER_KEYS)])
        rows.append(["", "difference", *(f"{si[key] - plain[key]:+.4f}" for key in PAPER_KEYS)])
        rows.append(
            ["", "the paper's difference", *(f"{after[key] - before[key]:+.4f}" for key in PAPER_KEYS)]
        )
    return markdown(("data set", "loss", *(_title(key) for key in PAPER_KEYS)), rows)


def paired(results: Results) -> str:
    """Return differences of each seed with 95 % confidence intervals over images."""
    keys = ("mae", "si_mae", "si_f_mean", "si_auc", "found")
    rows = []
    for dataset in TESTS:
        for seed in results.seeds("edn"):
            a, b = (results.result(f"edn-{loss}-{seed}", dataset) for loss in ("si", "plain"))
            table = compare(a, b, metrics=keys, resamples=2000).table
            by_key = {row["metric"]: row for row in table.iter_rows(named=True)}
            cells = [
                f"{by_key[k]['difference']:+.4f} [{by_key[k]['low']:+.4f}, {by_key[k]['high']:+.4f}]"
                for k in keys
            ]
            rows.append([dataset, str(seed), *cells])
    return markdown(("data set", "seed", *(_title(key) for key in keys)), rows)


def losses(results: Results) -> str:
    """Return the scores of every loss with seed 0, on the sets with small objects."""
    rows = []
    for dataset in TESTS[:2]:
        for key, title in LOSSES.items():
            name = f"edn-{key}-0"
            if name in results.records:
                summary = results.result(name, dataset).summary
                values = [f"{summary[shown]:.4f}" for shown in _SHOWN]
                rows.append([dataset, title, *values, *_found_cells(results, name, dataset)])
    heads = (*(_title(key) for key in _SHOWN), "marked ↓", "found ↑", "small found ↑", "at 5 % marked ↑")
    return markdown(("data set", "loss", *heads), rows)


def alpha(results: Results) -> str:
    """Return the ablation: differences from the plain loss, ours and the paper's."""
    keys = ("mae", "si_mae", "f_mean", "si_f_mean", "si_f_max_frame", "e_mean")
    published = paper.table("ablation")
    rows = []
    for dataset in TESTS:
        rows_of_set = published.filter(pl.col("dataset") == dataset)
        theirs = {row["alpha"]: row for row in rows_of_set.iter_rows(named=True)}
        plain = results.result("edn-plain-0", dataset).summary
        for alpha_name, run in _ALPHAS.items():
            if run not in results.records:
                continue
            summary = results.result(run, dataset).summary
            ours = [f"{summary[key] - plain[key]:+.3f}" for key in keys]
            paper_cells = [f"{theirs[alpha_name][key] - theirs['plain'][key]:+.3f}" for key in keys]
            cells = [" / ".join(pair) for pair in zip(ours, paper_cells, strict=True)]
            rows.append([dataset, alpha_name, *cells])
    return markdown(("data set", "alpha", *(_title(key) for key in keys)), rows)


def networks(results: Results) -> str:
    """Return size-invariant minus plain for every network trained with both, ours and the paper's."""
    keys = ("mae", "si_mae", "f_mean", "si_f_mean", "si_auc")
    rows = []
    for dataset in TESTS:
        for title, (start, name) in _PAIRS.items():
            seeds = results.seeds(start)
            if not seeds:
                continue
            plain, si = (_over_seeds(results, loss, dataset, start) for loss in ("plain", "si"))
            before = paper.row(dataset, name).values
            after = paper.row(dataset, name, size_invariant=True).values
            cells = [f"{si[key] - plain[key]:+.3f} / {after[key] - before[key]:+.3f}" for key in keys]
            small = [_small_found(results, loss, dataset, start) for loss in ("plain", "si")]
            rows.append([dataset, title, str(len(seeds)), *cells, f"{small[0]:.2f} → {small[1]:.2f}"])
    return markdown(
        ("data set", "network", "seeds", *(_title(key) for key in keys), "small found ↑"), rows
    )


def sizes(results: Results) -> str:
    """Return objects found, F mean and MAE of objects by their size, means over seeds."""
    rows = []
    for dataset in TESTS:
        plain, si = (_by_size(results, loss, dataset) for loss in ("plain", "si"))
        for group, (low, high) in enumerate(pairwise(EDGES)):
            label = f"{100 * low:g} to {100 * high:g} %"
            cells = [f"{plain[c][group]:.3f} / {si[c][group]:.3f}" for c in ("found", "f_mean", "mae")]
            rows.append([dataset, label, f"{plain['objects'][group]:.0f}", *cells])
    head = ("data set", "size", "objects", "objects found ↑", "F mean of objects ↑", "MAE of objects ↓")
    return markdown(head, rows)


def numbers(results: Results) -> str:
    """Return SI-MAE and SI-F of images by their number of objects, means over seeds."""
    rows = []
    for dataset in TESTS:
        plain, si = (_by_number(results, loss, dataset) for loss in ("plain", "si"))
        for group, label in enumerate(("1", "2", "3", "4", "5+")):
            cells = [f"{plain[c][group]:.4f} / {si[c][group]:.4f}" for c in ("si_mae", "si_f_mean")]
            rows.append([dataset, label, f"{plain['images'][group]:.0f}", *cells])
    return markdown(("data set", "objects", "images", "SI-MAE ↓", "SI-F mean ↑"), rows)


def claims(results: Results) -> str:
    """Return the paper's claims, and whether they hold for every seed, for some or for none."""
    rows = []
    for dataset in TESTS:
        for text, gain in _CLAIMS.items():
            cells = []
            for loss in ("si", "printed"):
                seeds = [
                    seed for seed in results.seeds("edn") if f"edn-{loss}-{seed}" in results.records
                ]
                gains = [_gain(results, gain, loss, seed, dataset) for seed in seeds]
                word = "yes" if min(gains) > 0 else "in part" if max(gains) > 0 else "no"
                cells.append(f"{word} ({', '.join(f'{value:+.4f}' for value in gains)})")
            rows.append([dataset, text, *cells])
    return markdown(("data set", "claim", LOSSES["si"], LOSSES["printed"]), rows)


def group_claims(results: Results) -> str:
    """Return the gains that the paper's text claims for groups of MSOD, and ours in every run."""
    gains = (
        _CLAIMS["lower MAE in frames of objects under 10 %"],
        _CLAIMS["lower SI-MAE, two objects and more"],
    )
    rows = []
    for claim, gain in zip(paper.table("group_claims").to_dicts(), gains, strict=True):
        for title, loss, network in (("EDN", "si", "edn"), ("EDN", "printed", "edn"), *_ONE_SEED):
            seeds = [
                seed for seed in results.seeds(network) if f"{network}-{loss}-{seed}" in results.records
            ]
            ours = [_gain(results, gain, loss, seed, claim["dataset"], network) for seed in seeds]
            cells = [", ".join(f"{value:+.4f}" for value in ours)]
            rows.append(
                [
                    claim["group"],
                    f"{title}, {LOSSES[loss]}",
                    f"{claim['gain']:+.3f}" if title == "EDN" else "",
                    *cells,
                ]
            )
    return markdown(("group", "loss", "the paper's gain", "ours, by seed"), rows)


def _gain(
    results: Results, gain: "Gain", loss: str, seed: int, dataset: str, network: str = "edn"
) -> float:
    """Return by how much a run is better than the plain one of the same seed."""
    return gain(*(results.result(f"{network}-{name}-{seed}", dataset) for name in ("plain", loss)))


def runs(results: Results) -> str:
    """Return the runs, and how long they took."""
    return runs_list(results.records)


def runs_list(records: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a row for every run: recipe, loss, settings, steps, time."""
    rows = [
        [name, record["recipe"], record["loss"], " ".join(record["settings"]), str(record["steps"]),
         f"{record['seconds'] / 60:.0f} min"]
        for name, record in records.items()
    ]  # fmt: skip
    return markdown(("run", "recipe", "loss", "settings", "steps", "time"), rows)


def _small_mae(result: sisod.Evaluation, most: float) -> float:
    chosen = result.objects.filter(pl.col("share") < most)
    return _mean(chosen["mae"].to_numpy())


def _found_under(result: sisod.Evaluation, most: float) -> float:
    chosen = result.objects.filter(pl.col("share") < most)
    return _mean(is_found(chosen["recall_binary"].to_numpy()))


def _several(result: sisod.Evaluation, key: str) -> float:
    return _mean(result.images.filter(pl.col("n_objects") >= 2)[key].to_numpy())


Gain = Callable[[sisod.Evaluation, sisod.Evaluation], float]


def _higher(key: str) -> Gain:
    return lambda a, b: b.summary[key] - a.summary[key]


def _lower(key: str) -> Gain:
    return lambda a, b: a.summary[key] - b.summary[key]


# claim of the paper -> gain of the second result over the first
_CLAIMS: dict[str, Gain] = {
    "lower SI-MAE": _lower("si_mae"),
    "higher SI-F mean": _higher("si_f_mean"),
    "higher SI-F max": _higher("si_f_max_frame"),
    "higher SI-AUC": _higher("si_auc"),
    "higher AUC": _higher("auc"),
    "higher E mean": _higher("e_mean"),
    "MAE no worse": _lower("mae"),
    "lower MAE in frames of objects under 10 %": lambda a, b: _small_mae(a, 0.1) - _small_mae(b, 0.1),
    "more objects under 1 % found": lambda a, b: _found_under(b, SMALL) - _found_under(a, SMALL),
    "lower SI-MAE, two objects and more": lambda a, b: _several(a, "si_mae") - _several(b, "si_mae"),
    "higher SI-F, two objects and more": lambda a, b: (
        _several(b, "si_f_mean") - _several(a, "si_f_mean")
    ),
}
_ONE_SEED = (("LDF", "si", "ldf"), ("ICON", "si", "icon"))


def _over_seeds(results: Results, loss: str, dataset: str, network: str = "edn") -> dict[str, float]:
    by_seed = results.by_seed(loss, dataset, network)
    return {key: _mean(np.array([result.summary[key] for result in by_seed])) for key in PAPER_KEYS}


def _by_size(results: Results, loss: str, dataset: str) -> Mapping[str, list[float]]:
    tables = [by_size(result, groups=EDGES) for result in results.by_seed(loss, dataset)]
    return _mean_table(tables, ("objects", "found", "f_mean", "mae"))


def _by_number(results: Results, loss: str, dataset: str) -> Mapping[str, list[float]]:
    tables = [
        by_number(result).filter(pl.col("group") != "0") for result in results.by_seed(loss, dataset)
    ]
    return _mean_table(tables, ("images", "si_mae", "si_f_mean"))


def _mean_table(tables: Sequence[pl.DataFrame], columns: Sequence[str]) -> dict[str, list[float]]:
    return {
        column: np.mean([table[column].to_numpy() for table in tables], axis=0).tolist()
        for column in columns
    }


def _small_found(results: Results, loss: str, dataset: str, network: str) -> float:
    by_seed = results.by_seed(loss, dataset, network)
    return _mean(np.array([_found_under(result, SMALL) for result in by_seed]))


def _found_cells(results: Results, run: str, dataset: str) -> list[str]:
    """Return background marked and objects found at one half, and small ones found at `_MARKED`."""
    result = results.result(run, dataset)
    chosen = (pl.col("run") == run) & (pl.col("dataset") == dataset) & (pl.col("threshold") == 128)
    return [
        f"{results.marked.filter(chosen)['marked'].item():.3f}",
        *(f"{_found_under(result, most):.2f}" for most in (math.inf, SMALL)),
        f"{_small_found_at(results, run, dataset, _MARKED):.2f}",
    ]


def _small_found_at(results: Results, run: str, dataset: str, most: float) -> float:
    """Return the share of small objects found at the lowest threshold with so little marked."""
    small = results.result(run, dataset).objects.filter(pl.col("share") < SMALL)
    found = small["level"] >= results.threshold(run, dataset, most)
    return _mean(found.to_numpy().astype(np.float64))


def _mean(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    defined = values[np.isfinite(values)]
    return float(defined.mean()) if len(defined) else math.nan


def _title(key: str) -> str:
    if key == "found":
        return "found ↑"
    return f"{METRICS[key].title} {arrow(key)}"


MAKERS: dict[str, Callable[[Results], str]] = {
    "table1": table1,
    "paired": paired,
    "losses": losses,
    "alpha": alpha,
    "networks": networks,
    "sizes": sizes,
    "numbers": numbers,
    "claims": claims,
    "group_claims": group_claims,
    "runs": runs,
}


if __name__ == "__main__":
    main()

"""The paper's ablation of alpha: 0, 1 and the ratio, beside the plain loss, each with several seeds.

runs/VARIANT@N/                    run folders of `sisod train`
results/DATASET/VARIANT@N/         results as of `sisod evaluate`: input of compare, plot and report
ablation.parquet, ablation.json    one row per variant, seed and data set; the latter has the means too
run.json                           marks the folder as an ablation
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from sisod.analysis.seeds import mean_and_deviation
from sisod.common.exceptions import UsageError, pluralize
from sisod.common.grid import Grid, is_nan
from sisod.common.output import json_bytes, output_path, table_bytes, write_atomically
from sisod.common.run_folder import open_run
from sisod.data.datasets import Dataset, open_dataset
from sisod.scoring.metrics import METRICS, PAPER_KEYS, arrow
from sisod.training.data import check_samples
from sisod.training.experiment import Experiment, run_experiment
from sisod.training.recipe import Recipe
from sisod.training.train import Machine, TrainingRequest

# the columns of the paper's tables of alpha
SHOWN = ("mae", "si_mae", "auc", "f_mean", "si_f_mean", "f_max_image", "si_f_max_frame", "e_mean")
# losses that are compared; None is the plain loss
ALPHAS: dict[str, str | float | None] = {"plain": None, "alpha0": 0.0, "alpha1": 1.0, "ratio": "ratio"}
TITLES = {"alpha0": "alpha = 0", "alpha1": "alpha = 1", "ratio": "alpha = back / fore"}
Row = dict[str, Any]  # variant, seed, dataset, and the scores of the run on it


def ablate(
    recipe: Recipe,
    request: TrainingRequest,
    tests: Sequence[Path],
    *,
    n_seeds: int,
    machine: Machine | None = None,
) -> list[Row]:
    """Train, predict and score every variant with every seed; finished steps are skipped.

    Args:
        recipe: its alpha and seed are replaced.
        request: as for `train`; `out` is the folder of the ablation, `loss` is ignored.
        tests: data sets to score on.
        n_seeds: how many seeds, starting at the recipe's own.
        machine: as for `train`.

    Returns:
        One row per variant, seed and data set: `variant`, `seed`, `dataset` and every score.
    """
    machine = machine or Machine()
    if recipe.loss.parts != "boxes":
        raise UsageError(
            "an ablation varies alpha, the weight of the background between boxes, but parts in [loss] "
            f"is {recipe.loss.parts!r}; use --set loss.parts=boxes"
        )
    datasets = tuple(open_dataset(root, prefer=()) for root in tests)
    if len({dataset.name.casefold() for dataset in datasets}) < len(datasets):  # names are folders
        raise UsageError("two data sets of --test have the same name; give each its own")
    for dataset in datasets:
        check_samples(dataset.samples)
        output_path(request.out / "results", dataset.name)
    rows = list[Row]()
    with open_run(
        request.out,
        kind="ablation",
        config={"recipe": recipe.name},  # every run compares its own
        resume=request.resume,
        overwrite=None,
        in_place=True,
        is_writer=machine.is_first_process,
    ) as run:
        run.begin()
        request = replace(request, out=run.path)
        for seed in range(recipe.train.seed, recipe.train.seed + n_seeds):
            for variant in ALPHAS:
                experiment = _experiment(recipe, request, datasets, variant, seed)
                for (name, _), result in run_experiment(experiment, machine).items():
                    rows.append({"variant": variant, "seed": seed, "dataset": name} | result.summary)
                if run.is_writer:
                    write_rows(run.path, rows)
        run.finish()
    return rows


def _experiment(
    recipe: Recipe, request: TrainingRequest, datasets: tuple[Dataset, ...], variant: str, seed: int
) -> Experiment:
    runs, name, alpha = request.out / "runs", f"{variant}@{seed}", ALPHAS[variant]
    labels = request.labels
    if labels is None and alpha is not None:  # LDF: all variants learn from the same labels
        made = runs / f"plain@{seed}" / "labels"
        labels = made if made.is_dir() else None
    loss = recipe.loss if alpha is None else replace(recipe.loss, alpha=alpha)
    return Experiment(
        name,
        replace(recipe, loss=loss, train=replace(recipe.train, seed=seed)),
        replace(request, out=runs / name, loss="plain" if alpha is None else "si", labels=labels),
        datasets,
        metrics={"default": None},
        out=request.out,
        maps=None,
    )


def summarise(rows: Sequence[Row]) -> dict[str, dict[str, dict[str, tuple[float, float]]]]:
    """Return mean and deviation over the seeds of every score, by data set and variant.

    Example:
        >>> rows = [{"variant": "plain", "dataset": "MSOD", "mae": mae} for mae in (0.1, 0.2, 0.3)]
        >>> mean, deviation = summarise(rows)["MSOD"]["plain"]["mae"]
        >>> round(mean, 6), round(deviation, 6)
        (0.2, 0.1)
    """
    runs: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        runs.setdefault((row["dataset"], row["variant"]), []).append(row)
    means: dict[str, dict[str, dict[str, tuple[float, float]]]] = {}
    for (dataset, variant), seeds in runs.items():
        means.setdefault(dataset, {})[variant] = {
            key: mean_and_deviation([row[key] for row in seeds]) for key in seeds[0] if key in METRICS
        }
    return means


def ablation_tables(rows: Sequence[Row], network: str) -> dict[str, Grid]:
    """Return the paper's table of alpha for each data set: mean ± deviation over seeds, best in bold.

    Example:
        >>> rows = [{"variant": "ratio", "seed": 0, "dataset": "MSOD"} | dict.fromkeys(SHOWN, 0.5)]
        >>> tables = ablation_tables(rows, "edn")
        >>> tables["edn on MSOD, 1 seed"].rows[0][:2]
        ('alpha = back / fore', '0.5000')
    """
    seeds = pluralize(len({row["seed"] for row in rows}), "seed")
    head = ("loss", *(f"{METRICS[key].title} {arrow(key)}" for key in SHOWN))
    tables = {}
    for dataset, means in summarise(rows).items():
        bold = set[tuple[int, int]]()
        for column, key in enumerate(SHOWN, start=1):
            best = max if METRICS[key].direction == "up" else min
            values = [scores[key][0] for scores in means.values()]
            bold.add((values.index(best(values)), column))
        cells = tuple(
            (TITLES.get(variant, variant), *(_spread(*scores[key]) for key in SHOWN))
            for variant, scores in means.items()
        )
        tables[f"{network} on {dataset}, {seeds}"] = Grid(head, cells, n_text=1, bold=frozenset(bold))
    return tables


def _spread(mean: float, deviation: float) -> str:
    return f"{mean:.4f}" + ("" if is_nan(deviation) else f" ± {deviation:.4f}")


def write_rows(out: Path, rows: Sequence[Row]) -> None:
    """Write the rows of the runs finished so far, and their means."""

    def defined(**values: float) -> dict[str, float | None]:
        return {key: None if is_nan(value) else value for key, value in values.items()}

    write_atomically(out / "ablation.parquet", table_bytes(pl.DataFrame(rows)))
    means = {
        dataset: {
            variant: {key: defined(mean=scores[key][0], deviation=scores[key][1]) for key in PAPER_KEYS}
            for variant, scores in variants.items()
        }
        for dataset, variants in summarise(rows).items()
    }
    runs = [
        {key: row[key] for key in ("variant", "seed", "dataset")}
        | {
            "result": f"results/{row['dataset']}/{row['variant']}@{row['seed']}",
            "scores": defined(**{key: row[key] for key in PAPER_KEYS}),
        }
        for row in rows
    ]
    write_atomically(out / "ablation.json", json_bytes({"rows": runs, "means": means}))

"""The paper's ablation of alpha: 0, 1 and the ratio, beside the plain loss, each with several seeds.

runs/VARIANT-seedN/                run folders of `sisod train`
results/DATASET/VARIANT-seedN/     results as of `sisod evaluate`: input of compare, plot and report
ablation.parquet, ablation.json    one row per variant, seed and data set; the latter has the means too
run.json                           marks the folder as an ablation
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sisod.analysis.ablation import mean_and_deviation
from sisod.common.exceptions import UsageError
from sisod.common.output import json_bytes, output_path, write_atomically
from sisod.common.parquet import table_bytes
from sisod.common.run_folder import open_run
from sisod.data.datasets import Dataset, open_dataset
from sisod.scoring.metrics import METRICS, PAPER_KEYS, arrow
from sisod.training.data import check_samples
from sisod.training.experiment import Experiment, run_experiment
from sisod.training.recipe import Recipe
from sisod.training.train import Machine, TrainingRequest

if TYPE_CHECKING:
    from rich.table import Table

# the columns of the paper's tables of alpha
SHOWN = ("mae", "si_mae", "auc", "f_mean", "si_f_mean", "f_max_image", "si_f_max_frame", "e_mean")


@dataclass(frozen=True)
class Variant:
    """A loss that is compared; alpha None is the plain loss."""

    name: str
    title: str
    alpha: str | float | None


VARIANTS = (
    Variant("plain", "plain", None),
    Variant("alpha0", "alpha = 0", 0.0),
    Variant("alpha1", "alpha = 1", 1.0),
    Variant("ratio", "alpha = back / fore", "ratio"),
)


@dataclass(frozen=True)
class Row:
    """The scores of one run on one data set."""

    variant: str
    seed: int
    dataset: str
    scores: dict[str, float]


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
    """
    machine = machine or Machine()
    if recipe.loss.parts != "boxes":
        raise UsageError(
            "an ablation varies alpha, the weight of the background between boxes, but parts in [loss] "
            f"is {recipe.loss.parts!r}; use --set loss.parts=boxes"
        )
    if not tests:
        raise UsageError("an ablation needs a data set to test on; name one with --test")
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
        for seed in range(recipe.train.seed, recipe.train.seed + n_seeds):
            for variant in VARIANTS:
                experiment = _experiment(recipe, replace(request, out=run.path), datasets, variant, seed)
                results = run_experiment(experiment, machine)
                rows += [
                    Row(variant.name, seed, dataset, result.summary)
                    for (dataset, _), result in results.items()
                ]
                if run.is_writer:
                    _write(run.path, rows)
        run.finish()
    return rows


def _experiment(
    recipe: Recipe, request: TrainingRequest, datasets: tuple[Dataset, ...], variant: Variant, seed: int
) -> Experiment:
    runs, name = request.out / "runs", f"{variant.name}-seed{seed}"
    labels = runs / f"plain-seed{seed}" / "labels"  # LDF: all variants learn from the same labels
    has_labels = variant.alpha is not None and labels.is_dir()
    loss = recipe.loss if variant.alpha is None else replace(recipe.loss, alpha=variant.alpha)
    return Experiment(
        name,
        replace(recipe, loss=loss, train=replace(recipe.train, seed=seed)),
        replace(
            request,
            out=runs / name,
            loss="plain" if variant.alpha is None else "si",
            labels=request.labels or (labels if has_labels else None),
        ),
        datasets,
        metrics={"default": None},
        out=request.out,
        maps=None,
    )


def summarise(rows: Sequence[Row], dataset: str) -> dict[str, dict[str, tuple[float, float]]]:
    """Return mean and deviation over the seeds of every score, by variant.

    Example:
        >>> rows = [Row("plain", seed, "MSOD", {"mae": mae}) for seed, mae in enumerate((0.1, 0.2, 0.3))]
        >>> mean, deviation = summarise(rows, "MSOD")["plain"]["mae"]
        >>> round(mean, 6), round(deviation, 6)
        (0.2, 0.1)
    """
    means = {}
    for name in dict.fromkeys(row.variant for row in rows):
        if not (seeds := [row.scores for row in rows if (row.variant, row.dataset) == (name, dataset)]):
            continue
        means[name] = {key: mean_and_deviation([scores[key] for scores in seeds]) for key in seeds[0]}
    return means


def ablation_table(rows: Sequence[Row], dataset: str, network: str) -> "Table":
    """Return the paper's table of alpha: mean ± deviation over seeds, the best means in bold."""
    from rich.markup import escape
    from rich.table import Table

    means = summarise(rows, dataset)
    n_seeds = len({row.seed for row in rows})
    seeds = f"{n_seeds} seeds" if n_seeds > 1 else "1 seed"
    table = Table(title=f"{escape(network)} on {escape(dataset)}, {seeds}")
    table.add_column("loss")
    for key in SHOWN:
        table.add_column(f"{METRICS[key].title} {arrow(key)}", justify="right")
    best = {
        key: (max if METRICS[key].direction == "up" else min)(
            means, key=lambda name: means[name][key][0]
        )
        for key in SHOWN
    }
    for variant in VARIANTS:
        cells = []
        for key in SHOWN if variant.name in means else ():
            mean, deviation = means[variant.name][key]
            text = f"{mean:.4f}" + ("" if deviation != deviation else f" ± {deviation:.4f}")
            cells.append(f"[bold]{text}[/bold]" if best[key] == variant.name else text)
        table.add_row(variant.title, *cells)
    return table


def _write(out: Path, rows: Sequence[Row]) -> None:
    """Write the rows of the runs finished so far, and their means."""
    import polars as pl

    columns: dict[str, Any] = {
        "variant": [row.variant for row in rows],
        "seed": [row.seed for row in rows],
        "dataset": [row.dataset for row in rows],
    }
    columns |= {key: [row.scores[key] for row in rows] for key in rows[0].scores}
    write_atomically(out / "ablation.parquet", table_bytes(pl.DataFrame(columns)))
    means = {
        dataset: {
            variant: {
                key: {"mean": _null_if_nan(scores[key][0]), "deviation": _null_if_nan(scores[key][1])}
                for key in PAPER_KEYS
            }
            for variant, scores in summarise(rows, dataset).items()
        }
        for dataset in dict.fromkeys(row.dataset for row in rows)
    }
    runs = [
        {
            "variant": row.variant,
            "seed": row.seed,
            "dataset": row.dataset,
            "result": f"results/{row.dataset}/{row.variant}-seed{row.seed}",
            "scores": {key: _null_if_nan(row.scores[key]) for key in PAPER_KEYS},
        }
        for row in rows
    ]
    write_atomically(out / "ablation.json", json_bytes({"rows": runs, "means": means}))


def _null_if_nan(value: float) -> float | None:
    return None if value != value else value

"""The paper's ablation: alpha of 0, 1 and the ratio beside the plain loss, each over several seeds.

runs/VARIANT-seedN/                the run folders of `sisod train`
results/DATASET/VARIANT-seedN/     what `sisod evaluate` would write: input of compare, plot and report
ablation.parquet, ablation.json    one row per variant, seed and data set; the means in the latter
run.json                           says that it is an ablation
"""

import json
import statistics
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from sisod import networks
from sisod.common import folders
from sisod.common.errors import InputError, UsageError
from sisod.common.output import followed, lock, output_path, readable_errors, write_atomically
from sisod.common.parquet import table_bytes
from sisod.common.progress import progress_bar
from sisod.data.datasets import Dataset, open_dataset
from sisod.data.images import resize
from sisod.evaluation.evaluator import Evaluator
from sisod.evaluation.saved import read_summary
from sisod.networks.predict import predict_batch
from sisod.scoring.metrics import METRICS, PAPER_KEYS
from sisod.training.data import check_samples, read_image, read_truth
from sisod.training.recipe import Recipe
from sisod.training.run_folder import read_record
from sisod.training.train import Machine, TrainingRequest, is_first_process, train

if TYPE_CHECKING:
    from rich.table import Table

_FULL = "free some space and go on with --resume"
# the columns of the paper's tables of alpha
SHOWN = ("mae", "si_mae", "auc", "f_mean", "si_f_mean", "f_max_image", "si_f_max_frame", "e_mean")


@dataclass(frozen=True)
class Variant:
    """One line of the table; alpha None is the plain loss."""

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
    """Train, predict and score every variant and seed; what is finished already is not done again.

    Args:
        recipe: its alpha and seed are replaced.
        request: as for `train`; `out` is the folder of the ablation, `loss` is not looked at.
        tests: data sets to score on.
        n_seeds: seeds from the recipe's own on.
        machine: as for `train`.
    """
    out, machine = followed(request.out), machine or Machine()
    if not tests:
        raise UsageError("an ablation needs a data set to test on; name one with --test")
    datasets = [open_dataset(root, prefer=()) for root in tests]
    if len({dataset.name.casefold() for dataset in datasets}) < len(datasets):  # each has a folder
        raise UsageError("two data sets of --test have the same name; give each its own")
    for dataset in datasets:
        check_samples(dataset.samples)
        output_path(out / "results", dataset.name)
    first = is_first_process(machine)
    with readable_errors(out / "x", _FULL), lock(out) if first else nullcontext():
        if first:
            _begin(out, resume=request.resume)
        return _run(recipe, replace(request, out=out), datasets, n_seeds=n_seeds, machine=machine)


def _begin(out: Path, *, resume: bool) -> None:
    """Make the folder of an ablation, or refuse to write into one of something else."""
    is_older = (out / "runs").is_dir() and not (out / folders.RUN_FILE).exists()  # of 0.1.0
    if not folders.is_free(out) and folders.kind_of(out) != "ablation" and not is_older:
        raise InputError(
            f"{str(out)!r} exists and is not a result of 'sisod ablate'; "
            "give another folder or remove it yourself"
        )
    if not folders.is_free(out) and not resume:
        raise InputError(
            f"{str(out)!r} exists already; use --resume to go on with it, or give another folder"
        )
    folders.begin(out, "ablation")


def _run(
    recipe: Recipe,
    request: TrainingRequest,
    datasets: Sequence[Dataset],
    *,
    n_seeds: int,
    machine: Machine,
) -> list[Row]:
    out, rows = request.out, list[Row]()
    for seed in range(recipe.train.seed, recipe.train.seed + n_seeds):
        for variant in VARIANTS:
            run = out / "runs" / f"{variant.name}-seed{seed}"
            labels = out / "runs" / f"plain-seed{seed}" / "labels"  # of LDF, the same for all variants
            asked = replace(
                request,
                out=run,
                loss="plain" if variant.alpha is None else "si",
                resume=True,
                labels=request.labels or (labels if labels.is_dir() and run != labels.parent else None),
            )
            train(_of_variant(recipe, variant, seed), asked, machine)
            if not is_first_process(machine):
                continue
            for dataset in datasets:
                folder = out / "results" / dataset.name / run.name
                rows.append(Row(variant.name, seed, dataset.name, _scored(run, dataset, folder, recipe)))
            _write(out, rows)
    return rows


def _of_variant(recipe: Recipe, variant: Variant, seed: int) -> Recipe:
    loss = recipe.loss if variant.alpha is None else replace(recipe.loss, alpha=variant.alpha)
    return replace(recipe, loss=loss, train=replace(recipe.train, seed=seed))


def _scored(run: Path, dataset: Dataset, folder: Path, recipe: Recipe) -> dict[str, float]:
    """Score the network of a run, or read what was scored before."""
    if not (folder / "summary.json").exists():
        evaluate_run(run, dataset, size=recipe.data.size).save(folder)
    return read_summary(folder, needed=PAPER_KEYS)[0]


def evaluate_run(run: Path, dataset: Dataset, *, size: int) -> Any:
    """Return the evaluation of a run's network on a data set, from 8-bit maps at the masks' size."""
    if read_record(run) is None:
        raise InputError(f"{str(run)!r} is no folder of 'sisod train'")
    network = networks.from_pretrained(run)
    evaluator = Evaluator()
    with progress_bar(f"scoring {run.name} on {dataset.name}", len(dataset.samples)) as advance:
        for sample in dataset.samples:
            mask = read_truth(sample)
            image = resize(read_image(sample), size).transpose(2, 0, 1)[None]
            [pred] = predict_batch(network, torch.from_numpy(image.copy()), [mask.shape])
            evaluator.update(pred, mask, name=sample.name)
            advance(1)
    return evaluator.result()


def summarise(rows: Sequence[Row], dataset: str) -> dict[str, dict[str, tuple[float, float]]]:
    """Return mean and deviation over the seeds of every score, by variant.

    The deviation is that of a sample (n - 1); of one seed it is NaN.

    Example:
        >>> rows = [Row("plain", seed, "made", {"mae": mae}) for seed, mae in enumerate((0.1, 0.2, 0.3))]
        >>> mean, deviation = summarise(rows, "made")["plain"]["mae"]
        >>> round(mean, 6), round(deviation, 6)
        (0.2, 0.1)
    """
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for name in dict.fromkeys(row.variant for row in rows):
        of = [row.scores for row in rows if (row.variant, row.dataset) == (name, dataset)]
        found[name] = {
            key: (
                statistics.fmean(scores[key] for scores in of),
                statistics.stdev(scores[key] for scores in of) if len(of) > 1 else float("nan"),
            )
            for key in _common_keys(of)
        }
    return found


def _common_keys(scores: Sequence[dict[str, float]]) -> list[str]:
    """Metrics of all runs: one that was scored by another version may have more or fewer."""
    return [key for key in (scores[0] if scores else {}) if all(key in one for one in scores)]


def ablation_table(rows: Sequence[Row], dataset: str, network: str) -> "Table":
    """Return the paper's table of alpha, mean ± deviation over seeds, the best means bold."""
    from rich.markup import escape
    from rich.table import Table

    means = summarise(rows, dataset)
    n_seeds = len({row.seed for row in rows})
    seeds = f"{n_seeds} seeds" if n_seeds > 1 else "1 seed"
    table = Table(title=f"{escape(network)} on {escape(dataset)}, {seeds}")
    table.add_column("loss")
    for key in SHOWN:
        arrow = "↑" if METRICS[key].direction == "up" else "↓"
        table.add_column(f"{METRICS[key].title} {arrow}", justify="right")
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
    """Write the rows so far, and their means."""
    import polars as pl

    keys = _common_keys([row.scores for row in rows])
    columns: dict[str, Any] = {
        "variant": [row.variant for row in rows],
        "seed": [row.seed for row in rows],
        "dataset": [row.dataset for row in rows],
    }
    columns |= {key: [row.scores[key] for row in rows] for key in keys}
    write_atomically(out / "ablation.parquet", table_bytes(pl.DataFrame(columns)))
    means = {
        dataset: {
            variant: {
                key: {"mean": _number(scores[key][0]), "deviation": _number(scores[key][1])}
                for key in PAPER_KEYS
            }
            for variant, scores in summarise(rows, dataset).items()
            if scores
        }
        for dataset in dict.fromkeys(row.dataset for row in rows)
    }
    content = {
        "rows": [
            {
                "variant": row.variant,
                "seed": row.seed,
                "dataset": row.dataset,
                "result": f"results/{row.dataset}/{row.variant}-seed{row.seed}",
                "scores": {key: _number(row.scores[key]) for key in PAPER_KEYS},
            }
            for row in rows
        ],
        "means": means,
    }
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    write_atomically(out / "ablation.json", text.encode())


def _number(value: float) -> float | None:
    return None if value != value else value

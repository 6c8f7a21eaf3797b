"""Trains and scores the runs of plan.md; finished steps are skipped, an unfinished run is resumed.

    python -m benchmarks.evidence.runs --data ROOT --out DIR                # validation images only
    python -m benchmarks.evidence.runs --data ROOT --out DIR --test         # the test sets too
    python -m benchmarks.evidence.runs --data ROOT --out DIR NAME...        # some runs

ROOT holds DUTS-TR, DUTS-TE, ECSSD and MSOD. The means over each set and the rows of the images go to
`benchmarks/results/evidence/`, where they replace those of the same runs and leave the others.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import torch
from torch import Tensor, nn

import sisod
from benchmarks.calibrated import calibrate
from benchmarks.timing import RESULTS, machine, progress
from sisod.data.datasets import Dataset, Sample, open_dataset
from sisod.data.truths import read_truth
from sisod.training.data import limit_samples

if TYPE_CHECKING:
    from sisod.training.experiment import Experiment
    from sisod.training.recipe import Recipe

SAVED = RESULTS / "evidence"
TESTS = ("MSOD", "DUTS-TE", "ECSSD")
VALIDATION = "validation"
N_TRAINING = 2000
N_SEVERAL, N_ONE = 350, 150  # validation images with several objects and with one
SMALL = 0.01  # share of the image
KEYS = (
    *("mae", "si_mae", "f_mean", "si_f_mean", "si_f_max", "auc", "si_auc", "e_mean"),
    *("object_recall", "object_precision", "object_f1", "false_objects", "false_area", "pq"),
    *("object_recall_small", "object_precision_small"),
    *("object_f1_max", "object_f1_max_small", "object_ap"),
    *("n_found", "n_false"),
)
ROW_KEYS = ("mae", "si_mae", "f_mean", "si_f_mean", "auc", "si_auc", "e_mean")


class WeightedBce(nn.Module):
    """Cross-entropy with a weight on salient pixels; side outputs are summed, as by `PlainLoss`."""

    def __init__(self, pos_weight: float) -> None:
        super().__init__()
        self.pos_weight: Tensor
        self.register_buffer("pos_weight", torch.tensor(pos_weight))

    def forward(self, logits: Sequence[Tensor], gt: Tensor, boxes: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """Return the loss of a batch."""
        function = nn.functional.binary_cross_entropy_with_logits
        losses = [function(each, gt, pos_weight=self.pos_weight) for each in logits]
        return torch.stack(losses).sum()


@dataclass(frozen=True)
class Run:
    """One training: a recipe, a loss (`plain`, `si` or one of `criterion`) and changed settings."""

    loss: str
    settings: tuple[str, ...] = ()
    recipe: str = "edn-lite"
    seed: int = 0
    size: int = 128
    epochs: int = 12

    def all_settings(self) -> list[str]:
        """Return the settings as `--set` takes them."""
        own = [f"data.size={self.size}", f"train.seed={self.seed}", f"train.epochs={self.epochs}"]
        return [*own, *self.settings]


_CELLS = ("loss.parts=cells", "loss.image_weight=0.5")
_OWN = 'loss.terms=["bce", "dice(squared=false)"]'
_IOU = 'loss.terms=["bce", "iou"]'
_TVERSKY = 'loss.terms=["bce", "tversky(0.3,0.7)"]'
LOSSES = {
    "plain-dice": Run("plain", (_OWN,)),
    "cells-dice": Run("si", (*_CELLS, _OWN)),
    "si-dice": Run("si", (_OWN,)),
    "plain-iou": Run("plain", (_IOU,)),
    "cells-iou": Run("si", (*_CELLS, _IOU)),
    "si-iou": Run("si", (_IOU,)),
    "plain-tversky": Run("plain", (_TVERSKY,)),
    "cells-tversky": Run("si", (*_CELLS, _TVERSKY)),
    "plain-printed": Run("plain"),
    "printed": Run("si", ("loss.normalize=false",)),
    "released": Run("released"),
    "focal": Run("plain", ('loss.terms=["focal(2)"]',)),
    "pos-weight": Run("pos-weight"),
    "cells-dice-all": Run("si", (*_CELLS, _OWN, "loss.min_area=0")),
}
SEEDS = range(3)
RUNS = {f"{name}@{seed}": replace(run, seed=seed) for seed in SEEDS for name, run in LOSSES.items()}
RUNS |= {
    f"{name}-long@{seed}": replace(LOSSES[name], seed=seed, size=256, epochs=24)
    for seed in range(2)
    for name in ("plain-dice", "si-dice")
}
RUNS |= {
    f"{network}-{loss}@0": Run(loss, recipe=f"{network}-lite")
    for network in ("ldf", "icon", "poolnet", "gatenet")
    for loss in ("plain", "si")
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, train and score, save after every run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", nargs="*", metavar="RUN", help=f"of {', '.join(RUNS)}; by default all")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--test", action="store_true", help="score the test sets, after the choice")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.runs if name not in RUNS]:
        parser.error(f"unknown runs {unknown}")
    from sisod.training.experiment import run_experiment, score_experiment
    from sisod.training.train import Machine

    sets = [validation_set(options.data)]
    if options.test:
        sets += [replace(open_dataset(options.data / test), name=test) for test in TESTS]
    for name in options.runs or RUNS:
        progress(name)
        experiment = make_experiment(name, options.data, options.out, tuple(sets))
        for (dataset, _), result in run_experiment(experiment, Machine(workers=1), jobs=1).items():
            save(name, dataset, result, options.out)
        if options.test:  # the images of the fit are in no test set
            tested = replace(experiment, tests=experiment.tests[1:])
            calibrated = calibrate(tested, f"{name}-calibrated")
            for (dataset, _), result in score_experiment(calibrated, jobs=1).items():
                save(name, f"{dataset}-calibrated", result, options.out, rows=False)


def validation_set(data: Path) -> Dataset:
    """Return images of DUTS-TR that no run trains on, rich in several objects."""
    dataset = open_dataset(data / "DUTS-TR")
    trained = {sample.name for sample in limit_samples(dataset.samples, N_TRAINING)}
    several: list[Sample] = []
    one: list[Sample] = []
    for sample in sorted(
        dataset.samples, key=lambda sample: hashlib.sha256(sample.name.encode()).digest()
    ):
        if sample.name in trained:
            continue
        n_objects = len(
            sisod.partition(read_truth(sample.mask.parent, sample.mask.name).mask(level=128))
        )
        kept, most = (several, N_SEVERAL) if n_objects > 1 else (one, N_ONE)
        if len(kept) < most:
            kept.append(sample)
        if len(several) == N_SEVERAL and len(one) == N_ONE:
            break
    samples = tuple(sorted(several + one, key=lambda sample: sample.name))
    return replace(dataset, name=VALIDATION, samples=samples)


def criterion(run: Run, recipe: "Recipe") -> nn.Module | None:
    """Return a loss that `sisod train` does not have; None for one that it has."""
    if run.loss == "pos-weight":
        return WeightedBce(3.0)
    if run.loss == "released":
        sys.path.insert(0, str(RESULTS.parents[1] / "examples"))
        from train_with_your_loss import ReleasedLoss

        return ReleasedLoss(*recipe.loss.terms)
    return None


def make_experiment(name: str, data: Path, out: Path, sets: tuple[Dataset, ...]) -> "Experiment":
    """Return the experiment of a run, which is scored in memory from maps of 16 bits."""
    from sisod.training.experiment import Experiment
    from sisod.training.recipe import find_recipe
    from sisod.training.train import TrainingRequest

    run = RUNS[name]
    recipe = find_recipe(run.recipe, run.all_settings())
    own = criterion(run, recipe)
    loss = run.loss if own is None else "si"
    request = TrainingRequest(
        data=data / "DUTS-TR", out=out / "runs" / name, loss=loss, limit=N_TRAINING
    )
    return Experiment(
        name, recipe, request, tests=sets, metrics={"default": KEYS}, out=out, maps=None, criterion=own
    )


def save(name: str, dataset: str, result: sisod.Evaluation, out: Path, *, rows: bool = True) -> None:
    """Keep the means of a run on a set and, if wanted, the rows of its images in 10,000ths."""
    SAVED.mkdir(exist_ok=True)
    path = SAVED / "means.json"
    means = json.loads(path.read_text()) if path.exists() else {}
    record = json.loads((out / "runs" / name / "run.json").read_text())
    entry = means.setdefault(name, {})
    entry["run"] = {
        "settings": RUNS[name].all_settings(),
        "steps": record["steps"],
        "seconds": round(record["seconds"]),
        "machine": machine(("sisod", "torch", "numpy")),
    }
    entry[dataset] = {key: round(result.summary[key], 6) for key in KEYS}
    in_order = {name: means[name] for name in RUNS if name in means}
    path.write_text(json.dumps(in_order, indent=1) + "\n")
    if not rows:
        return
    small = (
        result.objects.filter(pl.col("share") < SMALL)
        .group_by("image")
        .agg(n_small=pl.len(), small_found=(pl.col("recall_binary") >= 0.5).sum())
    )
    counts = ("n_objects", "n_found", "n_false", "n_small", "small_found")
    table = (
        result.images.join(small, on="image", how="left", maintain_order="left")
        .with_columns(pl.col("n_small", "small_found").fill_null(0))
        .select(
            "image",
            *((pl.col(key) * 10_000).round().fill_nan(None).cast(pl.Int16) for key in ROW_KEYS),
            *(pl.col(key).cast(pl.Int16) for key in counts),
        )
    )
    table.write_parquet(SAVED / f"{dataset}-{name}.parquet", compression_level=19)


if __name__ == "__main__":
    main()

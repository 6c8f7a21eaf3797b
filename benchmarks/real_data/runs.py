"""The paper's claims on real data at a small scale: train, predict, score, keep the rows.

    python -m benchmarks.real_data.runs --data ROOT --out DIR          # all runs, hours on a CPU
    python -m benchmarks.real_data.runs --data ROOT --out DIR NAME...  # some runs, for several machines
    python -m benchmarks.real_data.runs --out DIR --gather [NAME...]   # the rows of finished runs

ROOT holds DUTS-TR, DUTS-TE, ECSSD and MSOD. Finished steps are skipped and an unfinished run is resumed.
The rows go to `benchmarks/results/real_data/`, where they replace those of the same runs and leave the
others, so that runs can come from several machines. From them `tables.py` makes what docs/real-data.md
shows of the size-invariant loss; `scores.py` scores the maps for the comparison of losses there.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import polars as pl

import sisod
from benchmarks.timing import RESULTS, machine, progress
from sisod.common.files import read_table
from sisod.data.datasets import open_dataset
from sisod.data.pairs import pair_files
from sisod.data.truths import read_prediction, read_truth
from sisod.scoring.arrays import unit_values
from sisod.scoring.metrics import PAPER_KEYS

if TYPE_CHECKING:
    from torch import nn

    from sisod.training.experiment import Experiment
    from sisod.training.recipe import Recipe

TABLES = RESULTS / "real_data"
TESTS = ("MSOD", "DUTS-TE", "ECSSD")
N_TRAINING = 2000
SIDE = 128
_IMAGE_COLUMNS = ("image", "height", "width", "n_objects")
_OBJECT_COLUMNS = (
    *("image", "index", "area", "share"),
    *("mae", "f_mean", "f_max", "auc", "iou_binary", "recall_binary"),
)
# rounded to four digits to keep the files small; not recall, which is compared with one half
_ROUNDED = {*PAPER_KEYS, *_OBJECT_COLUMNS[4:-1]}


@dataclass(frozen=True)
class Run:
    """One training: a recipe, a loss (`plain`, `si` or one of `CRITERIA`) and changed settings."""

    recipe: str
    loss: str
    seed: int = 0
    settings: tuple[str, ...] = ()

    def all_settings(self) -> list[str]:
        """Return the settings as `--set` takes them."""
        return [f"data.size={SIDE}", f"train.seed={self.seed}", *self.settings]


def _released(recipe: "Recipe") -> "nn.Module":
    sys.path.insert(0, str(RESULTS.parents[1] / "examples"))
    from train_with_your_loss import ReleasedLoss

    return ReleasedLoss(*recipe.loss.terms)


# losses that `sisod train` does not have
CRITERIA: dict[str, "Callable[[Recipe], nn.Module]"] = {"released": _released}


def _both_losses(name: str, *settings: str, seed: int = 0) -> dict[str, Run]:
    """Return the same run with the plain and the size-invariant loss; a name starts with its network."""
    recipe = f"{name.partition('-')[0]}-lite"
    return {f"{name}-{loss}-{seed}": Run(recipe, loss, seed, settings) for loss in ("plain", "si")}


def _seeds(name: str, *settings: str) -> dict[str, Run]:
    """Return the same size-invariant run with three seeds."""
    return {f"{name}-{seed}": Run("edn-lite", "si", seed, settings) for seed in range(3)}


_CELLS = ("loss.parts=cells", "loss.image_weight=0.5")
_SHARED = ("loss.image_weight=0.5", "loss.gamma=0.0")
_LONG = ("train.epochs=24",)
_TVERSKY = 'loss.terms=["bce", "tversky(0.3,0.7)"]'
# the plain losses that people train with: EDN's own has Dice without squares, LDF and ICON have IoU
_BASELINES = {
    "own": 'loss.terms=["bce", "dice(squared=false)"]',
    "iou": 'loss.terms=["bce", "iou"]',
}

# what `tables.py` shows: the size-invariant loss and its variants
PAPER_RUNS = {
    **_both_losses("edn"),
    **_both_losses("edn", seed=1),
    **_both_losses("edn", seed=2),
    **_seeds("edn-printed", "loss.normalize=false"),
    "edn-released-0": Run("edn-lite", "released"),
    "edn-alpha1-0": Run("edn-lite", "si", settings=("loss.alpha=1",)),
    "edn-alpha0-0": Run("edn-lite", "si", settings=("loss.alpha=0",)),
    "edn-warm-0": Run("edn-lite", "si", settings=("loss.warmup_epochs=1",)),
    **_both_losses("edn-long", "train.epochs=8"),
    **_both_losses("edn-bce", 'loss.terms=["bce"]'),
    **_both_losses("ldf"),
    **_both_losses("poolnet"),
    **_both_losses("icon"),
    **_both_losses("gatenet"),
}
# what `losses.py` compares, beside runs of the same names in `PAPER_RUNS`
_OTHER_RUNS = {
    **_seeds("edn-half", "loss.image_weight=0.5"),
    **_seeds("edn-cells", *_CELLS),
    **_seeds("edn-shared", *_SHARED),
    "edn-whole25-0": Run("edn-lite", "si", 0, ("loss.image_weight=0.25",)),
    "edn-whole75-0": Run("edn-lite", "si", 0, ("loss.image_weight=0.75",)),
    "edn-gamma50-0": Run("edn-lite", "si", 0, ("loss.image_weight=0.5", "loss.gamma=0.5")),
    "edn-cellsonly-0": Run("edn-lite", "si", 0, ("loss.parts=cells",)),
    **_seeds("edn-tversky", *_CELLS, _TVERSKY),
    **{f"edn-tversky-plain-{seed}": Run("edn-lite", "plain", seed, (_TVERSKY,)) for seed in range(3)},
    **{
        f"edn-{name}-{seed}": Run("edn-lite", "plain", seed, (terms,))
        for seed in range(3)
        for name, terms in _BASELINES.items()
    },
    **_both_losses("edn-24", *_LONG),
    **_both_losses("edn-24", *_LONG, seed=1),
    "edn-24-cells-0": Run("edn-lite", "si", 0, (*_CELLS, *_LONG)),
    **{f"edn-24-shared-{seed}": Run("edn-lite", "si", seed, (*_SHARED, *_LONG)) for seed in range(2)},
    **{
        f"edn-24-tversky-{seed}": Run("edn-lite", "si", seed, (*_CELLS, _TVERSKY, *_LONG))
        for seed in range(2)
    },
    **{
        f"edn-24-tversky-plain-{seed}": Run("edn-lite", "plain", seed, (_TVERSKY, *_LONG))
        for seed in range(2)
    },
    **{
        f"{network}-{name}-0": Run(f"{network}-lite", "si", 0, settings)
        for name, settings in {"cells": _CELLS, "tversky": (*_CELLS, _TVERSKY)}.items()
        for network in ("ldf", "poolnet", "icon", "gatenet")
    },
}
RUNS = PAPER_RUNS | _OTHER_RUNS
COMPARED_RUNS = (
    *(f"edn-{loss}-{seed}" for seed in range(3) for loss in ("plain", "si")),
    *(f"{network}-plain-0" for network in ("ldf", "icon", "poolnet", "gatenet")),
    *_OTHER_RUNS,
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, run the experiments and gather their rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", nargs="*", metavar="RUN", help=f"of {', '.join(RUNS)}; by default all")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--gather", action="store_true", help="only gather the rows of finished runs")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.runs if name not in RUNS]
    if unknown or (options.data is None and not options.gather):
        parser.error(f"unknown runs {unknown}" if unknown else "--data is needed")
    if not options.gather:
        from sisod.training.experiment import run_experiment
        from sisod.training.train import Machine

        for name in options.runs or RUNS:
            progress(name)
            experiment = make_experiment(name, options.data, options.out)
            run_experiment(experiment, Machine(workers=1))
            write_levels(experiment)
    gather(options.out, options.runs or RUNS)


def make_experiment(name: str, data: Path, out: Path) -> "Experiment":
    """Return the experiment of a run."""
    from sisod.training.experiment import Experiment
    from sisod.training.recipe import find_recipe
    from sisod.training.train import TrainingRequest

    run = RUNS[name]
    recipe = find_recipe(run.recipe, run.all_settings())
    criterion = CRITERIA[run.loss](recipe) if run.loss in CRITERIA else None
    loss = run.loss if criterion is None else "si"
    return Experiment(
        name,
        recipe,
        TrainingRequest(data=data, out=out / "runs" / name, loss=loss, limit=N_TRAINING),
        tests=tuple(replace(open_dataset(data / test), name=test) for test in TESTS),
        metrics={"default": PAPER_KEYS},
        out=out,
        criterion=criterion,
    )


def write_levels(experiment: "Experiment") -> None:
    """Write `score_levels` of every test set, unless written already."""
    for dataset in experiment.tests:
        folder = _levels(experiment.out, experiment.name, dataset.name)
        if not (folder / "marked.parquet").exists():
            folder.mkdir(parents=True, exist_ok=True)
            maps = experiment.path("maps/{dataset}/{name}", dataset)
            objects, marked = score_levels(maps, dataset.mask_dir)
            objects.write_parquet(folder / "objects.parquet")
            marked.write_parquet(folder / "marked.parquet")


def _levels(out: Path, name: str, test: str) -> Path:
    return out / "levels" / test / name


def score_levels(maps: Path, masks: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return up to which threshold each object is found, and the share of background marked at each.

    Returns:
        `image`, `index`, `level` of every object: up to this threshold it is found, that is, at least
        half of its pixels are above it; and `threshold`, `marked`: the share of background pixels above
        the threshold, as the mean over images. Maps are normalised as by the default protocol, and
        thresholds count in 256ths.
    """
    objects: list[dict[str, Any]] = []
    shares = []
    gt_level = sisod.PROTOCOLS["default"].gt_level
    for pair in pair_files(maps, masks).pairs:
        mask = read_truth(masks, pair.gt.path).mask(level=gt_level)
        array = cv2.resize(read_prediction(maps, pair.pred.path), mask.shape[::-1])
        unit = unit_values(array, normalize="minmax")
        array = (
            np.ceil(256 * unit - 1).clip(0, 255).astype(np.uint8)
        )  # the highest threshold that it exceeds
        for frame in sisod.partition(mask):
            values = np.sort(array[frame.window][mask[frame.window]])
            level = int(values[len(values) // 2])  # at least half of the pixels are not below it
            objects.append({"image": pair.name, "index": frame.index, "level": level})
        counts = np.bincount(array[~mask], minlength=256)
        shares.append(counts[::-1].cumsum()[::-1] / max(1, counts.sum()))
    marked = {"threshold": np.arange(256), "marked": np.mean(shares, axis=0)}
    return pl.DataFrame(objects), pl.DataFrame(marked)


def _object_rows(evaluation: sisod.Evaluation, levels: Path) -> pl.DataFrame:
    rows = evaluation.objects.select(_OBJECT_COLUMNS)
    rows = rows.join(read_table(levels / "objects.parquet"), on=["image", "index"])
    return rows.cast({"level": pl.UInt8})


# table that is kept -> its rows for a run on a test set, from its result and its folder of levels
ROWS: dict[str, Callable[[sisod.Evaluation, Path], pl.DataFrame]] = {
    "images": lambda evaluation, _: evaluation.images.select(*_IMAGE_COLUMNS, *PAPER_KEYS),
    "objects": _object_rows,
    "marked": lambda _, levels: read_table(levels / "marked.parquet"),
}


def is_finished(out: Path, name: str) -> bool:
    """Tell whether a run is trained, and its maps are written and scored."""
    return all((_levels(out, name, test) / "marked.parquet").exists() for test in TESTS)


def gather(out: Path, names: Iterable[str]) -> None:
    """Write the rows of the runs that are finished and in `PAPER_RUNS` to one table of each kind."""
    tables: dict[str, list[pl.DataFrame]] = {kind: [] for kind in ROWS}
    finished = [name for name in PAPER_RUNS if name in set(names) and is_finished(out, name)]
    if not finished:
        return
    for name in finished:
        for test in TESTS:
            evaluation = sisod.Evaluation.load(out / "results" / test / name)
            for kind, make_rows in ROWS.items():
                rows = make_rows(evaluation, _levels(out, name, test))
                tables[kind].append(_compact(rows, name, test))
    TABLES.mkdir(exist_ok=True)
    for kind, parts in tables.items():
        path = TABLES / f"{kind}.parquet"
        with_saved_rows(pl.concat(parts), path).write_parquet(path, compression_level=19)
    path = TABLES / "runs.json"
    saved = json.loads(path.read_text())["runs"] if path.exists() else {}
    records = saved | {name: record_of(name, out) for name in finished}
    content = {"runs": {name: records[name] for name in PAPER_RUNS if name in records}}
    path.write_text(json.dumps(content, indent=2) + "\n")


def with_saved_rows(rows: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Return rows together with those that a table has of other runs, in the order of the runs."""
    if not path.exists():
        return rows
    saved = read_table(path).cast({"run": rows.schema["run"]})
    others = saved.join(rows.select("run").unique(), on="run", how="anti", maintain_order="left")
    return pl.concat([others, rows]).sort("run", maintain_order=True)


def _compact(table: pl.DataFrame, run: str, dataset: str) -> pl.DataFrame:
    rounded = [pl.col(key).round(4) for key in table.columns if key in _ROUNDED]
    return table.with_columns(rounded).with_columns(
        pl.col(pl.Float64).cast(pl.Float32),
        pl.lit(run).cast(pl.Enum(list(PAPER_RUNS))).alias("run"),
        pl.lit(dataset).cast(pl.Enum(TESTS)).alias("dataset"),
    )


def record_of(name: str, out: Path) -> dict[str, Any]:
    """Return recipe, settings and machine of a run, and how long it took."""
    run = RUNS[name]
    record = json.loads((out / "runs" / name / "run.json").read_text())
    return {
        "recipe": run.recipe,
        "loss": run.loss,
        "settings": run.all_settings(),
        "steps": record["steps"],
        "seconds": record["seconds"],
        "machine": machine(("sisod", "torch", "numpy")),
    }


if __name__ == "__main__":
    main()

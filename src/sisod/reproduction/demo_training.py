"""The paper's claim on synthetic scenes: one small network trained with both losses and several seeds.

Plain and size-invariant runs differ in the loss only. Everything that a seed decides (weights, order,
flips) is the same for both, so that differences are taken seed by seed.
"""

import math
import os
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, wait
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.analysis.ablation import mean_and_deviation
from sisod.analysis.bootstrap import heading
from sisod.analysis.groups import FOUND
from sisod.common.exceptions import InputError, is_missing
from sisod.common.output import write_png
from sisod.common.processes import default_jobs
from sisod.common.progress import progress_bar
from sisod.common.run_folder import open_run, read_run
from sisod.data.datasets import open_dataset
from sisod.data.images import read_array, read_colour
from sisod.data.textured_scenes import write_scenes
from sisod.evaluation.result import Evaluation
from sisod.scoring.metrics import METRICS, PAPER_KEYS
from sisod.scoring.partition import partition

if TYPE_CHECKING:
    from rich.table import Table

    from sisod.training.experiment import Experiment

LOSSES = ("plain", "si")
GROUPS = ((0.0, 0.003), (0.003, 0.01), (0.01, 0.05), (0.05, 1.0))  # share of the image, [low, high)
_DATASET = "synthetic"  # name of the test set in results
_BATCH = 8
_N_EXAMPLES = 6
Values = NDArray[np.float64]


@dataclass(frozen=True)
class Plan:
    """Size of the demo; by default two cores need some minutes.

    Attributes:
        n_train: images to train on, the same for all runs.
        n_test: images to test on.
        side: of the images.
        epochs: of each run, with batches of eight.
        seeds: of the runs; each seed is run with both losses.
    """

    n_train: int = 320
    n_test: int = 150
    side: int = 96
    epochs: int = 10
    seeds: tuple[int, ...] = (0, 1, 2)


@dataclass(frozen=True, eq=False)
class TrainedDemo:
    """An evaluation for each loss and seed, and the folder that holds all files.

    `folder / "results"` has one result of `sisod evaluate` for each run; `page` is the report on them,
    None if the extra that it needs is not installed.
    """

    plan: Plan
    folder: Path
    results: dict[tuple[str, int], Evaluation]
    examples: Path
    page: Path | None = None

    def scores(self, key: str) -> dict[str, Values]:
        """Return loss -> the scores of the test set by a metric, one for each seed."""
        return {
            loss: np.array([self.results[loss, seed].summary[key] for seed in self.plan.seeds])
            for loss in LOSSES
        }

    def by_size(self, low: float, high: float) -> dict[str, dict[str, Values]]:
        """Return loss -> share found and mean F of objects in a range of sizes, one for each seed."""
        values: dict[str, dict[str, Values]] = {}
        for loss in LOSSES:
            rows = []
            for seed in self.plan.seeds:
                objects = self.results[loss, seed].objects
                inside = _in_range(objects["share"].to_numpy(), low, high)
                found = objects["recall_binary"].to_numpy()[inside] >= FOUND
                rows.append((found.mean(), objects["f_mean"].to_numpy()[inside].mean()))
            values[loss] = dict(zip(("found", "f"), np.array(rows).T, strict=True))
        return values

    def n_objects(self, low: float, high: float) -> int:
        """Return how many objects of the test set are in a range of sizes."""
        share = self.results["plain", self.plan.seeds[0]].objects["share"].to_numpy()
        return int(_in_range(share, low, high).sum())


def _in_range(share: Values, low: float, high: float) -> NDArray[np.bool_]:
    return (share >= low) & ((share < high) | (high == 1))


def run_trained_demo(folder: Path, plan: Plan | None = None) -> TrainedDemo:
    """Generate scenes, train with both losses and every seed, predict and evaluate, all in a folder.

    The same call goes on with a demo that was interrupted.

    Args:
        folder: of all files.
        plan: size of the demo.
    """
    from sisod.training.experiment import score_experiment

    plan, start = plan or Plan(), time.perf_counter()
    with open_run(folder, kind="demo", config=asdict(plan), resume=True, in_place=True) as run:
        run.begin()
        for name, count, seed in (("train", plan.n_train, 1), ("test", plan.n_test, 2)):
            write_scenes(folder / name, count, seed=seed, shape=(plan.side, plan.side))
        experiments = {
            (loss, seed): _experiment(folder, plan, loss, seed) for seed in plan.seeds for loss in LOSSES
        }
        _train_all(list(experiments.values()), plan.n_train // _BATCH * plan.epochs)
        results = {
            key: score_experiment(experiment, jobs=1)[_DATASET, "default"]
            for key, experiment in experiments.items()
        }
        _draw_examples(folder, plan, folder / "examples.png")
        page = None if is_missing("jinja2") else _write_page(folder)
        run.finish(seconds=round(time.perf_counter() - start, 1))
    return TrainedDemo(plan, folder, results, folder / "examples.png", page)


def _experiment(folder: Path, plan: Plan, loss: str, seed: int) -> "Experiment":
    from sisod.training.experiment import Experiment
    from sisod.training.recipe import find_recipe
    from sisod.training.train import TrainingRequest

    settings = {"train.seed": seed, "data.size": plan.side, "train.epochs": plan.epochs}
    settings["train.batch"] = _BATCH
    return Experiment(
        name := f"{loss}-{seed}",
        find_recipe("tiny", [f"{key}={value}" for key, value in settings.items()]),
        TrainingRequest(data=folder / "train", out=folder / "runs" / name, loss=loss),
        tests=(replace(open_dataset(folder / "test"), name=_DATASET),),
        metrics={"default": "paper"},
        out=folder,
        maps="maps/{name}",
    )


def _train_all(experiments: "Sequence[Experiment]", n_steps: int) -> None:
    """Train every network that is not, one on each core; the first failure stops all of them."""
    from loky import ProcessPoolExecutor

    from sisod.training.experiment import train_experiment
    from sisod.training.train import Machine

    folders = [experiment.training.out for experiment in experiments]
    waiting = [one for one in experiments if not read_run(one.training.out).get("finished")]
    executor = ProcessPoolExecutor(default_jobs(), initializer=_be_quiet, env={"OMP_NUM_THREADS": "1"})
    machine, counted = Machine(devices="1", workers=0), 0
    try:
        futures = {executor.submit(train_experiment, one, machine): one.name for one in waiting}
        with progress_bar("training", n_steps * len(experiments)) as advance:
            running = set(futures)
            while running:
                finished, running = wait(running, timeout=0.2, return_when=FIRST_EXCEPTION)
                for future in finished:
                    if error := future.exception():
                        raise InputError(f"training {futures[future]} failed: {error}") from error
                n_done = sum(map(_steps_done, folders))
                advance(n_done - counted)
                counted = n_done
    finally:
        executor.shutdown(kill_workers=True)


def _be_quiet() -> None:
    """Discard what a worker prints: there is one progress bar for all of them."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def _steps_done(run: Path) -> int:
    path = run / "metrics.csv"
    return max(0, path.read_bytes().count(b"\n") - 1) if path.exists() else 0


def _write_page(folder: Path) -> Path:
    from sisod.evaluation.results import load_results
    from sisod.report import write_report

    page = folder / "report.html"
    write_report(
        load_results([folder / "results"]),
        page,
        image_roots={_DATASET: folder / "test/image"},
        title="Plain and size-invariant loss on synthetic scenes",
    )
    return page


def _draw_examples(folder: Path, plan: Plan, path: Path) -> None:
    """Write image, mask and the maps of both losses for the first scenes with at least three objects."""
    maps = [folder / "maps" / f"{loss}-{plan.seeds[0]}" for loss in LOSSES]
    rows: list[NDArray[np.uint8]] = []
    for file in sorted((folder / "test/mask").iterdir()):
        mask = read_array(folder / "test/mask", file.name)
        if len(partition(mask)) >= 3 and len(rows) < _N_EXAMPLES:
            planes = [mask, *(read_array(root, file.name) // 257 for root in maps)]  # of 16 bits
            grey = [np.repeat(plane[..., None].astype(np.uint8), 3, axis=2) for plane in planes]
            rows.append(np.hstack([read_colour(folder / "test/image", file.name), *grey]))
    picture = cv2.resize(np.vstack(rows), None, fx=2, fy=2, interpolation=cv2.INTER_NEAREST)
    strip = np.full((28, picture.shape[1], 3), 255, dtype=np.uint8)
    for index, text in enumerate(("image", "mask", "plain loss", "SI loss")):
        corner = (index * 2 * plan.side + 6, 20)
        cv2.putText(strip, text, corner, cv2.FONT_HERSHEY_SIMPLEX, 0.5, (0, 0, 0), 1, cv2.LINE_AA)
    write_png(path, np.vstack([strip, picture]))


def demo_tables(demo: TrainedDemo) -> "list[Table]":
    """Return the table of scores with both losses, and that of objects found by size."""
    seeds = demo.plan.seeds
    rows = []
    for key in PAPER_KEYS:
        scores = demo.scores(key)
        change = scores["si"] - scores["plain"]
        better = (change.mean() > 0) == (METRICS[key].direction == "up")
        cells = [_spread(scores["plain"]), _spread(scores["si"])]
        cells[int(better)] = f"[bold]{cells[int(better)]}[/bold]"
        rows.append([heading(key), *cells, *(f"{value:+.4f}" for value in (change.mean(), *change))])
    sizes = []
    for low, high in GROUPS:
        if count := demo.n_objects(low, high):
            values = demo.by_size(low, high)
            spreads = [_spread(values[loss][key], digits=3) for key in ("found", "f") for loss in LOSSES]
            sizes.append([_range(low, high), str(count), *spreads])
    title = f"{demo.plan.n_test} test images, mean ± deviation over {len(seeds)} seeds"
    numbers = ("plain", "size-invariant", "difference", *(f"seed {seed}" for seed in seeds))
    by_size = "the same by size of the object, as a part of the image"
    shares = ("objects", "found, plain", "found, SI", "F, plain", "F, SI")
    return [_table(title, "metric", numbers, rows), _table(by_size, "size", shares, sizes)]


def _table(title: str, first: str, numbers: Sequence[str], rows: Sequence[Sequence[str]]) -> "Table":
    from rich.table import Table

    table = Table(title=title)
    table.add_column(first)
    for text in numbers:
        table.add_column(text, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def verdict(demo: TrainedDemo) -> str:
    """Return a sentence on how many seeds the size-invariant loss is better in, by metric."""
    parts = []
    for key in ("si_mae", "si_f_mean", "mae", "f_mean"):
        scores = demo.scores(key)
        change = scores["si"] - scores["plain"]
        n_better = int((change > 0).sum() if METRICS[key].direction == "up" else (change < 0).sum())
        parts.append(f"{METRICS[key].title} {n_better} of {len(change)}")
    return f"Seeds in which the size-invariant loss is better, by metric: {', '.join(parts)}."


def _spread(values: Values, *, digits: int = 4) -> str:
    mean, deviation = mean_and_deviation(values.tolist())
    return f"{mean:.{digits}f} ± {0.0 if math.isnan(deviation) else deviation:.{digits}f}"


def _range(low: float, high: float) -> str:
    if high == 1:
        return f"{100 * low:g} % and more"
    return f"under {100 * high:g} %" if low == 0 else f"{100 * low:g} to {100 * high:g} %"

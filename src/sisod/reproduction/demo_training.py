"""The paper's claim on synthetic scenes: one small network trained with both losses and several seeds.

Plain and size-invariant runs differ in the loss only. Everything that a seed decides (weights, order,
flips) is the same for both, so that differences are taken seed by seed.
"""

import os
import time
from collections.abc import Sequence
from concurrent.futures import as_completed
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from loky import ProcessPoolExecutor
from numpy.typing import NDArray

from sisod.analysis.groups import FOUND, group_of, size_label
from sisod.analysis.scores import heading
from sisod.common.exceptions import InputError, is_missing
from sisod.common.grid import Grid, number
from sisod.common.processes import default_jobs
from sisod.common.run_folder import open_run
from sisod.common.streams import progress_bar
from sisod.data.datasets import open_dataset
from sisod.data.textured_scenes import write_scenes
from sisod.evaluation.result import Evaluation
from sisod.evaluation.results import load_results
from sisod.scoring.metrics import METRICS, PAPER_KEYS
from sisod.training.experiment import Experiment, run_experiment, score_experiment
from sisod.training.recipe import find_recipe
from sisod.training.train import Machine, TrainingRequest

LOSSES = ("plain", "si")
EDGES = (0.0, 0.003, 0.01, 0.05, 1.0)  # of the size groups, as shares of the image
_DATASET = "synthetic"  # name of the test set in results
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
    """An evaluation for each loss and seed, and the report on them.

    Attributes:
        plan: size of the demo.
        results: (loss, seed) -> result, as `sisod evaluate` has saved it.
        page: the report; None if the extra that it needs is not installed.
    """

    plan: Plan
    results: dict[tuple[str, int], Evaluation]
    page: Path | None = None

    def scores(self) -> dict[str, tuple[Values, Values]]:
        """Return scores with the plain and with the size-invariant loss, one for each seed, by name.

        The names are the paper's metrics, and `found, LOW-HIGH %` for the share of the objects of a size
        that are found.
        """
        rows = {key: _scores(result) for key, result in self.results.items()}

        def column(loss: str, name: str) -> Values:
            return np.array([rows[loss, seed][name] for seed in self.plan.seeds])

        names = rows["plain", self.plan.seeds[0]]  # all runs have the same test images
        return {name: (column("plain", name), column("si", name)) for name in names}

    def grid(self) -> Grid:
        """Return the table of scores with both losses: mean and deviation over seeds, differences."""
        rows: list[tuple[str, ...]] = []
        bold = set[tuple[int, int]]()
        for name, (plain, si) in self.scores().items():
            change = si - plain
            is_up = name not in METRICS or METRICS[name].direction == "up"
            bold.add((len(rows), 2 if (change.mean() > 0) == is_up else 1))
            spreads = (f"{v.mean():.4f} ± {v.std(ddof=1) if len(v) > 1 else 0:.4f}" for v in (plain, si))
            differences = (number(value, sign=True) for value in (change.mean(), *change))
            rows.append((heading(name) if name in METRICS else name, *spreads, *differences))
        seeds = [f"seed {seed}" for seed in self.plan.seeds]
        head = ("metric", "plain", "size-invariant", "difference", *seeds)
        return Grid(head, tuple(rows), n_text=1, bold=frozenset(bold))

    def caption(self) -> str:
        """Return what the numbers of the table are."""
        return (
            f"{self.plan.n_test} test images, mean ± deviation over {len(self.plan.seeds)} seeds; "
            "found: share of the objects of a size, as a part of the image, that are found."
        )


def _scores(result: Evaluation) -> dict[str, float]:
    groups = group_of(result.objects["share"].to_numpy(), np.array(EDGES))
    found = result.objects["recall_binary"].to_numpy() >= FOUND
    return {key: result.summary[key] for key in PAPER_KEYS} | {
        f"found, {size_label(*pair)}": float(found[groups == group].mean())
        for group, pair in enumerate(pairwise(EDGES))
        if group in groups
    }


def run_trained_demo(folder: Path, plan: Plan | None = None) -> TrainedDemo:
    """Generate scenes, train with both losses and every seed, predict and evaluate, all in a folder.

    The same call goes on with a demo that was interrupted.

    Args:
        folder: of all files.
        plan: size of the demo.
    """
    plan, start = plan or Plan(), time.perf_counter()
    with open_run(folder, kind="demo", config=asdict(plan), resume=True, in_place=True) as run:
        run.begin()
        for name, count, seed in (("train", plan.n_train, 1), ("test", plan.n_test, 2)):
            write_scenes(folder / name, count, seed=seed, shape=(plan.side, plan.side))
        experiments = {
            (loss, seed): _experiment(folder, plan, loss, seed) for seed in plan.seeds for loss in LOSSES
        }
        _run_all(list(experiments.values()))
        results = {
            key: score_experiment(experiment)[_DATASET, "default"]
            for key, experiment in experiments.items()
        }
        page = None if is_missing("jinja2") else folder / "report.html"
        if page is not None:
            from sisod.report import write_report

            title = "Plain and size-invariant loss on synthetic scenes"
            images = {_DATASET: folder / "test/image"}
            write_report(load_results([folder / "results"]), page, image_roots=images, title=title)
        run.finish(seconds=round(time.perf_counter() - start, 1))
    return TrainedDemo(plan, results, page)


def _experiment(folder: Path, plan: Plan, loss: str, seed: int) -> Experiment:
    settings = (f"train.seed={seed}", f"data.size={plan.side}", f"train.epochs={plan.epochs}")
    return Experiment(
        name := f"{loss}-{seed}",
        find_recipe("tiny", [*settings, "train.batch=8"]),
        TrainingRequest(data=folder / "train", out=folder / "runs" / name, loss=loss),
        tests=(replace(open_dataset(folder / "test"), name=_DATASET),),
        metrics={"default": "paper"},
        out=folder,
        maps="maps/{name}",
    )


def _run_all(experiments: Sequence[Experiment]) -> None:
    """Train and score, one network on each core; the first failure stops all of them."""
    machine = Machine(devices="1", workers=0)
    executor = ProcessPoolExecutor(default_jobs(), initializer=_be_quiet, env={"OMP_NUM_THREADS": "1"})
    try:
        futures = {executor.submit(run_experiment, one, machine, jobs=1): one for one in experiments}
        with progress_bar("training", len(futures)) as advance:
            for future in as_completed(futures):
                if error := future.exception():
                    raise InputError(f"training {futures[future].name} failed: {error}") from error
                advance(1)
    finally:
        executor.shutdown(kill_workers=True)


def _be_quiet() -> None:
    """Discard what a worker prints: there is one progress bar for all of them."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)

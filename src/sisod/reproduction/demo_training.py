"""The paper's claim on synthetic scenes: one small network trained with three losses and several seeds.

Runs of a seed differ in the loss only: weights, order of images and flips are the same.
"""

import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean

from loky import ProcessPoolExecutor

from sisod.analysis.scores import heading
from sisod.analysis.seeds import mean_and_deviation
from sisod.common.exceptions import is_missing
from sisod.common.grid import Grid
from sisod.common.imports import explain_errors
from sisod.common.processes import default_jobs
from sisod.common.run_folder import open_run
from sisod.common.streams import progress_bar
from sisod.data.datasets import open_dataset
from sisod.data.scenes import write_scenes
from sisod.evaluation.result import Evaluation
from sisod.evaluation.results import load_results
from sisod.scoring.metrics import METRICS
from sisod.training.experiment import Experiment, run_experiment, score_experiment
from sisod.training.recipe import find_recipe
from sisod.training.train import Machine, TrainingRequest

LOSSES = {"plain": "plain", "size-invariant": "si", "balanced": "balanced"}  # name -> of `sisod train`
TERMS = ("bce", "dice(squared=false)")  # of the first two; balanced has its own
KEYS = ("object_recall", "object_recall_small", "false_objects", "object_f1", "mae", "si_mae")
_DATASET = "synthetic"  # name of the test set in results


@dataclass(frozen=True)
class Plan:
    """Size of the demo; by default two cores need less than three minutes.

    Attributes:
        n_train: images to train on, the same for all runs.
        n_test: images to test on.
        side: of the images.
        epochs: of each run, with batches of eight.
        seeds: of the runs; each seed is run with every loss.
    """

    n_train: int = 320
    n_test: int = 150
    side: int = 96
    epochs: int = 9
    seeds: tuple[int, ...] = (0, 1)


@dataclass(frozen=True, eq=False)
class TrainedDemo:
    """An evaluation for each loss and seed, and the report on them.

    Attributes:
        plan: size of the demo.
        results: `LOSS@SEED` -> result, as `sisod evaluate` has saved it.
        page: the report; None if the extra that it needs is not installed.
    """

    plan: Plan
    results: dict[str, Evaluation]
    page: Path | None = None

    def scores(self, loss: str, key: str) -> list[float]:
        """Return the score of every seed of a loss."""
        return [self.results[f"{loss}@{seed}"].summary[key] for seed in self.plan.seeds]

    def grid(self) -> Grid:
        """Return the table of scores: mean and deviation over the seeds, the best mean bold."""
        rows, bold = [], set[tuple[int, int]]()
        for loss in LOSSES:
            spreads = (mean_and_deviation(self.scores(loss, key)) for key in KEYS)
            rows.append((loss, *(f"{mean:.3f} ± {deviation:.3f}" for mean, deviation in spreads)))
        for column, key in enumerate(KEYS, start=1):
            means = [fmean(self.scores(loss, key)) for loss in LOSSES]
            best = max(means) if METRICS[key].direction == "up" else min(means)
            bold |= {(row, column) for row, mean in enumerate(means) if mean == best}
        return Grid(("loss", *map(heading, KEYS)), tuple(rows), n_text=1, bold=frozenset(bold))

    def verdict(self) -> str:
        """Return in plain words what the other losses gain and cost beside the plain one."""
        small, false, f1 = (
            {loss: fmean(self.scores(loss, key)) for loss in LOSSES}
            for key in ("object_recall_small", "false_objects", "object_f1")
        )
        return "\n".join(
            f"{loss.capitalize()} finds {small[loss]:.0%} of the small objects (plain: "
            f"{small['plain']:.0%}), with {false[loss]:.1f} false objects per image (plain: "
            f"{false['plain']:.1f}); its object F1 is {f1[loss]:.2f} (plain: {f1['plain']:.2f})."
            for loss in list(LOSSES)[1:]
        )

    def caption(self) -> str:
        """Return what the numbers of the table are."""
        return (
            f"{self.plan.n_test} test images, mean ± deviation over {len(self.plan.seeds)} seeds; "
            "small: under 1 % of the image."
        )


def run_trained_demo(folder: Path, plan: Plan | None = None) -> TrainedDemo:
    """Generate scenes, train with every loss and seed, predict and evaluate, all in a folder.

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
            f"{loss}@{seed}": _experiment(folder, plan, loss, seed)
            for seed in plan.seeds
            for loss in LOSSES
        }
        _run_all(list(experiments.values()))
        results = {
            name: score_experiment(experiment)[_DATASET, "default"]
            for name, experiment in experiments.items()
        }
        page = None if is_missing("jinja2") else folder / "report.html"
        if page is not None:
            from sisod.report import write_report

            title = "Three losses on synthetic scenes"
            images = {_DATASET: folder / "test/image"}
            saved = [folder / "results" / _DATASET / name for name in results]
            write_report(load_results(saved), page, image_roots=images, title=title)
        run.finish(seconds=round(time.perf_counter() - start, 1))
    return TrainedDemo(plan, results, page)


def _experiment(folder: Path, plan: Plan, loss: str, seed: int) -> Experiment:
    settings = [f"train.seed={seed}", f"data.size={plan.side}", f"train.epochs={plan.epochs}"]
    terms = ", ".join(f'"{term}"' for term in TERMS)
    return Experiment(
        name := f"{loss}@{seed}",
        find_recipe("tiny", [*settings, "train.batch=8", f"loss.terms=[{terms}]"]),
        TrainingRequest(data=folder / "train", out=folder / "runs" / name, loss=LOSSES[loss]),
        tests=(replace(open_dataset(folder / "test"), name=_DATASET),),
        metrics={"default": None},
        out=folder,
        maps="maps/{name}",
    )


def _run_all(experiments: Sequence[Experiment]) -> None:
    """Train and score, one network on each core; the first failure stops all of them."""
    run = partial(run_experiment, machine=Machine(devices="1", workers=0), jobs=1)
    executor = ProcessPoolExecutor(default_jobs(), initializer=_be_quiet, env={"OMP_NUM_THREADS": "1"})
    try:
        with progress_bar("training", len(experiments)) as advance, explain_errors("a training failed"):
            for _ in executor.map(run, experiments):
                advance(1)
    finally:
        executor.shutdown(kill_workers=True)


def _be_quiet() -> None:
    """Discard what a worker prints: there is one progress bar for all of them."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)

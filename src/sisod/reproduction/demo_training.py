"""The paper's claim on synthetic scenes: one small network trained with both losses and several seeds.

Plain and size-invariant runs differ in the loss only. Everything that a seed decides (weights, order,
flips) is the same for both, so that differences are taken seed by seed.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.analysis.ablation import mean_and_deviation
from sisod.common import folders
from sisod.common.arguments import check_whole, shown
from sisod.common.errors import InputError, UsageError, is_missing
from sisod.common.output import followed, lock, readable_errors, write_atomically, write_png, write_run
from sisod.common.processes import module_settings
from sisod.common.progress import progress_bar
from sisod.data.datasets import open_dataset
from sisod.data.images import read_array, read_colour
from sisod.data.textured_scenes import write_scenes
from sisod.evaluation.result import Evaluation
from sisod.evaluation.runners import default_jobs
from sisod.scoring.metrics import METRICS, PAPER_KEYS, arrow
from sisod.scoring.partition import partition

if TYPE_CHECKING:
    from rich.table import Table

LOSSES = ("plain", "si")
TITLES = {"plain": "plain loss", "si": "size-invariant loss"}
GROUPS = ((0.0, 0.003), (0.003, 0.01), (0.01, 0.05), (0.05, 1.0))  # share of the image, [low, high)
_LEAST_RECALL = 0.5  # of an object that counts as found
_DATASET = "made"  # name of the synthetic test set in results
_BATCH = 8
_N_EXAMPLES = 6


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

    def __post_init__(self) -> None:
        for name, least in (("n_train", 1), ("n_test", 1), ("side", 32), ("epochs", 1)):
            check_whole(name, getattr(self, name), least=least)
        if not isinstance(self.seeds, tuple) or not self.seeds:
            raise UsageError(f"seeds must be a tuple of whole numbers, got {shown(self.seeds)}")
        for seed in self.seeds:
            check_whole("every one of seeds", seed, least=0)

    @property
    def n_steps(self) -> int:
        """Steps of one run."""
        return self.n_train // _BATCH * self.epochs


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

    def scores(self, key: str) -> dict[str, NDArray[np.float64]]:
        """Return loss -> the scores of the test set by a metric, one for each seed."""
        return {
            loss: np.array([self.results[loss, seed].summary[key] for seed in self.plan.seeds])
            for loss in LOSSES
        }

    def by_size(self, low: float, high: float) -> dict[str, dict[str, NDArray[np.float64]]]:
        """Return loss -> share found and mean F of objects in a range of sizes, one for each seed."""
        values: dict[str, dict[str, NDArray[np.float64]]] = {}
        for loss in LOSSES:
            rows = []
            for seed in self.plan.seeds:
                objects = self.results[loss, seed].objects
                inside = _in_range(objects["share"].to_numpy(), low, high)
                found = objects["recall_binary"].to_numpy()[inside] >= _LEAST_RECALL
                rows.append((found.mean(), objects["f_mean"].to_numpy()[inside].mean()))
            values[loss] = dict(zip(("found", "f"), np.array(rows).T, strict=True))
        return values

    def n_objects(self, low: float, high: float) -> int:
        """Return how many objects of the test set are in a range of sizes."""
        share = self.results["plain", self.plan.seeds[0]].objects["share"].to_numpy()
        return int(_in_range(share, low, high).sum())


def _in_range(share: NDArray[np.float64], low: float, high: float) -> NDArray[np.bool_]:
    return (share >= low) & ((share < high) | (high == 1))


def run_trained_demo(folder: Path, plan: Plan | None = None) -> TrainedDemo:
    """Generate scenes, train with both losses and every seed, predict and evaluate, all in a folder.

    An earlier demo in the folder is replaced once the new one is finished.
    """
    plan, target = plan or Plan(), followed(folder)
    with readable_errors(target / "x", "free some room and begin again"), lock(target):
        folders.recover(target)
        folders.check_free(target, kind="demo", overwrite=True)
        work = target if folders.is_free(target) else folders.partial_folder(target)
        folders.check_partial(work, "demo")
        if work != target:
            folders.discard(work)
        folders.begin(work, "demo")
        results = _run(work, plan)
        if work != target:
            _rename(work, target.name)
            folders.put_in_place(work, target)
            results = {
                run: Evaluation.load(target / "results" / _DATASET / _name(*run)) for run in results
            }
    page = folder / "report.html"
    return TrainedDemo(plan, folder, results, folder / "examples.png", page if page.exists() else None)


def _run(folder: Path, plan: Plan) -> dict[tuple[str, int], Evaluation]:
    record = {"kind": "demo", "command": "demo", "plan": asdict(plan)}
    write_run(folder, record | {"finished": False})
    begin = time.perf_counter()
    shape = (plan.side, plan.side)
    write_scenes(folder / "train", plan.n_train, seed=1, shape=shape)
    write_scenes(folder / "test", plan.n_test, seed=2, shape=shape)
    runs = [(loss, seed) for seed in plan.seeds for loss in LOSSES]
    _train_all(folder, plan, runs)
    results = {run: _evaluate(folder, plan, *run) for run in runs}
    _draw_examples(folder, plan, folder / "examples.png")
    _write_page(folder)
    seconds = round(time.perf_counter() - begin, 1)
    write_run(folder, record | {"seconds": seconds, "finished": True})
    return results


def _rename(folder: Path, name: str) -> None:
    """Replace the name of a working folder in the records below it by its final name."""
    before, after = (json.dumps(text, ensure_ascii=False)[1:-1] for text in (folder.name, name))
    for path in folder.rglob(folders.RUN_FILE):
        write_atomically(path, path.read_bytes().replace(before.encode(), after.encode()))


def _write_page(folder: Path) -> None:
    """Write the report on all runs, if the extra that it needs is installed."""
    if is_missing("jinja2"):
        return
    from sisod.evaluation.results import load_results
    from sisod.report import write_report

    write_report(
        load_results([folder / "results"]),
        folder / "report.html",
        image_roots={_DATASET: folder / "test/image"},
        title="Plain and size-invariant loss on synthetic scenes",
    )


def _train_all(folder: Path, plan: Plan, runs: Sequence[tuple[str, int]]) -> None:
    """Run `sisod train` for every run, one on each core; the first failure stops all of them."""
    waiting, active = list(runs), dict[tuple[str, int], _Training]()
    with progress_bar("training", plan.n_steps * len(runs)) as advance:
        counted = 0
        try:
            while waiting or active:
                while waiting and len(active) < default_jobs():
                    run = waiting.pop(0)
                    active[run] = _start(folder, plan, *run)
                time.sleep(0.1)
                for run, training in list(active.items()):
                    if training.process.poll() is not None:
                        del active[run]
                        _check(run, training)
                done = sum(_steps_done(folder / "runs" / _name(*run)) for run in runs)
                advance(done - counted)
                counted = done
        finally:
            for training in active.values():
                training.process.kill()
                training.process.wait()
                training.errors.close()


@dataclass(frozen=True)
class _Training:
    """A process and the file of its error output; a full pipe would block the process."""

    process: subprocess.Popen[bytes]
    errors: IO[bytes]


def _start(folder: Path, plan: Plan, loss: str, seed: int) -> _Training:
    command = [sys.executable, "-m", "sisod", "train", "tiny", "--loss", loss, "--workers", "0"]
    command += ["--data", str(folder / "train"), "--out", str(folder / "runs" / _name(loss, seed))]
    command += [part for setting in _settings(plan, seed) for part in ("--set", setting)]
    command += ["--devices", "1"]
    errors = tempfile.TemporaryFile()  # noqa: SIM115  (open as long as the process runs)
    process = subprocess.Popen(  # noqa: S603  (our own command)
        command,
        env=os.environ
        | module_settings()
        | {"OMP_NUM_THREADS": "1"},  # there are as many processes as cores
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors,
    )
    return _Training(process, errors)


def _settings(plan: Plan, seed: int) -> list[str]:
    values = {"train.seed": seed, "data.size": plan.side, "train.epochs": plan.epochs}
    return [f"{key}={value}" for key, value in (values | {"train.batch": _BATCH}).items()]


def _check(run: tuple[str, int], training: _Training) -> None:
    with training.errors as file:
        file.seek(0)
        output = file.read().decode("utf-8", errors="replace")
    if training.process.returncode:
        last = output.strip().splitlines()[-1:] or [f"exit code {training.process.returncode}"]
        raise InputError(f"training {_name(*run)} failed: {last[0].removeprefix('error: ')}")


def _steps_done(run: Path) -> int:
    try:
        return max(0, (run / "metrics.csv").read_bytes().count(b"\n") - 1)
    except OSError:
        return 0


def _evaluate(folder: Path, plan: Plan, loss: str, seed: int) -> Evaluation:
    from sisod.training.experiment import Experiment, score_experiment
    from sisod.training.recipe import find_recipe
    from sisod.training.train import TrainingRequest

    name = _name(loss, seed)
    experiment = Experiment(
        name,
        find_recipe("tiny", _settings(plan, seed)),
        TrainingRequest(data=folder / "train", out=folder / "runs" / name, loss=loss),
        tests=(replace(open_dataset(folder / "test"), name=_DATASET),),
        metrics={"default": "paper"},
        out=folder,
        maps="maps/{name}",
    )
    return score_experiment(experiment, jobs=1)[_DATASET, "default"]


def _name(loss: str, seed: int) -> str:
    return f"{loss}-{seed}"


def _draw_examples(folder: Path, plan: Plan, path: Path) -> None:
    """Write image, mask and the maps of both losses for the first scenes with at least three objects."""
    rows: list[NDArray[np.uint8]] = []
    for file in sorted((folder / "test/mask").iterdir()):
        mask = read_array(folder / "test/mask", file.name)
        if len(partition(mask)) >= 3 and len(rows) < _N_EXAMPLES:
            planes = [mask]
            planes += [
                read_array(folder / "maps" / _name(loss, plan.seeds[0]), file.name) for loss in LOSSES
            ]
            grey = [np.repeat(plane[..., None], 3, axis=2) for plane in planes]
            rows.append(np.hstack([read_colour(folder / "test/image", file.name), *grey]))
    picture = cv2.resize(np.vstack(rows), None, fx=2, fy=2, interpolation=cv2.INTER_NEAREST)
    strip = np.full((28, picture.shape[1], 3), 255, dtype=np.uint8)
    for index, text in enumerate(("image", "mask", "plain loss", "SI loss")):
        corner = (index * 2 * plan.side + 6, 20)
        cv2.putText(strip, text, corner, cv2.FONT_HERSHEY_SIMPLEX, 0.5, (0, 0, 0), 1, cv2.LINE_AA)
    write_png(path, np.vstack([strip, picture]))


def demo_tables(demo: TrainedDemo) -> "list[Table]":
    """Return the table of scores with both losses, and that of objects found by size."""
    return [_score_table(demo), _size_table(demo)]


def _score_table(demo: TrainedDemo) -> "Table":
    from rich.table import Table

    n_seeds = len(demo.plan.seeds)
    table = Table(title=f"{demo.plan.n_test} test images, mean ± deviation over {n_seeds} seeds")
    table.add_column("metric")
    for title in ("plain", "size-invariant", "difference", *(f"seed {s}" for s in demo.plan.seeds)):
        table.add_column(title, justify="right", no_wrap=True)
    for key in PAPER_KEYS:
        scores = demo.scores(key)
        change = scores["si"] - scores["plain"]
        better = (change.mean() > 0) == (METRICS[key].direction == "up")
        cells = [_spread(scores["plain"]), _spread(scores["si"])]
        cells[int(better)] = f"[bold]{cells[int(better)]}[/bold]"
        changes = [f"{value:+.4f}" for value in (change.mean(), *change)]
        table.add_row(f"{METRICS[key].title} {arrow(key)}", *cells, *changes)
    return table


def _size_table(demo: TrainedDemo) -> "Table":
    from rich.table import Table

    table = Table(title="the same by size of the object, as a part of the image")
    table.add_column("size")
    for title in ("objects", "found, plain", "found, SI", "F, plain", "F, SI"):
        table.add_column(title, justify="right", no_wrap=True)
    for low, high in GROUPS:
        if not (count := demo.n_objects(low, high)):
            continue
        values = demo.by_size(low, high)
        cells = [_spread(values[loss][score], digits=3) for score in ("found", "f") for loss in LOSSES]
        table.add_row(_range(low, high), str(count), *cells)
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


def _spread(values: NDArray[np.float64], *, digits: int = 4) -> str:
    mean, deviation = mean_and_deviation(values.tolist())
    return f"{mean:.{digits}f} ± {0.0 if math.isnan(deviation) else deviation:.{digits}f}"


def _range(low: float, high: float) -> str:
    if high == 1:
        return f"{100 * low:g} % and more"
    return f"under {100 * high:g} %" if low == 0 else f"{100 * low:g} to {100 * high:g} %"

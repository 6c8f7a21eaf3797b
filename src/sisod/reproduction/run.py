"""Runs a cell, or the unfinished part of it: finished steps are recognised and skipped."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import get_args

from sisod.common.arguments import check_choice
from sisod.common.exceptions import InputError
from sisod.common.output import json_bytes, lock, readable_errors, write_atomically
from sisod.common.run_folder import open_run, read_run
from sisod.reproduction.cells import LABELS, GridCell, Scale, cell_recipe, find_cell
from sisod.reproduction.loss_time import FULL as FULL_BENCH
from sisod.reproduction.loss_time import QUICK as QUICK_BENCH
from sisod.reproduction.loss_time import run_bench
from sisod.reproduction.sets import Sets
from sisod.training.experiment import Experiment, score_experiment, train_experiment, unscored
from sisod.training.recipe_parts import Precision
from sisod.training.train import Machine, TrainingRequest, make_labels

PROTOCOLS = {"default": None, "official": "paper"}  # protocols to score under -> metrics
Report = Callable[[str], object]


@dataclass(frozen=True)
class Reproduction:
    """Folder, size, data and machine settings that all cells of a reproduction share.

    Attributes:
        out: folder of the reproduction.
        scale: of the recipes.
        sets: to train and test on.
        precision: of Lightning.
        workers: processes that read images; None: one for each core.
    """

    out: Path
    scale: Scale
    sets: Sets
    precision: str = "32-true"
    workers: int | None = None

    @property
    def machine(self) -> Machine:
        """One device: the paper's batches fit on one, and several devices run a cell each."""
        return Machine(devices="1", precision=self.precision, workers=self.workers)

    @property
    def labels(self) -> Path:
        """Folder of the labels of LDF's first stage."""
        return self.folder(find_cell(LABELS)) / "labels"

    @property
    def time_file(self) -> Path:
        """File of the measured times."""
        return self.folder(find_cell("time")) / "time.json"

    @property
    def has_results(self) -> bool:
        """Whether any cell was scored."""
        return any((self.out / "results").glob("*/*/*/summary.json"))

    def folder(self, cell: GridCell) -> Path:
        """Return the folder that a cell works in."""
        return self.out / "cells" / cell.name

    def result(self, cell: GridCell, dataset: str, protocol: str) -> Path:
        """Return the folder of a result of `sisod evaluate`."""
        return self.out / "results" / protocol / dataset / cell.method

    def experiment(self, cell: GridCell) -> Experiment:
        """Return what a cell trains and scores; LDF's first stage has a folder for run and labels."""
        folder = self.folder(cell)
        request = TrainingRequest(
            data=self.sets.training.image_dir,
            masks=self.sets.training.mask_dir,
            out=folder if cell.kind == "labels" else folder / "run",
            loss=cell.loss,
            labels=self.labels if LABELS in cell.needs else None,
            resume=True,
        )
        return Experiment(
            cell.name,
            cell_recipe(cell, self.scale),
            request,
            self.sets.tests,
            PROTOCOLS,
            out=self.out,
            results=f"results/{{protocol}}/{{dataset}}/{cell.method}",
            maps="cells/{name}/maps/{dataset}",
            provenance="cells/{name}/scored/{dataset}.json",
        )


def open_reproduction(out: Path, scale: Scale, data: Path, precision: str, *, write: bool) -> bool:
    """Tell whether a folder is this reproduction already, or begin it; raise if it is anything else.

    Args:
        out: folder of the reproduction.
        scale: of the recipes.
        data: folder of the data sets.
        precision: of Lightning.
        write: begin it if it does not exist.
    """
    check_choice("precision", precision, get_args(Precision))
    config = {"scale": scale.name, "data": str(data.resolve()), "precision": precision}
    open_it = partial(open_run, out, kind="reproduction", config=config, resume=True, in_place=True)
    with open_it(is_writer=False) as run:  # many processes share the folder
        if run.resumed or not write:
            return run.resumed
    with open_it() as run:
        run.begin()
    return False


def cell_state(cell: GridCell, work: Reproduction) -> str:
    """Return `finished`, `begun` or `to do`; the tables are always to do."""
    if is_finished(cell, work):
        return "finished"
    return "begun" if work.folder(cell).exists() else "to do"


def is_finished(cell: GridCell, work: Reproduction) -> bool:
    """Tell whether nothing is left to do; a data set that was added later must still be scored."""
    if cell.kind == "time":
        return work.time_file.exists()
    if cell.kind == "labels":
        return work.labels.is_dir() and _is_trained(work.folder(cell) / "first_stage", work)
    if cell.kind == "tables":
        return False
    experiment = work.experiment(cell)
    return _is_trained(experiment.training.out, work) and not unscored(experiment)


def run_cells(cells: Sequence[GridCell], work: Reproduction, report: Report) -> list[str]:
    """Run cells one after the other and return the names of those that failed.

    An error in one is reported and does not stop the others; out of memory on a device and a killed
    worker of a loader are RuntimeErrors. A cell that another process was running has not failed if it
    is finished by the end.
    """
    failed = []
    for cell in cells:
        if is_finished(cell, work):
            report(f"{cell.name}: finished already")
            continue
        try:
            run_cell(cell, work, report)
        except (InputError, RuntimeError, OSError, MemoryError) as error:
            first_line = (str(error) or type(error).__name__).splitlines()[0]
            report(f"error: {cell.name}: {first_line}")
            failed.append(cell)
    return [cell.name for cell in failed if not is_finished(cell, work)]


def run_cell(cell: GridCell, work: Reproduction, report: Report) -> None:
    """Run the unfinished part of a cell, after the cells that it needs.

    Args:
        cell: any but the tables.
        work: where and how.
        report: called with sentences on what was done, and with warnings.
    """
    for name in cell.needs:
        if not is_finished(needed := find_cell(name), work):
            run_cell(needed, work, report)
    folder = work.folder(cell)
    with readable_errors(folder / "x", "make room there and run the cell again"):
        folder.mkdir(parents=True, exist_ok=True)
    with lock(folder):
        if cell.kind == "time":
            bench = run_bench(QUICK_BENCH if work.scale.synthetic else FULL_BENCH)
            write_atomically(work.time_file, json_bytes(bench.content()))
            report(f"{cell.name}: measured")
        elif cell.kind == "labels":
            experiment = work.experiment(cell)
            make_labels(experiment.recipe, experiment.training, work.machine)
            report(f"{cell.name}: made")
        else:
            _train_and_score(work.experiment(cell), work, report)


def _train_and_score(experiment: Experiment, work: Reproduction, report: Report) -> None:
    summary = "was trained"
    if not _is_trained(experiment.training.out, work):
        record = train_experiment(experiment, work.machine)
        summary = f"{record['steps']} steps in {record['seconds']:.0f} s"
    waiting = unscored(experiment)
    try:
        jobs = 1 if work.scale.synthetic else None
        score_experiment(experiment, jobs=jobs, warn=lambda text: report(f"warning: {text}"))
    finally:
        left = unscored(experiment)
        scored = [dataset.name for dataset in waiting if dataset not in left]
        report(f"{experiment.name}: {summary}, scored on {', '.join(scored) or 'nothing'}")


def _is_trained(folder: Path, work: Reproduction) -> bool:
    """Tell whether a run is finished, on all images there are; else `train` says what differs."""
    record = read_run(folder)
    n_images = len(work.sets.training.samples)
    return bool(record.get("finished")) and record["config"]["images"] == n_images

"""Runs a cell, or the unfinished part of it: finished steps are recognised and skipped."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from sisod.common.arguments import check_choice
from sisod.common.exceptions import InputError
from sisod.common.output import lock
from sisod.common.run_folder import RUN_FILE, open_run, read_run
from sisod.reproduction.cells import LABELS, GridCell, Scale, cell_recipe, find_cell
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
        scale: of the recipes; `tiny` trains and tests on synthetic scenes.
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
        return self.out / "cells" / LABELS / "labels"

    def experiment(self, cell: GridCell) -> Experiment:
        """Return what a cell trains and scores; LDF's first stage has a folder for run and labels."""
        folder = self.out / "cells" / cell.name
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
        )

    def state(self, cell: GridCell) -> str:
        """Return `finished`, `begun` or `to do`; the tables are always to do."""
        if self.is_finished(cell):
            return "finished"
        return "begun" if (self.out / "cells" / cell.name).exists() else "to do"

    def is_finished(self, cell: GridCell) -> bool:
        """Tell whether nothing is left to do; a data set that was added later must still be scored."""
        if cell.kind == "labels":
            return self.labels.is_dir() and self.is_trained(self.labels.parent / "first_stage")
        if cell.kind == "tables":
            return False
        experiment = self.experiment(cell)
        return self.is_trained(experiment.training.out) and not unscored(experiment)

    def is_trained(self, folder: Path) -> bool:
        """Tell whether a run is finished, on all images there are; else `train` says what differs."""
        record, n_images = read_run(folder), len(self.sets.training.samples)
        return bool(record.get("finished")) and record["config"]["images"] == n_images


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
    config = {"scale": scale, "data": str(data.resolve()), "precision": precision}
    is_new = not (out / RUN_FILE).exists()  # many processes share a folder that exists
    with open_run(
        out,
        kind="reproduction",
        config=config,
        resume=True,
        in_place=True,
        is_writer=write and is_new,
    ) as run:
        if not run.resumed:
            run.begin()
        return run.resumed


def run_cells(cells: Sequence[GridCell], work: Reproduction, report: Report) -> list[str]:
    """Run cells one after the other and return the names of those that failed.

    An error in one is reported and does not stop the others; out of memory on a device and a killed
    worker of a loader are RuntimeErrors. A cell that another process was running has not failed if it
    is finished by the end.
    """
    failed = []
    for cell in cells:
        if work.is_finished(cell):
            report(f"{cell.name}: finished already")
            continue
        try:
            run_cell(cell, work, report)
        except (InputError, RuntimeError, OSError, MemoryError) as error:
            first_line = (str(error) or type(error).__name__).splitlines()[0]
            report(f"error: {cell.name}: {first_line}")
            failed.append(cell)
    return [cell.name for cell in failed if not work.is_finished(cell)]


def run_cell(cell: GridCell, work: Reproduction, report: Report) -> None:
    """Run the unfinished part of a cell, after the cells that it needs.

    Args:
        cell: any but the tables.
        work: where and how.
        report: called with sentences on what was done, and with warnings.
    """
    for needed in map(find_cell, cell.needs):
        if not work.is_finished(needed):
            run_cell(needed, work, report)
    with lock(work.out / "cells" / cell.name):
        experiment = work.experiment(cell)
        if cell.kind == "labels":
            make_labels(experiment.recipe, experiment.training, work.machine)
            report(f"{cell.name}: made")
            return
        if not work.is_trained(experiment.training.out):
            record = train_experiment(experiment, work.machine)
            report(f"{cell.name}: {record['steps']} steps in {record['seconds']:.0f} s")
        names = ", ".join(dataset.name for dataset in unscored(experiment))
        jobs = 1 if work.scale == "tiny" else None
        score_experiment(experiment, jobs=jobs, warn=lambda text: report(f"warning: {text}"))
        report(f"{cell.name}: scored on {names}")

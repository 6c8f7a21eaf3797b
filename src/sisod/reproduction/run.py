"""Runs a cell, or the unfinished part of it: finished steps are recognised and skipped."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from sisod.common.arguments import check_choice
from sisod.common.errors import InputError
from sisod.common.output import lock, readable_errors, write_atomically
from sisod.common.version import __version__
from sisod.reproduction.cells import LABELS, GridCell, Scale, cell_recipe, find_cell
from sisod.reproduction.loss_time import FULL as FULL_BENCH
from sisod.reproduction.loss_time import QUICK as QUICK_BENCH
from sisod.reproduction.loss_time import run_bench
from sisod.reproduction.sets import Sets
from sisod.training.experiment import Experiment, score_experiment, train_experiment, unscored
from sisod.training.recipe_parts import Precision
from sisod.training.run_folder import read_record
from sisod.training.train import Machine, TrainingRequest, make_labels

PROTOCOLS = {"default": None, "official": "paper"}  # protocols to score under -> metrics
_FILE = "reproduction.json"
Report = Callable[[str], object]


@dataclass(frozen=True)
class Work:
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

    def folder(self, cell: GridCell) -> Path:
        """Return the folder that a cell works in."""
        return self.out / "cells" / cell.name

    def result(self, cell: GridCell, dataset: str, protocol: str) -> Path:
        """Return the folder of a result of `sisod evaluate`."""
        return self.out / "results" / protocol / dataset / cell.name

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
            results="results/{protocol}/{dataset}/{name}",
            maps="cells/{name}/maps/{dataset}",
            provenance="cells/{name}/scored/{dataset}.json",
        )


def shared_settings(scale: Scale, data: Path, precision: str) -> dict[str, str]:
    """Return the settings that all cells of a reproduction must share."""
    check_choice("precision", precision, get_args(Precision))  # before anything is written
    return {"scale": scale.name, "data": str(data.resolve()), "precision": precision}


def prepare(out: Path, settings: Mapping[str, str]) -> None:
    """Create the folder of a reproduction, or check that it is one with the same settings."""
    if not check_folder(out, settings):
        with readable_errors(out / _FILE, "make room there or give another folder"):
            out.mkdir(parents=True, exist_ok=True)
            write_atomically(out / _FILE, _json_bytes({"sisod": __version__, **settings}))


def check_folder(out: Path, settings: Mapping[str, str]) -> bool:
    """Say whether a folder is this reproduction already; refuse any other content. Writes nothing."""
    with readable_errors(out / _FILE, "make room there or give another folder"):
        try:
            text = (out / _FILE).read_text(encoding="utf-8")
        except FileNotFoundError:
            if out.exists() and any(not path.name.startswith(".") for path in out.iterdir()):
                raise InputError(
                    f"{str(out)!r} exists and is not a result of sisod reproduce; "
                    "give another folder or remove it yourself"
                ) from None
            return False
    saved = _parse_json(out / _FILE, text)
    for key, value in settings.items():
        if saved.get(key) != value:
            raise InputError(
                f"{str(out)!r} is another reproduction: {key} was {saved.get(key)!r} and is now "
                f"{value!r}; ask for the same, or give another folder"
            )
    return True


def cell_state(cell: GridCell, work: Work) -> str:
    """Return `finished`, `begun` or `to do`; the tables are always to do."""
    if cell.kind != "tables" and is_finished(cell, work):
        return "finished"
    return "begun" if cell.kind != "tables" and work.folder(cell).exists() else "to do"


def is_finished(cell: GridCell, work: Work) -> bool:
    """Say whether nothing is left to do; a data set that was added later must still be scored."""
    if cell.kind == "time":
        return work.time_file.exists()
    if cell.kind == "labels":
        record = read_record(work.folder(cell) / "first_stage")
        return work.labels.is_dir() and record is not None and _has_same_images(record, work)
    experiment = work.experiment(cell)
    return _is_trained(experiment, work) and not unscored(experiment)


def run_cell(cell: GridCell, work: Work, report: Report) -> None:
    """Run the unfinished part of a cell, after the cells that it needs.

    Args:
        cell: any but the tables.
        work: where and how.
        report: called with sentences on what was done, and with warnings.
    """
    for name in cell.needs:
        if not is_finished(needed := find_cell(name), work):
            run_cell(needed, work, report)
    with _locked(work.folder(cell)):
        if cell.kind == "time":
            bench = run_bench(QUICK_BENCH if work.scale.synthetic else FULL_BENCH)
            write_atomically(work.time_file, _json_bytes(bench.content()))
            report(f"{cell.name}: measured")
        elif cell.kind == "labels":
            experiment = work.experiment(cell)
            make_labels(experiment.recipe, experiment.training, work.machine)
            report(f"{cell.name}: made")
        else:
            _train_and_score(work.experiment(cell), work, report)


def run_cells(cells: Sequence[GridCell], work: Work, report: Report) -> list[str]:
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


def _train_and_score(experiment: Experiment, work: Work, report: Report) -> None:
    summary = "was trained"
    if not _is_trained(experiment, work):
        record = train_experiment(experiment, work.machine)
        summary = f"{record['steps']} steps in {record['seconds']:.0f} s"
    waiting = unscored(experiment)
    try:
        score_experiment(
            experiment,
            jobs=1 if work.scale.synthetic else None,
            warn=lambda text: report(f"warning: {text}"),
        )
    finally:
        left = unscored(experiment)
        scored = [dataset.name for dataset in waiting if dataset not in left]
        report(f"{experiment.name}: {summary}, scored on {', '.join(scored) or 'nothing'}")


def _is_trained(experiment: Experiment, work: Work) -> bool:
    """Say whether this very run is finished; for another one `train` says what differs."""
    record = read_record(experiment.training.out)
    if record is None or not record.get("finished"):
        return False
    settings = json.loads(json.dumps(experiment.recipe.tables()))
    same_loss = record["asked"]["loss"] == experiment.training.loss
    same_settings = record["asked"]["settings"] == settings
    return bool(same_settings and same_loss and _has_same_images(record, work))


def _has_same_images(record: Mapping[str, Any], work: Work) -> bool:
    return bool(record["asked"]["images"] == len(work.sets.training.samples))


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other processes from running the same cell."""
    with readable_errors(folder / "x", "make room there and run the cell again"):
        folder.mkdir(parents=True, exist_ok=True)
    with lock(folder):
        yield


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file that we wrote; the error for a damaged one names it."""
    with readable_errors(path, "make it readable"):
        return _parse_json(path, path.read_text(encoding="utf-8"))


def _parse_json(path: Path, text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise InputError(f"{str(path)!r} is damaged; remove it, and the same command makes it again")
    return content


def _json_bytes(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()

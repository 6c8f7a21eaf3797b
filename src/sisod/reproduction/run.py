"""Runs a cell, or what is left of it: everything that is finished is found and left alone."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sisod.common.errors import InputError
from sisod.common.folders import OtherRunError
from sisod.common.output import lock, readable_errors, write_atomically
from sisod.common.version import __version__
from sisod.data.datasets import Dataset
from sisod.evaluation.driver import evaluate_to
from sisod.evaluation.request import Options
from sisod.evaluation.request import Request as Scoring
from sisod.networks.network import WEIGHTS_FILE, Network
from sisod.networks.predict import load_network, predict_folder
from sisod.reproduction.cells import LABELS, Cell, Scale, find_cell, recipe_of
from sisod.reproduction.loss_time import FULL as FULL_BENCH
from sisod.reproduction.loss_time import QUICK as QUICK_BENCH
from sisod.reproduction.loss_time import run_bench
from sisod.reproduction.sets import Sets
from sisod.scoring.engine import find_scorer
from sisod.scoring.protocols import find_protocol
from sisod.training.run_folder import read_record
from sisod.training.train import Machine, TrainingRequest, make_labels, train

PROTOCOLS = {"default": None, "official": "paper"}  # which are scored, and the metrics of each
_FILE = "reproduction.json"
Tell = Callable[[str], object]


@dataclass(frozen=True)
class Work:
    """What all cells share.

    Attributes:
        out: folder of everything.
        scale: of the recipes.
        sets: to train and test on.
        precision: Lightning's.
        workers: processes that read images; None: one a core.
    """

    out: Path
    scale: Scale
    sets: Sets
    precision: str = "32-true"
    workers: int | None = None

    @property
    def machine(self) -> Machine:
        """One device: the paper's batches fit on one, and several take a cell each."""
        return Machine(devices="1", precision=self.precision, workers=self.workers)

    def folder(self, cell: Cell) -> Path:
        """Return where a cell works."""
        return self.out / "cells" / cell.name

    def result(self, cell: Cell, dataset: str, protocol: str) -> Path:
        """Return the result of `sisod evaluate`."""
        return self.out / "results" / protocol / dataset / cell.name

    def mark(self, cell: Cell, dataset: Dataset) -> Path:
        """Return the file that says what was scored: which weights, how many images."""
        return self.folder(cell) / "scored" / f"{dataset.name}.json"

    def time_file(self) -> Path:
        """Return what was measured of the time."""
        return self.folder(find_cell("time")) / "time.json"


def asked_for(scale: Scale, data: Path, precision: str) -> dict[str, str]:
    """Return what all cells of a reproduction have in common."""
    return {"scale": scale.name, "data": str(data.resolve()), "precision": precision}


def prepare(out: Path, asked: Mapping[str, str]) -> None:
    """Make the folder of a reproduction, or check that it is one of the same."""
    if not check_folder(out, asked):
        with readable_errors(out / _FILE, "make room there or give another folder"):
            out.mkdir(parents=True, exist_ok=True)
            write_atomically(out / _FILE, _json({"sisod": __version__, **asked}))


def check_folder(out: Path, asked: Mapping[str, str]) -> bool:
    """Say whether the folder is a reproduction already; refuse one of something else. Writes nothing."""
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
    found = _content(out / _FILE, text)
    for key, value in asked.items():
        if found.get(key) != value:
            raise InputError(
                f"{str(out)!r} is another reproduction: {key} was {found.get(key)!r} and is now "
                f"{value!r}; ask for the same, or give another folder"
            )
    return True


def state_of(cell: Cell, work: Work) -> str:
    """Return `finished`, `begun` or `to do`; the tables are never finished."""
    if cell.kind != "tables" and is_finished(cell, work):
        return "finished"
    return "begun" if cell.kind != "tables" and work.folder(cell).exists() else "to do"


def is_finished(cell: Cell, work: Work) -> bool:
    """Say whether nothing is left to do; a data set that was added later is something."""
    if cell.kind == "time":
        return work.time_file().exists()
    if cell.kind == "labels":
        record = read_record(work.folder(cell) / "first_stage")
        return _labels(work).is_dir() and record is not None and _same_images(record, work)
    return _is_trained(cell, work) and not _unscored(cell, work)


def run_cell(cell: Cell, work: Work, tell: Tell) -> None:
    """Do what is left of a cell, and before it of those it needs.

    Args:
        cell: which; not the tables.
        work: where and how.
        tell: called with a sentence of what was done, and with warnings.
    """
    for name in cell.needs:
        if not is_finished(needed := find_cell(name), work):
            run_cell(needed, work, tell)
    with _held(work.folder(cell)):
        if cell.kind == "time":
            found = run_bench(QUICK_BENCH if work.scale.made else FULL_BENCH)
            write_atomically(work.time_file(), _json(found.content()))
            tell(f"{cell.name}: measured")
        elif cell.kind == "labels":
            make_labels(recipe_of(cell, work.scale), _request(cell, work), work.machine)
            tell(f"{cell.name}: made")
        else:
            _train_and_score(cell, work, tell)


def run_cells(cells: Sequence[Cell], work: Work, tell: Tell) -> list[str]:
    """Run cells one after the other and return the names of those that failed.

    What goes wrong in one is told and does not stop the others: a device without memory and a loader's
    worker that is killed are RuntimeErrors. A cell that another process was at work on has not failed
    if it is finished by the end.
    """
    failed = []
    for cell in cells:
        if is_finished(cell, work):
            tell(f"{cell.name}: finished already")
            continue
        try:
            run_cell(cell, work, tell)
        except (InputError, RuntimeError, OSError, MemoryError) as error:
            first_line = (str(error) or type(error).__name__).splitlines()[0]
            tell(f"error: {cell.name}: {first_line}")
            failed.append(cell)
    return [cell.name for cell in failed if not is_finished(cell, work)]


def _train_and_score(cell: Cell, work: Work, tell: Tell) -> None:
    said = "was trained"
    if not _is_trained(cell, work):
        record = train(recipe_of(cell, work.scale), _request(cell, work), work.machine)
        said = f"{record['steps']} steps in {record['seconds']:.0f} s"
    network = load_network(work.folder(cell) / "run")
    scored, problems = [], []
    for dataset in _unscored(cell, work):
        try:
            _score(cell, network, dataset, work, tell)
            scored.append(dataset.name)
        except InputError as error:  # a file that cannot be read; the other sets can do without it
            problems.append(f"{dataset.name} is not scored: {error}")
    tell(f"{cell.name}: {said}, scored on {', '.join(scored) or 'nothing'}")
    if problems:
        raise InputError("; ".join(problems))


def _score(cell: Cell, network: Network, dataset: Dataset, work: Work, tell: Tell) -> None:
    maps = work.folder(cell) / "maps" / dataset.name
    size = recipe_of(cell, work.scale).data.size
    try:
        predict_folder(network, dataset.image_dir, maps, size=size, resume=True)
    except OtherRunError:  # of a run that was removed, or of images that have changed
        predict_folder(network, dataset.image_dir, maps, size=size, overwrite=True)
    for name, metrics in PROTOCOLS.items():
        protocol = find_protocol(name)
        keys = find_scorer(protocol, metrics).keys
        asked = Scoring(str(maps), str(dataset.mask_dir), protocol=protocol, keys=keys)
        options = Options(
            jobs=1 if work.scale.made else None,
            overwrite=True,  # what stands there is of other weights or images
            title=f"{cell.name} on {dataset.name}, {name}",
        )
        for note in evaluate_to(work.result(cell, dataset.name, name), asked, options):
            tell(f"warning: {cell.name} on {dataset.name}: {note}")
    mark = work.mark(cell, dataset)
    mark.parent.mkdir(exist_ok=True)
    write_atomically(mark, _json(_scored_now(cell, dataset, work)))


def _request(cell: Cell, work: Work) -> TrainingRequest:
    """Return what `sisod train` would be asked for; the labels' own folder holds two."""
    folder = work.folder(cell)
    return TrainingRequest(
        data=work.sets.training.image_dir,
        masks=work.sets.training.mask_dir,
        out=folder if cell.kind == "labels" else folder / "run",
        loss=cell.loss,
        labels=_labels(work) if LABELS in cell.needs else None,
        resume=True,
    )


def _labels(work: Work) -> Path:
    return work.folder(find_cell(LABELS)) / "labels"


def _is_trained(cell: Cell, work: Work) -> bool:
    """Say whether this very run is finished; of another one `train` will say what differs."""
    record = read_record(work.folder(cell) / "run")
    if record is None or not record.get("finished"):
        return False
    settings = json.loads(json.dumps(recipe_of(cell, work.scale).tables()))
    same = record["asked"]["settings"] == settings and record["asked"]["loss"] == cell.loss
    return bool(same and _same_images(record, work))


def _same_images(record: Mapping[str, Any], work: Work) -> bool:
    return bool(record["asked"]["images"] == len(work.sets.training.samples))


def _unscored(cell: Cell, work: Work) -> list[Dataset]:
    return [dataset for dataset in work.sets.tests if not _is_scored(cell, dataset, work)]


def _is_scored(cell: Cell, dataset: Dataset, work: Work) -> bool:
    """Say whether the results are there, of these very weights and of as many images."""
    results = [work.result(cell, dataset.name, name) / "summary.json" for name in PROTOCOLS]
    try:
        mark = json.loads(work.mark(cell, dataset).read_text(encoding="utf-8"))
        same = mark == _scored_now(cell, dataset, work)
    except (OSError, ValueError):
        return False
    return bool(same) and all(path.exists() for path in results)


def _scored_now(cell: Cell, dataset: Dataset, work: Work) -> dict[str, Any]:
    weights = _file_digest(work.folder(cell) / "run" / WEIGHTS_FILE)
    return {"weights": weights, "images": len(dataset.samples)}


def _file_digest(path: Path) -> str:
    """Return what tells safetensors files apart, whatever the order of their metadata (random)."""
    with path.open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        begun = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
        return hashlib.file_digest(file, lambda: begun).hexdigest()


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Keep a second process off the same cell."""
    with readable_errors(folder / "x", "make room there and run the cell again"):
        folder.mkdir(parents=True, exist_ok=True)
    with lock(folder):
        yield


def read_json(path: Path) -> dict[str, Any]:
    """Read a file of ours; a damaged one is refused by name."""
    with readable_errors(path, "make it readable"):
        return _content(path, path.read_text(encoding="utf-8"))


def _content(path: Path, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InputError(f"{str(path)!r} is damaged; remove it, and the same command makes it again")
    return found


def _json(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()

"""The folder of a run: its settings, its measurements, its checkpoints and its network.

run.json             versions, recipe, loss, data, seed; when finished, the last scores
recipe.toml          the recipe with every value written out
metrics.csv          one line per step and one per validation
images.json          names of the images that are trained on, and their folders
checkpoints/         last.ckpt, every epoch; best.ckpt, the lowest SI-MAE
model.safetensors    the network, with config.json: for predict, export and from_pretrained
"""

import csv
import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from lightning.pytorch.loggers.logger import Logger
from lightning.pytorch.utilities import rank_zero_only

from sisod.common import folders
from sisod.common.errors import InputError
from sisod.common.output import remove_temporary, write_atomically
from sisod.data.datasets import Dataset, Sample
from sisod.scoring.metrics import PAPER_KEYS
from sisod.training.recipe import with_defaults

KIND = "training"
METRICS_FILE = "metrics.csv"
IMAGES_FILE = "images.json"
COLUMNS = ("epoch", "step", "loss", "lr", *PAPER_KEYS)
_PACKAGES = ("sisod", "torch", "lightning", "torchmetrics", "numpy", "opencv-python-headless")


@dataclass(frozen=True)
class RunFolder:
    """The folder that a run writes to, and the content of its run.json; None for a new run."""

    path: Path
    record: dict[str, Any] | None


def find_run_folder(out: Path, identity: dict[str, Any], *, resume: bool, overwrite: bool) -> RunFolder:
    """Return the folder of a run, beside `out` if that is to be replaced. Changes nothing.

    `identity` is what run.json holds under "asked"; a run is resumed only if it is the same.
    """
    folder, goes_on = folders.choose_folder(
        out,
        kind=KIND,
        resume=resume,
        overwrite=overwrite,
        differs=lambda path: _difference(path, identity),
    )
    return RunFolder(folder, read_record(folder) if goes_on else None)


def check_run_folder(
    run_folder: RunFolder, out: Path, *, overwrite: bool, inputs: Sequence[str | Path | None]
) -> None:
    """Refuse a folder that may not be replaced, before anything is written."""
    if run_folder.record is not None:
        return
    if not overwrite and folders.kind_of(out) == KIND:
        raise InputError(
            f"{str(out)!r} exists already; use --resume to go on with it, --overwrite to replace "
            "it, or give another folder"
        )
    folders.check_free(out, kind=KIND, overwrite=overwrite, inputs=inputs)


def prepare(run_folder: RunFolder, out: Path, identity: dict[str, Any]) -> dict[str, Any]:
    """Create the folder of a run, unless it exists; return its record."""
    if run_folder.record is not None:
        remove_temporary(run_folder.path)  # of a run that was killed
        return run_folder.record
    if run_folder.path != out:
        folders.discard(run_folder.path)
    folders.begin(run_folder.path, KIND)
    record = {
        "sisod": version("sisod"),
        "kind": KIND,
        "finished": False,
        "asked": identity,
        "versions": versions(),
    }
    write_record(run_folder.path, record)
    (run_folder.path / "checkpoints").mkdir(exist_ok=True)
    return record


def read_record(folder: Path) -> dict[str, Any] | None:
    """Return the run.json of a training run; None if the folder is none."""
    record = folders.read_run(folder)
    if "asked" not in record:
        return None
    settings = with_defaults(record["asked"]["settings"])  # of an older version, perhaps
    return record | {"asked": record["asked"] | {"settings": settings}}


def write_record(folder: Path, record: dict[str, Any]) -> None:
    """Write run.json."""
    text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    write_atomically(folder / folders.RUN_FILE, text.encode())


def write_images(folder: Path, dataset: Dataset, trained: Sequence[Sample]) -> None:
    """Write images.json, from which `sisod calibrate` knows what the network has seen."""
    content = {
        "images": str(dataset.image_dir.resolve()),
        "masks": str(dataset.mask_dir.resolve()),
        "trained": [sample.name for sample in trained],
    }
    text = json.dumps(content, indent=0, ensure_ascii=False) + "\n"
    write_atomically(folder / IMAGES_FILE, text.encode())


def versions() -> dict[str, str]:
    """Return the versions that the results depend on."""
    return {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}}


def _difference(folder: Path, identity: dict[str, Any]) -> str | None:
    """Say why the run in a folder is not the one to resume; None if it is."""
    record = read_record(folder)
    if record is None:
        return (
            f"{str(folder)!r} exists and is not a result of 'sisod train'; "
            "give another folder or remove it yourself"
        )
    before, now = _flat(record["asked"]), _flat(json.loads(json.dumps(identity)))
    different = [key for key in sorted(before | now) if before.get(key) != now.get(key)]
    if not different:
        return None
    key = different[0]
    return (
        f"{str(folder)!r} is another run: {key} was {before.get(key)!r} and is now "
        f"{now.get(key)!r}; use the same settings, or give another folder"
    )


def _flat(tables: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tables.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return flat


class MetricsFile(Logger):
    """Writes metrics.csv line by line and, unlike Lightning's logger, continues the file of a run.

    Lines of steps after the checkpoint are dropped: these steps are repeated.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.path = folder / METRICS_FILE

    @property
    def name(self) -> str:
        """Name of the logger."""
        return "csv"

    @property
    def version(self) -> str:
        """Empty, so that the progress bar does not show it."""
        return ""

    @property
    def experiment(self) -> None:
        """None: there is only the file."""

    @rank_zero_only
    def begin(self, *, step: int) -> None:
        """Start the file, or truncate it after a step."""
        kept = [row for row in read_metrics(self.path) if int(row["step"]) <= step] if step else []
        lines = [",".join(COLUMNS), *(",".join(row[key] for key in COLUMNS) for row in kept)]
        write_atomically(self.path, ("\n".join(lines) + "\n").encode())

    def log_hyperparams(self, *_: Any, **__: Any) -> None:
        """Do nothing: recipe.toml holds them."""

    @rank_zero_only
    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        """Write one line; steps and epochs are counted from 1."""
        row = {**metrics, "step": (step or 0) + 1, "epoch": int(metrics.get("epoch", 0)) + 1}
        cells = ["" if row.get(key) is None else repr(row[key]) for key in COLUMNS]
        with self.path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(",".join(cells) + "\n")


def read_metrics(path: Path) -> list[dict[str, str]]:
    """Return the lines of metrics.csv without an incomplete last one."""
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    complete = text[: text.rfind("\n") + 1]
    return [dict(row) for row in csv.DictReader(complete.splitlines())]

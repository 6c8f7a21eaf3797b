"""The files of a training run; `sisod.common.run_folder` begins, resumes and finishes the folder.

run.json             versions, recipe, loss, data, seed; when finished, the last scores
recipe.toml          the recipe with every value written out
metrics.csv          one line per step and one per validation
images.json          names of the images that are trained on, and their folders
checkpoints/         last.ckpt, every epoch; best.ckpt, the lowest SI-MAE
model.safetensors    the network, with config.json: for predict, export and from_pretrained
"""

import csv
import io
import logging
import platform
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.loggers.logger import Logger
from lightning.pytorch.plugins import TorchCheckpointIO
from lightning.pytorch.utilities import rank_zero_only

from sisod.common.exceptions import InputError
from sisod.common.files import read_json
from sisod.common.output import json_bytes, write_atomically
from sisod.data.datasets import Dataset, Sample
from sisod.networks.checkpoints import WEIGHTS_FILE, load_strictly, load_tensors
from sisod.networks.network import Network
from sisod.scoring.metrics import PAPER_KEYS
from sisod.training.module import SaliencyModule

KIND = "training"
IMAGES_FILE = "images.json"
COLUMNS = ("epoch", "step", "loss", "lr", *PAPER_KEYS)
_PACKAGES = ("sisod", "torch", "lightning", "torchmetrics", "numpy", "opencv-python-headless")


def versions() -> dict[str, str]:
    """Return the versions that the results depend on."""
    return {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}}


@dataclass(frozen=True)
class TrainedImages:
    """images.json: the folders of a data set, and the names of the images that are trained on."""

    images: str
    masks: str
    trained: list[str]


def write_images(folder: Path, dataset: Dataset, trained: Sequence[Sample]) -> None:
    """Write images.json, from which `sisod calibrate` knows what the network has seen."""
    images, masks = (str(root.resolve()) for root in (dataset.image_dir, dataset.mask_dir))
    content = TrainedImages(images, masks, [sample.name for sample in trained])
    write_atomically(folder / IMAGES_FILE, json_bytes(asdict(content)))


def read_images(folder: Path) -> TrainedImages:
    """Return the content of images.json."""
    return read_json(folder / IMAGES_FILE, TrainedImages)


class MetricsFile(Logger):
    """Writes metrics.csv line by line and, unlike Lightning's logger, continues the file of a run.

    Lines of steps after the checkpoint are dropped: these steps are repeated.

    Example:
        >>> import tempfile
        >>> metrics = MetricsFile(Path(tempfile.mkdtemp()))
        >>> metrics.begin(step=0)
        >>> metrics.log_metrics({"loss": 0.5, "epoch": 0}, step=2)
        >>> row = read_metrics(metrics.path)[0]
        >>> row["epoch"], row["step"], row["loss"]
        ('1', '3', '0.5')
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.path = folder / "metrics.csv"

    @property
    def name(self) -> str:
        """Name of the logger."""
        return "csv"

    @property
    def version(self) -> str:
        """Empty, so that the progress bar does not show it."""
        return ""

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


# ------------------------------------------------------------------------------------------- checkpoints


class AtomicCheckpoints(TorchCheckpointIO):
    """Writes checkpoints atomically; Lightning uses a temporary folder, perhaps on another disk."""

    def save_checkpoint(
        self,
        checkpoint: dict[str, Any],
        path: str | Path,
        storage_options: Any = None,  # noqa: ARG002
    ) -> None:
        """Write a temporary file beside `path` and rename it."""
        buffer = io.BytesIO()
        torch.save(checkpoint, buffer)
        Path(path).parent.mkdir(exist_ok=True)
        write_atomically(Path(path), buffer.getvalue())


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Return a checkpoint that Lightning saved; say in one sentence why it cannot be read."""
    try:
        checkpoint: dict[str, Any] = load_tensors(path)
    except InputError as error:
        raise InputError(
            f"the checkpoint {str(path)!r} cannot be read ({error}); put back a copy of it, or begin "
            "again with --overwrite"
        ) from error
    return checkpoint


def resume_step(path: Path, module: SaliencyModule) -> int:
    """Return the step of a checkpoint, whose weights must fit the module."""
    checkpoint = read_checkpoint(path)
    load_strictly(module, checkpoint["state_dict"], source=str(path))
    step: int = checkpoint["global_step"]
    return step


@contextmanager
def fit_errors() -> Iterator[None]:
    """Raise an interruption, and the error of a worker about a file, as this process would."""
    try:
        yield
    except SystemExit:  # Lightning raises it when it is interrupted
        raise KeyboardInterrupt from None
    except InputError as error:
        if not str(error).startswith("Caught InputError"):
            raise
        # of a worker: a traceback before its last line
        raise InputError(str(error).strip().splitlines()[-1].partition(": ")[2]) from None


@contextmanager
def quiet_lightning() -> Iterator[None]:
    """Silence Lightning's messages about the machine and its advice, and those of the compiler."""
    loggers = [logging.getLogger(f"lightning.{part}") for part in ("pytorch", "fabric")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="lightning")
            warnings.filterwarnings("ignore", module=r"torch\._(dynamo|inductor|functorch)")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def write_network(module: SaliencyModule, checkpoint: Path, folder: Path) -> None:
    """Write the network of a checkpoint, or the average of its weights, if there is one."""
    state = read_checkpoint(checkpoint)["state_dict"]
    prefix = "network." if module.averaged is None else "averaged."
    weights = {key.removeprefix(prefix): state[key] for key in state if key.startswith(prefix)}
    network = module.result.to("cpu")
    network.load_state_dict(weights)
    save_network(network, folder)


def save_network(network: Network, folder: Path) -> None:
    """Write a network as `save_pretrained` does, each file atomically, the weights last."""
    temporary = folder / ".sisod-model"
    network.save_pretrained(temporary)
    for file in sorted(temporary.iterdir(), key=lambda file: file.name == WEIGHTS_FILE):
        file.replace(folder / file.name)
    temporary.rmdir()

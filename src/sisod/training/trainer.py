"""Lightning's trainer of a run, and the files of the run folder.

run.json             versions, recipe, loss, data, seed; when finished, the last scores
recipe.toml          the recipe with every value written out
metrics.csv          one line per step and one per validation
images.json          names of the images that are trained on, and their folders
checkpoints/         last.ckpt, every epoch; best.ckpt, the lowest SI-MAE
model.safetensors    the network, with config.json: for predict, export and from_pretrained

`sisod.common.run_folder` begins, resumes and finishes the folder.
"""

import csv
import io
import logging
import os
import platform
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

import lightning as L  # noqa: N812  (the name everybody knows it by)
import torch
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch.callbacks import ModelCheckpoint, RichProgressBar
from lightning.pytorch.loggers import Logger, TensorBoardLogger
from lightning.pytorch.plugins import TorchCheckpointIO
from lightning.pytorch.utilities import rank_zero_only

from sisod.common.arguments import check_choice, check_int
from sisod.common.exceptions import InputError, UsageError
from sisod.common.files import read_json
from sisod.common.output import json_bytes, write_atomically
from sisod.common.streams import is_terminal
from sisod.data.datasets import Dataset, Sample
from sisod.networks.checkpoints import WEIGHTS_FILE, load_strictly, load_tensors
from sisod.networks.network import Network
from sisod.scoring.metrics import PAPER_KEYS
from sisod.training.module import SaliencyModule
from sisod.training.recipe_parts import Precision, TrainPart

KIND = "training"
IMAGES_FILE = "images.json"
COLUMNS = ("epoch", "step", "loss", "lr", *PAPER_KEYS)
_PACKAGES = ("sisod", "torch", "lightning", "torchmetrics", "numpy", "opencv-python-headless")


@dataclass(frozen=True)
class Machine:
    """What a training runs on, under Lightning's names.

    Attributes:
        devices: how many of each node, or `"auto"`; on a CPU the number of processes.
        nodes: number of machines.
        strategy: how they share the work, such as `"ddp"`.
        precision: `"32-true"`, `"16-mixed"` or `"bf16-mixed"`; None for that of the recipe.
        workers: processes that read images; None for one per core, up to eight.
        logger: `"tensorboard"` for its files in addition to metrics.csv.

    Example:
        >>> Machine(devices="1", workers=0).is_single
        True
    """

    devices: str = "auto"
    nodes: int = 1
    strategy: str = "auto"
    precision: str | None = None
    workers: int | None = None
    logger: str = "csv"

    def __post_init__(self) -> None:
        if self.precision is not None:
            check_choice("precision", self.precision, get_args(Precision))
        if self.workers is not None:
            check_int("workers", self.workers, least=0)

    @property
    def is_single(self) -> bool:
        """Whether there is one process, however many tasks a scheduler has allocated."""
        return self.devices == "1" and self.nodes == 1

    @property
    def is_first_process(self) -> bool:
        """Whether this is the process of a run that writes files."""
        names = () if self.is_single else ("RANK", "LOCAL_RANK", "NODE_RANK", "SLURM_PROCID")
        return all(os.environ.get(name, "0") == "0" for name in names)


def make_trainer(
    part: TrainPart, out: Path, machine: Machine, n_epochs: int, *, validates: bool
) -> L.Trainer:
    """Return Lightning's trainer: checkpoints of the last and, with validation, of the best epoch.

    Args:
        part: accumulation, clipping, precision, epochs between validations.
        out: folder of the run.
        machine: devices, precision, loggers.
        n_epochs: length of the run.
        validates: whether there are images to validate on.
    """
    checkpoints: list[dict[str, Any]] = [{"filename": "last", "save_on_train_epoch_end": True}]
    if validates:
        checkpoints.append({"filename": "best", "monitor": "si_mae", "mode": "min"})
    bar = [RichProgressBar(console_kwargs={"stderr": True})] if is_terminal(sys.stderr) else []
    loggers: list[Logger] = [MetricsFile(out)]
    try:
        if machine.logger == "tensorboard":
            loggers.append(TensorBoardLogger(out, name="", version="tensorboard"))
        with quiet_lightning():
            return L.Trainer(
                devices=int(machine.devices) if machine.devices.isdigit() else machine.devices,
                num_nodes=machine.nodes,
                strategy=machine.strategy,
                precision=machine.precision or part.precision,  # type: ignore[arg-type]
                max_epochs=n_epochs,
                accumulate_grad_batches=part.accumulate,
                gradient_clip_val=part.clip or None,
                check_val_every_n_epoch=part.validate_every,
                num_sanity_val_steps=0,
                log_every_n_steps=1,
                use_distributed_sampler=False,
                plugins=[AtomicCheckpoints(), *([LightningEnvironment()] if machine.is_single else [])],
                logger=loggers,
                callbacks=[
                    *(
                        ModelCheckpoint(out / "checkpoints", enable_version_counter=False, **options)
                        for options in checkpoints
                    ),
                    *bar,
                ],
                enable_progress_bar=bool(bar),
                enable_model_summary=False,
                default_root_dir=out,
            )
    except (MisconfigurationException, ValueError, TypeError, ImportError) as error:
        raise UsageError(f"Lightning refuses these options: {str(error).splitlines()[0]}") from error


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

    name = "csv"
    version = ""  # so that the progress bar does not show it

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.path = folder / "metrics.csv"

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
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    complete = text[: text.rfind("\n") + 1]
    return [dict(row) for row in csv.DictReader(complete.splitlines())]


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


def resume_step(path: Path, module: SaliencyModule) -> int:
    """Return the step of a checkpoint, whose weights must fit the module."""
    try:
        checkpoint = load_tensors(path)
    except InputError as error:
        raise InputError(f"{error}; put back a copy of it, or begin again with --overwrite") from error
    load_strictly(module, checkpoint["state_dict"], source=str(path))
    step: int = checkpoint["global_step"]
    return step


def write_network(module: SaliencyModule, checkpoint: Path, folder: Path) -> None:
    """Write the network of a checkpoint, or the average of its weights, if there is one."""
    state = load_tensors(checkpoint)["state_dict"]
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

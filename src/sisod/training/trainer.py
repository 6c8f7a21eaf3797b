"""Lightning's trainer of a run, and the files of the run folder.

run.json             versions, recipe, loss, data, seed; when finished, the last scores
recipe.toml          the recipe with every value written out
metrics.csv          one line per step and one per validation
images.json          names of the images that are trained on, and their folders
checkpoints/         last.ckpt, every epoch; best.ckpt, the best by `[validate] monitor`
model.safetensors    the network, with config.json: for predict, export and from_pretrained

`sisod.common.run_folder` begins, resumes and finishes the folder.
"""

import csv
import io
import logging
import os
import platform
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import lightning as L  # noqa: N812  (the name everybody knows it by)
import torch
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint, RichProgressBar
from lightning.pytorch.loggers import Logger
from lightning.pytorch.plugins import TorchCheckpointIO
from lightning.pytorch.utilities import rank_zero_only

from sisod.common.arguments import check_known
from sisod.common.exceptions import InputError, UsageError
from sisod.common.files import read_json
from sisod.common.output import json_bytes, write_atomically
from sisod.common.streams import is_terminal
from sisod.data.datasets import Dataset, Sample
from sisod.networks.checkpoints import load_strictly, load_tensors
from sisod.networks.network import Network
from sisod.scoring.metrics import METRICS, PAPER_KEYS
from sisod.training.module import SaliencyModule
from sisod.training.recipe import Recipe

KIND = "training"
_LOGGERS = {"tensorboard": "TensorBoardLogger", "wandb": "WandbLogger", "mlflow": "MLFlowLogger"}
_PLACES: dict[str, Any] = {"TensorBoardLogger": {"name": "", "version": "tensorboard"}}
IMAGES_FILE = "images.json"
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
        logger: a logger in addition to metrics.csv: `"tensorboard"`, `"wandb"`, `"mlflow"` or the name
            of a class of `lightning.pytorch.loggers`.
        loggers: loggers of yours.
        callbacks: callbacks of yours.

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
    loggers: tuple[Logger, ...] = ()
    callbacks: tuple[L.Callback, ...] = ()

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
    recipe: Recipe, out: Path, machine: Machine, n_epochs: int, *, validates: bool
) -> L.Trainer:
    """Return Lightning's trainer: checkpoints of the last and, with validation, of the best epoch.

    Args:
        recipe: accumulation, clipping, precision; validation and early stopping.
        out: folder of the run.
        machine: devices, precision, loggers.
        n_epochs: length of the run.
        validates: whether there are images to validate on.
    """
    part, validate = recipe.train, recipe.validate
    folder: Any = {"dirpath": out / "checkpoints", "enable_version_counter": False}
    callbacks: list[L.Callback] = [
        ModelCheckpoint(filename="last", save_on_train_epoch_end=True, **folder)
    ]
    if validates:
        is_up = METRICS[validate.monitor].direction == "up"
        monitor: Any = {"monitor": validate.monitor, "mode": "max" if is_up else "min"}
        callbacks.append(ModelCheckpoint(filename="best", **folder, **monitor))
        if validate.patience:
            callbacks.append(EarlyStopping(patience=validate.patience, **monitor))
    has_bar = is_terminal(sys.stderr)
    callbacks.append(RichProgressBar(console_kwargs={"stderr": True}) if has_bar else ProgressLines())
    named = dict(recipe.lightning.loggers)
    if machine.logger != "csv":
        named.setdefault(_LOGGERS.get(machine.logger, machine.logger), {})
    try:
        loggers: list[Logger] = [MetricsFile(out, validate.metrics), *machine.loggers]
        for name, options in named.items():
            place = {"save_dir": out} | _PLACES.get(name, {})
            loggers.append(_lightning_class(L.pytorch.loggers, name)(**place | options))
        for name, options in recipe.lightning.callbacks.items():
            callbacks.append(_lightning_class(L.pytorch.callbacks, name)(**options))
        callbacks += machine.callbacks
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
                callbacks=callbacks,
                enable_progress_bar=has_bar,
                enable_model_summary=False,
                default_root_dir=out,
            )
    except (MisconfigurationException, ValueError, TypeError, ImportError) as error:
        raise UsageError(f"Lightning refuses these options: {str(error).splitlines()[0]}") from error


def _lightning_class(module: ModuleType, name: str) -> Any:
    """Return a class of Lightning; other code is not reached by the names in a recipe."""
    check_known(f"class of {module.__name__}", name, module.__all__)
    return getattr(module, name)


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


class ProgressLines(L.Callback):
    """Prints a line every 30 seconds, for runs whose stderr is no terminal."""

    seconds = 30.0

    def __init__(self) -> None:
        self.next = time.monotonic() + self.seconds

    @rank_zero_only
    def on_train_batch_end(self, trainer: L.Trainer, *_: Any) -> None:
        """Print how far the run is; Lightning calls this."""
        if time.monotonic() < self.next:
            return
        self.next = time.monotonic() + self.seconds
        print(  # noqa: T201
            f"epoch {trainer.current_epoch + 1} of {trainer.max_epochs}, step {trainer.global_step} of "
            f"{trainer.estimated_stepping_batches}, loss {float(trainer.callback_metrics['loss']):.4f}",
            file=sys.stderr,
            flush=True,
        )


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

    def __init__(self, folder: Path, metrics: Sequence[str] = PAPER_KEYS) -> None:
        super().__init__()
        self.path = folder / "metrics.csv"
        self.columns = ("epoch", "step", "loss", "lr", *metrics)

    @rank_zero_only
    def begin(self, *, step: int) -> None:
        """Start the file, or truncate it after a step."""
        kept = [row for row in read_metrics(self.path) if int(row["step"]) <= step] if step else []
        lines = [",".join(self.columns)]
        lines += [",".join(row[key] for key in self.columns) for row in kept]
        write_atomically(self.path, ("\n".join(lines) + "\n").encode())

    def log_hyperparams(self, *_: Any, **__: Any) -> None:
        """Do nothing: recipe.toml holds them."""

    @rank_zero_only
    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        """Write one line; steps and epochs are counted from 1."""
        row = {**metrics, "step": (step or 0) + 1, "epoch": int(metrics.get("epoch", 0)) + 1}
        cells = ["" if row.get(key) is None else repr(row[key]) for key in self.columns]
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
    """Write a network into a run folder; the file of weights, which says that it is there, last."""
    network.save_pretrained(folder)


def versions() -> dict[str, str]:
    """Return the versions that the results depend on."""
    return {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}}


@dataclass(frozen=True)
class TrainedImages:
    """images.json: the folders of data sets, and the names of the images that are trained on.

    Attributes:
        images, masks: folders of the first data set.
        trained: names.
        others: folders of images and masks of the other data sets.
    """

    images: str
    masks: str
    trained: list[str]
    others: list[tuple[str, str]] = field(default_factory=list)


def write_images(folder: Path, datasets: Sequence[Dataset], trained: Sequence[Sample]) -> None:
    """Write images.json, from which `sisod calibrate` knows what the network has seen."""
    first, *others = ((str(one.image_dir.resolve()), str(one.mask_dir.resolve())) for one in datasets)
    content = TrainedImages(*first, [sample.name for sample in trained], others)
    write_atomically(folder / IMAGES_FILE, json_bytes(asdict(content)))


def read_images(folder: Path) -> TrainedImages:
    """Return the content of images.json."""
    return read_json(folder / IMAGES_FILE, TrainedImages)

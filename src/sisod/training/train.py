"""Recipe + data -> run folder. Lightning runs the loop; this file sets it up."""

import io
import logging
import math
import os
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import lightning as L  # noqa: N812  (the name everybody knows it by)
import torch
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch.callbacks import ModelCheckpoint, RichProgressBar
from lightning.pytorch.plugins import TorchCheckpointIO
from torch import nn

from sisod import networks
from sisod.common import folders
from sisod.common.arguments import check_choice, check_flag, check_text, check_whole
from sisod.common.errors import InputError, UsageError
from sisod.common.output import followed, lock, readable_errors, write_atomically
from sisod.common.processes import safe_children
from sisod.common.streams import is_terminal
from sisod.data.datasets import Dataset, Sample, open_dataset
from sisod.networks.network import Network
from sisod.training.data import check_samples, select_samples, steps_per_epoch
from sisod.training.labels import check_labels, write_labels
from sisod.training.loaders import SaliencyData
from sisod.training.make_network import make_network
from sisod.training.module import SaliencyModule, parts_of
from sisod.training.recipe import Recipe, write_toml
from sisod.training.recipe_parts import LabelsPart, Precision
from sisod.training.resume import read_checkpoint, resume_errors, resume_step
from sisod.training.run_folder import (
    MetricsFile,
    check_run_folder,
    find_run_folder,
    prepare,
    write_images,
    write_record,
)

_DISK_FULL_ADVICE = "free some space and go on with --resume"


@dataclass(frozen=True)
class TrainingRequest:
    """The options of `sisod train` besides the recipe.

    Attributes:
        data: data set to train on, or folder of images with `masks`.
        out: folder of the run.
        masks: folder of masks, if `data` is a folder of images.
        loss: `"si"` or `"plain"`.
        val: data set to validate on.
        limit: use only so many images.
        labels: folder of labels for the network's auxiliary targets, as `make_labels` returns it.
        skip_bad: leave out images that cannot be used, instead of stopping.
        resume: continue an unfinished run.
        overwrite: replace a run; it stays until the new one is finished.
    """

    data: Path
    out: Path
    masks: Path | None = None
    loss: str = "si"
    val: Path | None = None
    limit: int | None = None
    labels: Path | None = None
    skip_bad: bool = False
    resume: bool = False
    overwrite: bool = False

    def __post_init__(self) -> None:
        for name in ("data", "out", "masks", "val", "labels"):  # texts become paths
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else Path(value))
        check_choice("loss", self.loss, ("si", "plain"))
        if self.limit is not None:
            check_whole("limit", self.limit, least=1)
        for name in ("skip_bad", "resume", "overwrite"):
            check_flag(name, getattr(self, name))


@dataclass(frozen=True)
class Machine:
    """Devices, precision, workers and logger, under Lightning's names.

    Without a precision that of the recipe is used. The precisions are those that a recipe may have.
    """

    devices: str = "auto"
    nodes: int = 1
    strategy: str = "auto"
    precision: str | None = None
    workers: int | None = None
    logger: str = "csv"

    def __post_init__(self) -> None:
        for name in ("devices", "strategy"):
            check_text(name, getattr(self, name))
        if self.precision is not None:
            check_choice("precision", self.precision, get_args(Precision))
        check_whole("nodes", self.nodes, least=1)
        if self.workers is not None:
            check_whole("workers", self.workers, least=0)
        check_choice("logger", self.logger, ("csv", "tensorboard"))

    @property
    def is_single(self) -> bool:
        """Whether there is one process, however many tasks a scheduler has allocated."""
        return self.devices == "1" and self.nodes == 1


def train(
    recipe: Recipe,
    request: TrainingRequest,
    machine: Machine | None = None,
    *,
    criterion: nn.Module | None = None,
    network: nn.Module | None = None,
) -> dict[str, Any]:
    """Train a network and return the content of its run.json.

    Args:
        recipe: how to train.
        request: data, output folder and options.
        machine: devices, precision, workers.
        criterion: replaces the recipe's loss by your own, called like `SizeInvariantLoss`:
            `criterion(logits, gt, boxes)`. A network with auxiliary targets uses it for its mask maps.
        network: replaces the recipe's network by a module of yours, as `networks.wrap` takes or returns
            it; its weights are changed. Load the run by `networks.from_pretrained(out, factory=...)`.
    """
    machine = machine or Machine()
    if request.resume and request.overwrite:
        raise UsageError("--resume goes on with a run and --overwrite begins again; choose one")
    dataset = open_dataset(request.data, masks=request.masks)
    validation = None if request.val is None else open_dataset(request.val, prefer=())
    samples, skipped = _training_samples(recipe, request, dataset)
    val_samples: tuple[Sample, ...] = ()
    if validation is not None:
        val_samples, _ = check_samples(validation.samples)
    identity = _identity(recipe, request, dataset, validation, len(samples))
    if criterion is not None:
        identity["criterion"] = type(criterion).__name__
    if network is not None:
        identity["network"] = type(network).__name__
        if recipe.labels.epochs and not (isinstance(network, Network) and network.auxiliary_targets()):
            raise UsageError(
                f"[labels] is for networks that learn body and detail; {type(network).__name__} learns "
                "masks only; use another recipe"
            )
    out, is_first = followed(request.out), is_first_process(machine)
    options = {"resume": request.resume, "overwrite": request.overwrite}
    with readable_errors(out / "x", _DISK_FULL_ADVICE), lock(out) if is_first else nullcontext():
        if is_first:
            folders.recover(out)
        run_folder = find_run_folder(out, identity, **options)
        if is_first:
            check_run_folder(
                run_folder, out, overwrite=request.overwrite, inputs=_inputs(recipe, request)
            )
        record = run_folder.record or {"asked": identity}
        if not record.get("finished"):
            request = replace(request, out=run_folder.path)
            # every check is made before anything is written
            setup = _set_up(recipe, request, machine, samples, val_samples, criterion, network)
            if is_first:
                record = prepare(run_folder, out, identity)
                write_atomically(run_folder.path / "recipe.toml", write_toml(recipe).encode())
                write_images(run_folder.path, dataset, samples)
            if recipe.labels.epochs and request.labels is None:
                request = replace(request, labels=_first_stage(recipe, request, machine, samples))
                setup = _set_up(recipe, request, machine, samples, val_samples, criterion, network)
            record = record | {"finished": True, "skipped": list(skipped), **_fit(setup, request)}
            if is_first:
                write_record(run_folder.path, record)
        if is_first and run_folder.path != out:
            folders.put_in_place(run_folder.path, out)
    return record


def _training_samples(
    recipe: Recipe, request: TrainingRequest, dataset: Dataset
) -> tuple[tuple[Sample, ...], tuple[str, ...]]:
    """Return the usable samples to train on, and a sentence about each that cannot be used."""
    selected = select_samples(dataset.samples, limit=request.limit, calibrate=recipe.train.calibrate)
    return check_samples(selected, skip_bad=request.skip_bad)


def make_labels(recipe: Recipe, request: TrainingRequest, machine: Machine | None = None) -> Path:
    """Run only the first stage of a recipe and return the folder of labels, `request.out / "labels"`.

    Give it to `TrainingRequest.labels`, so that both losses learn from the same labels.
    """
    dataset = open_dataset(request.data, masks=request.masks)
    samples, _ = _training_samples(recipe, request, dataset)
    with readable_errors(request.out / "x", _DISK_FULL_ADVICE):
        return _first_stage(recipe, request, machine or Machine(), samples)


def _first_stage(
    recipe: Recipe, request: TrainingRequest, machine: Machine, samples: Sequence[Sample]
) -> Path:
    """Train plainly on labels derived from the masks; return the folder of the labels it predicts."""
    labels, stage_dir = request.out / "labels", request.out / "first_stage"
    if labels.exists():
        return labels
    plain = replace(
        recipe,
        train=replace(recipe.train, epochs=recipe.labels.epochs, steps=0),
        labels=LabelsPart(),
    )
    plain_request = replace(request, out=stage_dir, loss="plain", val=None, resume=True, overwrite=False)
    train(plain, plain_request, machine)
    if is_first_process(machine):
        write_labels(networks.from_pretrained(stage_dir), samples, labels, size=recipe.data.size)
    return labels


@dataclass(frozen=True, eq=False)
class _Setup:
    """The objects of a run, constructed from a valid recipe."""

    network: Network
    data: SaliencyData
    module: SaliencyModule
    trainer: L.Trainer
    metrics: MetricsFile
    best: ModelCheckpoint


def _set_up(
    recipe: Recipe,
    request: TrainingRequest,
    machine: Machine,
    samples: Sequence[Sample],
    val_samples: Sequence[Sample],
    criterion: nn.Module | None,
    own_network: nn.Module | None = None,
) -> _Setup:
    """Construct network, loss, loaders and trainer. Writes nothing."""
    L.seed_everything(recipe.train.seed, verbose=False)
    network = make_network(recipe, own_network)
    check_labels(request.labels, network)
    n_steps = steps_per_epoch(len(samples), recipe.train.images_per_step)
    n_epochs = recipe.train.epochs or math.ceil(recipe.train.steps / n_steps)
    if request.loss == "si" and criterion is None and recipe.loss.warmup_epochs >= n_epochs:
        raise InputError(
            f"loss.warmup_epochs is {recipe.loss.warmup_epochs}, but the training has {n_epochs}, so "
            "the size-invariant loss would never be used; lower it, train longer, or use --loss plain"
        )
    module = SaliencyModule(
        network,
        recipe,
        loss=criterion or request.loss,
        run_dir=request.out,
        steps_per_epoch=n_steps,
        n_epochs=n_epochs,
    )
    metrics = MetricsFile(request.out)
    checkpoints = request.out / "checkpoints"
    last = ModelCheckpoint(
        checkpoints, "last", save_on_train_epoch_end=True, enable_version_counter=False
    )
    best = ModelCheckpoint(
        checkpoints, "best", monitor="si_mae", mode="min", enable_version_counter=False
    )
    with _quiet(), _lightning_errors():
        trainer = L.Trainer(
            devices=int(machine.devices) if machine.devices.isdigit() else machine.devices,
            num_nodes=machine.nodes,
            strategy=machine.strategy,
            precision=machine.precision or recipe.train.precision,  # type: ignore[arg-type]
            max_epochs=n_epochs,
            accumulate_grad_batches=recipe.train.accumulate,
            gradient_clip_val=recipe.train.clip or None,
            check_val_every_n_epoch=min(recipe.train.validate_every, n_epochs),
            num_sanity_val_steps=0,
            log_every_n_steps=1,
            use_distributed_sampler=False,
            plugins=[AtomicCheckpoints(), *([LightningEnvironment()] if machine.is_single else [])],
            logger=[metrics, *_extra_loggers(machine, request.out)],
            callbacks=[last, *([best] if val_samples else []), *_progress_bars()],
            enable_progress_bar=is_terminal(sys.stderr),
            enable_model_summary=False,
            default_root_dir=request.out,
        )
    data = SaliencyData(
        recipe,
        samples,
        val_samples,
        workers=machine.workers,
        labels=request.labels,
        parts=parts_of(module.loss),
        network=type(network),
        rank=trainer.global_rank,
        world=trainer.world_size,
    )
    return _Setup(network, data, module, trainer, metrics, best)


def _fit(setup: _Setup, request: TrainingRequest) -> dict[str, Any]:
    """Train, write the network, return the results for run.json."""
    trainer, path = setup.trainer, request.out / "checkpoints" / "last.ckpt"
    resumed = request.resume and path.exists()
    setup.metrics.begin(step=resume_step(path, setup.module) if resumed else 0)
    start = time.perf_counter()
    checked = resume_errors(path, setup.module) if resumed else nullcontext()
    with _quiet(), checked, _worker_errors(), safe_children():
        try:
            trainer.fit(setup.module, setup.data, ckpt_path=path if resumed else None, weights_only=True)
        except SystemExit:  # Lightning raises it when it is interrupted
            raise KeyboardInterrupt from None
    model = "best" if len(setup.data.validation) else "last"
    if trainer.is_global_zero:
        _write_network(setup.module, path.with_name(f"{model}.ckpt"), request.out)
    best = setup.best.best_model_score
    return {
        "epochs": setup.module.n_epochs,
        "steps": trainer.global_step,
        "images": len(setup.data.training),
        "seconds": round(time.perf_counter() - start, 1),
        "model": model,
        "best_si_mae": None if best is None else float(best),
        "scores": {key: float(value) for key, value in trainer.callback_metrics.items() if key != "lr"},
    }


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
        write_atomically(Path(path), buffer.getvalue())


def is_first_process(machine: Machine) -> bool:
    """Say whether this is the process that writes files."""
    if machine.is_single:
        return True
    ranks = (os.environ.get(name, "0") for name in ("RANK", "LOCAL_RANK", "NODE_RANK", "SLURM_PROCID"))
    return all(rank == "0" for rank in ranks)


def _inputs(recipe: Recipe, request: TrainingRequest) -> tuple[str | Path | None, ...]:
    return request.data, request.masks, request.val, request.labels, recipe.network.encoder_weights


def _identity(
    recipe: Recipe, request: TrainingRequest, dataset: Dataset, validation: Dataset | None, n_images: int
) -> dict[str, Any]:
    return {
        "recipe": recipe.name,
        "settings": recipe.tables(),
        "loss": request.loss,
        "seed": recipe.train.seed,
        "data": str(dataset.image_dir.resolve()),
        "images": n_images,
        "validation": None if validation is None else str(validation.image_dir.resolve()),
    }


def _extra_loggers(machine: Machine, folder: Path) -> list[Any]:
    if machine.logger == "csv":
        return []
    from lightning.pytorch.loggers import TensorBoardLogger

    try:
        return [TensorBoardLogger(folder, name="", version="tensorboard")]
    except ModuleNotFoundError as error:
        raise InputError(
            "--logger tensorboard needs TensorBoard; install it with: pip install tensorboard"
        ) from error


def _progress_bars() -> list[Any]:
    return [RichProgressBar(console_kwargs={"stderr": True})] if is_terminal(sys.stderr) else []


def _write_network(module: SaliencyModule, checkpoint: Path, folder: Path) -> None:
    """Write the network of a checkpoint as `save_pretrained` does, each file atomically."""
    state = read_checkpoint(checkpoint)["state_dict"]
    prefix = "network." if module.averaged is None else "averaged."
    weights = {key.removeprefix(prefix): state[key] for key in state if key.startswith(prefix)}
    network = module.result.to("cpu")
    network.load_state_dict(weights)
    temporary = folder / ".sisod-model"
    network.save_pretrained(temporary)
    for file in temporary.iterdir():
        file.replace(folder / file.name)
    temporary.rmdir()


@contextmanager
def _lightning_errors() -> Iterator[None]:
    """Turn what Lightning refuses into one sentence."""
    try:
        yield
    except InputError:
        raise
    except (MisconfigurationException, ValueError, TypeError) as error:
        raise UsageError(
            f"Lightning refuses these devices or this strategy: {str(error).splitlines()[0]}"
        ) from error


@contextmanager
def _worker_errors() -> Iterator[None]:
    """Remove the traceback from a worker's error about a file."""
    try:
        yield
    except InputError as error:
        if not str(error).startswith("Caught InputError"):
            raise
        raise InputError(str(error).strip().splitlines()[-1].partition(": ")[2]) from None


@contextmanager
def _quiet() -> Iterator[None]:
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

"""Recipe + data -> run folder. Lightning runs the loop; this file sets it up."""

import math
import os
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import lightning as L  # noqa: N812  (the name everybody knows it by)
import numpy as np
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch.callbacks import ModelCheckpoint, RichProgressBar
from lightning.pytorch.loggers import Logger, TensorBoardLogger
from numpy.typing import NDArray
from torch import nn

from sisod import networks
from sisod.common.arguments import check_choice, check_int
from sisod.common.exceptions import InputError, InputWarning, UsageError, is_missing, shorten_list
from sisod.common.output import readable_errors, write_atomically
from sisod.common.processes import safe_children
from sisod.common.run_folder import Run, open_run
from sisod.common.streams import is_terminal
from sisod.data.datasets import Dataset, Sample, open_dataset
from sisod.losses import SizeInvariantLoss
from sisod.losses.weighting import Weighting
from sisod.networks.predict import weights_digest
from sisod.scoring.partition import cut_mask
from sisod.training.data import (
    TrainingSet,
    ValidationSet,
    check_samples,
    image_digest,
    select_samples,
    steps_per_epoch,
)
from sisod.training.loaders import SaliencyData, check_labels, write_labels
from sisod.training.make_network import make_network
from sisod.training.module import SaliencyModule, recipe_loss, weighting_of
from sisod.training.recipe import Recipe, balanced, write_toml
from sisod.training.recipe_parts import LabelsPart, Precision
from sisod.training.run_files import (
    KIND,
    AtomicCheckpoints,
    MetricsFile,
    fit_errors,
    quiet_lightning,
    resume_step,
    versions,
    write_images,
    write_network,
)


@dataclass(frozen=True)
class TrainingRequest:
    """The options of `sisod train` besides the recipe.

    Attributes:
        data: data set to train on, or folder of images with `masks`.
        out: folder of the run.
        masks: folder of masks, if `data` is a folder of images.
        loss: `"si"`, as the recipe says; `"balanced"`, which replaces its section `[loss]` except
            warmup_epochs, min_area and connectivity; or `"plain"`.
        val: data set to validate on.
        limit: use only so many images.
        labels: folder of labels for the network's auxiliary targets, as `make_labels` returns it.
        skip_bad: leave out images that cannot be used, instead of stopping.
        resume: continue an unfinished run.
        overwrite: replace a run; it stays until the new one is finished.

    Example:
        >>> TrainingRequest(data="data/DUTS-TR", out="runs/edn", limit=100).out.name
        'edn'
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
        for name in ("data", "out", "masks", "val", "labels"):  # strings become paths
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else Path(value))
        check_choice("loss", self.loss, ("si", "balanced", "plain"))
        if self.limit is not None:
            check_int("limit", self.limit, least=1)


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


def train(
    recipe: Recipe,
    request: TrainingRequest,
    machine: Machine | None = None,
    *,
    criterion: nn.Module | None = None,
    network: nn.Module | None = None,
) -> dict[str, Any]:
    """Train a network and return the content of its run.json.

    The run folder is described in `sisod.training.run_files`. The weights depend on the recipe, the
    data and the loss alone: neither on the number of workers nor on where a run was resumed.

    Args:
        recipe: how to train.
        request: data, output folder and options.
        machine: devices, precision, workers.
        criterion: replaces the recipe's loss by your own, called like `SizeInvariantLoss`:
            `criterion(logits, gt, boxes)`. A network with auxiliary targets uses it for its mask maps.
        network: replaces the recipe's network by a module of yours, as `networks.wrap` takes or returns
            it; its weights are changed. Load the run by `networks.from_pretrained(out, factory=...)`.

    Raises:
        InputError: the data or the recipe cannot be used (then nothing is written), the loss is not
            finite, or `request.out` holds another run.
    """
    machine = machine or Machine()
    if request.loss == "balanced":
        recipe, request = balanced(recipe), replace(request, loss="si")
    dataset = open_dataset(request.data, masks=request.masks)
    validation = None if request.val is None else open_dataset(request.val, prefer=())
    loss = criterion or recipe_loss(request.loss, recipe.loss)
    weighting = weighting_of(loss, recipe.loss)
    says_left_out = machine.is_first_process and weighting.image_weight < 1
    samples, skipped = _training_samples(recipe, request, dataset, weighting if says_left_out else None)
    val_samples = () if validation is None else check_samples(validation.samples)[0]
    config: dict[str, Any] = {  # what decides the weights
        "recipe": recipe.name,
        "settings": recipe.tables(),
        "loss": request.loss,
        "seed": recipe.train.seed,
        "data": str(dataset.image_dir.resolve()),
        "images": len(samples),
        "validation": None if validation is None else str(validation.image_dir.resolve()),
    }
    if criterion is not None:
        config["criterion"] = _describe_criterion(criterion)
    if network is not None:
        config["network"] = type(network).__name__
    with open_run(
        request.out,
        kind=KIND,
        config=config,
        resume=request.resume,
        overwrite=request.overwrite,
        inputs=(
            *(request.data, request.masks, request.val, request.labels),
            recipe.network.encoder_weights,
        ),
        in_place=True,
        is_writer=machine.is_first_process,
    ) as run:
        if run.finished:
            return run.record
        request = replace(request, out=run.path)
        # every check is made before anything is written
        prepared = _prepare(recipe, request, machine, samples, val_samples, loss, network)
        run.begin(versions=versions())
        if run.is_writer:
            _warn_of_overlap(samples, val_samples)
            write_atomically(run.path / "recipe.toml", write_toml(recipe).encode())
            write_images(run.path, dataset, samples)
        if recipe.labels.epochs and request.labels is None:
            request = replace(request, labels=_first_stage(recipe, request, machine, samples))
            prepared = _prepare(recipe, request, machine, samples, val_samples, loss, network)
        run.finish(skipped=list(skipped), **_fit(*prepared, run))
    return run.record


def _training_samples(
    recipe: Recipe, request: TrainingRequest, dataset: Dataset, weighting: Weighting | None = None
) -> tuple[tuple[Sample, ...], tuple[str, ...]]:
    """Return the usable samples to train on, and a sentence about each that cannot be used.

    With a weighting, warn of the objects that it leaves out. They are counted while the files are read,
    in masks of their own size, as by `evaluate`; a `min_area` in pixels is one of the input's pixels.
    """
    selected = select_samples(dataset.samples, limit=request.limit, calibrate=recipe.train.calibrate)
    if weighting is None:
        return check_samples(selected, skip_bad=request.skip_bad)
    least, connectivity = weighting.min_area, weighting.connectivity
    share = min(1.0, least / recipe.data.size**2) if isinstance(least, int | np.integer) else least
    counts: list[tuple[int, int]] = []

    def count(mask: NDArray[np.bool_]) -> None:
        partition = cut_mask(mask, connectivity=connectivity, min_area=share)
        counts.append((len(partition.components), len(partition)))

    checked = check_samples(selected, skip_bad=request.skip_bad, visit=count)
    if n_left_out := sum(n_components - n_objects for n_components, n_objects in counts):
        warnings.warn(
            f"{n_left_out} of {sum(n for n, _ in counts)} components in {str(dataset.mask_dir)!r} are "
            "below min_area and no objects of the loss; --set loss.min_area=0 keeps all",
            InputWarning,
            stacklevel=3,
        )
    return checked


def _warn_of_overlap(samples: Sequence[Sample], val_samples: Sequence[Sample]) -> None:
    """Warn of images to validate on that are copies of images to train on, under any name."""
    trained = {image_digest(sample) for sample in samples} if val_samples else set()
    both = [sample.name for sample in val_samples if image_digest(sample) in trained]
    if both:
        warnings.warn(
            f"{len(both)} of the {len(val_samples)} images to validate on are trained on too "
            f"({shorten_list(both)}), so the scores are too good; validate on other images",
            InputWarning,
            stacklevel=3,
        )


def make_labels(recipe: Recipe, request: TrainingRequest, machine: Machine | None = None) -> Path:
    """Run only the first stage of a recipe and return the folder of labels, `request.out / "labels"`.

    Give it to `TrainingRequest.labels`, so that both losses learn from the same labels.

    Args:
        recipe: of a network that learns body and detail, with `labels.epochs` above 0.
        request: data and output folder; its loss is not used, since the first stage is plain.
        machine: as for `train`.
    """
    dataset = open_dataset(request.data, masks=request.masks)
    samples, _ = _training_samples(recipe, request, dataset)
    with readable_errors(request.out / "x", "make room there and run it again"):
        return _first_stage(recipe, request, machine or Machine(), samples)


def _first_stage(
    recipe: Recipe, request: TrainingRequest, machine: Machine, samples: Sequence[Sample]
) -> Path:
    """Train plainly on labels derived from the masks; return the folder of the labels it predicts."""
    labels, stage_dir = request.out / "labels", request.out / "first_stage"
    if labels.exists():
        return labels
    length = replace(recipe.train, epochs=recipe.labels.epochs, steps=0)
    plain = replace(recipe, train=length, labels=LabelsPart())
    plain_request = replace(request, out=stage_dir, loss="plain", val=None, resume=True, overwrite=False)
    train(plain, plain_request, machine)
    if machine.is_first_process:
        write_labels(networks.from_pretrained(stage_dir), samples, labels, size=recipe.data.size)
    return labels


def _prepare(
    recipe: Recipe,
    request: TrainingRequest,
    machine: Machine,
    samples: Sequence[Sample],
    val_samples: Sequence[Sample],
    loss: nn.Module,
    own_network: nn.Module | None,
) -> tuple[L.Trainer, SaliencyModule, SaliencyData]:
    """Return trainer, module and loaders; writes nothing."""
    L.seed_everything(recipe.train.seed, verbose=False)
    network = make_network(recipe, own_network)
    check_labels(request.labels, network)
    n_steps = steps_per_epoch(len(samples), recipe.train.images_per_step)
    n_epochs = recipe.train.epochs or math.ceil(recipe.train.steps / n_steps)
    if isinstance(loss, SizeInvariantLoss) and recipe.loss.warmup_epochs >= n_epochs:
        raise InputError(
            f"loss.warmup_epochs is {recipe.loss.warmup_epochs}, but the training has {n_epochs}, so "
            "the size-invariant loss would never be used; lower it, train longer, or use --loss plain"
        )
    module = SaliencyModule(
        network, recipe, loss=loss, run_dir=request.out, steps_per_epoch=n_steps, n_epochs=n_epochs
    )
    trainer = _make_trainer(recipe, request.out, machine, n_epochs, validates=bool(val_samples))
    training = TrainingSet(
        samples,
        recipe.data,
        seed=recipe.train.seed,
        network=type(network),
        labels_dir=request.labels,
        weighting=weighting_of(loss, recipe.loss),
    )
    data = SaliencyData(
        recipe.train,
        training,
        ValidationSet(val_samples, recipe.data.size),
        workers=machine.workers,
        rank=trainer.global_rank,
        world=trainer.world_size,
    )
    return trainer, module, data


def _make_trainer(
    recipe: Recipe, out: Path, machine: Machine, n_epochs: int, *, validates: bool
) -> L.Trainer:
    """Return Lightning's trainer: checkpoints of the last and, with validation, of the best epoch."""
    last: dict[str, Any] = {"filename": "last", "save_on_train_epoch_end": True}
    best: dict[str, Any] = {"filename": "best", "monitor": "si_mae", "mode": "min"}
    checkpoints = [
        ModelCheckpoint(out / "checkpoints", enable_version_counter=False, **options)
        for options in (last, *([best] if validates else []))
    ]
    bar = [RichProgressBar(console_kwargs={"stderr": True})] if is_terminal(sys.stderr) else []
    loggers: list[Logger] = [MetricsFile(out)]
    if machine.logger == "tensorboard":
        if is_missing("tensorboard"):
            raise InputError(
                "--logger tensorboard needs TensorBoard; install it with: pip install tensorboard"
            )
        loggers.append(TensorBoardLogger(out, name="", version="tensorboard"))
    try:
        with quiet_lightning():
            return L.Trainer(
                devices=int(machine.devices) if machine.devices.isdigit() else machine.devices,
                num_nodes=machine.nodes,
                strategy=machine.strategy,
                precision=machine.precision or recipe.train.precision,  # type: ignore[arg-type]
                max_epochs=n_epochs,
                accumulate_grad_batches=recipe.train.accumulate,
                gradient_clip_val=recipe.train.clip or None,
                check_val_every_n_epoch=recipe.train.validate_every,
                num_sanity_val_steps=0,
                log_every_n_steps=1,
                use_distributed_sampler=False,
                plugins=[AtomicCheckpoints(), *([LightningEnvironment()] if machine.is_single else [])],
                logger=loggers,
                callbacks=[*checkpoints, *bar],
                enable_progress_bar=bool(bar),
                enable_model_summary=False,
                default_root_dir=out,
            )
    except (MisconfigurationException, ValueError, TypeError) as error:
        raise UsageError(
            f"Lightning refuses these devices or this strategy: {str(error).splitlines()[0]}"
        ) from error


def _fit(trainer: L.Trainer, module: SaliencyModule, data: SaliencyData, run: Run) -> dict[str, Any]:
    """Train, write the network, return the results for run.json."""
    path = run.path / "checkpoints" / "last.ckpt"
    last = path if run.resumed and path.exists() else None
    start = time.perf_counter()
    with fit_errors(), quiet_lightning(), safe_children():
        MetricsFile(run.path).begin(step=0 if last is None else resume_step(last, module))
        trainer.fit(module, data, ckpt_path=last, weights_only=True)
    model = "best" if len(data.validation) else "last"
    if trainer.is_global_zero:
        write_network(module, path.with_name(f"{model}.ckpt"), run.path)
    best: Any = trainer.checkpoint_callbacks[-1]
    return {
        "epochs": module.n_epochs,
        "steps": trainer.global_step,
        "images": len(data.training),
        "seconds": round(time.perf_counter() - start, 1),
        "model": model,
        "best_si_mae": None if best.best_model_score is None else float(best.best_model_score),
        "scores": {key: float(value) for key, value in trainer.callback_metrics.items() if key != "lr"},
    }


def _describe_criterion(criterion: nn.Module) -> dict[str, Any]:
    """Return what tells a loss of your own from another one."""
    attributes = {
        f"{module}.{name}".lstrip("."): repr(value)
        for module, part in criterion.named_modules()
        for name, value in vars(part).items()
        if not name.startswith("_") and name != "training"
        if all(
            isinstance(v, str | int | float)
            for v in (value if isinstance(value, list | tuple) else [value])
        )
    }
    known = {"class": type(criterion).__name__, "repr": repr(criterion), "attributes": attributes}
    return {**known, "tensors": weights_digest(criterion)}

"""Recipe + data -> run folder: make data, network and loss, let Lightning train, save the network."""

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import lightning as L  # noqa: N812  (the name everybody knows it by)
import numpy as np
from torch import nn

from sisod import networks
from sisod.common.arguments import check_choice, check_int
from sisod.common.exceptions import InputError, InputWarning, UsageError, shorten_list
from sisod.common.output import readable_errors, write_atomically
from sisod.common.processes import safe_children
from sisod.common.run_folder import Run, open_run
from sisod.data.datasets import Dataset, Sample, join_datasets, open_dataset
from sisod.losses import SizeInvariantLoss
from sisod.networks.predict import weights_digest
from sisod.training.data import (
    CheckedSamples,
    TrainingSet,
    Transform,
    ValidationSet,
    check_samples,
    image_digest,
    load_transform,
    select_samples,
)
from sisod.training.loaders import check_labels, make_loaders, steps_per_epoch, write_labels
from sisod.training.make_network import make_network
from sisod.training.module import SaliencyModule, recipe_loss, weighting_of
from sisod.training.recipe import Recipe, balanced, write_toml
from sisod.training.recipe_parts import LabelsPart
from sisod.training.trainer import (
    KIND,
    Machine,
    MetricsFile,
    fit_errors,
    make_trainer,
    quiet_lightning,
    resume_step,
    versions,
    write_images,
    write_network,
)

__all__ = ["Machine", "TrainingRequest", "make_labels", "train"]


@dataclass(frozen=True)
class TrainingRequest:
    """The options of `sisod train` besides the recipe.

    Attributes:
        data: data set to train on, or folder of images with `masks`; or several data sets.
        out: folder of the run.
        masks: folder of masks, if `data` is a folder of images.
        mask_suffix: as for `open_dataset`.
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

    data: Path | Sequence[Path]
    out: Path
    masks: Path | None = None
    mask_suffix: str = ""
    loss: str = "si"
    val: Path | None = None
    limit: int | None = None
    labels: Path | None = None
    skip_bad: bool = False
    resume: bool = False
    overwrite: bool = False

    def __post_init__(self) -> None:
        for name in ("out", "masks", "val", "labels"):  # strings become paths
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else Path(value))
        check_choice("loss", self.loss, ("si", "balanced", "plain"))
        if self.limit is not None:
            check_int("limit", self.limit, least=1)

    @property
    def roots(self) -> tuple[Path, ...]:
        """The data sets to train on."""
        return tuple(map(Path, [self.data] if isinstance(self.data, str | Path) else self.data))

    def open_data(self) -> list[Dataset]:
        """Open the data sets to train on."""
        if len(self.roots) > 1 and self.masks is not None:
            raise UsageError("--masks is for one folder of images; with several --data leave it out")
        return [
            open_dataset(root, masks=self.masks, mask_suffix=self.mask_suffix) for root in self.roots
        ]


def train(
    recipe: Recipe,
    request: TrainingRequest,
    machine: Machine | None = None,
    *,
    criterion: nn.Module | None = None,
    network: nn.Module | None = None,
    transform: Transform | None = None,
) -> dict[str, Any]:
    """Train a network and return the content of its run.json.

    The run folder is described in `sisod.training.trainer`. The weights depend on the recipe, the data
    and the loss alone: neither on the number of workers nor on where a run was resumed.

    Args:
        recipe: how to train.
        request: data, output folder and options.
        machine: devices, precision, workers.
        criterion: replaces the recipe's loss by your own, called like `SizeInvariantLoss`:
            `criterion(logits, gt, boxes)`. A network with auxiliary targets uses it for its mask maps.
        network: replaces the recipe's network by a module of yours, as `networks.wrap` takes or returns
            it; its weights are changed. Load the run by `networks.from_pretrained(out, factory=...)`.
        transform: replaces `[data] augment` by a function of yours or a transform of albumentations.

    Raises:
        InputError: the data or the recipe cannot be used (then nothing is written), the loss is not
            finite, or `request.out` holds another run.
    """
    machine = machine or Machine()
    if request.loss == "balanced":
        recipe, request = balanced(recipe), replace(request, loss="si")
    datasets = request.open_data()
    dataset = join_datasets(datasets)
    validation = None if request.val is None else open_dataset(request.val, prefer=())
    loss = criterion or recipe_loss(request.loss, recipe.loss)
    checked = _check_data(recipe, request, dataset, loss if machine.is_first_process else None)
    val_samples = () if validation is None else check_samples(validation.samples).samples
    config: dict[str, Any] = {  # what decides the weights
        "recipe": recipe.name,
        "settings": recipe.tables(),
        "loss": request.loss,
        "seed": recipe.train.seed,
        "data": " ".join(str(each.image_dir.resolve()) for each in datasets),
        "images": len(checked.samples),
        "validation": None if validation is None else str(validation.image_dir.resolve()),
    }
    if criterion is not None:
        config["criterion"] = _describe_criterion(criterion)
    if network is not None:
        config["network"] = type(network).__name__
    if transform is not None:
        config["transform"] = getattr(transform, "__qualname__", repr(transform))
    elif recipe.data.augment is not None:
        transform = load_transform(recipe.data.augment)
    if transform is not None and (recipe.labels.epochs or request.labels):
        raise UsageError("labels of a first stage cannot follow augment; leave one of them out")
    inputs = (*request.roots, request.masks, request.val, request.labels)
    with open_run(
        request.out,
        kind=KIND,
        config=config,
        resume=request.resume,
        overwrite=request.overwrite,
        inputs=[*inputs, recipe.network.encoder_weights],
        in_place=True,
        is_writer=machine.is_first_process,
    ) as run:
        if run.finished:
            return run.record
        request = replace(request, out=run.path)
        # every check is made before anything is written
        trainer, module, *loaders = _prepare(
            recipe, request, machine, checked.samples, val_samples, loss, network
        )
        loaders[0].dataset.transform = transform
        run.begin(versions=versions())
        if run.is_writer:
            _warn_of_overlap(checked.samples, val_samples)
            write_atomically(run.path / "recipe.toml", write_toml(recipe).encode())
            write_images(run.path, datasets, checked.samples)
        if recipe.labels.epochs and request.labels is None:
            loaders[0].dataset.labels_dir = _first_stage(recipe, request, machine, checked.samples)
        run.finish(skipped=list(checked.problems), **_fit(trainer, module, loaders, run))
    return run.record


def _check_data(
    recipe: Recipe, request: TrainingRequest, dataset: Dataset, loss: nn.Module | None = None
) -> CheckedSamples:
    """Return the usable samples to train on; warn of the objects that a loss leaves out.

    They are counted in masks of their own size; a `min_area` in pixels is one of the input's pixels.
    """
    selected = select_samples(dataset.samples, limit=request.limit, calibrate=recipe.train.calibrate)
    weighting = None if loss is None else weighting_of(loss, recipe.loss)
    if weighting is None or weighting.image_weight == 1:
        return check_samples(selected, skip_bad=request.skip_bad)
    if isinstance(weighting.min_area, int | np.integer):
        share = min(1.0, weighting.min_area / recipe.data.size**2)
        weighting = replace(weighting, min_area=share)
    checked = check_samples(selected, skip_bad=request.skip_bad, weighting=weighting)
    if checked.n_objects < checked.n_components:
        warnings.warn(
            f"{checked.n_components - checked.n_objects} of {checked.n_components} components in "
            f"{str(dataset.mask_dir)!r} are below min_area and no objects of the loss; --set "
            "loss.min_area=0 keeps all",
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


def _prepare(
    recipe: Recipe,
    request: TrainingRequest,
    machine: Machine,
    samples: Sequence[Sample],
    val_samples: Sequence[Sample],
    loss: nn.Module,
    own_network: nn.Module | None,
) -> tuple[L.Trainer, SaliencyModule, Any, Any]:
    """Return trainer, module and the two loaders; writes nothing."""
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
    trainer = make_trainer(recipe, request.out, machine, n_epochs, validates=bool(val_samples))
    training = TrainingSet(
        samples,
        recipe.data,
        seed=recipe.train.seed,
        network=type(network),
        labels_dir=request.labels,
        weighting=weighting_of(loss, recipe.loss),
    )
    loaders = make_loaders(
        recipe.train,
        training,
        ValidationSet(val_samples, recipe.data.size),
        workers=machine.workers,
        rank=trainer.global_rank,
        world=trainer.world_size,
    )
    return trainer, module, *loaders


def _fit(trainer: L.Trainer, module: SaliencyModule, loaders: Any, run: Run) -> dict[str, Any]:
    """Train, write the network, return the results for run.json."""
    path = run.path / "checkpoints" / "last.ckpt"
    last = path if run.resumed and path.exists() else None
    start = time.perf_counter()
    with fit_errors(), quiet_lightning(), safe_children():
        step = 0 if last is None else resume_step(last, module)
        MetricsFile(run.path, module.recipe.validate.metrics).begin(step=step)
        # Lightning sets the epoch of a resumed run too late, when workers read already
        loaders[0].sampler.set_epoch(step // module.steps_per_epoch)
        trainer.fit(module, loaders[0], loaders[1], ckpt_path=last, weights_only=True)
    model = "last" if loaders[1] is None else "best"
    if trainer.is_global_zero:
        write_network(module, path.with_name(f"{model}.ckpt"), run.path)
    best: Any = trainer.checkpoint_callbacks[-1]
    return {
        "epochs": trainer.current_epoch,
        "steps": trainer.global_step,
        "images": len(loaders[0].dataset),
        "seconds": round(time.perf_counter() - start, 1),
        "model": model,
        f"best_{module.recipe.validate.monitor}": None
        if best.best_model_score is None
        else float(best.best_model_score),
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


def make_labels(recipe: Recipe, request: TrainingRequest, machine: Machine | None = None) -> Path:
    """Run only the first stage of a recipe and return the folder of labels, `request.out / "labels"`.

    Give it to `TrainingRequest.labels`, so that both losses learn from the same labels.

    Args:
        recipe: of a network that learns body and detail, with `labels.epochs` above 0.
        request: data and output folder; its loss is not used, since the first stage is plain.
        machine: as for `train`.
    """
    checked = _check_data(recipe, request, join_datasets(request.open_data()))
    with readable_errors(request.out / "x", "make room there and run it again"):
        return _first_stage(recipe, request, machine or Machine(), checked.samples)


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

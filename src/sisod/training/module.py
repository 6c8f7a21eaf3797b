"""The network with its loss, optimiser and schedule, as a Lightning module."""

import copy
import math
import warnings
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

import lightning as L  # noqa: N812  (the name everybody knows it by)
import numpy as np
import torch
from torch import Tensor, nn

from sisod.common.exceptions import InputError, InputWarning, shorten_list
from sisod.losses import PlainLoss, SizeInvariantLoss
from sisod.losses.networks import DecoupledLoss
from sisod.networks.architectures import resize
from sisod.networks.network import Network, module_errors
from sisod.scoring.loss_options import Weighting
from sisod.training.data import TrainingBatch, ValidationBatch
from sisod.training.recipe import Recipe
from sisod.training.recipe_parts import SGD, LossPart, Schedule
from sisod.training.torchmetric import SizeInvariantScores

LossKind = str  # "si" or "plain"
COMPILE_BACKEND = "inductor"  # PyTorch's default


class SaliencyModule(L.LightningModule):
    """Training step: images -> maps -> loss. Validation: maps at the size of the masks -> scores.

    Args:
        network: is trained.
        recipe: optimiser, schedule, warm-up, freezing, average, compilation.
        loss: of the mask maps, as for `make_loss`.
        run_dir: folder of the run, named in errors.
        steps_per_epoch: of the schedule.
        n_epochs: of the schedule.

    Attributes:
        averaged: exponential moving average of the network, if the recipe has one. A part of the module,
            so that checkpoints contain it.
    """

    averaged: Network | None

    def __init__(
        self,
        network: Network,
        recipe: Recipe,
        *,
        loss: LossKind | nn.Module,
        run_dir: Path,
        steps_per_epoch: int,
        n_epochs: int,
    ) -> None:
        super().__init__()
        self.network = network
        self.recipe = recipe
        self.run_dir = run_dir
        self.plain_loss = make_loss("plain", recipe, network)
        self.loss = make_loss(loss, recipe, network)
        self.scores = SizeInvariantScores(
            metrics=recipe.validate.metrics, protocol=recipe.validate.protocol
        )
        self.steps_per_epoch = steps_per_epoch
        self.n_epochs = n_epochs
        self._losses: list[Tensor] = []  # of the batches since the last step
        freeze(network, (*recipe.network.frozen, *network.unused))
        factor = recipe.schedule.encoder_factor
        if factor != 1 and not any(in_encoder(name) for name, _ in network.named_parameters()):
            warnings.warn(
                f"[schedule] encoder_factor is {factor:g}, but {network.facts.title} has no parameter "
                "whose name starts with 'encoder.', so it has no effect; give the encoder this name",
                InputWarning,
                stacklevel=2,
            )
        self.averaged = copy.deepcopy(network).requires_grad_(False) if recipe.train.ema else None  # noqa: FBT003
        if recipe.train.compile:  # in place, so that the names of parameters stay as they are
            network.compile(backend=COMPILE_BACKEND)

    @property
    def result(self) -> Network:
        """The network that is validated and saved: the average of the weights if there is one."""
        return self.network if self.averaged is None else self.averaged

    def on_train_epoch_start(self) -> None:
        """Have the last epoch validated whatever `validate_every` is; Lightning calls this."""
        if self.current_epoch == self.n_epochs - 1:
            self.trainer.check_val_every_n_epoch = 1

    def training_step(self, batch: TrainingBatch, index: int) -> Tensor:
        """Return the loss of a batch."""
        if index == 0:
            # dropout then depends on the epoch alone, so that a resumed run goes on as if never stopped
            parts_of_seed = (self.recipe.train.seed, self.current_epoch, self.global_rank)
            torch.manual_seed(int(np.random.default_rng(parts_of_seed).integers(2**63)))
        with module_errors(self.network, batch.images.shape):
            maps = self.network(self.network.input_spec.apply(batch.images))
        labels = {kind: label.float() / 255 for kind, label in batch.labels.items()}
        is_warmup = self.current_epoch < self.recipe.loss.warmup_epochs
        criterion = self.plain_loss if is_warmup else self.loss
        gt = labels if self.network.auxiliary_targets() else labels["mask"]
        parts = {} if batch.parts is None else {"labels": batch.parts}
        loss: Tensor = criterion(maps, gt, batch.boxes, **parts)
        if not math.isfinite(value := float(loss.detach())):
            self._stop(
                f"the loss is {value:g} at step {self.global_step + 1} (epoch "
                f"{self.current_epoch + 1}, batch {index + 1}), with the images "
                f"{shorten_list(list(batch.names), most=8)}"
            )
        if index % self.recipe.train.accumulate == 0:
            self._losses = []
        self._losses.append(loss.detach())
        mean = torch.stack(self._losses).mean()
        self.log("loss", mean, prog_bar=True, sync_dist=True, batch_size=len(batch.names))
        self.log("lr", self.trainer.optimizers[0].param_groups[0]["lr"], batch_size=1)
        return loss

    def validation_step(self, batch: ValidationBatch, index: int) -> None:  # noqa: ARG002
        """Score a batch, each map at the size of its mask and in 256 grey levels, like saved maps."""
        logits = self.result(self.network.input_spec.apply(batch.images))[0]
        for logit, mask in zip(logits, batch.masks, strict=True):
            probs = self.result.saliency(resize(logit[None], mask[None, None]).float())
            levels = (probs * 255).round().to(torch.uint8)
            self.scores.update(levels.cpu(), mask[None, None])

    def on_validation_epoch_end(self) -> None:
        """Log the scores over the images of all processes."""
        values = {key: value.float() for key, value in self.scores.compute().items()}
        self.scores.reset()
        self.log_dict(values, rank_zero_only=False)

    def configure_optimizers(self) -> Any:
        """Return the optimiser and a schedule that changes with every step."""
        optimizer = make_optimizer(self.network, self.recipe)
        factor = schedule_factor(
            self.recipe.schedule, steps_per_epoch=self.steps_per_epoch, n_epochs=self.n_epochs
        )
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def optimizer_step(self, *arguments: Any, **options: Any) -> None:
        """Take a step of the optimiser; then move the average of the weights."""
        super().optimizer_step(*arguments, **options)
        if self.averaged is not None:
            n_steps = self.trainer.global_step
            update_average(
                self.averaged, self.network, min(self.recipe.train.ema, (1 + n_steps) / (10 + n_steps))
            )

    def train(self, mode: bool = True) -> "SaliencyModule":  # noqa: FBT001, FBT002  (PyTorch's signature)
        """Set the mode; norms that the recipe freezes stay in eval mode."""
        super().train(mode)
        if self.recipe.train.freeze_norm:
            for part in self.network.modules():
                if isinstance(part, nn.modules.batchnorm._BatchNorm):
                    part.eval()
        return self

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        """Move a batch, except for boxes and masks to validate on, which are read on the CPU."""
        moved = super().transfer_batch_to_device(batch, device, dataloader_idx)
        kept = "boxes" if isinstance(batch, TrainingBatch) else "masks"
        return moved._replace(**{kept: getattr(batch, kept)})

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:  # noqa: ARG002
        """Raise if a good checkpoint would be replaced by one with NaN or infinite weights."""
        for name, value in self.result.state_dict().items():
            if value.is_floating_point() and not bool(torch.isfinite(value).all()):
                self._stop(f"{name} of the network is not finite after step {self.global_step}")

    def _stop(self, why: str) -> NoReturn:
        """Raise because the training diverges; name the checkpoint from which it can go on."""
        path = self.run_dir / "checkpoints" / "last.ckpt"
        last = f"the last good checkpoint is {str(path)!r}" if path.exists() else "no checkpoint yet"
        raise InputError(f"{why}; {last}; lower optimizer.lr, or set train.clip")


@torch.no_grad()
def update_average(averaged: nn.Module, network: nn.Module, decay: float) -> None:
    """Move the average towards the weights: decay * average + (1 - decay) * weights.

    Statistics of batch norms are averaged like weights; counters are copied.

    Example:
        >>> averaged, network = nn.Linear(1, 1), nn.Linear(1, 1)
        >>> _ = nn.init.constant_(averaged.weight, 1.0), nn.init.constant_(network.weight, 2.0)
        >>> update_average(averaged, network, 0.75)
        >>> averaged.weight.item()
        1.25
    """
    current = network.state_dict()
    moved: set[int] = set()
    for name, value in averaged.state_dict(keep_vars=True).items():
        if id(value) in moved:  # tied weights have several names
            continue
        moved.add(id(value))
        if value.is_floating_point():
            value.lerp_(current[name], 1 - decay)
        else:
            value.copy_(current[name])


def make_loss(loss: LossKind | nn.Module, recipe: Recipe, network: Network) -> nn.Module:
    """Return the loss of all maps of a network.

    Args:
        loss: of the mask maps: the recipe's, size-invariant or plain, or a module called like those.
        recipe: says the terms.
        network: says what its maps learn. Those of auxiliary targets get plain cross-entropy.
    """
    mask_loss = recipe_loss(loss, recipe.loss) if isinstance(loss, str) else loss
    if isinstance(mask_loss, DecoupledLoss) or not network.auxiliary_targets():
        return mask_loss
    return DecoupledLoss(mask_loss, PlainLoss("bce"), network.targets)


def recipe_loss(kind: LossKind, part: LossPart) -> nn.Module:
    """Return the loss of mask maps that a recipe describes, size-invariant or plain."""
    if kind == "plain":
        return PlainLoss(*part.terms)
    options = asdict(part)
    terms, _ = options.pop("terms"), options.pop("warmup_epochs")
    return SizeInvariantLoss(*terms, **options)


def weighting_of(loss: nn.Module, part: LossPart) -> Weighting:
    """Return the parts of the masks that a loss is taken over; a loss of your own gets the boxes."""
    mask_loss = loss.mask_loss if isinstance(loss, DecoupledLoss) else loss
    if isinstance(mask_loss, SizeInvariantLoss):
        return mask_loss.weighting
    image_weight = 1.0 if isinstance(mask_loss, PlainLoss) else 0.0
    return Weighting(image_weight=image_weight, min_area=part.min_area, connectivity=part.connectivity)


def freeze(network: nn.Module, prefixes: tuple[str, ...]) -> None:
    """Switch off the gradients of parameters whose names have one of the prefixes."""
    for prefix in prefixes:
        parameters = [value for name, value in network.named_parameters() if name.startswith(prefix)]
        if not parameters:
            raise InputError(f"[network] frozen names {prefix!r}, but no parameter name starts with it")
        for value in parameters:
            value.requires_grad = False


def in_encoder(name: str) -> bool:
    """Tell by its name whether a parameter belongs to the encoder, also of a wrapped network."""
    return name.removeprefix("module.").startswith("encoder.")


def make_optimizer(network: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """Return the optimiser, with separate groups for the encoder and biases where their rates differ.

    Parameters without a gradient are left out.

    Example:
        >>> from sisod.training.recipe import find_recipe
        >>> recipe = find_recipe("gatenet")  # sgd, whose biases have twice the rate and no decay
        >>> groups = make_optimizer(nn.Linear(1, 1), recipe).param_groups
        >>> [(group["lr"], group["weight_decay"]) for group in groups]
        [(0.001, 0.0005), (0.002, 0.0)]
    """
    part, factor = recipe.optimizer, recipe.schedule.encoder_factor
    groups: dict[tuple[bool, bool], list[Tensor]] = {}
    for name, value in network.named_parameters():
        if value.requires_grad:
            is_slower = factor != 1 and in_encoder(name)
            is_bias = isinstance(part, SGD) and part.double_bias and name.endswith("bias")
            groups.setdefault((is_slower, is_bias), []).append(value)
    if not groups:
        raise InputError("[network] frozen leaves no parameter to train; name fewer")
    parameters = [
        {
            "params": values,
            "lr": part.lr * (factor if is_slower else 1) * (2 if is_bias else 1),
            "weight_decay": 0.0 if is_bias else part.weight_decay,
        }
        for (is_slower, is_bias), values in sorted(groups.items(), key=lambda group: group[0])
    ]
    if isinstance(part, SGD):
        return torch.optim.SGD(parameters, lr=part.lr, momentum=part.momentum, nesterov=part.nesterov)
    kind = torch.optim.Adam if part.name == "adam" else torch.optim.AdamW
    return kind(parameters, lr=part.lr, betas=part.betas)


def schedule_factor(
    schedule: Schedule, *, steps_per_epoch: int, n_epochs: int
) -> Callable[[int], float]:
    """Return the factor of the learning rate as a function of the step, counted from 0.

    Args:
        schedule: its name and numbers; a warm-up multiplies any of them.
        steps_per_epoch: for schedules by epochs.
        n_epochs: length of the run, at whose end `poly` and `cosine` reach 0.

    Example:
        >>> factor = schedule_factor(Schedule("poly", power=1.0), steps_per_epoch=5, n_epochs=2)
        >>> [round(factor(step), 6) for step in (0, 5, 9)]
        [1.0, 0.5, 0.1]
    """
    total = steps_per_epoch * n_epochs

    def factor(step: int) -> float:
        epoch, progress = step // steps_per_epoch, min(step / total, 1.0)
        value = 1.0
        match schedule.name:
            case "poly":
                value = (1 - progress) ** schedule.power
            case "cosine":
                value = (1 + math.cos(math.pi * progress)) / 2
            case "triangle":
                value = 1 - abs(2 * (epoch + 1) / (n_epochs + 1) - 1)
            case "drop":
                value = schedule.drop_factor ** sum(epoch >= drop for drop in schedule.drop_epochs)
        if step < schedule.warmup_steps:
            value *= 0.01 + 0.99 * (step + 1) / schedule.warmup_steps
        return value

    return factor

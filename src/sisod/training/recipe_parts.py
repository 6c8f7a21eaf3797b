"""The sections of a recipe, each with its checks. Imports no PyTorch and no code that a recipe names."""

from dataclasses import dataclass, field
from typing import Any, Literal

from sisod.common.arguments import check_known, check_whole, shown
from sisod.common.imports import check_import_name
from sisod.networks import names as network_names
from sisod.scoring.loss_options import TERM_NAMES, check_weighting, parse_term
from sisod.training.field_types import check_types

# repeated here, so that a wrong recipe is refused without importing PyTorch
ENCODERS = ("resnet50", "efficientnet_lite0")
Precision = Literal["32-true", "16-mixed", "bf16-mixed"]
_EXTERNAL = ("hf:", "smp:")
_MAX_COUNT = 10**9
_MAX_SIZE = 16384  # of a side; a batch of such images is 6 GB
_MAX_SEED = 2**32 - 1  # of NumPy and Lightning


@dataclass(frozen=True)
class NetworkPart:
    """Which network.

    Attributes:
        name: one of `networks.names()`; `hf:FOLDER` or `smp:FOLDER`; `timm:ENCODER`, short for `fpn`
            with this encoder; `py:MODULE:FUNCTION`, another form of `factory`.
        encoder: of a network by name; `fpn` also takes `timm:ENCODER`.
        encoder_weights: as for `networks.create`, or `"none"` for random ones.
        frozen: prefixes of the names of parameters that are not trained.
        factory: `module:function` that builds a network of yours, instead of a name.
        arguments: of the factory; of `hf:` and `smp:`, those of `networks.wrap`.
    """

    name: str = ""
    encoder: str = "resnet50"
    encoder_weights: str = "imagenet"
    frozen: tuple[str, ...] = ()
    factory: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_types(self)
        if self.name.startswith("py:") and not self.factory:
            object.__setattr__(self, "factory", self.name.removeprefix("py:"))
            object.__setattr__(self, "name", "")
        if self.name.startswith("timm:"):
            object.__setattr__(self, "encoder", self.name)
            object.__setattr__(self, "name", "fpn")
        if bool(self.name) == bool(self.factory):
            raise ValueError("needs a name or a factory, and not both")
        if self.factory:
            check_import_name(self.factory)
        if self.is_external:
            self._check_external()
        else:
            self._check_named()
        if not self.encoder_weights or "" in self.frozen:
            raise ValueError("encoder_weights and the prefixes in frozen must not be empty")

    @property
    def is_external(self) -> bool:
        """Whether it is not one of sisod's networks."""
        return bool(self.factory) or self.name.startswith(_EXTERNAL)

    def _check_external(self) -> None:
        if self.encoder != "resnet50" or self.encoder_weights not in ("imagenet", "none"):
            raise ValueError(
                f"encoder and encoder_weights are of networks by name; {self.factory or self.name} "
                "brings its own"
            )
        if self.name and not self.name.partition(":")[2]:
            raise ValueError(f"name {self.name!r} names no model; expected {self.name}FOLDER")

    def _check_named(self) -> None:
        if ":" in self.name:
            kinds = ", ".join((*_EXTERNAL, "py:", "timm:"))
            raise ValueError(f"name {shown(self.name)} cannot be trained; the kinds that can: {kinds}")
        check_known("network", self.name, network_names())
        if not (self.name == "fpn" and self.encoder.startswith("timm:")):
            check_known("encoder", self.encoder, ENCODERS)
        if self.arguments:
            raise ValueError(f"arguments are of a factory, hf: or smp:; {self.name} takes none")


@dataclass(frozen=True)
class DataPart:
    """Side of the square input; probability of a horizontal flip; largest part of a side to crop off."""

    size: int
    flip: float = 0.5
    crop: float = 0.0

    def __post_init__(self) -> None:
        check_types(self)
        check_whole("size", self.size, least=32, most=_MAX_SIZE)
        _check_range("flip", self.flip, 1)
        _check_range("crop", self.crop, 0.9)


@dataclass(frozen=True)
class Adam:
    """Adam, or AdamW with decoupled weight decay."""

    name: Literal["adam", "adamw"]
    lr: float
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        check_types(self)
        _check_range("lr", self.lr)
        _check_range("weight_decay", self.weight_decay)
        for beta in self.betas:
            _check_range("betas", beta, 0.999999)


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent; `double_bias` gives biases twice the learning rate and no decay."""

    name: Literal["sgd"]
    lr: float
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0
    double_bias: bool = False

    def __post_init__(self) -> None:
        check_types(self)
        _check_range("lr", self.lr)
        _check_range("momentum", self.momentum, 0.999999)
        _check_range("weight_decay", self.weight_decay)
        if self.nesterov and not self.momentum:
            raise ValueError("nesterov needs a momentum above 0")


@dataclass(frozen=True)
class Schedule:
    """The factor of the learning rate `lr` at every step; see `schedule_factor`.

    Attributes:
        name: `constant`; `poly`, (1 - t)^power; `cosine`, half a wave down to 0; `triangle`, linear up
            to the middle of the run and down again, by epochs; `drop`, multiplied by `drop_factor` after
            each of `drop_epochs`.
        power: of `poly`.
        drop_epochs: of `drop`: the epochs after which the rate drops.
        drop_factor: of `drop`.
        warmup_steps: steps at the start over which the rate grows from a hundredth of its value.
        encoder_factor: learning rate of the encoder divided by that of the other parameters.
    """

    name: Literal["constant", "poly", "cosine", "triangle", "drop"] = "constant"
    power: float = 0.9
    drop_epochs: tuple[int, ...] = ()
    drop_factor: float = 0.1
    warmup_steps: int = 0
    encoder_factor: float = 1.0

    def __post_init__(self) -> None:
        check_types(self)
        _check_range("power", self.power)
        _check_range("encoder_factor", self.encoder_factor)
        _check_range("drop_factor", self.drop_factor, 1)
        check_whole("warmup_steps", self.warmup_steps, least=0, most=_MAX_COUNT)
        for epoch in self.drop_epochs:
            check_whole("every one of drop_epochs", epoch, least=1, most=_MAX_COUNT)
        if (self.name == "drop") != bool(self.drop_epochs):
            raise ValueError("drop_epochs must be given if name is 'drop', and only then")


@dataclass(frozen=True)
class LossPart:
    """Options of `SizeInvariantLoss`; `normalize` false is the paper's Eq. 16 as printed.

    For the first `warmup_epochs` epochs the plain loss replaces the size-invariant one.
    """

    terms: tuple[str, ...]
    alpha: str | float = "ratio"
    normalize: bool = True
    warmup_epochs: int = 0
    parts: Literal["boxes", "cells", "blobs"] = "boxes"
    whole: float = 0.0
    gamma: float = 1.0

    def __post_init__(self) -> None:
        check_types(self)
        if not self.terms:
            raise ValueError(f"terms is empty; name at least one of {', '.join(TERM_NAMES)}")
        for term in self.terms:
            parse_term(term)
        check_weighting(
            parts=self.parts,
            alpha=self.alpha,  # type: ignore[arg-type]
            normalize=self.normalize,
            whole=self.whole,
            gamma=self.gamma,
        )
        check_whole("warmup_epochs", self.warmup_epochs, least=0, most=_MAX_COUNT)


@dataclass(frozen=True)
class TrainPart:
    """Batch, length, gradients and seed of the run.

    Attributes:
        batch: images of a batch, over all devices together.
        accumulate: batches whose gradients are averaged for one step.
        epochs: length of the run; or `steps`, rounded up to whole epochs.
        steps: see `epochs`; exactly one of the two is given.
        clip: largest norm of the gradient; 0 for no clipping.
        freeze_norm: do not update the statistics of batch norms.
        validate_every: epochs between validations.
        seed: of the initial weights, the order of images and their augmentation.
        calibrate: share of the images that is not trained on but kept for `sisod calibrate`.
        ema: decay of the exponential moving average of the weights, which is what is validated and
            saved; 0 for none. At step n it is at most (1 + n) / (10 + n), so that a short run forgets
            its initial weights.
        precision: of the computation, under Lightning's names; `--precision` replaces it.
        compile: run training steps through `torch.compile`.
    """

    batch: int
    epochs: int = 0
    steps: int = 0
    accumulate: int = 1
    clip: float = 0.0
    freeze_norm: bool = False
    validate_every: int = 1
    seed: int = 0
    calibrate: float = 0.0
    ema: float = 0.0
    precision: Precision = "32-true"
    compile: bool = False

    def __post_init__(self) -> None:
        check_types(self)
        for name in ("batch", "accumulate", "validate_every"):
            check_whole(name, getattr(self, name), least=1, most=_MAX_COUNT)
        for name in ("epochs", "steps"):
            check_whole(name, getattr(self, name), least=0, most=_MAX_COUNT)
        check_whole("seed", self.seed, least=0, most=_MAX_SEED)
        _check_range("clip", self.clip)
        _check_range("calibrate", self.calibrate, 0.9)
        _check_range("ema", self.ema, 0.999999)
        if bool(self.epochs) == bool(self.steps):
            raise ValueError("exactly one of epochs and steps must be above 0")

    @property
    def images_per_step(self) -> int:
        """Images of one step."""
        return self.batch * self.accumulate


@dataclass(frozen=True)
class LabelsPart:
    """The first stage of a network with auxiliary targets: `epochs` on labels derived from the masks.

    What it then predicts for the training images are the labels of the second stage. With 0 epochs
    there is no first stage, and the run itself learns the labels derived from the masks.
    """

    epochs: int = 0

    def __post_init__(self) -> None:
        check_types(self)
        check_whole("epochs", self.epochs, least=0, most=_MAX_COUNT)


def _check_range(name: str, value: float, most: float = 1e9) -> None:
    if not 0 <= value <= most:  # refuses NaN too
        bounds = "0 or more" if most == 1e9 and not value > most else f"from 0 to {most:g}"
        raise ValueError(f"{name} must be {bounds}, got {value:g}")

"""The sections of a recipe. msgspec checks types and bounds when a file is read; see `recipe`.

Imports no PyTorch and no code that a recipe names.
"""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from msgspec import Meta

from sisod.common.arguments import check_known
from sisod.common.imports import check_import_name
from sisod.networks import names as network_names
from sisod.scoring.loss_options import TERM_NAMES, PartKind, Weighting, parse_term
from sisod.scoring.metrics import METRICS, PAPER_KEYS, check_metric
from sisod.scoring.protocols import find_protocol

# repeated here, so that a wrong recipe is refused without importing PyTorch
ENCODERS = ("resnet50", "efficientnet_lite0")
Precision = Literal["32-true", "16-mixed", "bf16-mixed"]
Count = Annotated[int, Meta(ge=0, le=10**9)]
Positive = Annotated[int, Meta(ge=1, le=10**9)]
Size = Annotated[int, Meta(ge=32, le=16384)]  # of a side; a batch of such images is 6 GB
Seed = Annotated[int, Meta(ge=0, le=2**32 - 1)]  # the most that NumPy and Lightning take
Amount = Annotated[float, Meta(ge=0, le=1e9)]
Share = Annotated[float, Meta(ge=0, le=1)]
MostlyKept = Annotated[float, Meta(ge=0, le=0.9)]
Decay = Annotated[float, Meta(ge=0, le=0.999999)]
Name = Annotated[str, Meta(min_length=1)]
Scalar = str | bool | int | Annotated[float, Meta(ge=-1e300, le=1e300)]


@dataclass(frozen=True)
class NetworkPart:
    """Which network.

    Attributes:
        name: one of `networks.names()`; `hf:FOLDER`; `timm:ENCODER`, short for `fpn` with this encoder;
            `py:MODULE:FUNCTION`, another form of `factory`.
        encoder: of a network by name; `fpn` also takes `timm:ENCODER`.
        encoder_weights: as for `networks.create`, or `"none"` for random ones.
        frozen: prefixes of the names of parameters that are not trained.
        factory: `module:function` that builds a network of yours, instead of a name.
        arguments: of the factory; of `hf:`, those of `networks.wrap`.
    """

    name: str = ""
    encoder: str = "resnet50"
    encoder_weights: Name = "imagenet"
    frozen: tuple[Name, ...] = ()
    factory: str = ""
    arguments: dict[str, Scalar | list[Scalar]] = field(default_factory=dict)

    def __post_init__(self) -> None:
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
            if self.encoder != "resnet50" or self.encoder_weights not in ("imagenet", "none"):
                raise ValueError("encoder and encoder_weights are of sisod's networks; leave them out")
        else:
            check_known("network", self.name, (*network_names(), "hf:FOLDER", "py:MODULE:FUNCTION"))
            if not (self.name == "fpn" and self.encoder.startswith("timm:")):
                check_known("encoder", self.encoder, ENCODERS)
            if self.arguments:
                raise ValueError(f"arguments are of a factory or hf:; {self.name} takes none")

    @property
    def is_external(self) -> bool:
        """Whether it is not one of sisod's networks."""
        return bool(self.factory) or self.name.startswith("hf:")


@dataclass(frozen=True)
class DataPart:
    """The input and its augmentation; see `sisod.training.data.augment`.

    Attributes:
        size: side of the square input in pixels.
        flip: probability of a horizontal flip.
        crop: largest part of a side that is cropped off.
        augment: what is done to image and mask before: `py:MODULE:FUNCTION`, called as
            `function(image=..., mask=...)` and returning a dict of both, like transforms of
            albumentations; or a .json or .yaml file that albumentations saved. None for nothing.
    """

    size: Size
    flip: Share = 0.5
    crop: MostlyKept = 0.0
    augment: Name | None = None

    def __post_init__(self) -> None:
        if self.augment is not None and not self.augment.endswith((".json", ".yaml")):
            check_import_name(self.augment.removeprefix("py:"))


@dataclass(frozen=True)
class Adam:
    """Adam, or AdamW with decoupled weight decay.

    Attributes:
        name: `adam` or `adamw`.
        lr: learning rate, which the schedule multiplies.
        betas: decay of the averages of the gradient and of its square.
        weight_decay: added to the gradient (`adam`) or to the step (`adamw`).
    """

    name: Literal["adam", "adamw", "sgd"]  # sgd is read as `SGD`
    lr: Amount
    betas: tuple[Decay, Decay] = (0.9, 0.999)
    weight_decay: Amount = 0.0


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent.

    Attributes:
        name: `sgd`.
        lr: learning rate, which the schedule multiplies.
        momentum: decay of the average of the gradient.
        nesterov: look ahead by one step of momentum.
        weight_decay: added to the gradient.
        double_bias: give biases twice the learning rate and no decay, as GateNet does.
    """

    name: Literal["sgd"]
    lr: Amount
    momentum: Decay = 0.0
    nesterov: bool = False
    weight_decay: Amount = 0.0
    double_bias: bool = False

    def __post_init__(self) -> None:
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
    power: Amount = 0.9
    drop_epochs: tuple[Positive, ...] = ()
    drop_factor: Share = 0.1
    warmup_steps: Count = 0
    encoder_factor: Amount = 1.0

    def __post_init__(self) -> None:
        if (self.name == "drop") != bool(self.drop_epochs):
            raise ValueError("drop_epochs must be given if name is 'drop', and only then")


@dataclass(frozen=True)
class LossPart:
    """Options of `SizeInvariantLoss`, under the same names.

    The workers of the data loader find the objects by `min_area` and `connectivity`, in masks at the
    size of the input.

    Attributes:
        terms: such as `bce` and `tversky(0.3,0.7)`; their sum is the loss.
        alpha: weight of the background between boxes: `ratio` (the paper's), `union` or a number.
        normalize: divide by the number of objects; false is the paper's Eq. 16 as printed.
        warmup_epochs: for so many epochs the plain loss replaces the size-invariant one.
        parts: what the loss is taken over: `boxes` or `cells`.
        image_weight: share of the plain loss of the whole image.
        gamma: exponent of the weights of the parts.
        min_area: smaller components are no objects: a share of the image, or pixels if an integer.
        connectivity: of components, 4 or 8.
    """

    terms: tuple[str, ...]
    alpha: str | float = "ratio"
    normalize: bool = True
    warmup_epochs: Count = 0
    parts: PartKind = "boxes"
    image_weight: float = 0.0
    gamma: float = 1.0
    min_area: Count | float = 0.0002
    connectivity: Literal[4, 8] = 8

    def __post_init__(self) -> None:
        if not self.terms:
            raise ValueError(f"terms is empty; name at least one of {', '.join(TERM_NAMES)}")
        for term in self.terms:
            parse_term(term)
        Weighting(  # which checks them
            parts=self.parts,
            alpha=self.alpha,  # type: ignore[arg-type]
            normalize=self.normalize,
            image_weight=self.image_weight,
            gamma=self.gamma,
            min_area=self.min_area,
            connectivity=self.connectivity,
        )


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

    batch: Positive
    epochs: Count = 0
    steps: Count = 0
    accumulate: Positive = 1
    clip: Amount = 0.0
    freeze_norm: bool = False
    validate_every: Positive = 1
    seed: Seed = 0
    calibrate: MostlyKept = 0.0
    ema: Decay = 0.0
    precision: Precision = "32-true"
    compile: bool = False

    def __post_init__(self) -> None:
        if bool(self.epochs) == bool(self.steps):
            raise ValueError("exactly one of epochs and steps must be above 0")

    @property
    def images_per_step(self) -> int:
        """Images of one step."""
        return self.batch * self.accumulate


@dataclass(frozen=True)
class ValidatePart:
    """How a run is judged on the images of `--val`, every `train.validate_every` epochs.

    Attributes:
        monitor: metric by which the best epoch is chosen, one of `sisod metrics`.
        protocol: conventions of scoring, as for `sisod evaluate`.
        patience: stop after so many validations in a row without a better one; 0 for never.
    """

    monitor: str = "si_mae"
    protocol: str = "default"
    patience: Count = 0

    def __post_init__(self) -> None:
        check_metric(self.monitor, METRICS)
        find_protocol(self.protocol)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The paper's metrics, and the monitor if it is another one."""
        return tuple(dict.fromkeys((*PAPER_KEYS, self.monitor)))


@dataclass(frozen=True)
class LightningPart:
    """Loggers and callbacks of Lightning by the names of their classes, each with its arguments.

    Example:
        >>> LightningPart(loggers={"WandbLogger": {"offline": True}}).callbacks
        {}
    """

    loggers: dict[str, dict[str, Scalar | list[Scalar]]] = field(default_factory=dict)
    callbacks: dict[str, dict[str, Scalar | list[Scalar]]] = field(default_factory=dict)


@dataclass(frozen=True)
class LabelsPart:
    """The first stage of a network with auxiliary targets: `epochs` on labels derived from the masks.

    What it then predicts for the training images are the labels of the second stage. With 0 epochs
    there is no first stage, and the run itself learns the labels derived from the masks.
    """

    epochs: Count = 0

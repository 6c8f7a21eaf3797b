"""Recipes: TOML files that say how a network is trained, read strictly into frozen dataclasses.

    [network]      which one, its encoder and the encoder's weights; or a factory of your own
    [data]         size of the input, augmentation
    [optimizer]    adam, adamw or sgd
    [schedule]     the learning rate over the run
    [loss]         terms, alpha, normalize, warmup_epochs, parts, whole, gamma
    [train]        batch, length, seed, average of the weights, precision, images kept for calibration
    [labels]       a first stage that makes labels; for networks that learn body and detail

Imports no PyTorch unless there is a section [labels], so that a wrong recipe is refused at once.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_type_hints

from sisod.common.arguments import brief, check_whole, shown, unknown_name_message
from sisod.common.config import is_utf8, read_toml, toml_value
from sisod.common.errors import InputError, UsageError, printable
from sisod.networks import find
from sisod.scoring.loss_options import TERM_NAMES, check_weighting, parse_term
from sisod.training.field_types import check_types, convert, describe_type
from sisod.training.network_part import NetworkPart

_FOLDER = Path(__file__).parent / "recipes"
_MAX_COUNT = 10**9
_MAX_SIZE = 16384  # of a side; a batch of such images is 6 GB
_MAX_SEED = 2**32 - 1  # of NumPy and Lightning


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
    precision: Literal["32-true", "16-mixed", "bf16-mixed"] = "32-true"
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


@dataclass(frozen=True)
class Recipe:
    """How a network is trained."""

    name: str
    network: NetworkPart
    data: DataPart
    optimizer: Adam | SGD
    schedule: Schedule
    loss: LossPart
    train: TrainPart
    labels: LabelsPart

    def __post_init__(self) -> None:
        check_types(self)
        # finding the class imports PyTorch, which only recipes with [labels] wait for
        if self.labels.epochs and (
            self.network.is_external or not find(self.network.name).auxiliary_targets()
        ):
            raise ValueError(
                "[labels] is for networks that learn body and detail; "
                f"{self.network.name or self.network.factory} learns masks only"
            )

    def tables(self) -> dict[str, dict[str, Any]]:
        """Return the recipe as the tables of a TOML file."""
        return {key: table for key, table in asdict(self).items() if key != "name"}


_PARTS: dict[str, type[Any]] = {
    "network": NetworkPart,
    "data": DataPart,
    "schedule": Schedule,
    "loss": LossPart,
    "train": TrainPart,
    "labels": LabelsPart,
}
_OPTIMIZERS: dict[str, type[Adam | SGD]] = {"adam": Adam, "adamw": Adam, "sgd": SGD}
_SECTIONS = sorted([*_PARTS, "optimizer"])
_OPTIONAL = ("labels", "schedule")


def names() -> tuple[str, ...]:
    """Return the names of the recipes that come with the library.

    Example:
        >>> names()[:3]
        ('edn', 'edn-lite', 'fpn')
    """
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


def find_recipe(
    name_or_path: str | Path, settings: Sequence[str] = (), *, factory: str | None = None
) -> Recipe:
    """Return a recipe by its name, or from a TOML file, after replacing values.

    Args:
        name_or_path: one of `names()`, or the path of a file that ends in `.toml`.
        settings: replacements as `"section.key=value"`, the value as TOML writes it; text needs no
            quotes.
        factory: `module:function` that builds the network, instead of the recipe's. Training imports and
            runs it, so a factory that only the file names is refused: repeat it here.

    Example:
        >>> recipe = find_recipe("tiny", ["optimizer.lr=1e-4", "train.epochs=2"])
        >>> recipe.optimizer.lr, recipe.train.epochs
        (0.0001, 2)
    """
    path = Path(name_or_path)
    if path.suffix != ".toml":
        if str(name_or_path) not in names():
            advice = "; a recipe of your own must end in .toml"
            raise UsageError(unknown_name_message("recipe", str(name_or_path), names()) + advice)
        path = _FOLDER / f"{name_or_path}.toml"
    name = printable(path.name)
    tables = read_toml(path, place=f"recipe {str(path)!r}", name=name)
    given: dict[str, Any] = {}
    named = [] if factory is None else [f"network.factory={json.dumps(factory)}"]
    for setting in (*named, *settings):
        _replace(tables, setting)
        _replace(given, setting)
    source = name + "".join(f" --set {brief(setting)}" for setting in settings)
    recipe = read_recipe(tables, name=path.stem, source=source)
    network = given.get("network", {})
    by_user = (network.get("factory"), network.get("name", "").removeprefix("py:"))
    if recipe.network.factory and recipe.network.factory not in by_user:
        raise UsageError(
            f"{source}: [network] names the factory {recipe.network.factory!r}, and sisod runs code "
            "only if you name it; if you trust it, repeat the command with --factory "
            f"{recipe.network.factory}"
        )
    return recipe


def read_recipe(tables: Mapping[str, Any], *, name: str, source: str) -> Recipe:
    """Return the recipe of the tables of a file; error messages call the file `source`."""
    for section in tables:
        if section not in _SECTIONS:
            known = ", ".join(f"[{known}]" for known in _SECTIONS)
            raise InputError(f"{source}: unknown section [{brief(section)}]; expected {known}")
    for section in _SECTIONS:
        if section not in tables and section not in _OPTIONAL:
            raise InputError(f"{source}: section [{section}] is missing")
    parts = {
        section: _read(kind, tables.get(section, {}), section, source)
        for section, kind in _PARTS.items()
    }
    table = tables["optimizer"]
    which = table.get("name") if isinstance(table, dict) else None
    if not isinstance(which, str) or which not in _OPTIMIZERS:
        known = ", ".join(_OPTIMIZERS)
        raise InputError(f"{source}: name in [optimizer] must be one of {known}, got {shown(which)}")
    optimizer = _read(_OPTIMIZERS[which], table, "optimizer", source)
    try:
        return Recipe(name=name, optimizer=optimizer, **parts)
    except ValueError as error:
        raise InputError(f"{source}: {error}") from error


def with_defaults(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return stored tables of a recipe with the defaults of options that were added later."""
    complete = dict(tables)
    for section, kind in _PARTS.items():
        defaults = {f.name: f.default for f in fields(kind) if f.default is not MISSING}
        complete[section] = defaults | tables.get(section, {})
    return dict(json.loads(json.dumps(complete)))


def write_toml(recipe: Recipe) -> str:
    """Return a recipe as the text of a TOML file, every value written out.

    Example:
        >>> write_toml(find_recipe("tiny")).splitlines()[:2]
        ['[network]', 'name = "tiny"']
    """
    lines = []
    without: tuple[str, ...] = ("name",) if recipe.network.factory else ("factory",)
    if recipe.network.is_external:
        without += ("encoder", "encoder_weights")
    for section, table in recipe.tables().items():
        values = [
            f"{key} = {_toml_text(value)}"
            for key, value in table.items()
            if value != {} and not (section == "network" and key in without)
        ]
        lines += [f"[{section}]", *values, ""]
    return "\n".join(lines)


def _toml_text(value: Any) -> str:
    if isinstance(value, dict):
        inside = ", ".join(f"{_toml_text(key)} = {_toml_text(item)}" for key, item in value.items())
        return f"{{ {inside} }}"
    # ASCII-only JSON has surrogate pairs, which TOML refuses; JSON does not escape this character
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _replace(tables: dict[str, Any], setting: str) -> None:
    name, equals, text = setting.partition("=")
    section, dot, key = name.strip().partition(".")
    if not (equals and dot and section and key):
        raise UsageError(f"--set takes section.key=value, like optimizer.lr=1e-4; got {shown(setting)}")
    value = toml_value(text)
    if isinstance(value, str) and not is_utf8(value):
        raise UsageError(f"--set {brief(setting)} is not valid UTF-8; use other characters")
    table = tables.setdefault(section, {})
    if isinstance(table, dict):
        if section == "network":
            _drop_other_network(table, key, value)
        table[key] = value
        if section == "train" and key in ("epochs", "steps") and value:
            table.pop("steps" if key == "epochs" else "epochs", None)  # it replaces the other


def _drop_other_network(table: dict[str, Any], key: str, value: Any) -> None:
    """Drop the keys of the network that a factory, or a name like hf:FOLDER, replaces."""
    if key != "factory" and not (key == "name" and ":" in str(value)):
        return
    before = (table.get("factory"), table.get("name"), f"{table.get('name')}".removeprefix("py:"))
    if value not in before:
        for other in ("encoder", "encoder_weights", "frozen", "arguments"):
            table.pop(other, None)
    for other in ("factory", "name"):
        table.pop(other, None)


def _read(kind: type[Any], table: object, section: str, source: str) -> Any:
    """Return a dataclass from a table; every key must be one of its fields."""
    if not isinstance(table, dict):
        raise InputError(f"{source}: {section} must be a table like [{section}], got {shown(table)}")
    known = {entry.name: entry for entry in fields(kind)}
    for key in table:
        if key not in known:
            expected = ", ".join(sorted(known))
            raise InputError(f"{source}: unknown key {shown(key)} in [{section}]; expected {expected}")
    hints = get_type_hints(kind)
    values = {}
    for name, entry in known.items():
        if name not in table:
            if entry.default is MISSING and entry.default_factory is MISSING:
                raise InputError(f"{source}: [{section}] needs {name}, {describe_type(hints[name])}")
            continue
        matches, value = convert(table[name], hints[name])
        if not matches:
            expected = describe_type(hints[name])
            raise InputError(
                f"{source}: {name} in [{section}] must be {expected}, got {shown(table[name])}"
            )
        values[name] = value
    try:
        return kind(**values)
    except ValueError as error:
        raise InputError(f"{source}: [{section}] {error}") from error


def _check_range(name: str, value: float, most: float = 1e9) -> None:
    if not 0 <= value <= most:  # refuses NaN too
        bounds = "0 or more" if most == 1e9 and not value > most else f"from 0 to {most:g}"
        raise ValueError(f"{name} must be {bounds}, got {value:g}")

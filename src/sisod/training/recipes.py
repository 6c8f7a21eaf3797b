"""Recipes: TOML files that say how a network is trained, read strictly into frozen dataclasses.

    [network]      which one, its encoder and the encoder's weights
    [data]         size of the input, augmentation
    [optimizer]    adam, adamw or sgd
    [schedule]     the learning rate over the run
    [loss]         terms, alpha, normalize, warmup_epochs
    [train]        batch, length, seed
    [labels]       the first stage of LDF; for networks that learn body and detail

Needs no PyTorch, so that a wrong recipe is refused at once.
"""

import json
import tomllib
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from sisod.errors import InputError, UsageError, printable
from sisod.protocols import unknown

_FOLDER = Path(__file__).parent / "recipes"


@dataclass(frozen=True)
class NetworkPart:
    """Which network; `encoder_weights` as for `networks.create`, or `"none"` for random ones.

    `frozen` are beginnings of names of parameters that are not trained.
    """

    name: str
    encoder: str = "resnet50"
    encoder_weights: str = "imagenet"
    frozen: tuple[str, ...] = ()


@dataclass(frozen=True)
class DataPart:
    """Side of the square input; chance of a left-right flip; most of a side that a crop takes away."""

    size: int
    flip: float = 0.5
    crop: float = 0.0

    def __post_init__(self) -> None:
        _least("size", self.size, 32)
        _between("flip", self.flip, 1)
        _between("crop", self.crop, 0.9)


@dataclass(frozen=True)
class Adam:
    """Adam, or AdamW, whose decay does not go through the moments."""

    name: Literal["adam", "adamw"]
    lr: float
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        _between("lr", self.lr)
        _between("weight_decay", self.weight_decay)
        for beta in self.betas:
            _between("betas", beta, 0.999999)


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent; `double_bias` gives biases twice the rate and no decay."""

    name: Literal["sgd"]
    lr: float
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0
    double_bias: bool = False

    def __post_init__(self) -> None:
        _between("lr", self.lr)
        _between("momentum", self.momentum, 0.999999)
        _between("weight_decay", self.weight_decay)
        if self.nesterov and not self.momentum:
            raise ValueError("nesterov needs a momentum above 0")


@dataclass(frozen=True)
class Schedule:
    """The learning rate as a factor of `lr`, from step to step; see `schedule_factor`.

    Attributes:
        name: `constant`; `poly`, (1 - t)^power; `cosine`, half a wave down to 0; `triangle`, linear up
            to the middle and down again, from epoch to epoch; `drop`, times `drop_factor` after each
            of `drop_epochs`.
        power: of `poly`.
        drop_epochs: of `drop`: after so many epochs.
        drop_factor: of `drop`.
        warmup_steps: steps at the start over which the rate grows from a hundredth.
        encoder_factor: the encoder's rate as a part of the others'.
    """

    name: Literal["constant", "poly", "cosine", "triangle", "drop"] = "constant"
    power: float = 0.9
    drop_epochs: tuple[int, ...] = ()
    drop_factor: float = 0.1
    warmup_steps: int = 0
    encoder_factor: float = 1.0

    def __post_init__(self) -> None:
        _between("power", self.power)
        _between("encoder_factor", self.encoder_factor)
        _least("warmup_steps", self.warmup_steps, 0)
        if (self.name == "drop") != bool(self.drop_epochs):
            raise ValueError("drop_epochs goes with name = 'drop', and the other way round")


@dataclass(frozen=True)
class LossPart:
    """Options of the loss; `normalize` false is the paper's Eq. 16 as printed.

    For the first `warmup_epochs` epochs the plain loss stands in for the size-invariant one.
    """

    terms: tuple[str, ...]
    alpha: str | float = "ratio"
    normalize: bool = True
    warmup_epochs: int = 0

    def __post_init__(self) -> None:
        from sisod.frames import check_alpha

        if not self.terms:
            raise ValueError("terms is empty; name at least one of bce, mse, l1, dice, iou, auc")
        check_alpha(self.alpha)  # type: ignore[arg-type]
        _least("warmup_epochs", self.warmup_epochs, 0)


@dataclass(frozen=True)
class TrainPart:
    """The run.

    Attributes:
        batch: images of a batch over all devices together.
        accumulate: batches whose gradients make one step.
        epochs: length of the run; or `steps`, rounded up to whole epochs.
        steps: see `epochs`; exactly one of the two is given.
        clip: largest norm of the gradient; 0 for no bound.
        freeze_norm: leave the statistics of batch norms as they are.
        validate_every: epochs between validations.
        seed: of weights, order and augmentation.
    """

    batch: int
    epochs: int = 0
    steps: int = 0
    accumulate: int = 1
    clip: float = 0.0
    freeze_norm: bool = False
    validate_every: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("batch", "accumulate", "validate_every"):
            _least(name, getattr(self, name), 1)
        for name in ("epochs", "steps", "seed"):
            _least(name, getattr(self, name), 0)
        _between("clip", self.clip)
        if bool(self.epochs) == bool(self.steps):
            raise ValueError("exactly one of epochs and steps must be above 0")

    @property
    def images_per_step(self) -> int:
        """Images whose gradients make one step."""
        return self.batch * self.accumulate


@dataclass(frozen=True)
class LabelsPart:
    """LDF's first stage: so many epochs on labels split from the masks.

    What it then predicts for the training images are the labels of the second stage. With 0 epochs the
    split labels serve directly.
    """

    epochs: int = 0

    def __post_init__(self) -> None:
        _least("epochs", self.epochs, 0)


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
        ('edn', 'edn-lite', 'gatenet')
    """
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


def find_recipe(name_or_path: str | Path, settings: Sequence[str] = ()) -> Recipe:
    """Return a recipe by its name, or from a TOML file, with some of its values replaced.

    Args:
        name_or_path: one of `names()`, or the path of a file that ends in `.toml`.
        settings: replacements as `"section.key=value"`, the value as TOML writes it; text needs no
            quotes.

    Example:
        >>> recipe = find_recipe("tiny", ["optimizer.lr=1e-4", "train.epochs=2"])
        >>> recipe.optimizer.lr, recipe.train.epochs
        (0.0001, 2)
    """
    path = Path(name_or_path)
    if path.suffix != ".toml":
        if str(name_or_path) not in names():
            advice = "; a recipe of your own must end in .toml"
            raise UsageError(unknown("recipe", str(name_or_path), names()) + advice)
        path = _FOLDER / f"{name_or_path}.toml"
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"recipe {str(path)!r} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path.name} is not a TOML file: {error}") from error
    for setting in settings:
        _replace(tables, setting)
    source = printable(path.name) + "".join(f" --set {printable(setting)}" for setting in settings)
    return read_recipe(tables, name=path.stem, source=source)


def read_recipe(tables: Mapping[str, Any], *, name: str, source: str) -> Recipe:
    """Turn the tables of a file into a recipe; `source` is how messages name the file."""
    for section in tables:
        if section not in _SECTIONS:
            known = ", ".join(f"[{known}]" for known in _SECTIONS)
            raise InputError(f"{source}: unknown section [{section}]; expected {known}")
    for section in _SECTIONS:
        if section not in tables and section not in _OPTIONAL:
            raise InputError(f"{source}: section [{section}] is missing")
    parts = {
        section: _read(kind, tables.get(section, {}), section, source)
        for section, kind in _PARTS.items()
    }
    table = tables["optimizer"]
    which = table.get("name") if isinstance(table, dict) else None
    if which not in _OPTIMIZERS:
        known = ", ".join(_OPTIMIZERS)
        raise InputError(f"{source}: name in [optimizer] must be one of {known}, got {which!r}")
    optimizer = _read(_OPTIMIZERS[which], table, "optimizer", source)
    recipe = Recipe(name=name, optimizer=optimizer, **parts)
    if recipe.labels.epochs and recipe.network.name != "ldf":
        raise InputError(f"{source}: [labels] is for ldf; {recipe.network.name} learns masks only")
    return recipe


def write_toml(recipe: Recipe) -> str:
    """Return a recipe as the text of a TOML file, every value written out.

    Example:
        >>> write_toml(find_recipe("tiny")).splitlines()[:2]
        ['[network]', 'name = "tiny"']
    """
    lines = []
    for section, table in recipe.tables().items():
        values = [f"{key} = {json.dumps(value)}" for key, value in table.items()]
        lines += [f"[{section}]", *values, ""]
    return "\n".join(lines)


def _replace(tables: dict[str, Any], setting: str) -> None:
    place, equals, text = setting.partition("=")
    section, dot, key = place.strip().partition(".")
    if not (equals and dot and section and key):
        raise UsageError(f"--set takes section.key=value, like optimizer.lr=1e-4; got {setting!r}")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    table = tables.setdefault(section, {})
    if isinstance(table, dict):
        table[key] = value
        if section == "train" and key in ("epochs", "steps") and value:
            table.pop("steps" if key == "epochs" else "epochs", None)  # one stands for the other


def _read(kind: type[Any], table: object, section: str, source: str) -> Any:
    """Build a dataclass from a table whose every key must be one of its fields."""
    if not isinstance(table, dict):
        raise InputError(f"{source}: {section} must be a table like [{section}], got {table!r}")
    known = {field.name: field for field in fields(kind)}
    for key in table:
        if key not in known:
            expected = ", ".join(sorted(known))
            raise InputError(f"{source}: unknown key {key!r} in [{section}]; expected {expected}")
    hints = get_type_hints(kind)
    values = {}
    for name, field in known.items():
        if name not in table:
            if field.default is MISSING:
                raise InputError(f"{source}: [{section}] needs {name}, {_said(hints[name])}")
            continue
        found, value = _fit(table[name], hints[name])
        if not found:
            raise InputError(
                f"{source}: {name} in [{section}] must be {_said(hints[name])}, got {table[name]!r}"
            )
        values[name] = value
    try:
        return kind(**values)
    except ValueError as error:
        raise InputError(f"{source}: [{section}] {error}") from error


def _fit(value: Any, hint: Any) -> tuple[bool, Any]:
    """Say whether a value has a type, and return it as that type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return value in arguments, value
    if origin in (Union, types.UnionType):
        tried = [_fit(value, argument) for argument in arguments]
        return next((one for one in tried if one[0]), (False, value))
    if origin is tuple:
        if not isinstance(value, list):
            return False, value
        each = [arguments[0]] * len(value) if Ellipsis in arguments else list(arguments)
        if len(each) != len(value):
            return False, value
        items = [_fit(item, argument) for item, argument in zip(value, each, strict=True)]
        return all(found for found, _ in items), tuple(item for _, item in items)
    if hint is float and type(value) is int:
        return True, float(value)
    return type(value) is hint, value


_SAID = {int: "a whole number", float: "a number", bool: "true or false", str: "text in quotes"}


def _said(hint: Any) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return "one of " + ", ".join(arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(_said(argument) for argument in arguments)
    if origin is tuple:
        of = {int: "whole numbers", float: "numbers", str: "texts in quotes"}[arguments[0]]
        return f"a list of {of}" if Ellipsis in arguments else f"a list of {len(arguments)} {of}"
    return _SAID[hint]


def _least(name: str, value: int, bound: int) -> None:
    if value < bound:
        raise ValueError(f"{name} must be at least {bound}, got {value}")


def _between(name: str, value: float, most: float = 1e9) -> None:
    if not 0 <= value <= most:  # NaN is neither
        bounds = "0 or more" if most == 1e9 else f"from 0 to {most:g}"
        raise ValueError(f"{name} must be {bounds}, got {value:g}")

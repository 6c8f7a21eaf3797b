"""Recipes: TOML files that say how a network is trained, read strictly into frozen dataclasses.

The sections are the dataclasses of `recipe_parts`:

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
from typing import Any, get_type_hints

from sisod.common.arguments import brief, shown, unknown_name_message
from sisod.common.config import is_utf8, read_toml, toml_value
from sisod.common.errors import InputError, UsageError, printable
from sisod.networks import find
from sisod.training.field_types import check_types, convert, describe_type
from sisod.training.recipe_parts import (
    SGD,
    Adam,
    DataPart,
    LabelsPart,
    LossPart,
    NetworkPart,
    Schedule,
    TrainPart,
)

_FOLDER = Path(__file__).parent / "recipes"
# `sisod train --loss balanced`: small objects gain, and false objects are punished as well, because
# every pixel belongs to a part and half of the loss is that of the whole image
BALANCED_LOSS = (
    'loss.terms=["bce", "tversky(0.3,0.7)"]',
    *("loss.parts=cells", "loss.whole=0.5", "loss.gamma=1.0"),
    *("loss.alpha=ratio", "loss.normalize=true"),
)


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

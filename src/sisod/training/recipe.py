"""Recipes: TOML files that say how a network is trained, read strictly into frozen dataclasses.

The sections are the dataclasses of `recipe_parts`:

    [network]      which one, its encoder and the encoder's weights; or a factory of your own
    [data]         size of the input, augmentation
    [optimizer]    adam, adamw or sgd
    [schedule]     the learning rate over the run
    [loss]         terms and options of `SizeInvariantLoss`, warmup_epochs
    [train]        batch, length, seed, average of the weights, precision, images kept for calibration
    [labels]       a first stage that makes labels; for networks that learn body and detail
    [validate]     metric of the best epoch, protocol, early stopping
    [lightning]    further loggers and callbacks of Lightning

Imports no PyTorch, so that a wrong recipe is refused at once.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, get_type_hints

from sisod.common.arguments import check_utf8, one_line, short_repr, unknown_name_message
from sisod.common.exceptions import InputError, UsageError, printable
from sisod.common.files import convert, read_toml, toml_value
from sisod.scoring.loss_options import BALANCED_IMAGE_WEIGHT, BALANCED_PARTS, BALANCED_TERMS
from sisod.training.recipe_parts import (
    SGD,
    Adam,
    DataPart,
    LabelsPart,
    LightningPart,
    LossPart,
    NetworkPart,
    Schedule,
    TrainPart,
    ValidatePart,
)

_FOLDER = Path(__file__).parent / "recipes"
# `sisod train --loss balanced`, as settings
BALANCED_LOSS = (
    f"loss.terms={json.dumps(BALANCED_TERMS)}",
    *(f"loss.parts={BALANCED_PARTS}", f"loss.image_weight={BALANCED_IMAGE_WEIGHT}"),
    *("loss.gamma=1.0", "loss.alpha=ratio", "loss.normalize=true"),
)


@dataclass(frozen=True)
class Recipe:
    """How a network is trained: one attribute per section of the file, and the file's name.

    It is frozen; `dataclasses.replace` makes another one.

    Example:
        >>> recipe = find_recipe("edn")
        >>> recipe.name, recipe.network.name, recipe.train.epochs, recipe.loss.terms
        ('edn', 'edn', 100, ('bce', 'dice'))
    """

    name: str
    network: NetworkPart
    data: DataPart
    optimizer: Adam | SGD
    schedule: Schedule
    loss: LossPart
    train: TrainPart
    labels: LabelsPart
    validate: ValidatePart = field(default_factory=ValidatePart)
    lightning: LightningPart = field(default_factory=LightningPart)

    def tables(self) -> dict[str, dict[str, Any]]:
        """Return the tables of a TOML file; [validate] and [lightning] only if they are used."""
        defaults = {"validate": asdict(ValidatePart()), "lightning": asdict(LightningPart())}
        tables = {key: table for key, table in asdict(self).items() if key != "name"}
        return {key: table for key, table in tables.items() if table != defaults.get(key)}


_PARTS = {section: kind for section, kind in get_type_hints(Recipe).items() if section != "name"}


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
        settings: replacements as `"section.key=value"`, the value as TOML writes it; strings need no
            quotes.
        factory: `module:function` that builds the network, instead of the recipe's. Training imports and
            runs it, so a factory that only the file names is refused: repeat it here.

    Raises:
        UsageError: there is no such recipe, or a setting has another form.
        InputError: the file cannot be read, or a section, key or value is wrong.

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
    tables = read_toml(path, name=f"recipe {str(path)!r}")
    given = [] if factory is None else [("network", "factory", factory)]
    given += map(_parse_setting, settings)
    for section, key, value in given:
        _replace(tables, section, key, value)
    source = name + "".join(f" --set {one_line(setting)}" for setting in settings)
    recipe = read_recipe(tables, name=path.stem, source=source)
    by_user = {str(value).removeprefix("py:") for _, _, value in given}
    if recipe.network.factory and recipe.network.factory not in by_user:
        raise UsageError(
            f"{source}: [network] names the factory {recipe.network.factory!r}, and sisod runs code "
            "only if you name it; if you trust it, repeat the command with --factory "
            f"{recipe.network.factory}"
        )
    function = (recipe.data.augment or "").removeprefix("py:")
    if ":" in function and function not in by_user:
        raise UsageError(
            f"{source}: [data] names the function {function!r}, and sisod runs code only if you name "
            f"it; if you trust it, repeat the command with --set data.augment=py:{function}"
        )
    return recipe


def balanced(recipe: Recipe) -> Recipe:
    """Return a recipe with the balanced loss; warmup_epochs, min_area and connectivity stay.

    Example:
        >>> balanced(find_recipe("edn")) == find_recipe("edn", BALANCED_LOSS)
        True
    """
    tables = recipe.tables()
    for setting in BALANCED_LOSS:
        _replace(tables, *_parse_setting(setting))
    return read_recipe(tables, name=recipe.name, source=recipe.name)


def read_recipe(tables: Mapping[str, Any], *, name: str, source: str) -> Recipe:
    """Return the recipe of the tables of a file; error messages call the file `source`.

    Raises:
        InputError: a section or key is unknown or missing, or a value has another type or bound than
            the dataclass of its section says.
    """
    for section in tables:
        if section not in _PARTS:
            known = ", ".join(f"[{known}]" for known in sorted(_PARTS))
            raise InputError(f"{source}: unknown section [{one_line(section)}]; expected {known}")
    optimizer = tables.get("optimizer")
    is_sgd = isinstance(optimizer, dict) and optimizer.get("name") == "sgd"
    kinds = _PARTS | {"optimizer": SGD if is_sgd else Adam}
    parts = {
        section: convert(tables.get(section, {}), kind, name=f"{source}: [{section}]")
        for section, kind in kinds.items()
    }
    return Recipe(name=name, **parts)


def write_toml(recipe: Recipe) -> str:
    """Return a recipe as the text of a TOML file, every value written out.

    Example:
        >>> write_toml(find_recipe("tiny")).splitlines()[:2]
        ['[network]', 'name = "tiny"']
    """
    lines = []
    unused: tuple[str, ...] = ("name",) if recipe.network.factory else ("factory",)
    if recipe.network.is_external:
        unused += ("encoder", "encoder_weights")
    for section, table in recipe.tables().items():
        values = [
            f"{key} = {_toml_text(value)}"
            for key, value in table.items()
            if value not in ({}, None) and not (section == "network" and key in unused)
        ]
        lines += [f"[{section}]", *values, ""]
    return "\n".join(lines)


def _toml_text(value: Any) -> str:
    if isinstance(value, dict):
        inside = ", ".join(f"{_toml_text(key)} = {_toml_text(item)}" for key, item in value.items())
        return f"{{ {inside} }}"
    # ASCII-only JSON has surrogate pairs, which TOML refuses; JSON does not escape this character
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _parse_setting(setting: str) -> tuple[str, str, Any]:
    """Return section, key and value of `section.key=value`."""
    name, equals, text = setting.partition("=")
    section, dot, key = name.strip().partition(".")
    if not (equals and dot and section and key):
        raise UsageError(
            f"--set takes section.key=value, like optimizer.lr=1e-4; got {short_repr(setting)}"
        )
    check_utf8(setting, "the setting")
    return section, key, toml_value(text)


def _replace(tables: dict[str, Any], section: str, key: str, value: Any) -> None:
    """Replace a value, and what it excludes: the other length of the run, the other network."""
    table = tables.setdefault(section, {})
    if not isinstance(table, dict):  # `read_recipe` says so
        return
    if (section, key) in (("train", "epochs"), ("train", "steps")) and value:
        table.pop("steps" if key == "epochs" else "epochs", None)
    if section == "network" and (key == "factory" or (key == "name" and ":" in str(value))):
        same = (table.get("factory"), table.get("name"), str(table.get("name")).removeprefix("py:"))
        if value not in same:
            table.clear()
        for other in ("factory", "name"):
            table.pop(other, None)
    table[key] = value

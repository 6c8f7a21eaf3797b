"""The networks by name, the kinds of models of other people, and the two tables of `sisod networks`.

Importing this module does not import PyTorch, so that ONNX files do without it.
"""

import re
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sisod.common.arguments import check_known, one_line, short_repr
from sisod.common.exceptions import UsageError, is_missing, printable, require
from sisod.networks.specs import Activation, Normalization, Size, Triple

if TYPE_CHECKING:
    from rich.table import Table

    from sisod.networks.network import Network

MODULES = ("torch", "safetensors", "huggingface_hub")


@dataclass(frozen=True)
class Facts:
    """A network's row in the table of `sisod networks`.

    Attributes:
        name: as `networks.create` takes it.
        title: as its paper writes it.
        paper: where and when it was published.
        origin: the authors' repository; `"sisod"` if no weights are published.
        licence: of the authors' code and published weights.
        location: module and class in `sisod.networks.architectures`.
    """

    name: str
    title: str
    paper: str
    origin: str
    licence: str
    location: str = ""


_GATENET = "github.com/Xiaoqi-Zhao-DLUT/GateNet-RGB-Saliency"
_EDN_LICENCE = "CC BY-NC-SA 4.0 (non-commercial)"
_ROWS = (
    Facts("edn", "EDN", "TIP 2022", "github.com/yuhuan-wu/EDN", _EDN_LICENCE, "edn.EDN"),
    Facts("fpn", "FPN", "CVPR 2017", "sisod", "none published", "fpn.FPN"),
    Facts("gatenet", "GateNet", "ECCV 2020", _GATENET, "MIT", "gatenet.GateNet"),
    Facts("icon", "ICON-R", "TPAMI 2022", "github.com/mczhuge/ICON", "MIT", "icon.ICON"),
    Facts("ldf", "LDF", "CVPR 2020", "github.com/weijun88/LDF", "no licence file", "ldf.LDF"),
    Facts("poolnet", "PoolNet", "CVPR 2019", "github.com/backseason/PoolNet", "MIT", "poolnet.PoolNet"),
    Facts("tiny", "Tiny", "this library", "sisod", "none published", "fpn.Tiny"),
)
FACTS = {facts.name: facts for facts in _ROWS}


def names() -> tuple[str, ...]:
    """Return the names of the networks.

    Example:
        >>> names()
        ('edn', 'fpn', 'gatenet', 'icon', 'ldf', 'poolnet', 'tiny')
    """
    return tuple(FACTS)


def missing_module() -> str | None:
    """Return the first package that networks need and that is not installed; None if they all are."""
    return next(filter(is_missing, MODULES), None)


def find(name: str) -> "type[Network]":
    """Return the class of a network.

    Example:
        >>> find("edn").facts.paper
        'TIP 2022'
    """
    check_known("network", name, FACTS)
    require("sisod.networks", *MODULES)
    module, _, cls = FACTS[name].location.partition(".")
    network: type[Network] = getattr(import_module(f"sisod.networks.architectures.{module}"), cls)
    return network


def networks_table(encoder: str = "resnet50") -> "Table":
    """Return one row per network; tiny always has its own encoder. Numbers need PyTorch."""
    from rich.table import Table

    has_numbers = missing_module() is None
    origins = [facts.origin for facts in FACTS.values() if facts.origin != "sisod"]
    table = Table(
        title=f"Encoder {encoder}, 384 x 384" if has_numbers else "Networks",
        caption=f"Weights are published at {', '.join(origins)}",
    )
    numbers = ("parameters", "GMACs", "maps") if has_numbers else ()
    for head in ("name", *numbers, "paper", "licence of the published weights"):
        table.add_column(head, justify="right" if head in numbers else "left")
    for name, facts in FACTS.items():
        row = _numbers(name, encoder) if has_numbers else ()
        table.add_row(name, *row, f"{facts.title}, {facts.paper}", facts.licence)
    return table


def _numbers(name: str, encoder: str) -> tuple[str, str, str]:
    """Return the number of parameters, of multiply-adds and of maps."""
    import torch

    with torch.device("meta"):
        network = find(name)() if name == "tiny" else find(name)(encoder)
    return (
        f"{sum(parameter.numel() for parameter in network.parameters()):,}",
        f"{network.count_macs((384, 384)) / 1e9:.3f}",
        str(len(network.targets)),
    )


# ------------------------------------------------------------------------- models of other people

_OF_WRAP = ("size", "mean", "std", "output", "activation", "normalize", "channel")
_OF_CHECKPOINTS = ("size", "network", "origin", "factory")


@dataclass(frozen=True)
class ModelOptions:
    """What the command line says about a model; the defaults where the model's own configuration holds.

    Attributes:
        size: as for `networks.wrap`, and so are the next six.
        trust_remote_code: run the code that comes with a repository on the hub.
        network: as for `networks.saved.load_network`, and so are the next two.
    """

    size: int | Size | None = None
    mean: Triple | None = None
    std: Triple | None = None
    output: int | str | None = None
    activation: Activation | None = None
    normalize: Normalization | None = None
    channel: int | None = None
    trust_remote_code: bool = False
    network: str | None = None
    origin: str = "authors"
    factory: str | None = None

    def given(self) -> dict[str, Any]:
        """Return the options that are not the defaults, as keyword arguments."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value != getattr(ModelOptions, name)}

    def check_only(self, allowed: tuple[str, ...], model: str) -> None:
        """Raise if an option is given that has no effect on a model."""
        extra = [f"--{name.replace('_', '-')}" for name in self.given() if name not in allowed]
        if extra:
            raise UsageError(f"{', '.join(extra)} cannot be given for {model!r}; leave it out")


@dataclass(frozen=True)
class Kind:
    """A row of the table of `sisod networks`.

    Attributes:
        form: how such a model is named.
        modules: that must be installed; the first is particular to this kind.
        options: of `ModelOptions` that have an effect.
        example: one command.
    """

    form: str
    modules: tuple[str, ...]
    options: tuple[str, ...]
    example: str


KINDS = {
    "onnx": Kind(
        "onnx:FILE",
        ("onnxruntime",),
        _OF_WRAP,
        "sisod predict onnx:u2net.onnx images maps --activation none --normalize minmax",
    ),
    "hf": Kind(
        "hf:FOLDER_OR_REPOSITORY",
        ("transformers", *MODULES),
        (*_OF_WRAP, "trust_remote_code"),
        "sisod predict hf:segformer-folder images maps --channel 1",
    ),
    "py": Kind(
        "py:MODULE:FUNCTION", MODULES, _OF_WRAP, "sisod predict py:mine:build images maps --size 1024"
    ),
    "timm": Kind(
        "timm:ENCODER",
        ("timm", *MODULES),
        (),
        "sisod train fpn --set network.encoder=timm:convnext_tiny",
    ),
}


def kinds_table() -> "Table":
    """Return the table of what can be brought, one row per kind."""
    from rich.table import Table

    table = Table(title="Models that you can bring", caption="The examples are commands to adapt.")
    for head in ("model", "package", "installed", "example"):
        table.add_column(head, overflow="fold")
    for kind in KINDS.values():
        installed = "no" if any(map(is_missing, kind.modules)) else "yes"
        table.add_row(kind.form, kind.modules[0], installed, kind.example)
    return table


def check_model(model: str, options: ModelOptions = ModelOptions()) -> tuple[str | None, str]:  # noqa: B008
    """Return the kind and the rest of a model's name; no kind for a checkpoint of sisod.

    Raises if the kind is unknown, does not take an option that is given, or needs what is not installed.

    Example:
        >>> check_model("py:models.unet:build"), check_model("runs/edn")
        (('py', 'models.unet:build'), (None, 'runs/edn'))
    """
    name, colon, rest = model.partition(":")
    if colon and name in KINDS:
        require(f"a model {name}:", *KINDS[name].modules)
        options.check_only(KINDS[name].options, model)
        return name, rest
    # a drive of Windows has one letter
    if re.fullmatch(r"[A-Za-z]\w+", name) and colon and not Path(model).exists():
        check_known("kind of model", one_line(name), KINDS)
    if model.endswith(".onnx"):
        raise UsageError(f"{short_repr(model)} is an ONNX file; write onnx:{printable(model)}")
    options.check_only(_OF_CHECKPOINTS, model)
    return None, model

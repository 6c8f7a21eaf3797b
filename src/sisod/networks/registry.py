"""The networks by name, facts about them, and the table of `sisod networks`.

Importing this module does not import PyTorch.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from sisod.common.arguments import check_known
from sisod.common.exceptions import is_missing, require

if TYPE_CHECKING:
    from rich.table import Table

    from sisod.networks.network import Network

_MODULES = ("torch", "safetensors", "huggingface_hub")


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
    return next(filter(is_missing, _MODULES), None)


def find(name: str) -> "type[Network]":
    """Return the class of a network.

    Example:
        >>> find("edn").facts.paper
        'TIP 2022'
    """
    check_known("network", name, FACTS)
    require("sisod.networks", *_MODULES)
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

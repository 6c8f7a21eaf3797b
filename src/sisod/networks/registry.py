"""The networks by name. Importing this module does not import PyTorch; `find` does."""

from importlib import import_module
from typing import TYPE_CHECKING, cast

from sisod.common.arguments import check_known
from sisod.common.errors import require

if TYPE_CHECKING:
    from sisod.networks.network import Network

_CLASSES = {
    "edn": "EDN",
    "fpn": "FPN",
    "gatenet": "GateNet",
    "icon": "ICON",
    "ldf": "LDF",
    "poolnet": "PoolNet",
    "tiny": "Tiny",
}


def names() -> tuple[str, ...]:
    """Return the names of the networks.

    Example:
        >>> names()
        ('edn', 'fpn', 'gatenet', 'icon', 'ldf', 'poolnet', 'tiny')
    """
    return tuple(_CLASSES)


def find(name: str) -> "type[Network]":
    """Return the class of a network.

    Example:
        >>> find("edn").facts.paper
        'TIP 2022'
    """
    check_known("network", name, _CLASSES)
    require("sisod.networks", "torch", "safetensors", "huggingface_hub")
    return cast(
        "type[Network]", getattr(import_module(f"sisod.networks.architectures.{name}"), _CLASSES[name])
    )

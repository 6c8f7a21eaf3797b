"""The section [network] of a recipe. Imports no PyTorch and no code that the recipe names."""

from dataclasses import dataclass, field
from typing import Any

from sisod.common.arguments import check_known, shown
from sisod.common.imports import check_import_name
from sisod.networks import names as network_names
from sisod.training.field_types import check_types

# repeated here, so that a wrong recipe is refused without importing PyTorch
ENCODERS = ("resnet50", "efficientnet_lite0")
_EXTERNAL = ("hf:", "smp:")


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

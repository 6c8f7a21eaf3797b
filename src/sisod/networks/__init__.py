"""Images -> maps: the five networks of the paper and a small one of our own by name, and yours.

Needs the extra `torch`, but only when a network is created: importing this package must stay fast for
the command line.
"""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sisod.common.exceptions import require
from sisod.networks.registry import find, names

if TYPE_CHECKING:
    from torch import Tensor

    from sisod.networks.network import Network
    from sisod.networks.specs import InputSpec
    from sisod.networks.wrapped import Factory, wrap

__all__ = [
    "InputSpec",
    "Network",
    "create",
    "find",
    "from_pretrained",
    "load_published",
    "names",
    "wrap",
]

_LAZY = {
    "InputSpec": "sisod.networks.specs",
    "Network": "sisod.networks.network",
    "wrap": "sisod.networks.wrapped",
}


def create(
    name: str,
    *,
    encoder: str = "resnet50",
    encoder_weights: str | Path | None = None,
    input_spec: "InputSpec | None" = None,
) -> "Network":
    """Return a new network, to be trained.

    Args:
        name: one of `names()`.
        encoder: `"resnet50"`, as published, or `"efficientnet_lite0"` with narrower decoders. `tiny`
            has an encoder of its own.
        encoder_weights: None for random ones; `"imagenet"`; or the path of a safetensors file or of a
            state dict.
        input_spec: how images are prepared, if not as for the encoder's ImageNet weights (for example
            for Caffe weights of PoolNet).

    Example:
        >>> import torch
        >>> network = create("tiny").eval()
        >>> [tuple(logits.shape) for logits in network(torch.zeros(1, 3, 64, 48))]
        [(1, 1, 64, 48), (1, 1, 64, 48), (1, 1, 64, 48)]
    """
    network = find(name)(encoder=encoder, input_spec=input_spec)
    if encoder_weights is not None:
        network.load_encoder(encoder_weights)
    return network


def load_published(
    name: str, state_dict: "Mapping[str, Tensor]", *, origin: str = "authors"
) -> "Network":
    """Return a network with the weights of an authors' checkpoint, whose tensors are only renamed.

    Every tensor of the checkpoint must belong to the network, and every tensor of the network must be in
    the checkpoint.

    Args:
        name: one of the five networks of the paper (`sisod convert` recognises it by the key names).
        state_dict: as published, with the prefix `module.` or without.
        origin: whose checkpoint it is, `"authors"` (the network's own repository) or `"si-sod"` (the
            paper's): the keys are the same, but images were prepared differently.

    Returns:
        The network in train mode; its `input_spec` says how images are prepared for these weights.

    Raises:
        InputError: a tensor is missing, not known, of another shape or not finite.
    """
    return find(name).load_published(state_dict, origin=origin)


def from_pretrained(
    path_or_id: str | Path, *, factory: "Factory | None" = None, **hub_options: Any
) -> "Network":
    """Return a saved network, in eval mode.

    Args:
        path_or_id: a folder of `save_pretrained`, a safetensors file of `sisod convert`, or the id of a
            repository on the Hugging Face hub.
        factory: of a network of your own, the function that built it or its name, `module:function`. The
            name in the file is not imported: code runs only if you name it.
        hub_options: `revision`, `cache_dir`, `token`, `local_files_only` for the hub.

    Returns:
        The network with its weights, input spec, input size and calibration.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = create("tiny").save_pretrained(folder)
        ...     network = from_pretrained(folder)
        >>> network.facts.title, network.training
        ('Tiny', False)
    """
    require("sisod.networks", "torch", "safetensors", "huggingface_hub")
    from sisod.networks.saved import load_saved

    return load_saved(path_or_id, factory=factory, **hub_options)


def __getattr__(name: str) -> object:
    if name in _LAZY:
        require("sisod.networks", "torch", "safetensors", "huggingface_hub")
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

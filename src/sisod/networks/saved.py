"""Checkpoints -> networks: saved ones, whose config names the network, and published ones."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from sisod.common.exceptions import InputError, UsageError, shorten_list
from sisod.networks.adapters.factory import Factory, rebuild
from sisod.networks.adapters.wrapped import WRAPPED
from sisod.networks.checkpoints import find_weights, read_config, read_state, rename, write_state
from sisod.networks.network import Network
from sisod.networks.registry import find, names


def load_network(
    checkpoint: str | Path,
    *,
    network: str | None = None,
    origin: str = "authors",
    factory: Factory | None = None,
) -> Network:
    """Return the network of a checkpoint, in eval mode.

    Args:
        checkpoint: a run folder of `sisod train`, a folder of `save_pretrained`, a safetensors file, a
            repository on the Hugging Face hub, or an authors' checkpoint.
        network: name of the network of an authors' checkpoint; by default recognised by its key names.
        origin: whose checkpoint it is, `"authors"` or `"si-sod"`; see `networks.load_published`.
        factory: as for `networks.from_pretrained`.
    """
    path = Path(checkpoint)
    if path.is_file() and (path.suffix != ".safetensors" or network is not None):
        return load_published_file(path, name=network, origin=origin).eval()
    if network is not None:
        raise UsageError(
            f"--network is for the file of an authors' checkpoint, got {str(checkpoint)!r}; leave it out"
        )
    return load_saved(checkpoint, factory=factory)


def load_saved(path_or_id: str | Path, *, factory: Factory | None = None, **hub_options: Any) -> Network:
    """Return the network of a folder, a safetensors file or a repository on the hub, in eval mode."""
    path = find_weights(path_or_id, **hub_options)
    config = read_config(path)
    if config.network == WRAPPED:
        network = rebuild(config, path=path, factory=factory)
    elif factory is not None:
        raise UsageError(
            f"--factory is for a network of your own, and {str(path)!r} is of {config.network}; "
            "leave it out"
        )
    else:
        network = find(config.network)(config.encoder, config.input_spec)
    return network.restore(path, config)


def convert_published(path: Path, out: Path, *, name: str | None, origin: str) -> Network:
    """Write an authors' checkpoint as a safetensors file and return the network."""
    network = load_published_file(path, name=name, origin=origin)
    write_state(out, network.state_dict(), network.config())
    return network


def load_published_file(path: Path, *, name: str | None, origin: str) -> Network:
    """Return the network of an authors' checkpoint, recognised by its key names unless named."""
    state = read_state(path)
    return find(name or recognise(state, source=str(path))).load_published(state, origin=origin)


def recognise(state: Mapping[str, Tensor], *, source: str) -> str:
    """Return the name of the network whose renaming rules match every key."""
    matching = [name for name in names() if not rename(state, find(name).renames)[1]]
    if not state or len(matching) != 1:
        published = ", ".join(name for name in names() if find(name).renames)
        raise InputError(
            f"{source}: the key names match no known network ({shorten_list(sorted(state))}); "
            f"networks whose published checkpoints can be converted: {published}"
        )
    return matching[0]

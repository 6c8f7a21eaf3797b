"""Loading of saved networks, whose config names the network; conversion of published checkpoints."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from sisod.common import folders
from sisod.common.errors import InputError, UsageError, shorten_list
from sisod.networks.checkpoints import (
    config_calibration,
    fetch,
    load_strictly,
    parse_config,
    read_config,
    read_state,
    rename,
    write_state,
)
from sisod.networks.input_spec import InputSpec
from sisod.networks.network import WEIGHTS_FILE, Network
from sisod.networks.others.factory import Factory, rebuild
from sisod.networks.others.wrapped import WRAPPED
from sisod.networks.registry import find, names

_CONFIG_FILE = "config.json"


def load_saved(path_or_id: str | Path, *, factory: Factory | None = None, **hub_options: Any) -> Network:
    """Return the network of a folder, a safetensors file or a repository on the hub."""
    path = Path(path_or_id)
    if path.is_file():
        return _from_file(path, factory)
    _check_finished(path)
    if not path.is_dir() and (path.suffix or len(path.parts) != 2 or path.is_absolute()):
        raise InputError(
            f"{str(path_or_id)!r} does not exist; expected a folder of save_pretrained, a safetensors "
            "file or the id of a repository on the Hugging Face hub (owner/name)"
        )
    name = _network_name(str(path_or_id), **hub_options)
    if name == WRAPPED:
        is_folder = path.is_dir()
        weights = path / WEIGHTS_FILE if is_folder else fetch(str(path), WEIGHTS_FILE, **hub_options)
        return _from_file(weights, factory)
    _check_no_factory(path_or_id, name, factory)
    network = find(name)
    return network.from_pretrained(path_or_id, **hub_options)


def _check_finished(run: Path) -> None:
    """Refuse the folder of a training that was stopped or still runs: it has no network yet."""
    # a run that is to replace another one is beside it
    folder = run if run.exists() else folders.partial_folder(run)
    if folders.kind_of(folder) != "training" or (folder / WEIGHTS_FILE).is_file():
        return
    if not folders.read_run(folder).get("finished"):
        raise InputError(unfinished_message(run))


def unfinished_message(run: Path) -> str:
    """Say that a run has no network yet, and how to get it."""
    return (
        f"{str(run)!r} has no network yet, because its training is not finished; repeat the command of "
        f"the training with --resume (sisod train ... --out {run} --resume)"
    )


def _from_file(path: Path, factory: Factory | None) -> Network:
    config = read_config(path)
    if config["network"] == WRAPPED:
        network: Network = rebuild(config, path=path, factory=factory)
    else:
        _check_no_factory(path, config["network"], factory)
        spec = InputSpec(**config["input_spec"])
        network = find(config["network"])(encoder=config["encoder"], input_spec=spec)
    load_strictly(network, read_state(path), source=str(path))
    network.calibration = config_calibration(config)
    return network.eval()


def _check_no_factory(path: str | Path, name: str, factory: Factory | None) -> None:
    if factory is not None:
        raise UsageError(
            f"--factory is for a network of your own, and {str(path)!r} is of {name}; leave it out"
        )


def _network_name(path_or_id: str, **hub_options: Any) -> str:
    folder = Path(path_or_id)
    path = folder / _CONFIG_FILE if folder.is_dir() else fetch(path_or_id, _CONFIG_FILE, **hub_options)
    if not path.is_file():
        raise InputError(
            f"{path_or_id!r} has no {_CONFIG_FILE}; expected a folder that save_pretrained wrote"
        )
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"{str(path)!r} cannot be read: {error}") from error
    name = parse_config(text, source=str(path))["network"]
    if name not in (*names(), WRAPPED):
        raise InputError(
            f"{path_or_id!r}: {_CONFIG_FILE} names the network {name!r}; "
            f"expected one of {', '.join(names())}"
        )
    return str(name)


def convert_published(path: Path, out: Path, *, name: str | None, origin: str) -> Network:
    """Write an authors' checkpoint as a safetensors file and return the network."""
    state = read_state(path)
    network = find(name or recognise(state, source=str(path))).load_published(state, origin=origin)
    write_state(out, network.state_dict(), network.config())
    return network


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

"""Whatever the command line names -> a network: saved and published checkpoints, `hf:` and `py:`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from sisod.common.exceptions import InputError, UsageError, shorten_list
from sisod.networks.adapters import KINDS, ModelOptions, check_model
from sisod.networks.adapters.hf import build_hf, load_hf
from sisod.networks.adapters.wrapped import WRAPPED, Factory, WrappedNetwork, build_network
from sisod.networks.checkpoints import find_weights, read_config, read_state, rename, write_state
from sisod.networks.network import Network
from sisod.networks.registry import find, names
from sisod.networks.specs import NetworkConfig


def load_model(
    model: str,
    options: ModelOptions = ModelOptions(),  # noqa: B008  (it is frozen)
) -> Network:
    """Return the network that the command line names, in eval mode; see `docs/networks.md`.

    Args:
        model: `hf:` or `py:` with a name, or a checkpoint as `load_network` takes it.
        options: what the model's own configuration does not say, or says wrongly.

    Raises:
        InputError: it cannot be read, or gives no maps in PyTorch.

    Example:
        >>> load_model("py:torch.nn:Identity").facts.title
        'Identity'
    """
    kind, name = check_model(model, options)
    if kind is None:
        return load_network(
            model, network=options.network, origin=options.origin, factory=options.factory
        )
    if kind not in ("hf", "py"):
        raise UsageError(
            f"{model!r} gives no maps in PyTorch: an encoder of timm is trained first, as in "
            f"{KINDS['timm'].example!r}, and ONNX files are for networks.onnx_model.OnnxModel"
        )
    network = load_hf(name, options) if kind == "hf" else build_network(name, options=options)
    return network.eval()


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

    Raises:
        InputError: there is no checkpoint, or its tensors do not fit the network.

    Example:
        >>> import tempfile
        >>> from sisod import networks
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = networks.create("tiny").save_pretrained(folder)
        ...     load_network(folder).facts.name
        'tiny'
    """
    path = Path(checkpoint)
    if network is not None or (path.is_file() and path.suffix != ".safetensors"):
        return load_published_file(path, name=network, origin=origin).eval()
    return load_saved(checkpoint, factory=factory)


def load_saved(path_or_id: str | Path, *, factory: Factory | None = None, **hub_options: Any) -> Network:
    """Return the network of a folder, a safetensors file or a repository on the hub, in eval mode."""
    path = find_weights(path_or_id, **hub_options)
    config = read_config(path)
    if config.network == WRAPPED:
        network = _rebuild(config, path=path, factory=factory)
    elif factory is not None:
        raise UsageError(
            f"--factory is for a network of your own, and {str(path)!r} is of {config.network}; "
            "leave it out"
        )
    else:
        network = find(config.network)(config.encoder, config.input_spec)
    return network.restore(path, config)


def _rebuild(config: NetworkConfig, *, path: Path, factory: Factory | None) -> Network:
    """Return the network that a saved config describes, with random weights.

    Code of the user runs only if `factory` is given: the name in a file is never imported.
    """
    kind, _, name = (config.source or "").partition(":")
    output: Any = config.output
    if factory is not None:
        built = build_network(factory, config.arguments)
        if not isinstance(built, WrappedNetwork):
            return built  # the weights will not fit
        # the factory may have changed since the training; a function is not in the file
        module, source = built.module, built.source
        output = built.output if callable(built.output) else output
    elif kind == "hf":
        module, source = build_hf(config.architecture or {}, path), config.source
    else:
        repeat = name if kind == "py" else "MODULE:FUNCTION"
        raise UsageError(
            f"{str(path)!r} is a network of your own, and sisod runs code only if you name it; repeat "
            f"the command with --factory {repeat}, the function that builds it"
        )
    network = WrappedNetwork(
        module,
        input_spec=config.input_spec,
        size=config.size,
        output=output,
        output_spec=config.output_spec,
    )
    network.source, network.arguments = source, config.arguments
    network.architecture = config.architecture
    return network


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
    """Return the name of the network whose renaming rules match every key.

    Args:
        state: of an authors' checkpoint.
        source: of the state, for messages.

    Raises:
        InputError: no network matches.
    """
    matching = [name for name in names() if not rename(state, find(name).renames)[1]]
    if not state or len(matching) != 1:
        published = ", ".join(name for name in names() if find(name).renames)
        raise InputError(
            f"{source}: the key names match no known network ({shorten_list(sorted(state))}); "
            f"networks whose published checkpoints can be converted: {published}"
        )
    return matching[0]

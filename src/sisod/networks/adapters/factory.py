"""Networks built by a function of the user, and saved networks of other people built again."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sisod.common.arguments import short_repr
from sisod.common.exceptions import InputError, UsageError
from sisod.common.imports import describe_error, import_attribute
from sisod.networks.adapters.hf import build_hf
from sisod.networks.adapters.kinds import ModelOptions
from sisod.networks.adapters.wrapped import WrappedNetwork, wrap_as
from sisod.networks.network import Network
from sisod.networks.specs import NetworkConfig

Factory = str | Callable[..., Any]


def build_network(
    factory: Factory,
    arguments: Mapping[str, Any] | None = None,
    options: ModelOptions = ModelOptions(),  # noqa: B008  (it is frozen)
) -> Network:
    """Return the network that a function builds; naming it as a string imports and runs its module.

    Args:
        factory: `"module:function"`, or the function. It returns a PyTorch module, which is wrapped, or
            a network of `wrap` itself.
        arguments: keyword arguments of the function.
        options: of `wrap`, for a function that returns a module.
    """
    given = dict(arguments or {})
    name = factory if isinstance(factory, str) else getattr(factory, "__qualname__", short_repr(factory))
    function = import_attribute(factory, "factory") if isinstance(factory, str) else factory
    try:
        module = function(**given)
        network = module if isinstance(module, Network) else wrap_as(module, options)
    except (Exception, SystemExit) as error:
        raise InputError(
            f"the factory {name!r} raised {describe_error(error)}; check it and its arguments, "
            f"{short_repr(given)}"
        ) from error
    if network is module:
        options.check_only(("size",), str(name))
    if isinstance(network, WrappedNetwork):
        network.source = f"py:{factory}" if isinstance(factory, str) else None
        network.arguments = given
    return network


def rebuild(config: NetworkConfig, *, path: Path, factory: Factory | None) -> Network:
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

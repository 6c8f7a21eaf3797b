"""Networks built by a function of the user, and saved networks of other libraries built again."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import nn

from sisod.common.arguments import shown
from sisod.common.errors import InputError, UsageError, require
from sisod.common.imports import describe_error, import_attribute
from sisod.networks.input_spec import InputSpec
from sisod.networks.network import Network
from sisod.networks.others.wrapped import WrappedNetwork, wrap

Factory = str | Callable[..., Any]


def build_network(factory: Factory, arguments: Mapping[str, Any] | None = None) -> Network:
    """Return the network that a function builds; naming it as text imports and runs its module.

    Args:
        factory: `"module:function"`, or the function. It returns a PyTorch module, which `wrap` adapts
            with its defaults, or a network of `wrap` itself.
        arguments: keyword arguments of the function.
    """
    name = factory if isinstance(factory, str) else getattr(factory, "__qualname__", shown(factory))
    function = import_attribute(factory, "factory") if isinstance(factory, str) else factory
    if not callable(function):
        raise UsageError(
            f"the factory {name!r} is {shown(function)}; expected a function that returns a PyTorch "
            "module"
        )
    try:
        module = function(**(arguments or {}))
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"the factory {name!r} raised {describe_error(error)}; check it and the arguments of "
            f"[network], {shown(dict(arguments or {}))}"
        ) from error
    if not isinstance(module, nn.Module):
        raise InputError(f"the factory {name!r} returned {shown(module)}; expected a PyTorch module")
    network = module if isinstance(module, Network) else wrap(module)
    if isinstance(network, WrappedNetwork):
        network.source = f"py:{factory}" if isinstance(factory, str) else None
        network.arguments = dict(arguments or {})
    return network


def describe_architecture(network: WrappedNetwork) -> dict[str, Any]:
    """Return the configuration from which the library of `hf:` or `smp:` builds the module again."""
    source = str(network.source)
    if not isinstance(network.output, int | str):
        raise InputError(
            f"the maps of {source} are chosen by a function, which a file cannot hold; build the model "
            "in a factory of yours"
        )
    if source.startswith("hf:"):
        return dict(network.module.config.to_dict())  # type: ignore[operator, union-attr]
    own = dict(network.module.config)  # type: ignore[arg-type]
    return {"class": type(network.module).__name__, **own, "encoder_weights": None}


def rebuild(config: Mapping[str, Any], *, path: Path, factory: Factory | None) -> WrappedNetwork:
    """Return the network that a saved config describes, with random weights.

    Code of the user runs only if `factory` is given: the name in a file is never imported.
    """
    source = config.get("source")
    kind, _, name = source.partition(":") if isinstance(source, str) else ("", "", "")
    if kind in ("hf", "smp") and factory is None:
        module = _build_hf(config, path) if kind == "hf" else _build_smp(config, path)
        network = _wrap_as_saved(module, config, output=config.get("output"))
        network.source, network.architecture = source, config["architecture"]
        return network
    if factory is None:
        by = f"the function {name!r}" if kind == "py" else "Python code"
        repeat = name if kind == "py" else "MODULE:FUNCTION"
        raise UsageError(
            f"{str(path)!r} is a network of your own, built by {by}, and sisod runs code only if you "
            f"name it; repeat the command with --factory {repeat}"
        )
    arguments = config.get("arguments")
    built = build_network(factory, arguments if isinstance(arguments, dict) else {})
    if not isinstance(built, WrappedNetwork):
        raise UsageError(
            f"the factory builds {built.facts.title}, a network of sisod, but {str(path)!r} is of a "
            "module of your own; name the factory of the training"
        )
    # the factory may have changed since the training, or return a module that was wrapped outside of it
    output = built.output if callable(built.output) else config.get("output")
    network = _wrap_as_saved(built.module, config, output=output)
    network.source, network.arguments = built.source, built.arguments
    return network


def _wrap_as_saved(module: nn.Module, config: Mapping[str, Any], *, output: Any) -> WrappedNetwork:
    """Wrap a module with the options that a saved config holds; a function it cannot hold."""
    options = {key: config.get(key) for key in ("size", "activation", "normalize", "channel")}
    spec = InputSpec(**config["input_spec"])
    return WrappedNetwork(module, input_spec=spec, output=output, **options)  # type: ignore[arg-type]


def _build_hf(config: Mapping[str, Any], path: Path) -> nn.Module:
    require(f"{str(path)!r}", "transformers")
    import transformers

    try:
        own = dict(config["architecture"])
        model_config = transformers.AutoConfig.for_model(own.pop("model_type"), **own)
        for auto in ("AutoModelForSemanticSegmentation", "AutoModelForImageSegmentation"):
            if type(model_config) in getattr(transformers, auto)._model_mapping:
                module: nn.Module = getattr(transformers, auto).from_config(
                    model_config, trust_remote_code=False
                )
                return module
        raise TypeError(f"{type(model_config).__name__} is not of a segmentation model")
    except Exception as error:  # of a config that is damaged or of another version
        raise InputError(
            f"{str(path)!r}: the model of Transformers cannot be built again ({describe_error(error)})"
        ) from error


def _build_smp(config: Mapping[str, Any], path: Path) -> nn.Module:
    require(f"{str(path)!r}", "segmentation_models_pytorch")
    import segmentation_models_pytorch as smp

    try:
        own = dict(config["architecture"])
        name = str(own.pop("class"))
        if name.lower() not in {known.lower() for known in smp.MODEL_ARCHITECTURES_MAPPING}:
            raise LookupError(f"there is no architecture {name!r}")
        module: nn.Module = smp.create_model(name, **own)
    except Exception as error:  # of a config that is damaged or of another version
        raise InputError(
            f"{str(path)!r}: the model of smp cannot be built again ({describe_error(error)})"
        ) from error
    return module

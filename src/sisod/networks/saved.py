"""Whatever the command line names -> a network: saved and published checkpoints, `hf:` and `py:`.

Models of Transformers are prepared as their own configuration says; only safetensors are read.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor

from sisod.common.arguments import short_repr
from sisod.common.exceptions import InputError, UsageError, require, shorten_list
from sisod.common.imports import explain_errors
from sisod.networks.checkpoints import (
    find_weights,
    load_strictly,
    read_safetensors,
    read_state,
    rename,
    write_state,
)
from sisod.networks.network import Network
from sisod.networks.registry import KINDS, ModelOptions, check_model, find, names
from sisod.networks.specs import CONFIG_KEY, Activation, InputSpec, NetworkConfig, OutputSpec, Size
from sisod.networks.wrapped import WRAPPED, Factory, WrappedNetwork, build_network

_AUTO_CLASSES = {  # -> the table of the types of models that each builds
    "AutoModelForSemanticSegmentation": "MODEL_FOR_SEMANTIC_SEGMENTATION_MAPPING_NAMES",
    "AutoModelForImageSegmentation": "MODEL_FOR_IMAGE_SEGMENTATION_MAPPING_NAMES",
}


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
    if kind == "hf":
        return _load_hf(name, options).eval()
    if kind == "py":
        return build_network(name, options=options).eval()
    raise UsageError(
        f"{model!r} gives no maps in PyTorch: an encoder of timm is trained first, as in "
        f"{KINDS['timm'].example!r}, and ONNX files are for networks.onnx_model.OnnxModel"
    )


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
        return _load_published_file(path, name=network, origin=origin).eval()
    return load_saved(checkpoint, factory=factory)


def load_saved(path_or_id: str | Path, *, factory: Factory | None = None, **hub_options: Any) -> Network:
    """Return the network of a folder, a safetensors file or a repository on the hub, in eval mode."""
    path = find_weights(path_or_id, **hub_options)
    state, header = read_safetensors(path)
    if CONFIG_KEY not in header:
        raise InputError(
            f"{str(path)!r} does not say which network it is of; expected a file that save_pretrained "
            "or sisod convert has written"
        )
    config = NetworkConfig.parse(header[CONFIG_KEY], source=str(path))
    if factory is not None or config.network == WRAPPED:
        network = _rebuild(config, path=path, factory=factory)
    else:
        network = find(config.network)(config.encoder, config.input_spec)
    load_strictly(network, state, source=str(path))
    network.calibration, network.input_size = config.calibration, config.size
    return network.eval()


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
        require(f"{str(path)!r}", "transformers")
        import transformers

        with _transformers_errors(f"the model of Transformers in {str(path)!r}"):
            own = dict(config.architecture or {})
            settings = transformers.AutoConfig.for_model(own.pop("model_type"), **own)
            auto_class, _ = _auto_class(settings.to_dict(), str(path), ModelOptions())
            build = getattr(transformers, auto_class).from_config
            module, source = build(settings, trust_remote_code=False), config.source
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


# ------------------------------------------------------------------------------ authors' checkpoints


def convert_published(path: Path, out: Path, *, name: str | None, origin: str) -> Network:
    """Write an authors' checkpoint as a safetensors file and return the network."""
    network = _load_published_file(path, name=name, origin=origin)
    write_state(out, network.state_dict(), network.config())
    return network


def _load_published_file(path: Path, *, name: str | None, origin: str) -> Network:
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


# --------------------------------------------------------------------------------------- Transformers


def _load_hf(name: str, options: ModelOptions) -> WrappedNetwork:
    """Return the model of a folder or a repository on the Hugging Face hub.

    Args:
        name: the folder, or `owner/name`.
        options: come before what the model's own configuration says. The repository's own code runs
            only with `trust_remote_code`.
    """
    import transformers

    if not Path(name).is_dir() and "/" not in name:  # the hub would be asked for half a minute
        raise InputError(
            f"hf:{name} is not a folder; expected a folder of Transformers, or a repository on the "
            "Hugging Face hub, hf:OWNER/NAME"
        )
    with _transformers_errors(f"hf:{name}"):
        config, _ = transformers.PretrainedConfig.get_config_dict(name)
        auto_class, is_remote = _auto_class(config, name, options)
        module, info = getattr(transformers, auto_class).from_pretrained(
            name,
            trust_remote_code=is_remote,
            use_safetensors=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # they are refused here
        )
        wrong = sorted([*info["missing_keys"], *(key for key, *_ in info["mismatched_keys"])])
        if wrong:
            raise InputError(
                f"{len(wrong)} tensors of hf:{name} are missing or have another shape "
                f"({shorten_list(wrong)})"
            )
        spec, size = _read_preprocessing(name, options)
    if options.mean is not None or options.std is not None:
        # options are about values in [0, 1]
        mean, std = (tuple(value / spec.scale for value in values) for values in (spec.mean, spec.std))
        spec = InputSpec(spec.order, 1.0, options.mean or mean, options.std or std)  # type: ignore[arg-type]
    activation: Activation = "sigmoid" if is_remote or module.config.num_labels == 1 else "softmax"
    output = -1 if is_remote else "logits"
    network = WrappedNetwork(
        module,
        size=options.size or size,
        input_spec=spec,
        output=output if options.output is None else options.output,
        output_spec=OutputSpec(
            options.activation or activation, options.normalize or "none", options.channel
        ),
    )
    network.source = f"hf:{name}"
    return network


def _auto_class(config: Mapping[str, Any], name: str, options: ModelOptions) -> tuple[str, bool]:
    """Return the class of Transformers that loads a model, and whether it runs the model's own code."""
    from transformers.models.auto import modeling_auto

    for auto_class, table in _AUTO_CLASSES.items():
        if config.get("model_type") in getattr(modeling_auto, table):
            return auto_class, False
    remote = config.get("auto_map")
    own = {key: remote[key] for key in _AUTO_CLASSES if isinstance(remote, Mapping) and key in remote}
    if own and not options.trust_remote_code:
        raise UsageError(
            f"hf:{name} runs Python code of its own ({short_repr(next(iter(own.values())))}); read that "
            "code, and allow it with --trust-remote-code if you trust its authors"
        )
    return next(iter(own or _AUTO_CLASSES)), bool(own)  # Transformers says what types it expects


def _read_preprocessing(name: str, options: ModelOptions) -> tuple[InputSpec, Size | None]:
    """Return how Transformers prepares an image, from the model's own configuration."""
    from transformers.image_processing_base import ImageProcessingMixin

    try:
        settings, _ = ImageProcessingMixin.get_image_processor_dict(name)
    except (OSError, ValueError) as error:
        if None in (options.size, options.mean, options.std):
            raise InputError(
                f"hf:{name} has no preprocessor_config.json that can be read; say how images are "
                "prepared with --size, --mean and --std"
            ) from error
        return InputSpec(), None
    scale = 255.0 * (settings.get("rescale_factor", 1 / 255) if settings.get("do_rescale", True) else 1)
    mean, std = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
    if settings.get("do_normalize", True):
        mean, std = tuple(settings["image_mean"]), tuple(settings["image_std"])
    side = settings.get("size")
    if settings.get("do_center_crop") and settings.get("crop_size") is not None:
        side = settings["crop_size"]
    order = "bgr" if settings.get("do_flip_channel_order") else "rgb"
    size = _read_size(side) if settings.get("do_resize", True) else None
    return InputSpec(order, scale, mean, std), size  # type: ignore[arg-type]


def _read_size(size: Any) -> Size | None:
    """Return height and width; a side that the shorter or longer edge should have becomes a square."""
    if isinstance(size, Mapping):
        if "height" in size:
            return int(size["height"]), int(size["width"])
        size = size.get("shortest_edge") or size.get("longest_edge")
    return None if size is None else (int(size), int(size))


@contextmanager
def _transformers_errors(source: str) -> Iterator[None]:
    """Say in one sentence what Transformers raises; silence its progress bars and messages."""
    from transformers.utils import logging as messages

    logger = logging.getLogger("transformers")
    level, had_bars = logger.level, messages.is_progress_bar_enabled()
    messages.disable_progress_bar()
    logger.setLevel(logging.CRITICAL)
    expected = "config.json, preprocessor_config.json and *.safetensors"
    advice = f"expected {expected} of a model for semantic or image segmentation"
    try:
        with explain_errors(f"{source} cannot be loaded", advice):  # also by the model's own code
            yield
    finally:
        logger.setLevel(level)
        if had_bars:
            messages.enable_progress_bar()

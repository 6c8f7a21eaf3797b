"""Models of other libraries by name: Transformers, segmentation_models_pytorch, a function of yours."""

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from torch import nn

from sisod.common.arguments import shown
from sisod.common.errors import InputError, UsageError, shorten_list
from sisod.common.imports import describe_error, import_attribute
from sisod.networks.input_spec import InputSpec
from sisod.networks.network import WEIGHTS_FILE, Network
from sisod.networks.others.kinds import KINDS, ModelOptions, refuse_checkpoint_options, split_kind
from sisod.networks.others.wrapped import WrappedNetwork
from sisod.networks.predict import load_network
from sisod.networks.values import Activation

_CONFIG = "config.json"
_PREPROCESSING = "preprocessor_config.json"
_PLAIN = ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))  # mean and std that change nothing


@dataclass(frozen=True)
class _OwnSettings:
    """What a model's own configuration says; the options of the command line come before it."""

    input_spec: InputSpec
    size: tuple[int, int] | None = None
    output: Any = -1
    activation: Activation = "sigmoid"


def load_model(
    model: str,
    options: ModelOptions = ModelOptions(),  # noqa: B008  (it is frozen)
    *,
    network: str | None = None,
    origin: str = "authors",
    factory: str | None = None,
) -> Network:
    """Return the network that the command line names, in eval mode; see `docs/models.md`.

    Args:
        model: `hf:`, `smp:` or `py:` with a name, or a checkpoint as `load_network` takes it.
        options: what the model's own configuration does not say, or says wrongly.
        network: as for `load_network`.
        origin: as for `load_network`.
        factory: as for `load_network`.
    """
    kind, name = split_kind(model)
    if kind is None:
        options.refuse_all_but(
            "size", because=f"{model!r} is a checkpoint of sisod, which says it itself"
        )
        return load_network(model, network=network, origin=origin, factory=factory)
    refuse_checkpoint_options(model, network=network, factory=factory)
    KINDS[kind].check_installed()
    if kind != "hf" and options.trust_remote_code:
        raise UsageError("--trust-remote-code is for models hf: only; leave it out")
    if kind == "hf":
        loaded: Network = _load_hf(name, options)
    elif kind == "smp":
        loaded = _load_smp(name, options)
    elif kind == "py":
        loaded = _load_function(name, options)
    elif kind == "timm":
        raise UsageError(
            f"{model!r} is an encoder alone, which gives no maps; train it with "
            f"{KINDS['timm'].example!r}, and predict with the run folder"
        )
    else:
        raise UsageError(f"{model!r} is run by onnxruntime; open it with networks.onnx_model.OnnxModel")
    if isinstance(loaded, WrappedNetwork):
        loaded.source = model
    return loaded.eval()


def _wrapped(module: nn.Module, own: _OwnSettings, options: ModelOptions) -> WrappedNetwork:
    """Wrap a module as its configuration says, except where options are given."""
    spec = own.input_spec
    if options.mean is not None or options.std is not None:
        # options are about values in [0, 1]
        scaled = [tuple(value / spec.scale for value in values) for values in (spec.mean, spec.std)]
        spec = InputSpec(spec.order, 1.0, options.mean or scaled[0], options.std or scaled[1])  # type: ignore[arg-type]
    return WrappedNetwork(
        module,
        size=options.size or own.size,
        input_spec=spec,
        output=own.output if options.output is None else options.output,
        activation=options.activation or own.activation,
        normalize=options.normalize or "none",
        channel=options.channel,
    )


def _load_function(name: str, options: ModelOptions) -> Network:
    """Return what a function without arguments builds: a module, or one that is wrapped already."""
    function = import_attribute(name, "model")
    if not callable(function):
        raise UsageError(f"py:{name} is {shown(function)}; expected a function that returns a module")
    try:
        module = function()
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"py:{name} raised {describe_error(error)}; expected a function without arguments that "
            "returns a PyTorch module"
        ) from error
    if isinstance(module, Network):
        options.refuse_all_but("size", because=f"what py:{name} returns says it itself")
        return module
    if not isinstance(module, nn.Module):
        raise InputError(f"py:{name} returned {shown(module)}; expected a PyTorch module")
    return _wrapped(module, _OwnSettings(InputSpec()), options)


def _load_smp(name: str, options: ModelOptions) -> WrappedNetwork:
    """Load a folder of `save_pretrained`; images are prepared as for ImageNet, unless options say."""
    import segmentation_models_pytorch as smp

    folder = Path(name)
    config = _read_json(folder, _CONFIG, f"smp:{name}")
    if not (folder / WEIGHTS_FILE).is_file():
        raise InputError(f"smp:{name} has no {WEIGHTS_FILE}; save the model again with save_pretrained")
    try:
        # the weights of the encoder are in the file; without None they would be downloaded
        with redirect_stdout(StringIO()):  # the hub's mixin prints
            module = smp.from_pretrained(name, local_files_only=True, encoder_weights=None)
    except Exception as error:  # of the configuration, the weights, or the two together
        raise InputError(f"smp:{name} cannot be loaded: {describe_error(error)}") from error
    activation: Activation = "softmax" if config.get("classes", 1) != 1 else "sigmoid"
    if config.get("activation") not in (None, "identity"):
        activation = "none"
    output: Any = 0 if config.get("aux_params") is None else _first_of_pair
    return _wrapped(module, _OwnSettings(InputSpec(), None, output, activation), options)


def _first_of_pair(result: Any) -> Any:
    return result[0]  # the other is the class of the image


def _load_hf(name: str, options: ModelOptions) -> WrappedNetwork:
    """Load a segmentation model of Transformers, from a folder or the hub; safetensors only."""
    import transformers
    from transformers.image_processing_base import ImageProcessingMixin

    source = f"hf:{name}"
    if Path(name).is_dir():
        _read_json(Path(name), _CONFIG, source)
        if not list(Path(name).glob("*.safetensors")):
            raise InputError(f"{source} has no weights; expected a file *.safetensors")
    elif "/" not in name:  # a misspelt folder; the hub would be asked for half a minute
        raise InputError(
            f"{source} is not a folder; expected a folder of Transformers, or a repository on the "
            "Hugging Face hub, hf:OWNER/NAME"
        )
    with _quiet_transformers():
        try:
            config, _ = transformers.PretrainedConfig.get_config_dict(name)
        except (OSError, ValueError) as error:
            raise InputError(
                f"{source} is not a local folder, and its {_CONFIG} could not be fetched from the "
                f"Hugging Face hub ({type(error).__name__}); on a machine with internet access, "
                f"download {_CONFIG}, {_PREPROCESSING} and *.safetensors into a folder and pass it"
            ) from error
        auto_class, is_remote = _auto_class(config, source, options)
        try:
            module, info = getattr(transformers, auto_class).from_pretrained(
                name,
                trust_remote_code=is_remote,
                use_safetensors=True,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # they are refused below
            )
        except Exception as error:  # also of the remote code
            raise InputError(f"{source} cannot be loaded: {describe_error(error)}") from error
        wrong = sorted([*info["missing_keys"], *(key for key, *_ in info["mismatched_keys"])])
        if wrong:
            raise InputError(
                f"{source}: {len(wrong)} tensors of {type(module).__name__} are missing or have another "
                f"shape ({shorten_list(wrong)}); expected the weights of this model"
            )
        try:
            preprocessing, _ = ImageProcessingMixin.get_image_processor_dict(name)
        except (OSError, ValueError) as error:
            if options.size is None or options.mean is None or options.std is None:
                raise InputError(
                    f"{source} has no {_PREPROCESSING} that can be read; say how images are prepared "
                    "with --size, --mean and --std"
                ) from error
            preprocessing = {}
    spec, size = _hf_input(preprocessing, source)
    output = -1 if is_remote else "logits"
    activation: Activation = "sigmoid"
    if not is_remote and module.config.num_labels > 1:
        activation = "softmax"
        if module.config.num_labels > 2 and options.channel is None:
            classes = [f"{number} {label}" for number, label in module.config.id2label.items()]
            raise UsageError(
                f"{source} has {len(classes)} classes ({shorten_list(classes, most=5)}); choose that of "
                "the object with --channel"
            )
    return _wrapped(module, _OwnSettings(spec, size, output, activation), options)


def _auto_class(config: Mapping[str, Any], source: str, options: ModelOptions) -> tuple[str, bool]:
    """Return the class of Transformers that loads a model, and whether it runs the model's own code."""
    from transformers.models.auto import modeling_auto

    semantic = modeling_auto.MODEL_FOR_SEMANTIC_SEGMENTATION_MAPPING_NAMES
    image = modeling_auto.MODEL_FOR_IMAGE_SEGMENTATION_MAPPING_NAMES
    kind = config.get("model_type")
    if kind in semantic:
        return "AutoModelForSemanticSegmentation", False
    if kind in image:
        return "AutoModelForImageSegmentation", False
    auto_map = config.get("auto_map")
    for name in ("AutoModelForSemanticSegmentation", "AutoModelForImageSegmentation"):
        if isinstance(auto_map, Mapping) and name in auto_map:
            if options.trust_remote_code:
                return name, True
            raise UsageError(
                f"{source} runs Python code of its own ({shown(auto_map[name])}); read that code, and "
                "allow it with --trust-remote-code if you trust its authors"
            )
    known = ", ".join(sorted({*semantic, *image}))
    raise InputError(
        f"{source} is a model of type {shown(kind)}; expected one for semantic or image segmentation: "
        f"{known}"
    )


def _hf_input(settings: Mapping[str, Any], source: str) -> tuple[InputSpec, tuple[int, int] | None]:
    """Return how Transformers prepares an image, from the model's own configuration."""
    if not settings:
        return InputSpec(), None
    try:
        scale = (
            255.0 * settings.get("rescale_factor", 1 / 255)
            if settings.get("do_rescale", True)
            else 255.0
        )
        mean, std = _PLAIN
        if settings.get("do_normalize", True):
            mean, std = settings["image_mean"], settings["image_std"]
        order = "bgr" if settings.get("do_flip_channel_order") else "rgb"
        side = settings.get("size")
        if settings.get("do_center_crop") and settings.get("crop_size") is not None:
            side = settings["crop_size"]
        if not settings.get("do_resize", True):
            side = None
        return InputSpec(order, scale, mean, std), _side(side)  # type: ignore[arg-type]
    except (InputError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{source}: {_PREPROCESSING} cannot be used ({describe_error(error)}); expected image_mean, "
            "image_std, rescale_factor and size"
        ) from error


def _side(size: Any) -> tuple[int, int] | None:
    """Return height and width; a side that the shorter or longer edge should have becomes a square."""
    if isinstance(size, Mapping):
        if "height" in size:
            return int(size["height"]), int(size["width"])
        size = size.get("shortest_edge") or size.get("longest_edge")
    return None if size is None else (int(size), int(size))


def _read_json(folder: Path, name: str, source: str) -> dict[str, Any]:
    path = folder / name
    if not path.is_file():
        problem = f"has no {name}" if folder.is_dir() else "is not a folder"
        raise InputError(f"{source} {problem}; expected a folder that save_pretrained wrote")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{str(path)!r} cannot be read: {describe_error(error)}") from error
    if not isinstance(content, dict):
        raise InputError(f"{str(path)!r} holds {shown(content)}; expected an object")
    return content


@contextmanager
def _quiet_transformers() -> Iterator[None]:
    """Silence its progress bars and its messages about packages that are not needed here."""
    from transformers.utils import logging as messages

    logger = logging.getLogger("transformers")
    level = logger.level
    had_bars = messages.is_progress_bar_enabled()
    messages.disable_progress_bar()
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
        if had_bars:
            messages.enable_progress_bar()

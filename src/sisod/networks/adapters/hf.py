"""Segmentation models of Transformers, prepared as their own configuration says; safetensors only."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import nn

from sisod.common.arguments import short_repr
from sisod.common.exceptions import InputError, UsageError, require, shorten_list
from sisod.common.imports import explain_errors
from sisod.networks.adapters import ModelOptions
from sisod.networks.adapters.wrapped import WrappedNetwork, wrap_as
from sisod.networks.specs import Activation, InputSpec, Size

_AUTO_CLASSES = {  # -> the table of the types of models that each builds
    "AutoModelForSemanticSegmentation": "MODEL_FOR_SEMANTIC_SEGMENTATION_MAPPING_NAMES",
    "AutoModelForImageSegmentation": "MODEL_FOR_IMAGE_SEGMENTATION_MAPPING_NAMES",
}


def load_hf(name: str, options: ModelOptions) -> WrappedNetwork:
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
    with _transformers_errors(f"hf:{name}"):
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
    classes = 1 if is_remote else module.config.num_labels
    activation: Activation = "softmax" if classes > 1 else "sigmoid"
    output = -1 if is_remote else "logits"
    network = wrap_as(module, options, spec, size=size, output=output, activation=activation)
    network.source = f"hf:{name}"
    return network


def build_hf(architecture: Mapping[str, Any], path: Path) -> nn.Module:
    """Return a model with random weights, from the configuration that a training saved."""
    require(f"{str(path)!r}", "transformers")
    import transformers

    with _transformers_errors(f"the model of Transformers in {str(path)!r}"):
        own = dict(architecture)
        config = transformers.AutoConfig.for_model(own.pop("model_type"), **own)
        auto_class, _ = _auto_class(config.to_dict(), str(path), ModelOptions())
        module: nn.Module = getattr(transformers, auto_class).from_config(
            config, trust_remote_code=False
        )
    return module


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
        mean, std = settings["image_mean"], settings["image_std"]
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

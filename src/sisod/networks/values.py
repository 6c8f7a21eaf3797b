"""What the values of a model's input and maps mean; for any runtime, so without PyTorch."""

from typing import Literal

from sisod.common.arguments import check_choice, check_number, check_whole, shown
from sisod.common.errors import InputError, UsageError

Activation = Literal["sigmoid", "softmax", "none"]
Normalization = Literal["none", "minmax"]
ACTIVATIONS: tuple[Activation, ...] = ("sigmoid", "softmax", "none")
NORMALIZATIONS: tuple[Normalization, ...] = ("none", "minmax")
Triple = tuple[float, float, float]
IMAGENET_MEAN: Triple = (0.485, 0.456, 0.406)
IMAGENET_STD: Triple = (0.229, 0.224, 0.225)
LARGEST = 1e6  # allowed value of an input; grey values reach 255, or 65535
EPSILON = 1e-6  # probabilities nearer to 0 or 1 have the logit of this one


def check_size(size: int | tuple[int, int] | None) -> tuple[int, int] | None:
    """Return height and width of the input."""
    if size is None:
        return None
    if isinstance(size, list | tuple):
        if len(size) != 2:
            raise UsageError(f"size must be a side, or height and width, got {shown(size)}")
        height, width = (check_whole("size", side, least=1) for side in size)
        return height, width
    side = check_whole("size", size, least=1)
    return side, side


def check_reading(activation: str, normalize: str, channel: int | None) -> int | None:
    """Check how the values of a model's maps are read; return the channel of the object."""
    check_choice("activation", activation, ACTIVATIONS)
    check_choice("normalize", normalize, NORMALIZATIONS)
    return None if channel is None else check_whole("channel", channel, least=0)


def object_channel(n_channels: int, channel: int | None, activation: str, title: str) -> int:
    """Return the channel of the object among those of a map."""
    if activation == "softmax" and n_channels < 2:
        raise InputError(
            f"the maps of {title} have one channel, and softmax needs one for each class; use the "
            "activation sigmoid or none"
        )
    if channel is None:
        if n_channels == 1:
            return 0
        if n_channels == 2 and activation == "softmax":
            return 1
        raise InputError(
            f"the maps of {title} have {n_channels} channels; name that of the object with channel, "
            "and the activation softmax if the channels are classes"
        )
    if channel >= n_channels:
        raise InputError(
            f"channel is {channel}, but the maps of {title} have {n_channels}, counted from 0"
        )
    return channel


def check_probabilities(least: float, most: float, title: str) -> None:
    """Refuse values outside [0, 1]; NaN is refused elsewhere."""
    if least < 0 or most > 1:
        raise InputError(
            f"the values of {title} are from {least:.3g} to {most:.3g}, and the activation none expects "
            "probabilities in [0, 1]; use the activation sigmoid or softmax for logits"
        )


def check_triple(name: str, values: object) -> Triple:
    """Return three values, one for each channel."""
    if not isinstance(values, list | tuple) or len(values) != 3:
        got = len(values) if isinstance(values, list | tuple) else shown(values)
        raise UsageError(f"{name} must have three values, one per channel, got {got}")
    # no division by zero, no overflow
    least, above = (0.0, True) if name == "std" else (-LARGEST, False)
    first, second, third = (
        check_number(f"every value of {name}", value, least=least, most=LARGEST, above=above)
        for value in values
    )
    return first, second, third


def check_unit_mean(mean: Triple) -> None:
    """Refuse a mean that can only be one of grey values up to 255, where values are in [0, 1]."""
    if max(map(abs, mean)) > 1:
        raise UsageError(
            f"mean is of values in [0, 1], got {','.join(f'{value:g}' for value in mean)}; divide mean "
            "and std by 255"
        )

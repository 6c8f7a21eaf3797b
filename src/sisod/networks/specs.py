"""How an image becomes the input of a model and its values a map: as data, stored in every file.

For any runtime: PyTorch is needed only to apply an `InputSpec` to a tensor.
"""

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from sisod.common.arguments import check_choice, check_int, check_number
from sisod.common.exceptions import InputError, UsageError
from sisod.common.files import convert
from sisod.common.imports import explain_errors

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

Activation = Literal["sigmoid", "softmax", "none"]
Normalization = Literal["none", "minmax"]
Size = tuple[int, int]  # height and width
Triple = tuple[float, float, float]
CONFIG_KEY = "sisod"  # of the config in the header of safetensors files and the metadata of ONNX files
EPSILON = 1e-6  # probabilities nearer to 0 or 1 have the logit of this one
_Logits = TypeVar("_Logits", "Tensor", "NDArray[Any]")
LEAST_TEMPERATURE, MOST_TEMPERATURE = 0.01, 100.0
MOST_SHIFT = 1000.0
_LARGEST = 1e6  # allowed value of an input; grey values reach 255, or 65535


@dataclass(frozen=True)
class InputSpec:
    """How an RGB image in [0, 1] becomes the input of a network: (reordered * scale - mean) / std.

    Stored in every network and in every file saved from one, because weights used with another spec
    give wrong maps without any error.

    Attributes:
        order: the channel order of the input.
        scale: 1.0 for values in [0, 1], 255.0 for values in [0, 255].
        mean: of each channel, in that order and on that scale; by default ImageNet's.
        std: the same for the standard deviation.

    Example:
        PoolNet's original weights want BGR on [0, 255] minus a mean; a white pixel:

        >>> import torch
        >>> spec = InputSpec("bgr", 255.0, (104.0, 117.0, 123.0), (1.0, 1.0, 1.0))
        >>> spec.apply(torch.ones(1, 3, 1, 1)).flatten().tolist()
        [151.0, 138.0, 132.0]
    """

    order: Literal["rgb", "bgr"] = "rgb"
    scale: float = 1.0
    mean: Triple = (0.485, 0.456, 0.406)
    std: Triple = (0.229, 0.224, 0.225)

    def __post_init__(self) -> None:
        check_choice("order", self.order, ("rgb", "bgr"))
        check_number("scale", self.scale, above=True, most=_LARGEST)
        for name, least in (("mean", -_LARGEST), ("std", 0.0)):
            values = getattr(self, name)
            if len(values) != 3:
                raise UsageError(f"{name} must have three values, one per channel, got {len(values)}")
            for value in values:
                what = f"every value of {name}"
                check_number(what, value, least=least, above=not least, most=_LARGEST)
        if self.scale == 1 and max(map(abs, self.mean)) > 1:
            raise UsageError(f"mean is of values in [0, 1], got {self.mean}; divide mean and std by 255")

    def apply(self, images: "Tensor") -> "Tensor":
        """Return the input of the network.

        Args:
            images: (..., 3, height, width) in RGB; uint8 in 0..255, or floating in [0, 1].

        Raises:
            InputError: they have another shape or type.
        """
        import torch

        is_grey_level = images.dtype == torch.uint8
        if images.shape[-3:-2] != (3,) or not (is_grey_level or images.is_floating_point()):
            raise InputError(
                "images must have shape (..., 3, height, width) and be uint8 or floating, got "
                f"{tuple(images.shape)} of {images.dtype}"
            )
        x = images.float() * (self.scale / 255) if is_grey_level else images * self.scale
        if self.order == "bgr":
            x = x.flip(-3)
        mean, std = (x.new_tensor(values).view(3, 1, 1) for values in (self.mean, self.std))
        return (x - mean) / std


IMAGENET = InputSpec()
# EfficientNet-Lite was trained on (v - 127) / 128
LITE = InputSpec("rgb", 255.0, (127.0, 127.0, 127.0), (128.0, 128.0, 128.0))


@dataclass(frozen=True)
class OutputSpec:
    """How the values of a model's map, (channels, height, width), become probabilities.

    Attributes:
        activation: `"sigmoid"` of logits; `"softmax"` over channels that are classes; `"none"` if the
            values are probabilities already.
        normalize: `"minmax"` stretches each predicted map to [0, 1], as U2-Net does.
        channel: of the object, counted from 0; None for the only one, or the second of two classes.

    Example:
        >>> OutputSpec("softmax").find_channel(2, "Segformer")
        1
    """

    activation: Activation = "sigmoid"
    normalize: Normalization = "none"
    channel: int | None = None

    def __post_init__(self) -> None:
        check_choice("activation", self.activation, ("sigmoid", "softmax", "none"))
        check_choice("normalize", self.normalize, ("none", "minmax"))
        if self.channel is not None:
            check_int("channel", self.channel, least=0)

    def find_channel(self, n_channels: int, title: str) -> int:
        """Return the channel of the object; raise if it is not clear which it is."""
        fewest = 2 if self.activation == "softmax" else 1
        if self.channel is None and n_channels == fewest:
            return n_channels - 1
        if self.channel is None or not fewest <= n_channels > self.channel:
            raise InputError(
                f"the maps of {title} have {n_channels} channels, the activation is {self.activation} "
                f"and the channel {self.channel}; choose that of the object, counted from 0, with "
                "--channel, and the activation softmax if the channels are classes"
            )
        return self.channel

    def check_values(self, least: float, most: float, title: str) -> None:
        """Raise if values that should be probabilities are not in [0, 1]."""
        if self.activation == "none" and (least < 0 or most > 1):
            raise InputError(
                f"the values of {title} are from {least:.3g} to {most:.3g}, and the activation none "
                "expects probabilities in [0, 1]; use the activation sigmoid or softmax for logits"
            )


@dataclass(frozen=True)
class Calibration:
    """The calibrated logit is logit / temperature + shift: increasing, so the order of pixels stays.

    Attributes:
        temperature: above 1 makes maps softer, below 1 harder; from 0.01 to 100.
        shift: below 0 makes maps darker, above 0 brighter.

    Example:
        >>> import numpy as np
        >>> Calibration(temperature=2.0, shift=-0.5).apply(np.array([-1.0, 0.0, 3.0])).tolist()
        [-1.0, -0.5, 1.0]
    """

    temperature: float = 1.0
    shift: float = 0.0

    def __post_init__(self) -> None:
        least, most = LEAST_TEMPERATURE, MOST_TEMPERATURE
        check_number("temperature", self.temperature, least=least, most=most)
        check_number("shift", self.shift, least=-MOST_SHIFT, most=MOST_SHIFT)

    def __str__(self) -> str:
        return f"temperature {self.temperature:g}, shift {self.shift:+g}"

    def apply(self, logits: _Logits) -> _Logits:
        """Return the calibrated logits, of a tensor or an array."""
        return logits / self.temperature + self.shift

    def to_json(self) -> dict[str, float]:
        """Return the two numbers as plain data."""
        return asdict(self)


@dataclass(frozen=True)
class NetworkConfig:
    """What builds a network again, beside its weights; `Network.config` in files.

    The fields after `size`, the `input_size` of a network, are of a wrapped module.
    """

    network: str
    encoder: str
    input_spec: InputSpec
    calibration: Calibration | None = None
    size: Size | None = None
    source: str | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    architecture: dict[str, Any] | None = None
    output: int | str = -1
    output_spec: OutputSpec = OutputSpec()

    @classmethod
    def parse(cls, text: str, *, source: str) -> Self:
        """Return the config of a file from its JSON."""
        with explain_errors(f"{source}: the config is not JSON"):
            content = json.loads(text)
        return convert(content, cls, name=f"{source}: config")


def check_size(size: int | Size | None) -> Size | None:
    """Return height and width of the input, from both or from one side.

    Example:
        >>> check_size(384), check_size((24, 32)), check_size(None)
        ((384, 384), (24, 32), None)
    """
    if size is None:
        return None
    height, width = size if isinstance(size, list | tuple) else (size, size)
    return check_int("size", height, least=1), check_int("size", width, least=1)

"""How an image becomes the input of a network, as data, and the one function that applies it."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from sisod.common.arguments import check_choice, check_number, shown
from sisod.common.errors import InputError, UsageError

_LARGEST = 1e6  # allowed value; grey values reach 255, or 65535
Triple = tuple[float, float, float]


@dataclass(frozen=True)
class InputSpec:
    """How an RGB image in [0, 1] becomes the input of a network: (reordered * scale - mean) / std.

    Stored in every network and in every file saved from one, because weights used with another spec
    give wrong maps without any error.

    Attributes:
        order: the channel order of the input.
        scale: 1.0 for values in [0, 1], 255.0 for values in [0, 255].
        mean: of each channel, in that order and on that scale.
        std: the same for the standard deviation.

    Example:
        PoolNet's original weights want BGR on [0, 255] minus a mean; a white pixel:

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
        object.__setattr__(self, "scale", check_number("scale", self.scale, above=True, most=_LARGEST))
        object.__setattr__(self, "mean", _triple("mean", self.mean))  # JSON brings lists
        object.__setattr__(self, "std", _triple("std", self.std))

    def apply(self, images: Tensor) -> Tensor:
        """Return the input of the network.

        Args:
            images: (..., 3, height, width) in RGB; uint8 in 0..255, or floating in [0, 1].
        """
        if images.ndim < 3 or images.shape[-3] != 3:
            raise InputError(
                f"images must have shape (..., 3, height, width), got {tuple(images.shape)}"
            )
        if images.dtype == torch.uint8:
            x = images.float() * (self.scale / 255)
        elif images.is_floating_point():
            x = images * self.scale
        else:
            raise InputError(f"images must be uint8 or floating, got {images.dtype}")
        if self.order == "bgr":
            x = x.flip(-3)
        mean, std = (x.new_tensor(values).view(3, 1, 1) for values in (self.mean, self.std))
        return (x - mean) / std


def _triple(name: str, values: object) -> Triple:
    if not isinstance(values, list | tuple) or len(values) != 3:
        got = len(values) if isinstance(values, list | tuple) else shown(values)
        raise UsageError(f"{name} must have three values, one per channel, got {got}")
    # no division by zero, no overflow
    least, above = (0.0, True) if name == "std" else (-_LARGEST, False)
    first, second, third = (
        check_number(f"every value of {name}", value, least=least, most=_LARGEST, above=above)
        for value in values
    )
    return first, second, third


IMAGENET = InputSpec()
# EfficientNet-Lite was trained on (v - 127) / 128
LITE = InputSpec("rgb", 255.0, (127.0, 127.0, 127.0), (128.0, 128.0, 128.0))

"""How an image becomes the input of a network, as data, and the one function that applies it."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from sisod.common.arguments import check_choice, check_number
from sisod.common.errors import InputError
from sisod.networks.values import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    LARGEST,
    Triple,
    check_triple,
    check_unit_mean,
)


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
    mean: Triple = IMAGENET_MEAN
    std: Triple = IMAGENET_STD

    def __post_init__(self) -> None:
        check_choice("order", self.order, ("rgb", "bgr"))
        object.__setattr__(self, "scale", check_number("scale", self.scale, above=True, most=LARGEST))
        object.__setattr__(self, "mean", check_triple("mean", self.mean))  # JSON brings lists
        object.__setattr__(self, "std", check_triple("std", self.std))
        if self.scale == 1:
            check_unit_mean(self.mean)

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


IMAGENET = InputSpec()
# EfficientNet-Lite was trained on (v - 127) / 128
LITE = InputSpec("rgb", 255.0, (127.0, 127.0, 127.0), (128.0, 128.0, 128.0))

"""Tiny: a small network of our own for demos, tests and teaching, trained from scratch on a CPU.

A convolutional encoder of five downsamplings and a top-down decoder (Lin et al., Feature Pyramid
Networks, CVPR 2017, arXiv:1612.03144). Group norms, so that a batch of one image can be used for
training and no statistics are stored. MIT licence.
"""

from pathlib import Path
from typing import ClassVar

from torch import Tensor, nn

from sisod.common.exceptions import InputError
from sisod.networks.architectures.fpn import Pyramid, conv_group_norm
from sisod.networks.network import Target
from sisod.networks.registry import FACTS, Facts
from sisod.networks.specs import InputSpec

_WIDTHS = (16, 24, 40, 64, 96)
_DECODER_WIDTH = 32


class TinyEncoder(nn.Module):
    """Five downsamplings by 2; returns the map of each."""

    def __init__(self) -> None:
        super().__init__()
        self.stages = nn.ModuleList(
            nn.Sequential(conv_group_norm(width_in, width, stride=2), conv_group_norm(width, width))
            for width_in, width in zip((3, *_WIDTHS[:-1]), _WIDTHS, strict=True)
        )

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return five maps, at strides 2, 4, 8, 16 and 32."""
        features = []
        for stage in self.stages:
            x = stage(x)
            features.append(x)
        return tuple(features)


class Tiny(Pyramid):
    """Three maps, from strides 2, 4 and 8."""

    facts: ClassVar[Facts] = FACTS["tiny"]
    targets: ClassVar[tuple[Target, ...]] = ("mask", "mask", "mask")

    def __init__(self, encoder: str = "resnet50", input_spec: InputSpec | None = None) -> None:
        super().__init__(encoder, input_spec)
        if encoder != "resnet50":
            raise InputError(
                f"tiny has an encoder of its own, got encoder={encoder!r}; leave encoder out"
            )
        self.encoder = TinyEncoder()
        self.build_decoder(_WIDTHS, _DECODER_WIDTH)

    def load_encoder(self, weights: str | Path) -> None:
        """Raise: there are no pretrained weights of this encoder."""
        raise InputError(f"tiny has no pretrained encoder, got encoder_weights={str(weights)!r}")

"""Tiny: a small network of our own for demos, tests and teaching, trained from scratch on a CPU.

A convolutional encoder of five downsamplings and a top-down decoder (Lin et al., Feature Pyramid
Networks, CVPR 2017, arXiv:1612.03144). Group norms, so that a batch of one image can be used for
training and no statistics are stored. MIT licence.
"""

from pathlib import Path
from typing import ClassVar

from torch import Tensor, nn

from sisod.common.errors import InputError
from sisod.networks.architectures.blocks import check_images, resize
from sisod.networks.input_spec import InputSpec
from sisod.networks.network import Network, Target
from sisod.networks.registry import FACTS, Facts

_WIDTHS = (16, 24, 40, 64, 96)
_DECODER_WIDTH = 32
_GROUP = 8  # channels of a group norm
_N_HEADS = 3


class TinyEncoder(nn.Module):
    """Five downsamplings by 2; returns the map of each."""

    def __init__(self) -> None:
        super().__init__()
        self.stages = nn.ModuleList(
            nn.Sequential(_block(width_in, width, stride=2), _block(width, width))
            for width_in, width in zip((3, *_WIDTHS[:-1]), _WIDTHS, strict=True)
        )

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return five maps, at strides 2, 4, 8, 16 and 32."""
        features = []
        for stage in self.stages:
            x = stage(x)
            features.append(x)
        return tuple(features)


class Tiny(Network):
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
        self.lateral = nn.ModuleList(nn.Conv2d(width, _DECODER_WIDTH, 1) for width in _WIDTHS)
        self.smooth = nn.ModuleList(_block(_DECODER_WIDTH, _DECODER_WIDTH) for _ in _WIDTHS)
        self.heads = nn.ModuleList(nn.Conv2d(_DECODER_WIDTH, 1, 3, padding=1) for _ in range(_N_HEADS))

    def load_encoder(self, weights: str | Path) -> None:
        """Refuse: there are no pretrained weights of this encoder."""
        raise InputError(f"tiny has no pretrained encoder, got encoder_weights={str(weights)!r}")

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return three logit maps, the finest first."""
        check_images(x)
        features = self.encoder(x)
        maps: list[Tensor] = []
        above: Tensor | None = None
        for level in range(len(_WIDTHS) - 1, -1, -1):
            beside = self.lateral[level](features[level])
            above = self.smooth[level](beside if above is None else beside + resize(above, beside))
            if level < _N_HEADS:
                maps.append(resize(self.heads[level](above), x))
        return tuple(reversed(maps))


def _block(width_in: int, width: int, *, stride: int = 1) -> nn.Sequential:
    conv = nn.Conv2d(width_in, width, 3, stride=stride, padding=1, bias=False)
    return nn.Sequential(conv, nn.GroupNorm(width // _GROUP, width), nn.ReLU())

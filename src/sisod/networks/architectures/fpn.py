"""FPN and Tiny: a feature pyramid over encoders with maps at several strides, with deep supervision.

Paper: Lin et al., Feature Pyramid Networks for Object Detection, CVPR 2017, arXiv:1612.03144.
Networks of our own: FPN for encoders of today, ConvNeXt, Swin and others of timm, beside ours; Tiny,
with a small encoder, for demos, tests and teaching, trained from scratch on a CPU. Group norms, so that
a batch of one image can be used for training. MIT licence.
"""

from collections.abc import Sequence
from typing import ClassVar

from torch import Tensor, nn

from sisod.common.exceptions import InputError
from sisod.networks.architectures import resize
from sisod.networks.encoders import PREFIX, TimmEncoder, create_encoder, decoder_width
from sisod.networks.network import Network, Target
from sisod.networks.registry import FACTS, Facts
from sisod.networks.specs import InputSpec

_WIDTH = 128
_TINY_WIDTHS = (16, 24, 40, 64, 96)
_TINY_DECODER_WIDTH = 32
_GROUP = 8  # channels of a group norm


class Pyramid(Network):
    """Base of networks with a top-down decoder over an encoder of any depth; the finest map first."""

    def build_decoder(self, channels: Sequence[int], width: int) -> None:
        """Create the decoder over maps with so many channels, the finest first."""
        self.lateral = nn.ModuleList(nn.Conv2d(width_in, width, 1) for width_in in channels)
        self.smooth = nn.ModuleList(conv_group_norm(width, width) for _ in channels)
        self.heads = nn.ModuleList(nn.Conv2d(width, 1, 3, padding=1) for _ in self.targets)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the logit maps of the finest levels, the finest first."""
        features = self.encoder(x)
        maps: list[Tensor] = []
        above: Tensor | None = None
        for level in range(len(features) - 1, -1, -1):
            beside = self.lateral[level](features[level])
            above = self.smooth[level](beside if above is None else beside + resize(above, beside))
            if level < len(self.heads):
                maps.append(resize(self.heads[level](above), x))
        return tuple(reversed(maps))


class FPN(Pyramid):
    """Four maps, from the four finest levels of the encoder."""

    facts: ClassVar[Facts] = FACTS["fpn"]
    targets: ClassVar[tuple[Target, ...]] = ("mask", "mask", "mask", "mask")

    def __init__(self, encoder: str = "resnet50", input_spec: InputSpec | None = None) -> None:
        super().__init__(encoder, input_spec)
        is_of_timm = encoder.startswith(PREFIX)
        trunk = TimmEncoder(encoder.removeprefix(PREFIX)) if is_of_timm else create_encoder(encoder)
        self.encoder = trunk
        if input_spec is None and isinstance(trunk, TimmEncoder):
            self.input_spec = trunk.input_spec
        self.build_decoder(trunk.channels, decoder_width(encoder, _WIDTH))


class TinyEncoder(nn.Module):
    """Five downsamplings by 2; returns the map of each."""

    def __init__(self) -> None:
        super().__init__()
        self.stages = nn.ModuleList(
            nn.Sequential(conv_group_norm(width_in, width, stride=2), conv_group_norm(width, width))
            for width_in, width in zip((3, *_TINY_WIDTHS[:-1]), _TINY_WIDTHS, strict=True)
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
        self.build_decoder(_TINY_WIDTHS, _TINY_DECODER_WIDTH)


def conv_group_norm(width_in: int, width: int, *, stride: int = 1) -> nn.Sequential:
    """Return a 3 x 3 convolution, a group norm and a ReLU."""
    conv = nn.Conv2d(width_in, width, 3, stride=stride, padding=1, bias=False)
    return nn.Sequential(conv, nn.GroupNorm(width // _GROUP, width), nn.ReLU())

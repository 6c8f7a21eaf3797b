"""FPN: a feature pyramid over any encoder that gives maps at several strides, with deep supervision.

Paper: Lin et al., Feature Pyramid Networks for Object Detection, CVPR 2017, arXiv:1612.03144.
A network of our own for encoders of today: ConvNeXt, Swin and others of timm, beside ours. Group norms
in the decoder, so that a batch of one image can be used for training. MIT licence.
"""

from typing import ClassVar

from torch import Tensor, nn

from sisod.networks.architectures.blocks import check_images, resize
from sisod.networks.encoders.encoders import create_pyramid, decoder_width
from sisod.networks.encoders.timm_encoder import TimmEncoder
from sisod.networks.input_spec import InputSpec
from sisod.networks.network import Network, Target
from sisod.networks.registry import FACTS, Facts

_WIDTH = 128
_GROUP = 8  # channels of a group norm
_N_HEADS = 4


class FPN(Network):
    """Four maps, from the four finest levels of the encoder."""

    facts: ClassVar[Facts] = FACTS["fpn"]
    targets: ClassVar[tuple[Target, ...]] = ("mask", "mask", "mask", "mask")

    def __init__(self, encoder: str = "resnet50", input_spec: InputSpec | None = None) -> None:
        super().__init__(encoder, input_spec)
        trunk = create_pyramid(encoder)
        self.encoder = trunk
        if input_spec is None and isinstance(trunk, TimmEncoder):
            self.input_spec = trunk.input_spec
        width = decoder_width(encoder, _WIDTH)
        channels = trunk.channels
        self.lateral = nn.ModuleList(nn.Conv2d(width_in, width, 1) for width_in in channels)
        self.smooth = nn.ModuleList(_block(width) for _ in channels)
        self.heads = nn.ModuleList(nn.Conv2d(width, 1, 3, padding=1) for _ in range(_N_HEADS))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return four logit maps, the finest first."""
        check_images(x)
        features = self.encoder(x)
        maps: list[Tensor] = []
        above: Tensor | None = None
        for level in range(len(features) - 1, -1, -1):
            beside = self.lateral[level](features[level])
            above = self.smooth[level](beside if above is None else beside + resize(above, beside))
            if level < _N_HEADS:
                maps.append(resize(self.heads[level](above), x))
        return tuple(reversed(maps))


def _block(width: int) -> nn.Sequential:
    conv = nn.Conv2d(width, width, 3, padding=1, bias=False)
    return nn.Sequential(conv, nn.GroupNorm(width // _GROUP, width), nn.ReLU())

"""EDN: a top-down decoder that starts two downsamplings below the end of its encoder.

Paper: Wu et al., EDN: Salient Object Detection via Extremely-Downsampled Network, IEEE TIP 2022,
arXiv:2012.13093. Authors' code and weights: github.com/yuhuan-wu/EDN (CC BY-NC-SA 4.0, non-commercial).
Reimplemented from the published facts.
"""

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from sisod.networks.architectures import conv_norm, conv_same, resize
from sisod.networks.checkpoints import conv_norm_rules
from sisod.networks.encoders import create_encoder, decoder_width
from sisod.networks.encoders.resnet import Bottleneck
from sisod.networks.network import Network, Target
from sisod.networks.registry import FACTS, Facts
from sisod.networks.specs import IMAGENET, InputSpec

_EXTREME_PLANES = 256  # of the bottlenecks below the encoder; they give four times as many channels
_N_HEADS = 5


class _Level(NamedTuple):
    width: int
    base: int  # each of an SCPC's four groups has width * base / 64 channels
    dilations: tuple[int, int, int, int]


_LEVELS = (
    _Level(32, 32, (1, 2, 4, 8)),
    _Level(64, 32, (1, 2, 4, 8)),
    _Level(256, 24, (1, 2, 4, 8)),
    _Level(512, 24, (1, 2, 3, 4)),
    _Level(512, 24, (1, 2, 3, 4)),
    _Level(128, 24, (1, 1, 1, 1)),
    _Level(128, 24, (1, 1, 1, 1)),
)


class SCPC(nn.Module):
    """Scale-correlated pyramid convolution: four groups, each with the output of the previous one."""

    def __init__(self, level: _Level) -> None:
        super().__init__()
        group = level.width * level.base // 64
        self.split = conv_norm(level.width, 4 * group, 1, bias=False)
        self.groups = nn.ModuleList(
            conv_norm(group, group, 3, dilation=dilation, bias=False) for dilation in level.dilations
        )
        self.merge = nn.Sequential(
            conv_same(4 * group, level.width, 1, bias=False), nn.BatchNorm2d(level.width)
        )
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        """Return a map of the same shape."""
        outputs: list[Tensor] = []
        for conv, part in zip(self.groups, self.split(x).chunk(4, dim=1), strict=True):
            outputs.append(conv(part + outputs[-1] if outputs else part))
        out: Tensor = self.relu(self.merge(torch.cat(outputs, dim=1)) + x)
        return out


class EDN(Network):
    """Five maps, the finest first; the encoder's batch norms are frozen.

    Args:
        encoder: `"resnet50"`, as published, or `"efficientnet_lite0"`.
        input_spec: how images are prepared, if not as for the encoder's ImageNet weights.

    Example:
        >>> with torch.device("meta"):  # shapes without numbers
        ...     maps = EDN("efficientnet_lite0").eval()(torch.empty(1, 3, 64, 96))
        >>> len(maps), tuple(maps[0].shape)
        (5, (1, 1, 64, 96))
    """

    facts: ClassVar[Facts] = FACTS["edn"]
    targets: ClassVar[tuple[Target, ...]] = ("mask", "mask", "mask", "mask", "mask")
    published_inputs: ClassVar[Mapping[str, InputSpec]] = {"authors": IMAGENET, "si-sod": IMAGENET}
    renames = (
        (r"backbone\.", "encoder."),
        (r"conv6\.0\.", "extreme5."),
        (r"conv7\.0\.", "extreme6."),
        *conv_norm_rules(r"fpn\.inners_a\.(\d)\.{}\.", r"lateral.\1."),
        *conv_norm_rules(r"fpn\.inners_b\.(\d)\.{}\.", r"top_down.\1."),
        *conv_norm_rules(r"fpn\.fuse\.(\d)\.(\d)\.{}1\.", r"fuse.\1.\2.split."),
        *conv_norm_rules(r"fpn\.fuse\.(\d)\.(\d)\.{}s\.(\d)\.", r"fuse.\1.\2.groups.\3."),
        *conv_norm_rules(r"fpn\.fuse\.(\d)\.(\d)\.{}3\.", r"fuse.\1.\2.merge."),
        *((rf"cls{n}\.", f"heads.{n - 1}.") for n in range(1, 6)),
    )

    def __init__(self, encoder: str = "resnet50", input_spec: InputSpec | None = None) -> None:
        super().__init__(encoder, input_spec)
        trunk = create_encoder(encoder, frozen_norm=True)
        self.encoder = trunk
        planes = decoder_width(encoder, _EXTREME_PLANES)
        self.extreme5 = _extreme(trunk.channels[-1], planes)
        self.extreme6 = _extreme(4 * planes, planes)
        levels = [level._replace(width=decoder_width(encoder, level.width)) for level in _LEVELS]
        widths = [level.width for level in levels]
        inputs = (*trunk.channels, 4 * planes, 4 * planes)
        # the lateral and the top-down half make a level; the deepest has no level above it
        halves = [*(width // 2 for width in widths[:-1]), widths[-1]]
        self.lateral = nn.ModuleList(
            conv_norm(width_in, half, 1) for width_in, half in zip(inputs, halves, strict=True)
        )
        self.top_down = nn.ModuleList(
            conv_norm(deeper, half, 1) for deeper, half in zip(widths[1:], halves[:-1], strict=True)
        )
        self.fuse = nn.ModuleList(nn.Sequential(SCPC(level), SCPC(level)) for level in levels)
        self.heads = nn.ModuleList(nn.Conv2d(width, 1, 1) for width in widths[:_N_HEADS])

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return five logit maps, the finest first."""
        f0, f1, f2, f3, f4 = self.encoder(x)
        f5 = self.extreme5(f4)
        f6 = self.extreme6(f5)
        # global attention on the two extreme levels
        attention = f6.mean(dim=(2, 3), keepdim=True).sigmoid()
        features = (f0, f1, f2, f3, f4, f5 * attention, f6 * attention)
        decoded = [self.fuse[6](self.lateral[6](features[6]))]
        for level in range(5, -1, -1):
            above = resize(self.top_down[level](decoded[-1]), features[level])
            beside = self.lateral[level](features[level])
            decoded.append(self.fuse[level](torch.cat([above, beside], dim=1)))
        finest = decoded[: -_N_HEADS - 1 : -1]
        return tuple(resize(head(level), x) for head, level in zip(self.heads, finest, strict=True))


def _extreme(width_in: int, planes: int) -> nn.Sequential:
    """Return a stage that halves the size, below the encoder."""
    return nn.Sequential(
        Bottleneck(width_in, planes, stride=2, project=True), Bottleneck(4 * planes, planes)
    )

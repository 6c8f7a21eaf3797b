"""GateNet: gates between encoder and decoder weight the features of each level.

Paper: Zhao et al., Suppress and Balance: A Simple Gated Network for Salient Object Detection, ECCV 2020,
arXiv:2007.08074. Authors' code and weights: github.com/Xiaoqi-Zhao-DLUT/GateNet-RGB-Saliency (MIT).
Reimplemented from the published facts.
"""

from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from typing import ClassVar

import torch
import torch.nn.functional as F  # noqa: N812  (the name everybody knows it by)
from torch import Tensor, nn

from sisod.networks.architectures import check_fits, conv_norm, resize
from sisod.networks.encoders import create_encoder, decoder_width
from sisod.networks.network import Network, Target
from sisod.networks.registry import FACTS, Facts
from sisod.networks.specs import IMAGENET, InputSpec

# level 1 is the finest; every list below is in this order
_TRANSITION_WIDTHS = (64, 64, 128, 256, 512)
_GATE_WIDTHS: tuple[tuple[int, ...], ...] = ((), (64,), (128,), (256, 64), (512, 128))
_PARALLEL_WIDTH = 256
_DILATIONS = (2, 4, 6)
_MULTIPLE = 32  # heights and widths that are multiples of it can always be folded

_conv = partial(conv_norm, act=nn.PReLU)


class FoldASPP(nn.Module):
    """Atrous pyramid on 2 x 2 windows folded into channels: a tap covers a window, not a pixel."""

    def __init__(self, width_in: int, width: int) -> None:
        super().__init__()
        self.reduce = _conv(width_in, width, 3)
        folded, branch = 4 * width, 2 * width
        self.point = _conv(folded, branch, 1)
        self.atrous = nn.ModuleList(
            _conv(folded, branch, 3, dilation=dilation) for dilation in _DILATIONS
        )
        self.pooled = _conv(folded, branch, 1)
        self.merge = _conv(5 * branch, folded, 1)
        self.out = nn.Conv2d(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return a map of the same size."""
        folded = F.pixel_unshuffle(self.reduce(x), 2)
        whole = self.pooled(folded.mean(dim=(2, 3), keepdim=True))
        branches = [self.point(folded), *(conv(folded) for conv in self.atrous), resize(whole, folded)]
        out: Tensor = self.out(F.pixel_shuffle(self.merge(torch.cat(branches, dim=1)), 2))
        return out


class Gate(nn.Module):
    """Two numbers per image: how much of a level the decoder and the parallel branch get."""

    def __init__(self, width_in: int, inner_widths: tuple[int, ...]) -> None:
        super().__init__()
        widths = (width_in, *inner_widths)
        inner = [part for pair in pairwise(widths) for part in _conv(*pair, 3)]
        self.stack = nn.Sequential(*inner, nn.Conv2d(widths[-1], 2, 3, padding=1))

    def forward(self, encoded: Tensor, decoded: Tensor) -> tuple[Tensor, Tensor]:
        """Return both gates as (B, 1, 1, 1)."""
        maps = self.stack(torch.cat([encoded, decoded], dim=1))
        gates = maps.sigmoid().mean(dim=(2, 3), keepdim=True)
        return gates[:, :1], gates[:, 1:]


class GateNet(Network):
    """Two maps: the sum of the top-down and the parallel branch, and the top-down branch alone.

    Args:
        encoder: `"resnet50"`, as published, or `"efficientnet_lite0"`.
        input_spec: how images are prepared, if not as for the encoder's ImageNet weights.

    Example:
        >>> with torch.device("meta"):  # shapes without numbers
        ...     maps = GateNet("efficientnet_lite0").eval()(torch.empty(1, 3, 64, 96))
        >>> len(maps), tuple(maps[0].shape)
        (2, (1, 1, 64, 96))
    """

    facts: ClassVar[Facts] = FACTS["gatenet"]
    targets: ClassVar[tuple[Target, ...]] = ("mask", "mask")
    published_inputs: ClassVar[Mapping[str, InputSpec]] = {"authors": IMAGENET, "si-sod": IMAGENET}
    # the authors count from the deepest level
    renames = (
        (r"(conv1|bn1|layer\d)\.", r"encoder.\1."),
        (r"dem1\.0\.down_conv\.", "transition.4.0.reduce."),
        (r"dem1\.0\.conv1\.", "transition.4.0.point."),
        (r"dem1\.0\.conv2\.", "transition.4.0.atrous.0."),
        (r"dem1\.0\.conv3\.", "transition.4.0.atrous.1."),
        (r"dem1\.0\.conv4\.", "transition.4.0.atrous.2."),
        (r"dem1\.0\.conv5\.", "transition.4.0.pooled."),
        (r"dem1\.0\.fuse\.", "transition.4.0.merge."),
        (r"dem1\.0\.up_conv\.", "transition.4.0.out."),
        *((rf"dem{n}\.", f"transition.{5 - n}.") for n in range(1, 6)),
        *((rf"attention_feature{n}\.", f"gates.{5 - n}.stack.") for n in range(1, 6)),
        *((rf"output{n}\.", f"decoder.{5 - n}.") for n in range(1, 6)),
        (r"out_res\.", "parallel."),
    )

    def __init__(self, encoder: str = "resnet50", input_spec: InputSpec | None = None) -> None:
        super().__init__(encoder, input_spec)
        trunk = create_encoder(encoder, variant="B")
        self.encoder = trunk
        widths = [decoder_width(encoder, width) for width in _TRANSITION_WIDTHS]
        deep = nn.Sequential(
            FoldASPP(trunk.channels[-1], widths[-1]), nn.BatchNorm2d(widths[-1]), nn.PReLU()
        )
        shallow = zip(trunk.channels[:-1], widths[:-1], strict=True)
        self.transition = nn.ModuleList([*(_conv(*pair, 3) for pair in shallow), deep])
        # features from the deeper level have the width of this level's transition
        self.gates = nn.ModuleList(
            Gate(width_in + width, tuple(decoder_width(encoder, inner) for inner in inners))
            for width_in, width, inners in zip(trunk.channels, widths, _GATE_WIDTHS, strict=True)
        )
        finest = nn.Sequential(nn.Conv2d(widths[0], 1, 3, padding=1))
        deeper = zip(widths[1:], widths[:-1], strict=True)
        self.decoder = nn.ModuleList([finest, *(_conv(*pair, 3) for pair in deeper)])
        inner = decoder_width(encoder, _PARALLEL_WIDTH)
        self.parallel = nn.Sequential(
            *_conv(1 + sum(widths), inner, 3), *_conv(inner, inner, 3), nn.Conv2d(inner, 1, 3, padding=1)
        )

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the logits of both branches together, and of the top-down branch."""
        encoded = self.encoder(x)
        is_even = not any(side % 2 for side in encoded[-1].shape[-2:])
        check_fits(is_even, x, "gatenet", multiple=_MULTIPLE)
        transitions = [part(level) for part, level in zip(self.transition, encoded, strict=True)]
        above = transitions[-1]
        for_parallel = []  # the gated transitions
        for level in range(4, -1, -1):
            here = transitions[level]
            top_down, parallel = self.gates[level](encoded[level], above)
            gated = top_down * here
            decoded = self.decoder[level](gated if level == 4 else above + gated)
            for_parallel.append(parallel * here)
            above = resize(decoded, encoded[level - 1]) if level else decoded
        wide = torch.cat([above, *(resize(part, above) for part in for_parallel)], dim=1)
        fpn = resize(above, x)
        return fpn + resize(self.parallel(wide), x), fpn

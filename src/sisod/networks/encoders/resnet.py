"""ResNet-50 in the three variants that the saliency networks use, with torchvision's key names.

Paper: He et al., Deep Residual Learning for Image Recognition, CVPR 2016, arXiv:1512.03385.

| variant | used by | the stride is in | last stage | stem pool |
|---|---|---|---|---|
| A | EDN, ICON, LDF | the 3 x 3 convolution | stride 2 | rounds down |
| B | GateNet | the 3 x 3 convolution | stride 1, no dilation | rounds down |
| C | PoolNet | the first 1 x 1 convolution (as in Caffe) | stride 1, dilation 2 | rounds up |
"""

from collections.abc import Callable
from typing import ClassVar, Literal

from torch import Tensor, nn

from sisod.networks.architectures import FrozenBatchNorm

Variant = Literal["A", "B", "C"]
_EXPANSION = 4
_DEPTHS = (3, 4, 6, 3)
_PLANES = (64, 128, 256, 512)


class Bottleneck(nn.Module):
    """1 x 1, 3 x 3 and 1 x 1 convolutions beside a shortcut, which is projected where shapes change."""

    def __init__(
        self,
        width_in: int,
        planes: int,
        *,
        stride: int = 1,
        dilation: int = 1,
        stride_first: bool = False,
        project: bool = False,
        norm: Callable[[int], nn.Module] = nn.BatchNorm2d,
    ) -> None:
        super().__init__()
        width_out = planes * _EXPANSION
        first, second = (stride, 1) if stride_first else (1, stride)
        self.conv1 = nn.Conv2d(width_in, planes, 1, stride=first, bias=False)
        self.bn1 = norm(planes)
        self.conv2 = nn.Conv2d(
            planes, planes, 3, stride=second, padding=dilation, dilation=dilation, bias=False
        )
        self.bn2 = norm(planes)
        self.conv3 = nn.Conv2d(planes, width_out, 1, bias=False)
        self.bn3 = norm(width_out)
        self.relu = nn.ReLU()
        self.downsample = nn.Sequential()  # the identity; no parameters
        if project:
            conv = nn.Conv2d(width_in, width_out, 1, stride=stride, bias=False)
            self.downsample = nn.Sequential(conv, norm(width_out))

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum of the input and the three convolutions, rectified."""
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        out: Tensor = self.relu(self.bn3(self.conv3(y)) + self.downsample(x))
        return out


class ResNet50(nn.Module):
    """The encoder without the classifier; returns the stem and the four stages."""

    channels: ClassVar[tuple[int, ...]] = (64, 256, 512, 1024, 2048)

    def __init__(self, *, variant: Variant = "A", frozen_norm: bool = False) -> None:
        super().__init__()
        caffe = variant == "C"
        norm: Callable[[int], nn.Module] = FrozenBatchNorm if frozen_norm else nn.BatchNorm2d
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = norm(64)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=caffe)
        strides = (1, 2, 2, 2 if variant == "A" else 1)
        dilations = (1, 1, 1, 2 if caffe else 1)
        stages = []
        width = 64
        for depth, planes, stride, dilation in zip(_DEPTHS, _PLANES, strides, dilations, strict=True):
            blocks = [
                Bottleneck(
                    width if index == 0 else planes * _EXPANSION,
                    planes,
                    stride=stride if index == 0 else 1,
                    dilation=dilation,
                    stride_first=caffe,
                    project=index == 0,
                    norm=norm,
                )
                for index in range(depth)
            ]
            stages.append(nn.Sequential(*blocks))
            width = planes * _EXPANSION
        self.layer1, self.layer2, self.layer3, self.layer4 = stages
        for part in self.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return five maps, at strides 2, 4, 8, 16 and 32 (variants B and C: 16)."""
        stem = self.relu(self.bn1(self.conv1(x)))
        stage1 = self.layer1(self.maxpool(stem))
        stage2 = self.layer2(stage1)
        stage3 = self.layer3(stage2)
        return stem, stage1, stage2, stage3, self.layer4(stage3)

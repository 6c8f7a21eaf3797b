"""The networks, a module each; here the building blocks that at least two of them share."""

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812  (the name everybody knows it by)
from torch import Tensor, nn

from sisod.common.exceptions import InputError


def resize(x: Tensor, reference: Tensor, *, align_corners: bool = False) -> Tensor:
    """Return the map at the height and width of the reference, by bilinear interpolation.

    Example:
        >>> resize(torch.tensor([[[[0.0, 4.0]]]]), torch.zeros(1, 1, 1, 4)).flatten().tolist()
        [0.0, 1.0, 3.0, 4.0]
    """
    return F.interpolate(x, size=reference.shape[-2:], mode="bilinear", align_corners=align_corners)


def conv_norm(
    width_in: int,
    width_out: int,
    kernel: int,
    *,
    dilation: int = 1,
    bias: bool = True,
    act: Callable[[], nn.Module] = nn.ReLU,
) -> nn.Sequential:
    """Return a convolution that keeps the size, a batch norm and an activation.

    Args:
        width_in: channels of the input.
        width_out: channels of the output.
        kernel: side of the convolution, odd.
        dilation: of the convolution.
        bias: of the convolution; some published weights have one in spite of the norm.
        act: builds the activation.
    """
    conv = conv_same(width_in, width_out, kernel, dilation=dilation, bias=bias)
    return nn.Sequential(conv, nn.BatchNorm2d(width_out), act())


def conv_same(
    width_in: int, width_out: int, kernel: int, *, dilation: int = 1, bias: bool = True
) -> nn.Conv2d:
    """Return a convolution whose output has the size of its input."""
    padding = dilation * (kernel // 2)
    return nn.Conv2d(width_in, width_out, kernel, padding=padding, dilation=dilation, bias=bias)


class FrozenBatchNorm(nn.Module):
    """A batch norm that is never updated, not even in train mode: scale and shift are buffers too.

    EDN's has no epsilon. The names are those of `nn.BatchNorm2d`, so that checkpoints load.
    """

    weight: Tensor
    bias: Tensor
    running_mean: Tensor
    running_var: Tensor

    def __init__(self, width: int, *, eps: float = 0.0) -> None:
        super().__init__()
        self.eps = eps
        self.register_buffer("weight", torch.ones(width))
        self.register_buffer("bias", torch.zeros(width))
        self.register_buffer("running_mean", torch.zeros(width))
        self.register_buffer("running_var", torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """Apply the stored statistics, scale and shift."""
        return F.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, training=False, eps=self.eps
        )


def init_kaiming(module: nn.Module) -> None:
    """Initialise convolutions with Kaiming's normal weights (fan in) and zero biases."""
    for part in module.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight, mode="fan_in", nonlinearity="relu")
            if part.bias is not None:
                nn.init.zeros_(part.bias)


def check_fits(fits: bool, x: Tensor, name: str, *, least: int = 1, multiple: int = 1) -> None:  # noqa: FBT001
    """Raise if the decoder cannot take the maps that the encoder makes of the images.

    Args:
        fits: whether it can.
        x: the images.
        name: of the network.
        least: height and width of an input that is large enough.
        multiple: heights and widths that are multiples of it always fit.
    """
    if not fits:
        height, width = x.shape[-2:]
        needed = (max(-(-side // multiple) * multiple, least) for side in (height, width))
        raise InputError(
            f"{name} cannot take {height} x {width}; pad or resize the input to "
            f"{' x '.join(map(str, needed))}"
        )


def two_convs(width_in: int, width: int) -> nn.Sequential:
    """Return 1 x 1 and 3 x 3 convolutions with nothing between them, a batch norm and a ReLU."""
    return nn.Sequential(
        nn.Conv2d(width_in, width, 1),
        nn.Conv2d(width, width, 3, padding=1),
        nn.BatchNorm2d(width),
        nn.ReLU(),
    )

"""Networks on PyTorch's device `meta`, where shapes are computed and pixels are not."""

from functools import cache

import torch
from torch import Tensor

from sisod import networks
from sisod.networks.network import Network


@cache
def on_meta(name: str, encoder: str = "resnet50") -> Network:
    """A network in eval mode, to be left so."""
    with torch.device("meta"):
        return networks.create(name, encoder=encoder).eval()


def image_on_meta(batch: int, size: tuple[int, int]) -> Tensor:
    """Images of that size."""
    return torch.empty(batch, 3, *size, device="meta")

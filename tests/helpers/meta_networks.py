"""Networks on PyTorch's device `meta`, which computes shapes but no values, and so takes no memory."""

from functools import cache

import torch
from torch import Tensor

from sisod import networks
from sisod.networks.network import Network


@cache
def on_meta(name: str, encoder: str = "resnet50") -> Network:
    """Return a network in eval mode; it is shared, so leave it in eval mode."""
    with torch.device("meta"):
        return networks.create(name, encoder=encoder).eval()


def image_on_meta(batch: int, size: tuple[int, int]) -> Tensor:
    """Return a batch of images of a size."""
    return torch.empty(batch, 3, *size, device="meta")

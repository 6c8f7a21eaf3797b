"""One of two processes of a data-parallel training step; `test_losses_torch.py` holds their store."""

import os
import sys
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from sisod.losses import SizeInvariantLoss, boxes_of

LOSSES = {
    "boxes": SizeInvariantLoss("bce", "dice"),
    "cells": SizeInvariantLoss("bce", "dice", parts="cells", image_weight=0.5),
}


def make_batch(n_images: int = 4) -> tuple[Tensor, Tensor]:
    """Return images and masks with different numbers of objects, the same in every process."""
    generator = torch.Generator().manual_seed(0)
    gt = torch.zeros(n_images, 1, 24, 24)
    for image in range(n_images):
        for k in range(image):  # the first has none
            gt[image, 0, 6 * k : 6 * k + 2 + k, 3 * k : 3 * k + 5] = 1
    return gt + 0.3 * torch.randn(gt.shape, generator=generator), gt


def make_network() -> nn.Module:
    """Return a network of two layers, the same in every process."""
    torch.manual_seed(1)
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 3, padding=1))


def main(rank: int, port: int, folder: Path) -> None:
    """Do the step on every second image; the first process writes the gradients."""
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"  # the host name need not resolve
    store = TCPStore("127.0.0.1", port)
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=2)
    images, gt = (part[rank::2] for part in make_batch())
    for name, loss in LOSSES.items():
        network = nn.parallel.DistributedDataParallel(make_network())
        loss(network(images), gt, boxes_of(gt)).backward()
        if rank == 0:
            torch.save([p.grad for p in network.parameters()], folder / f"{name}.pt")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))

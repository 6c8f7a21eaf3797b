"""One of two processes of a data-parallel training step; run as a program by `test_losses_torch.py`."""

import os
import sys
import time
from datetime import timedelta
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


def join_two(rank: int, folder: Path) -> None:
    """Join the group of two processes that share a folder.

    The first process takes a free port and writes its number into the folder. A port chosen by the test
    could be taken by another program in the meantime; and a file store is removed by the process that
    leaves first, while the other one still needs it.
    """
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"  # the host name need not resolve
    limit = timedelta(seconds=100)
    note = folder / "port"
    if rank == 0:
        store = TCPStore(
            "127.0.0.1", 0, world_size=2, is_master=True, timeout=limit, wait_for_workers=False
        )
        (folder / "port.new").write_text(str(store.port))
        (folder / "port.new").rename(note)
    else:
        while not note.exists():
            time.sleep(0.05)
        port = int(note.read_text())
        store = TCPStore("127.0.0.1", port, world_size=2, timeout=limit)
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=2, timeout=limit)


def leave_two() -> None:
    """Leave the group together: the first process holds the store that the other needs to leave."""
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def main(rank: int, folder: Path) -> None:
    """Do the step on every second image; the first process writes the gradients."""
    torch.set_num_threads(1)
    join_two(rank, folder)
    images, gt = (part[rank::2] for part in make_batch())
    for name, loss in LOSSES.items():
        network = nn.parallel.DistributedDataParallel(make_network())
        loss(network(images), gt, boxes_of(gt)).backward()
        if rank == 0:
            torch.save([p.grad for p in network.parameters()], folder / f"{name}.pt")
    leave_two()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))

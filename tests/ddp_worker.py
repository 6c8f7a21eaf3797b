"""One of two processes of a data-parallel step; run by `test_losses_torch.py`."""

import sys
from datetime import timedelta
from pathlib import Path

import torch
from torch import Tensor, nn

from sisod.losses import SizeInvariantLoss, boxes_of


def make_batch(n_images: int = 4) -> tuple[Tensor, Tensor]:
    """Images and masks of different numbers of objects, the same for everybody."""
    generator = torch.Generator().manual_seed(0)
    gt = torch.zeros(n_images, 1, 24, 24)
    for image in range(n_images):
        for k in range(image):  # the first has none
            gt[image, 0, 6 * k : 6 * k + 2 + k, 3 * k : 3 * k + 5] = 1
    return gt + 0.3 * torch.randn(gt.shape, generator=generator), gt


def make_network() -> nn.Module:
    """Two layers, the same for everybody."""
    torch.manual_seed(1)
    return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 3, padding=1))


def main(rank: int, folder: Path, port: int) -> None:
    """Do the step on every second image; the first process writes the gradients."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo",
        # not a file: the one that leaves first may remove it, and the other waits for it in vain
        init_method=f"tcp://127.0.0.1:{port}",
        rank=rank,
        world_size=2,
        timeout=timedelta(seconds=120),
    )
    network = nn.parallel.DistributedDataParallel(make_network())
    images, gt = (part[rank::2] for part in make_batch())
    SizeInvariantLoss("bce", "dice")(network(images), gt, boxes_of(gt)).backward()
    if rank == 0:
        torch.save([p.grad for p in network.parameters()], folder / "gradients.pt")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))

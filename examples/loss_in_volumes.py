"""Patches of volumes with deep supervision, as in MONAI and nnU-Net: one loss for every scale.

Run `python examples/loss_in_volumes.py`; MONAI is not needed. Objects are those of the patch.
"""

import torch
from torch import Tensor, nn

from sisod.losses import SizeInvariantLoss, dice


class Network(nn.Module):
    """Three scales of a small encoder, each with its own map."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv3d(n, 8, 3, padding=1), nn.BatchNorm3d(8), nn.ReLU()) for n in (1, 8, 8)
        )
        self.heads = nn.ModuleList(nn.Conv3d(8, 1, 1) for _ in range(3))

    def forward(self, volumes: Tensor) -> list[Tensor]:
        """Return the maps, the largest first."""
        maps, features = [], volumes
        for scale, (block, head) in enumerate(zip(self.blocks, self.heads, strict=True)):
            features = block(features if scale == 0 else nn.functional.avg_pool3d(features, 2))
            maps.append(head(features))
        return maps


def make_volume(side: int = 40) -> tuple[Tensor, Tensor]:
    """Return a volume (1, D, H, W) of noise and bright cubes, and its mask."""
    mask = torch.zeros(1, side, side, side)
    for size in (12, 6, 3):
        z, y, x = torch.randint(0, side - size, (3,)).tolist()
        mask[0, z : z + size, y : y + size, x : x + size] = 1
    return mask + 0.3 * torch.randn(mask.shape), mask


def cut_patch(volume: Tensor, mask: Tensor, side: int = 16) -> tuple[Tensor, Tensor]:
    """Return a random patch of both."""
    window = tuple(slice(at, at + side) for at in torch.randint(0, mask.shape[1] - side, (3,)).tolist())
    return volume[:, *window], mask[:, *window]


def main(n_epochs: int = 4) -> list[float]:
    """Train, print and return the mean loss of every epoch."""
    torch.manual_seed(0)
    network, volumes = Network(), [make_volume() for _ in range(4)]
    loss = SizeInvariantLoss("bce", dice(squared=False), min_area=0)  # keeps objects of one voxel
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    history = []
    for epoch in range(n_epochs):
        values = []
        for _ in range(4):
            chosen = [cut_patch(*volume) for volume in volumes]
            patches, masks = (torch.stack(each) for each in zip(*chosen, strict=True))
            total = torch.zeros(())
            for scale, logits in enumerate(network(patches)):
                target = masks[..., :: 2**scale, :: 2**scale, :: 2**scale]
                total = total + loss(logits, target) / 2**scale
            optimizer.zero_grad()
            total.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            values.append(total.detach())
        history.append(float(torch.stack(values).mean()))
        print(f"epoch {epoch}: loss {history[-1]:.3f}")
    return history


if __name__ == "__main__":
    main()

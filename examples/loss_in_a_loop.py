"""The size-invariant loss in a plain PyTorch loop: boxes are found in the data loader, one line changes.

Run `python examples/loss_in_a_loop.py`; it trains a toy network on synthetic scenes for a few seconds.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from sisod.data.scenes import make_scenes
from sisod.losses import SizeInvariantLoss, boxes_of, collate_boxes

Sample = tuple[Tensor, Tensor, Tensor]


class Scenes(Dataset[Sample]):
    """Synthetic images with masks; boxes are found after augmentation, in the loader's worker."""

    def __init__(self, count: int) -> None:
        self.scenes = make_scenes(count, shape=(96, 128))

    def __len__(self) -> int:
        return len(self.scenes)

    def __getitem__(self, index: int) -> Sample:
        scene = self.scenes[index]
        image = torch.from_numpy(scene.image).permute(2, 0, 1) / 255
        mask = torch.from_numpy(scene.mask)[None] / 255
        return image, mask, boxes_of(mask[0])


def collate(samples: Sequence[Sample]) -> Sample:
    """Stack images and masks; concatenate the boxes, because their number differs between images."""
    images, masks, boxes = zip(*samples, strict=True)
    return torch.stack(images), torch.stack(masks), collate_boxes(boxes)


def make_network() -> nn.Sequential:
    """Return a toy network: three convolutions, one logit map, with a negative initial bias."""
    last = nn.Conv2d(8, 1, 1)
    nn.init.constant_(last.bias, -2.0)  # type: ignore[arg-type]
    return nn.Sequential(
        nn.Conv2d(3, 8, 5, padding=2), nn.ReLU(), nn.Conv2d(8, 8, 5, padding=2), nn.ReLU(), last
    )


def main(n_epochs: int = 8) -> list[float]:
    """Train, print and return the mean loss of every epoch."""
    torch.manual_seed(0)
    loader = DataLoader(Scenes(16), batch_size=8, shuffle=True, collate_fn=collate)
    network = make_network()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    loss_function = SizeInvariantLoss("bce", "dice")
    history = []
    for epoch in range(n_epochs):
        losses = []
        for images, masks, boxes in loader:
            loss = loss_function(network(images), masks, boxes)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        history.append(float(torch.stack(losses).mean()))
        print(f"epoch {epoch}: loss {history[-1]:.3f}")
    return history


if __name__ == "__main__":
    main()

"""The loss over Voronoi cells, mixed with the plain loss, in a plain PyTorch loop.

The cells are found in the data loader, after augmentation, and are one integer map per mask.
Run `python examples/loss_over_cells.py`; it trains a toy network on synthetic scenes for a few seconds.
"""

import torch
from loss_in_a_loop import make_network
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from sisod.data.scenes import make_scenes
from sisod.losses import SizeInvariantLoss, labels_of

Sample = tuple[Tensor, Tensor, Tensor]


class Scenes(Dataset[Sample]):
    """Synthetic images with masks, and the cell of every pixel."""

    def __init__(self, count: int) -> None:
        self.scenes = make_scenes(count, shape=(96, 128))

    def __len__(self) -> int:
        return len(self.scenes)

    def __getitem__(self, index: int) -> Sample:
        scene = self.scenes[index]
        image = torch.from_numpy(scene.image).permute(2, 0, 1) / 255
        mask = torch.from_numpy(scene.mask)[None] / 255
        return image, mask, labels_of(mask[0])  # stacked like the mask, no collate_fn needed


def main(n_epochs: int = 8) -> list[float]:
    """Train, print and return the mean loss of every epoch."""
    torch.manual_seed(0)
    loader = DataLoader(Scenes(16), batch_size=8, shuffle=True)
    network = make_network()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    loss_function = SizeInvariantLoss("bce", "dice", parts="cells", image_weight=0.5)
    history = []
    for epoch in range(n_epochs):
        losses = []
        for images, masks, labels in loader:
            loss = loss_function(network(images), masks, labels=labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        history.append(float(torch.stack(losses).mean()))
        print(f"epoch {epoch}: loss {history[-1]:.3f}")
    return history


if __name__ == "__main__":
    main()

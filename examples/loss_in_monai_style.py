"""The size-invariant loss in a framework that calls `loss(input, target)`, such as MONAI's trainers.

`SizeInvariantLoss` can be called this way: it then finds the boxes in `target` itself. MONAI's own
losses have the same signature and reduction (a binary mask has one channel), so both kinds can be
added. Run `python examples/loss_in_monai_style.py`; MONAI is not needed.
"""

from collections.abc import Callable

import torch
from loss_in_a_loop import Scenes, collate, make_network
from torch import Tensor, nn
from torch.utils.data import DataLoader

from sisod.losses import SizeInvariantLoss

LossFunction = Callable[[Tensor, Tensor], Tensor]


class SumOfLosses(nn.Module):
    """The sum of several losses with the same signature."""

    def __init__(self, *losses: LossFunction) -> None:
        super().__init__()
        self.losses = losses

    def forward(self, input: Tensor, target: Tensor) -> Tensor:  # noqa: A002  (MONAI's name)
        """Return the sum of the losses."""
        return torch.stack([loss(input, target) for loss in self.losses]).sum()


def train(network: nn.Module, loss_function: LossFunction, n_epochs: int) -> list[float]:
    """Train as a framework would, without any knowledge of boxes."""
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    loader = DataLoader(Scenes(16), batch_size=8, collate_fn=collate)
    history = []
    for _ in range(n_epochs):
        losses = []
        for inputs, targets, _ in loader:
            optimizer.zero_grad()
            loss = loss_function(network(inputs), targets)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            losses.append(loss.detach())
        history.append(float(torch.stack(losses).mean()))
    return history


def main(n_epochs: int = 4) -> list[float]:
    """Train, print and return the mean loss of every epoch."""
    torch.manual_seed(0)
    loss_function = SumOfLosses(SizeInvariantLoss("bce", "dice"), nn.BCEWithLogitsLoss())
    history = train(make_network(), loss_function, n_epochs)
    for epoch, loss in enumerate(history):
        print(f"epoch {epoch}: loss {loss:.3f}")
    return history


if __name__ == "__main__":
    main()

"""A SegFormer of 19 classes, as of street scenes, with ignored pixels: the loss in one line.

Run `python examples/loss_over_classes.py`; it makes a tiny SegFormer with random weights and scenes
whose border is ignored. With Transformers' own models only `make_network` changes.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from sisod.losses import BalancedLoss

N_CLASSES, IGNORED = 19, 255


def make_network() -> Any:
    """Return a tiny SegFormer; its maps have a quarter of the image's side."""
    import transformers

    config = transformers.SegformerConfig(
        num_labels=N_CLASSES,
        depths=[1, 1, 1, 1],
        hidden_sizes=[8, 8, 16, 16],
        num_attention_heads=[1, 1, 1, 1],
        decoder_hidden_size=16,
    )
    return transformers.SegformerForSemanticSegmentation(config)


def make_scenes(count: int, side: int = 64) -> tuple[Tensor, Tensor]:
    """Return images (B, 3, H, W) and classes (B, H, W): squares on class 0, in the colour of a class."""
    colours = torch.rand(N_CLASSES, 3)
    classes = torch.zeros(count, side, side, dtype=torch.long)
    for image in range(count):
        for size in (24, 12, 6):
            y, x = torch.randint(4, side - size - 4, (2,)).tolist()
            classes[image, y : y + size, x : x + size] = int(torch.randint(1, N_CLASSES, (1,)))
    images = colours[classes].permute(0, 3, 1, 2)
    classes[:, :4] = classes[:, -4:] = IGNORED
    return images, classes


def main(n_epochs: int = 4) -> list[float]:
    """Train, print and return the loss of every epoch."""
    torch.manual_seed(0)
    network, loss = make_network(), BalancedLoss(mode="multiclass", ignore_index=IGNORED)
    optimizer = torch.optim.Adam(network.parameters(), lr=5e-3)
    images, classes = make_scenes(8)
    history = []
    for epoch in range(n_epochs):
        small = network(pixel_values=images).logits
        logits = functional.interpolate(small, size=classes.shape[1:], mode="bilinear")
        value = loss(logits, classes)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        history.append(float(value.detach()))
        print(f"epoch {epoch}: loss {history[-1]:.3f}")
    return history


if __name__ == "__main__":
    main()

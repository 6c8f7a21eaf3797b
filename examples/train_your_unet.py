"""Trains a plain PyTorch U-Net of yours with the size-invariant loss, through a factory.

`build_unet` is the factory: `sisod` calls it by name, with the arguments of the recipe. The same from
the command line, in the folder of this file:

    sisod train tiny --factory train_your_unet:build_unet --data ROOT --out RUN
    sisod predict RUN IMAGES MAPS --factory train_your_unet:build_unet

`python examples/train_your_unet.py --out RUN` trains it on synthetic scenes for a few seconds.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from sisod import networks
from sisod.data.scenes import make_scenes
from sisod.networks.network import Network
from sisod.networks.predict import predict_folder
from sisod.training.recipe import find_recipe
from sisod.training.train import Machine, TrainingRequest, train

FACTORY = "train_your_unet:build_unet"  # by which another program finds it too


class UNet(nn.Module):
    """Three levels; no part of it knows about sisod."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.down = nn.ModuleList(
            [_convs(3, width), _convs(width, 2 * width), _convs(2 * width, 4 * width)]
        )
        self.up = nn.ModuleList([_convs(6 * width, 2 * width), _convs(3 * width, width)])
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits (B, 1, H, W)."""
        fine = self.down[0](x)
        middle = self.down[1](nn.functional.max_pool2d(fine, 2))
        y = self.down[2](nn.functional.max_pool2d(middle, 2))
        for up, skip in zip(self.up, (middle, fine), strict=True):
            y = nn.functional.interpolate(y, size=skip.shape[-2:])
            y = up(torch.cat([y, skip], dim=1))
        logits: Tensor = self.head(y)
        return logits


def _convs(width_in: int, width: int) -> nn.Sequential:
    conv = nn.Conv2d(width_in, width, 3, padding=1)
    return nn.Sequential(conv, nn.BatchNorm2d(width), nn.ReLU())


def build_unet(width: int = 32) -> Network:
    """Return the network, with the preparation of images that it was designed for."""
    return networks.wrap(UNet(width), mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))


def main(arguments: Sequence[str] | None = None) -> None:
    """Train on synthetic scenes, load the run and predict."""
    import cv2

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=5)
    chosen = parser.parse_args(arguments)
    data = chosen.out / "data"
    for scene in make_scenes(32, shape=(64, 96)):
        for kind, picture in (("image", scene.image), ("mask", scene.mask)):
            (data / kind).mkdir(parents=True, exist_ok=True)
            cv2.imwrite(str(data / kind / f"{scene.name}.png"), picture)
    settings = ["network.arguments={width=16}", "data.size=64", f"train.epochs={chosen.epochs}"]
    recipe = find_recipe("tiny", settings, factory=FACTORY)
    request = TrainingRequest(data=data, out=chosen.out / "run")
    record = train(recipe, request, Machine(workers=0))
    # naming the factory again is on purpose: a file that names code does not run it by itself
    trained = networks.from_pretrained(chosen.out / "run", factory=FACTORY)
    done = predict_folder(trained, data / "image", chosen.out / "maps", size=64)
    print(f"loss {record['scores']['loss']:.3f} after {record['steps']} steps; {done.n_new} maps")


if __name__ == "__main__":
    main()

"""Trains with a custom loss: the loss of the paper's released code, built from public functions.

It differs from Eq. 16: Dice has no squares, the loss of the background is always the squared error of
the mean of all maps, weighted by the area of the background divided by the area of the *union* of the
frames, and an image without objects has the plain loss, Dice included.

    python examples/train_with_your_loss.py --data ROOT --out RUN --limit 2000 --set data.size=128
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from sisod.losses import SizeInvariantLoss, boxes_of, dice
from sisod.training.recipe import find_recipe
from sisod.training.train import Machine, TrainingRequest, train


class ReleasedLoss(nn.Module):
    """Sum over frames, plus alpha times the squared error of the mean map in the background."""

    def __init__(self, *terms: str) -> None:
        super().__init__()
        own_terms = [dice(squared=False) if term == "dice" else term for term in terms]
        # an image without objects is one frame, which no object fits
        self.frames = SizeInvariantLoss(*own_terms, alpha=0, normalize=False, check_parts=False)

    def forward(self, logits: Sequence[Tensor], gt: Tensor, boxes: Tensor | None = None) -> Tensor:
        """Return the loss of a batch, the mean over its images."""
        rows = boxes_of(gt) if boxes is None else boxes
        without = torch.tensor(sorted(set(range(len(gt))) - set(rows[:, 0].tolist())), dtype=torch.long)
        whole_image = torch.tensor([0, 0, *gt.shape[-2:]])
        rows = torch.cat([rows, torch.cat([without[:, None], whole_image.expand(len(without), 4)], 1)])
        background = torch.ones_like(gt, dtype=torch.bool)
        for image, y0, x0, y1, x1 in rows.tolist():
            background[image, :, y0:y1, x0:x1] = False
        mean_map = torch.stack([logit.sigmoid() for logit in logits]).mean(dim=0)
        total: Tensor = self.frames(logits, gt, rows)
        for image, outside in enumerate(background):
            if outside.any():
                alpha = int(outside.sum()) / int((~outside).sum())
                error = (mean_map[image] - gt[image])[outside].square().mean()
                total = total + alpha * error / len(gt)
        return total


def main(arguments: Sequence[str] | None = None) -> None:
    """Train a network with the custom loss."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--recipe", default="edn-lite")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--resume", action="store_true")
    chosen = parser.parse_args(arguments)
    recipe = find_recipe(chosen.recipe, chosen.set)
    request = TrainingRequest(data=chosen.data, out=chosen.out, limit=chosen.limit, resume=chosen.resume)
    criterion = ReleasedLoss(*recipe.loss.terms)
    train(recipe, request, Machine(workers=chosen.workers), criterion=criterion)


if __name__ == "__main__":
    main()

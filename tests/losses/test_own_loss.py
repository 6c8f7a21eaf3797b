"""Training with a loss of the user's own; the example: the loss of the paper's released code."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import torch
from helpers.paths import EXAMPLES
from torch import Tensor
from torch.nn import functional

from sisod.data.textured_scenes import write_scenes
from sisod.losses import boxes_of

EXAMPLE = EXAMPLES / "train_with_your_loss.py"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("train_with_your_loss", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def by_loop(logits: list[Tensor], gt: Tensor) -> float:
    """The fact sheet's words, image by image and box by box."""
    probs = [logit.double().sigmoid() for logit in logits]
    truth, total = gt.double(), 0.0
    for image in range(len(gt)):
        covered = torch.zeros_like(truth[image, 0], dtype=torch.bool)
        for owner, y0, x0, y1, x1 in boxes_of(gt).tolist():
            if owner != image:
                continue
            covered[y0:y1, x0:x1] = True
            g = truth[image, 0, y0:y1, x0:x1]
            for p in (prob[image, 0, y0:y1, x0:x1] for prob in probs):
                total += float(functional.binary_cross_entropy(p, g))
                total += float(1 - 2 * (p * g).sum() / ((p * p).sum() + (g * g).sum()))
        mean = torch.stack(probs).mean(dim=0)[image, 0]
        alpha = int((~covered).sum()) / int(covered.sum())
        total += alpha * float(((mean - truth[image, 0])[~covered] ** 2).mean())
    return total / len(gt)


def test_released_loss_equals_the_loop(example: ModuleType) -> None:
    generator = torch.Generator().manual_seed(0)
    gt = torch.zeros(2, 1, 24, 24)
    gt[0, :, 2:10, 3:9] = gt[0, :, 8:20, 8:12] = gt[1, :, 1:4, 1:4] = gt[1, :, 15:20, 5:20] = 1
    logits = [torch.randn(gt.shape, generator=generator) for _ in range(3)]
    found = example.ReleasedLoss("bce", "dice")(logits, gt, boxes_of(gt))
    assert float(found) == pytest.approx(by_loop(logits, gt), rel=1e-5)


def test_training_with_it(example: ModuleType, tmp_path: Path) -> None:
    write_scenes(tmp_path / "made", 4, seed=0, shape=(64, 64))
    settings = ["train.epochs=1", "train.batch=2", "data.size=64"]
    arguments = ["--recipe", "tiny", "--data", str(tmp_path / "made"), "--out", str(tmp_path / "run")]
    arguments += ["--workers", "0"]
    for setting in settings:
        arguments += ["--set", setting]
    example.main(arguments)
    assert '"criterion": "ReleasedLoss"' in (tmp_path / "run" / "run.json").read_text()
    assert (tmp_path / "run" / "model.safetensors").exists()

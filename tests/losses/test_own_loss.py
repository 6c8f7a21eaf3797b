"""Training with a loss of the user's own; the example: the loss of the paper's released code."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from helpers.paths import EXAMPLES

from sisod.data.scenes import write_scenes
from sisod.losses import PlainLoss, collate_boxes, dice

EXAMPLE = EXAMPLES / "train_with_your_loss.py"
# values of the released code, which smooths its Dice: hence four digits
GOLDEN = json.loads((Path(__file__).parent / "released_loss_golden.json").read_text())


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("train_with_your_loss", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("case", GOLDEN["cases"])
def test_losses_agree_with_the_released_code(example: ModuleType, case: dict[str, Any]) -> None:
    gt = torch.tensor(case["gt"]).double()[None, None]
    logits = [torch.tensor(map_).double()[None, None] for map_ in case["logits"]]
    boxes = collate_boxes([np.array(case["boxes"], dtype=np.int64).reshape(-1, 4)])
    for terms in (("bce",), ("bce", "dice")):
        found = float(example.ReleasedLoss(*terms)(logits, gt, boxes))
        assert found == pytest.approx(case["+".join(terms)], abs=1e-4)
    plain = float(PlainLoss("bce", dice(squared=False))(logits, gt))
    assert plain == pytest.approx(case["plain bce+dice"], abs=1e-4)


def test_released_loss_of_a_batch_is_the_mean_over_images(example: ModuleType) -> None:
    torch.manual_seed(0)
    gt, logits = torch.zeros(3, 1, 24, 24), [torch.randn(3, 1, 24, 24) for _ in range(2)]
    gt[0, :, 2:10, 3:9] = gt[0, :, 8:20, 8:12] = gt[2, :, 1:4, 1:4] = 1  # nothing in the second image
    loss = example.ReleasedLoss("bce", "dice")
    single = [loss([logit[[index]] for logit in logits], gt[[index]]) for index in range(3)]
    torch.testing.assert_close(loss(logits, gt), torch.stack(single).mean())


def test_training_with_it(example: ModuleType, tmp_path: Path) -> None:
    write_scenes(tmp_path / "made", 4, seed=0, shape=(64, 64))
    settings = ["train.epochs=1", "train.batch=2", "data.size=64"]
    arguments = ["--recipe", "tiny", "--data", str(tmp_path / "made"), "--out", str(tmp_path / "run")]
    arguments += ["--workers", "0"]
    for setting in settings:
        arguments += ["--set", setting]
    example.main(arguments)
    assert '"class": "ReleasedLoss"' in (tmp_path / "run" / "run.json").read_text()
    assert (tmp_path / "run" / "model.safetensors").exists()

"""Terms with numbers, `tversky(a, b)` and `focal(g)`: by hand, against MONAI, and how to write them."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.loss_maps import loss_maps

from sisod.common.exceptions import InputError, UsageError
from sisod.losses import PlainLoss, SizeInvariantLoss, dice, focal, tversky
from sisod.scoring.loss_options import parse_term
from sisod.training.recipe import find_recipe

GOLDEN = json.loads((Path(__file__).parent / "loss_golden.json").read_text())


def test_tversky_by_hand() -> None:
    """Two objects in boxes that they fill: one half found, the other found with nothing else."""
    gt = torch.zeros(1, 4, 6)
    gt[0, 0, 0:2] = gt[0, 3, 5] = 1
    p = gt.clone()
    p[0, 0, 1] = 0
    loss = SizeInvariantLoss(tversky(0.25, 0.75), from_probs=True)
    assert loss(p, gt).item() == pytest.approx((1 - 1 / (1 + 0.75)) / 2)  # TP 1, FN 1; and 0
    plain = PlainLoss(tversky(0.25, 0.75), from_probs=True)
    p[0, 2, 2:4] = 1  # two false alarms
    assert plain(p, gt).item() == pytest.approx(1 - 2 / (2 + 0.25 * 2 + 0.75 * 1))


def test_focal_by_hand() -> None:
    p, gt = torch.tensor([[[0.8, 0.4]]]), torch.tensor([[[1.0, 0.0]]])
    expected = -(0.2**2 * math.log(0.8) + 0.4**2 * math.log(0.6)) / 2
    assert PlainLoss(focal(2), from_probs=True)(p, gt).item() == pytest.approx(expected)
    assert PlainLoss(focal(2))(p.logit(), gt).item() == pytest.approx(expected)
    assert PlainLoss(focal(0))(p.logit(), gt).item() == pytest.approx(
        PlainLoss("bce")(p.logit(), gt).item()
    )


def test_known_special_cases() -> None:
    logits, gt = (torch.from_numpy(array) for array in loss_maps())
    torch.testing.assert_close(PlainLoss(tversky(1, 1))(logits, gt), PlainLoss("iou")(logits, gt))


@pytest.mark.parametrize("name", GOLDEN["values"])
def test_monai_says_the_same(name: str) -> None:
    """MONAI computes the focal loss in float32."""
    logits, gt = (torch.from_numpy(array) for array in loss_maps())
    for index, expected in enumerate(GOLDEN["values"][name]):
        value = PlainLoss(name)(logits[index : index + 1], gt[index : index + 1]).item()
        assert value == pytest.approx(expected, rel=1e-12 if name.startswith("tversky") else 1e-6)


@pytest.mark.parametrize("exponent", [0.3, 1.0, 1.5, 2.0])
@pytest.mark.parametrize("from_probs", [False, True])
def test_certain_pixels_have_finite_gradients(exponent: float, from_probs: bool) -> None:
    logits = torch.tensor([[[-200.0, 200.0, -30.0, 30.0, 200.0, 0.0]]])
    gt = torch.tensor([[[0.0, 1.0, 0.0, 1.0, 0.0, 1.0]]])
    x = (logits.sigmoid() if from_probs else logits).requires_grad_()
    loss = PlainLoss(focal(exponent), from_probs=from_probs)(x, gt)
    loss.backward()
    assert torch.isfinite(loss)
    assert x.grad is not None
    assert torch.isfinite(x.grad).all()
    assert x.grad[0, 0, 4] > 0  # a certain mistake


def test_names_are_written_and_read() -> None:
    assert tversky(0.3, 0.7) == "tversky(0.3,0.7)"
    assert parse_term(tversky(1e-05, 3)) == ("tversky", {"a": 1e-5, "b": 3.0})
    assert parse_term("focal( .5 )") == ("focal", {"g": 0.5})
    assert parse_term(dice(squared=False)) == parse_term("dice( squared = False )") != parse_term("dice")
    assert parse_term(dice()) == parse_term("dice(squared=true)") == ("dice", {})
    recipe = find_recipe("tiny", ['loss.terms=["focal(2)", "tversky(0.3, 0.7)"]'])
    assert recipe.loss.terms == ("focal(2)", "tversky(0.3, 0.7)")


# name -> what the message holds
NAMES = {
    "tversky(0.7)": "term 'tversky(0.7)' must be like 'tversky(0.3,0.7)', with numbers >= 0",
    "tversky(0.7,-1)": "with numbers >= 0",
    "tversky(0,0)": "tversky(0,0) counts no errors; give at least one number above 0",
    "focal": "must be like 'focal(2)'",
    "focal(nan)": "must be like 'focal(2)'",
    "focal(2": "unknown term 'focal(2'; did you mean 'focal(g)'?",
    "focal(1e999)": "g of focal(g) must be a number 0 or more, got inf",
    "dice(2)": "must be like 'dice' or 'dice(squared=false)'",
}


@pytest.mark.parametrize(("name", "message"), NAMES.items())
def test_malformed_names_are_refused(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        SizeInvariantLoss(name)
    with pytest.raises(InputError, match=rf"^tiny\.toml.*\[loss\].*{re.escape(message)}"):
        find_recipe("tiny", [f'loss.terms=["{name}"]'])


@pytest.mark.parametrize("numbers", [(-1, 1), (math.nan, 1), ("0.3", 0.7), (0, 0)])
def test_numbers_without_meaning_are_refused(numbers: tuple[Any, Any]) -> None:
    with pytest.raises(UsageError, match=r"^(a of tversky\(a,b\) must be|tversky\(0,0\) counts no)"):
        tversky(*numbers)
    with pytest.raises(UsageError, match=r"^g of focal\(g\) must be a number 0 or more, got True$"):
        focal(True)

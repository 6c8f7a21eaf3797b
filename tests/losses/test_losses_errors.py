"""Input validation of the losses."""

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import sisod
from sisod.losses import (
    PlainLoss,
    SizeInvariantLoss,
    boxes_of,
    collate_boxes,
    labels_of,
    region_term,
    weight_map,
)
from sisod.losses.checks import warn_once

LOGITS = torch.linspace(-3, 3, 2 * 6 * 8).reshape(2, 1, 6, 8)
GT = (LOGITS > 1).float()
TWO = torch.zeros(2, 1, 6, 8)  # two objects in each image
TWO[..., 0, 0] = TWO[..., 5, 7] = 1


def loss(logits: Any = LOGITS, gt: Any = GT, boxes: Any = None, **options: Any) -> Tensor:
    value: Tensor = SizeInvariantLoss("bce", "dice", **options)(logits, gt, boxes)
    return value


def cells(gt: Any = GT, **arguments: Any) -> Tensor:
    value: Tensor = SizeInvariantLoss("bce", parts="cells")(LOGITS, gt, **arguments)
    return value


def rows(*row: int) -> Tensor:
    return torch.tensor([[0, 0, 0, 2, 2], list(row)])


def reduced(logits: Tensor, gt: Tensor) -> Tensor:
    return (logits - gt).square().mean()


@region_term
def not_per_frame(p: Tensor, g: Tensor, box_sum: Any) -> Any:  # noqa: ARG001
    return 0.0


OF_LDF = SizeInvariantLoss.for_network("ldf")
# what the message must hold, and what raises it; a ValueError unless it is of a type
REFUSED: dict[str, Callable[[], object]] = {
    "input has shape (2, 1, 6, 7) but target has shape (2, 1, 6, 8)": lambda: loss(LOGITS[..., :-1]),
    "input[1] has shape (1, 1, 6, 8)": lambda: loss([LOGITS, LOGITS[:1]]),
    "(2, 3, 6, 8); mode 'binary' takes one map": lambda: loss(LOGITS.expand(2, 3, 6, 8)),
    "input has shape (2, 2, 6, 8)": lambda: loss(LOGITS.expand(2, 2, 6, 8), GT.expand(2, 2, 6, 8)),
    "a map of classes is of mode 'multiclass'": lambda: loss(LOGITS, GT.long() * 2),
    "ignore are named by ignore_index": lambda: loss(LOGITS, GT.where(LOGITS < 2, 255)),
    "target has shape (6, 8)": lambda: loss(LOGITS, GT[0, 0]),
    "input has shape (0,": lambda: loss(LOGITS[:0], GT[:0]),
    "input is an empty sequence": lambda: loss([]),
    "divide by 255": lambda: loss(LOGITS, GT * 255),
    "target holds values from 0 to 255": lambda: PlainLoss("bce")(LOGITS, (GT * 255).to(torch.uint8)),
    "target holds values from -0.5": lambda: loss(LOGITS, GT - 0.5),
    "target holds values from nan": lambda: loss(LOGITS, GT * torch.nan),
    "from_probs=True but there are values outside": lambda: loss(from_probs=True),
    "boxes row 1 is (1, 0, 0, 7, 2)": lambda: loss(boxes=rows(1, 0, 0, 7, 2)),
    "boxes row 1 is (1, 0, 0, 2, 9)": lambda: loss(boxes=rows(1, 0, 0, 2, 9)),
    "boxes row 1 is (1, 2, 2, 2, 4)": lambda: loss(boxes=rows(1, 2, 2, 2, 4)),
    "boxes has shape (2, 4)": lambda: loss(boxes=rows(1, 0, 0, 2, 2)[:, 1:]),
    "mode 'binary' expected integer rows": lambda: loss(boxes=rows(1, 0, 0, 2, 2).float()),
    "unknown term 'bec'; did you mean 'bce'?": lambda: SizeInvariantLoss("bec"),
    "needs at least one term; available: auc": SizeInvariantLoss,
    "2 terms but 1 weights": lambda: SizeInvariantLoss("bce", "dice", weights=[1]),
    "alpha must be 'ratio', 'union'": lambda: loss(alpha="ration"),
    "min_area": lambda: loss(min_area=1.5),
    "the term 'reduced' returned shape ()": lambda: SizeInvariantLoss(reduced)(LOGITS, GT),
    "a value per part, shape (1,)": lambda: SizeInvariantLoss(not_per_frame)(LOGITS, GT),
    "target is ['mask']; expected a mapping of mask": lambda: OF_LDF([LOGITS] * 6, {"mask": GT}),
    "target is Tensor; expected a mapping": lambda: OF_LDF([LOGITS] * 6, GT),
    "input is 5 maps; expected 6": lambda: OF_LDF([LOGITS] * 5, {}),
    "input has shape (6, 8)": lambda: weight_map(rows(1, 0, 0, 2, 2), (6, 8)),
    "boxes row 1 is (1, 0, 0, 8, 2)": lambda: weight_map(rows(1, 0, 0, 8, 2), (2, 6, 8)),
    "every side of shape must be an integer": lambda: weight_map(rows(0, 0, 0, 1, 1), (1, 2.5, 2)),  # type: ignore[arg-type]
    "boxes must be rows 0 <= y0 < y1 <= 6": lambda: sisod.weight_map([[0, 0, 7, 2]], (6, 8)),
    "target has shape (8,)": lambda: boxes_of(GT[0, 0, 0]),
    "boxes of image 1 have shape (1, 2)": lambda: collate_boxes([[[0, 0, 1, 1]], [[0, 1]]]),
    "dtype float64": lambda: collate_boxes([np.zeros((1, 4))]),
    "must be a finite number, got '2'": lambda: SizeInvariantLoss("bce", weights=["2"]),  # type: ignore[list-item]
    "weights must be a list of numbers": lambda: PlainLoss("bce", weights=2),  # type: ignore[arg-type]
    "input is on meta but target is on cpu": lambda: loss(LOGITS.to("meta")),
    "dtype torch.uint8; expected signed": lambda: cells(labels=labels_of(GT).to(torch.uint8)),
    "beside the parts of": lambda: cells(labels=labels_of(TWO).where(TWO[:, 0] > 0, -1), gt=TWO),
    "parts must be 'boxes' or 'cells', got 'discs'": lambda: loss(parts="discs"),
    "gamma must be a number from 0 to 1, got -1": lambda: loss(gamma=-1),
    "without normalize the loss is Eq. 16": lambda: loss(image_weight=0.5, normalize=False),
    "boxes is None but parts is 'boxes'": lambda: weight_map(None, TWO.shape),
    "labels is None but parts is 'cells'": lambda: weight_map(None, TWO.shape, parts="cells"),
    "boxes has shape (2, 6, 8) and dtype torch.int16": lambda: weight_map(
        labels_of(TWO), TWO.shape, parts="cells", labels=labels_of(TWO)
    ),
}  # fmt: skip
WRONG_TYPES: dict[str, Callable[[], object]] = {
    "input has dtype torch.int64; expected floats": lambda: loss(LOGITS.long()),
    "a term is a name or a callable, got 0.5": lambda: SizeInvariantLoss("bce", 0.5),  # type: ignore[arg-type]
    "target is of type dict; expected a tensor; see for_network": lambda: loss(LOGITS, {"mask": GT}),
    "target is of type ndarray; expected a tensor": lambda: loss(LOGITS, GT.numpy()),
    "boxes is of type list": lambda: loss(boxes=[[0, 0, 0, 2, 2]]),
    "labels is of type ndarray": lambda: cells(labels=labels_of(GT).numpy()),
}


@pytest.mark.parametrize("text", [*REFUSED, *WRONG_TYPES])
def test_refused(text: str) -> None:
    kind, call = (ValueError, REFUSED[text]) if text in REFUSED else (TypeError, WRONG_TYPES[text])
    with pytest.raises(kind, match=re.escape(text)):
        call()


def test_probabilities_given_as_logits_warn_once() -> None:
    probs = LOGITS.sigmoid()
    warn_once.cache_clear()
    with pytest.warns(
        UserWarning, match=r"all values of input are in \[0, 1\]; if they are probabilities, pass from_"
    ):
        loss(probs)
    # here warnings are errors: a second one would raise
    loss([probs, probs])
    PlainLoss("bce")(probs, GT)


@pytest.mark.parametrize(
    ("maps", "options"),
    [
        (LOGITS, {}),
        ([LOGITS.sigmoid(), LOGITS], {}),
        (LOGITS.sigmoid() - 0.9, {}),
        (torch.zeros_like(LOGITS), {}),  # a last layer that begins at zero
        (LOGITS.sigmoid(), {"from_probs": True}),
    ],
)
def test_what_cannot_be_probabilities_by_mistake_does_not_warn(maps: Any, options: Any) -> None:
    warn_once.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss(maps, **options)


def test_masks_of_other_types_are_taken() -> None:
    expected = loss()
    for gt in (GT.bool(), GT.long(), GT.to(torch.uint8), GT.double(), GT[:, 0]):
        torch.testing.assert_close(loss(LOGITS, gt), expected)
    torch.testing.assert_close(loss(LOGITS[:, 0], GT), expected)
    torch.testing.assert_close(loss(LOGITS, GT.clone().requires_grad_()), expected)  # a constant
    torch.testing.assert_close(loss(boxes=boxes_of(GT).to(torch.int32)), expected)
    assert torch.equal(boxes_of(GT[0, 0].numpy()), boxes_of(GT[:1]))
    assert torch.equal(boxes_of(GT.bool()), boxes_of(GT))

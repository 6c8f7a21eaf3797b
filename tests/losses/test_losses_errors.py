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
    size_invariant_loss,
    weight_map,
)
from sisod.losses.checks import _warn_probabilities

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


BOX = "expected (image, y0, x0, y1, x1) inside 2 images of 6 x 8, y0 < y1 and x0 < x1"
# text after text must follow in one sentence
REFUSED: dict[str, tuple[Callable[[], object], type[Exception], list[str]]] = {
    "shape": (
        lambda: loss(LOGITS[..., :-1]),
        ValueError,
        ["logits has shape (2, 1, 6, 7) but gt has shape (2, 1, 6, 8)", "resize the prediction"],
    ),
    "shape of a side output": (
        lambda: loss([LOGITS, LOGITS[:1]]),
        ValueError,
        ["logits[1] has shape (1, 1, 6, 8) but gt has shape (2, 1, 6, 8)"],
    ),
    "channels": (
        lambda: loss(LOGITS.expand(2, 3, 6, 8)),
        ValueError,
        ["logits has shape (2, 3, 6, 8); expected (B, 1, H, W) or (B, H, W)", "logits.split(1, dim=1)"],
    ),
    "gt channels": (lambda: loss(LOGITS, GT[0, 0]), ValueError, ["gt has shape (6, 8); expected (B, 1"]),
    "no pixels": (
        lambda: loss(LOGITS[:0], GT[:0]),
        ValueError,
        ["gt has shape (0,", "at least one pixel"],
    ),
    "no maps": (lambda: loss([]), ValueError, ["logits is an empty sequence"]),
    "integer logits": (
        lambda: loss(LOGITS.long()),
        TypeError,
        ["logits has dtype torch.int64; expected"],
    ),
    "gt in grey values": (
        lambda: loss(LOGITS, GT * 255),
        ValueError,
        ["gt holds values from 0 to 255; expected [0, 1]; divide grey values by 255"],
    ),
    "gt in grey values, uint8": (
        lambda: loss(LOGITS, (GT * 255).to(torch.uint8)),
        ValueError,
        ["gt holds values from 0 to 255"],
    ),
    "gt below 0": (lambda: loss(LOGITS, GT - 0.5), ValueError, ["gt holds values from -0.5 to 0.5"]),
    "gt NaN": (
        lambda: loss(LOGITS, GT * torch.nan),
        ValueError,
        ["gt holds NaN; expected values in [0, 1]"],
    ),
    "plain loss as well": (
        lambda: PlainLoss("bce")(LOGITS, GT * 255),
        ValueError,
        ["gt holds values from 0 to 255"],
    ),
    "logits as probabilities": (
        lambda: loss(from_probs=True),
        ValueError,
        ["from_probs=True but there are values outside [0, 1]", "logits without from_probs"],
    ),
    "box below": (
        lambda: loss(boxes=rows(1, 0, 0, 7, 2)),
        ValueError,
        ["row 1 is (1, 0, 0, 7, 2)", BOX],
    ),
    "box left": (lambda: loss(boxes=rows(1, 0, -1, 2, 2)), ValueError, ["row 1 is (1, 0, -1", BOX]),
    "box right": (lambda: loss(boxes=rows(1, 0, 0, 2, 9)), ValueError, ["row 1 is", BOX]),
    "box empty": (lambda: loss(boxes=rows(1, 2, 2, 2, 4)), ValueError, ["row 1 is", BOX]),
    "box of no image": (lambda: loss(boxes=rows(2, 0, 0, 2, 2)), ValueError, ["row 1 is (2, 0", BOX]),
    "boxes without image": (
        lambda: loss(boxes=rows(1, 0, 0, 2, 2)[:, 1:]),
        ValueError,
        ["boxes has shape (2, 4)", "expected integer rows (image, y0, x0, y1, x1)", "collate_boxes"],
    ),
    "boxes as floats": (
        lambda: loss(boxes=rows(1, 0, 0, 2, 2).float()),
        ValueError,
        ["dtype torch.float32; expected integer rows"],
    ),
    "term": (
        lambda: SizeInvariantLoss("bec"),
        ValueError,
        [
            "unknown term 'bec'; did you mean 'bce'? available: auc, bce, dice, focal(g), iou, l1, mse, "
            "tversky(a,b)"
        ],
    ),
    "number as a term": (
        lambda: SizeInvariantLoss("bce", 0.5),  # type: ignore[arg-type]
        TypeError,
        ["a term is a name or a callable, got 0.5; weights go into weights="],
    ),
    "no term": (lambda: SizeInvariantLoss(), ValueError, ["needs at least one term; available: auc"]),
    "weights": (
        lambda: SizeInvariantLoss("bce", "dice", weights=[1]),
        ValueError,
        ["there are 2 terms but 1 weights; give one per term"],
    ),
    "alpha": (
        lambda: loss(alpha="ration"),
        ValueError,
        ["alpha must be 'ratio', 'union' or a number from 0 on, got 'ration'"],
    ),
    "alpha below 0": (lambda: loss(alpha=-1), ValueError, ["alpha must be", "got -1"]),
    "reduced callable": (
        lambda: SizeInvariantLoss(reduced)(LOGITS, GT),
        ValueError,
        ["the term 'reduced' returned shape ()", "expected a loss per pixel, shape (2, 6, 8)", "'none'"],
    ),
    "region callable": (
        lambda: SizeInvariantLoss(not_per_frame)(LOGITS, GT),
        ValueError,
        ["the term 'not_per_frame' returned 0.0; expected a value per frame, shape (1,)"],
    ),
    "network": (
        lambda: SizeInvariantLoss.for_network("endn"),
        ValueError,
        ["unknown network 'endn'; did you mean 'edn'? available: edn, gatenet, icon, ldf, poolnet"],
    ),
    "labels of ldf elsewhere": (
        lambda: loss(LOGITS, {"mask": GT}),
        TypeError,
        ["logits or gt is a mapping; expected tensors", "learn more than masks, see for_network"],
    ),
    "mask alone for ldf": (
        lambda: SizeInvariantLoss.for_network("ldf")([LOGITS] * 6, {"mask": GT}),
        ValueError,
        ["gt is ['mask']; expected a mapping of mask, body, detail"],
    ),
    "tensor for ldf": (
        lambda: SizeInvariantLoss.for_network("ldf")([LOGITS] * 6, GT),
        ValueError,
        ["gt is Tensor; expected a mapping of mask, body, detail"],
    ),
    "maps of ldf": (
        lambda: PlainLoss.for_network("ldf")([LOGITS] * 5, {}),
        ValueError,
        ["logits are 5 maps; expected 6 (mask, body, detail, mask, body, detail), or a mapping"],
    ),
    "weight map shape": (
        lambda: weight_map(rows(1, 0, 0, 2, 2), (6, 8)),
        ValueError,
        ["shape is (6, 8); expected (B, H, W) or (B, 1, H, W)"],
    ),
    "weight map box": (
        lambda: weight_map(rows(1, 0, 0, 7, 2), (2, 6, 8)),
        ValueError,
        ["row 1 is", BOX],
    ),
    "weight map in numpy": (
        lambda: sisod.weight_map([[0, 0, 7, 2]], (6, 8)),
        ValueError,
        ["boxes must be rows 0 <= y0 < y1 <= 6, 0 <= x0 < x1 <= 8"],
    ),
    "boxes of": (
        lambda: boxes_of(GT[0, 0, 0]),
        ValueError,
        ["gt has shape (8,); expected (B, 1, H, W)"],
    ),
    "boxes of grey": (lambda: boxes_of(GT * 255), ValueError, ["gt holds values from 0 to 255"]),
    "collate": (
        lambda: collate_boxes([[[0, 0, 1, 1]], [[0, 1]]]),
        ValueError,
        ["boxes of image 1 have shape (1, 2)", "expected integer rows (y0, x0, y1, x1)"],
    ),
    "terms as a text": (
        lambda: size_invariant_loss(LOGITS, GT, terms="bce"),
        ValueError,
        ["terms is the text 'bce'", "expected a list of terms like ['bce']"],
    ),
    "weight that is not a number": (
        lambda: SizeInvariantLoss("bce", weights=["2"]),  # type: ignore[list-item]
        ValueError,
        ["every weight must be a finite number, got '2'"],
    ),
    "weight that is not finite": (
        lambda: PlainLoss("bce", "dice", weights=[1, float("nan")]),
        ValueError,
        ["every weight must be a finite number, got nan"],
    ),
    "weights that are no list": (
        lambda: PlainLoss("bce", weights=2),  # type: ignore[arg-type]
        ValueError,
        ["weights must be a list of numbers, one per term, got 2"],
    ),
    "normalize": (
        lambda: SizeInvariantLoss("bce", normalize="none"),  # type: ignore[arg-type]
        ValueError,
        ["normalize must be True or False, got 'none'"],
    ),
    "from_probs": (
        lambda: PlainLoss("bce", from_probs="no"),  # type: ignore[arg-type]
        ValueError,
        ["from_probs must be True or False, got 'no'"],
    ),
    "alpha as a flag": (
        lambda: SizeInvariantLoss("bce", alpha=True),
        ValueError,
        ["alpha must be 'ratio', 'union' or a number from 0 on, got True"],
    ),
    "network that is no name": (
        lambda: SizeInvariantLoss.for_network(["edn"]),  # type: ignore[arg-type]
        ValueError,
        ["unknown network ['edn']"],
    ),
    "shape of weights": (
        lambda: weight_map(rows(0, 0, 0, 1, 1), (1, 2.5, 2)),  # type: ignore[arg-type]
        ValueError,
        ["every side of shape must be a whole number, got 2.5"],
    ),
    "arrays for gt": (
        lambda: loss(LOGITS, GT.numpy()),
        TypeError,
        ["gt is of type ndarray; expected a tensor, for example torch.as_tensor(gt)"],
    ),
    "list of boxes": (
        lambda: loss(boxes=[[0, 0, 0, 2, 2]]),
        TypeError,
        ["boxes is of type list; expected a tensor"],
    ),
    "array of labels": (
        lambda: cells(labels=labels_of(GT).numpy()),
        TypeError,
        ["labels is of type ndarray; expected a tensor"],
    ),
    "other device": (
        lambda: loss(LOGITS.to("meta")),
        ValueError,
        ["logits is on meta but gt is on cpu; move gt there with gt.to('meta')"],
    ),
    "unsigned labels": (
        lambda: cells(labels=labels_of(GT).to(torch.uint8)),
        ValueError,
        ["labels has shape (2, 6, 8) and dtype torch.uint8; expected signed integers of"],
    ),
    "labels of blobs for cells": (
        lambda: cells(labels=labels_of(TWO, "blobs"), gt=TWO),
        ValueError,
        ["labels has pixels of no part (-1) beside parts", "give labels=labels_of(gt, 'cells')"],
    ),
    "labels of cells for blobs": (
        lambda: weight_map(None, TWO.shape, parts="blobs", labels=labels_of(TWO)),
        ValueError,
        ["labels has an image of parts without background", "give labels=labels_of(gt, 'blobs')"],
    ),
    "labels in place of boxes": (
        lambda: cells(boxes=labels_of(GT)),
        ValueError,
        ["boxes has shape (2, 6, 8) and dtype torch.int16; expected integer rows"],
    ),
    "labels in place of boxes of a weight map": (
        lambda: weight_map(labels_of(TWO), TWO.shape, parts="cells", labels=labels_of(TWO)),
        ValueError,
        ["boxes has shape (2, 6, 8)"],
    ),
    "collate floats": (
        lambda: collate_boxes([np.zeros((1, 4))]),
        ValueError,
        ["boxes of image 0", "dtype float64"],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    call, kind, texts = REFUSED[name]
    with pytest.raises(kind, match=".*".join(re.escape(text) for text in texts)):
        call()


def test_probabilities_given_as_logits_warn_once() -> None:
    probs = LOGITS.sigmoid()
    _warn_probabilities.cache_clear()
    with pytest.warns(
        UserWarning, match=r"all logits are in \[0, 1\]; if they are probabilities, pass from_"
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
    _warn_probabilities.cache_clear()
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

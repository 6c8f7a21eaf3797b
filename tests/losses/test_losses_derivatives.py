"""Second derivatives of the losses, forward mode, and the transforms of `torch.func`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad, functional

from sisod.losses import PlainLoss, SizeInvariantLoss, boxes_of, region_term
from sisod.losses.parts import runs_of_boxes

TERMS = ["bce", "mse", "l1", "focal(2)", "focal(0.5)", "dice", "iou", "auc", "tversky(0.3,0.7)"]
Loss = Callable[[Tensor], Tensor]
# PyTorch's own forward mode, when it is first used; the second from 2.15 on
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*torch.jit.script.* is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.script.* is deprecated:FutureWarning"),
]


@region_term
def own_tversky(p: Tensor, g: Tensor, box_sum: Callable[[Tensor], Tensor]) -> Tensor:
    hits = box_sum(p * g)
    return 1 - hits / (0.7 * box_sum(g) + 0.3 * box_sum(p))


def made() -> tuple[Tensor, Tensor, Tensor]:
    """Logits, truth and boxes; objects do not fill their boxes, which would make IoU linear."""
    gt = torch.zeros(2, 4, 5, dtype=torch.float64)
    gt[0, 0:2, 0:2] = gt[0, 1, 2] = gt[0, 3, 4] = gt[1, 1:4, 3] = gt[1, 2, 1:4] = 1
    logits = torch.randn(gt.shape, dtype=gt.dtype, generator=torch.Generator().manual_seed(5))
    return logits, gt, boxes_of(gt, min_area=0)


def loss_of(term: Any, kind: Any = SizeInvariantLoss, **options: Any) -> tuple[Loss, Tensor]:
    logits, gt, boxes = made()
    loss = kind(term, **options)
    given = logits.sigmoid() if options.get("from_probs") else logits
    return (lambda x: loss(x, gt, boxes)), given


CASES = [
    pytest.param(term, kind, probs, id=f"{getattr(term, '__name__', term)}-{kind.__name__}-{probs}")
    for term in [*TERMS, own_tversky]
    for kind, probs in [(SizeInvariantLoss, False), (SizeInvariantLoss, True), (PlainLoss, False)]
]


@pytest.mark.parametrize(("term", "kind", "probs"), CASES)
@pytest.mark.slow
def test_second_order_is_right(term: Any, kind: Any, probs: bool) -> None:
    loss, given = loss_of(term, kind, from_probs=probs)
    given.requires_grad_()
    assert torch.autograd.gradgradcheck(loss, (given,))
    # products and gradients computed for many vectors at once give the same
    assert torch.autograd.gradcheck(loss, (given,), check_forward_ad=True, check_batched_grad=True)


def test_third_order_and_penalties_of_gradients() -> None:
    """What trains on gradients differentiates them: here with ones found as differences."""
    loss, given = loss_of("dice")

    def penalty(x: Tensor) -> Tensor:
        x = x.detach().requires_grad_()
        (slope,) = torch.autograd.grad(loss(x), x, create_graph=True)
        (second,) = torch.autograd.grad(slope.square().sum(), x, create_graph=True)
        return second.square().sum()

    x = given.requires_grad_()
    (slope,) = torch.autograd.grad(loss(x), x, create_graph=True)
    (second,) = torch.autograd.grad(slope.square().sum(), x, create_graph=True)
    (third,) = torch.autograd.grad(second.square().sum(), x)
    step = torch.zeros_like(given)
    step[0, 1, 1] = 1e-5
    difference = (penalty(given + step) - penalty(given - step)) / 2e-5
    torch.testing.assert_close(third[0, 1, 1], difference.detach(), rtol=1e-5, atol=1e-12)


def test_forward_mode_over_reverse_mode() -> None:
    loss, given = loss_of("iou")
    direction = torch.ones_like(given)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(given.clone().requires_grad_(), direction)  # type: ignore[no-untyped-call]
        (slope,) = torch.autograd.grad(loss(dual), dual, create_graph=True)
        product = forward_ad.unpack_dual(slope).tangent  # type: ignore[no-untyped-call]
    expected = functional.hvp(loss, given, direction)[1]  # type: ignore[no-untyped-call]
    torch.testing.assert_close(product, expected, rtol=1e-9, atol=1e-12)


def test_second_order_of_sums_over_overlapping_boxes() -> None:
    height, width = 96, 4
    tops = np.arange(0, height - 3, 3)
    low, high = np.stack([tops, 0 * tops], axis=1), np.stack([tops + 4, 0 * tops + 3], axis=1)
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(1, height, width, dtype=torch.float64, generator=generator)
    runs = runs_of_boxes(0 * tops, low, high, (1, height, width), values.device)
    other = torch.randn(values.shape, dtype=values.dtype, generator=generator)

    def by_hand(x: Tensor) -> Tensor:
        first, second, third = (sums[: len(tops)] for sums in runs.sums(x, other, x, None))
        return (first * second * third).sum()

    def plainly(x: Tensor) -> Tensor:
        parts = [x[0, top : top + 4, :3] for top in tops]
        others = [other[0, top : top + 4, :3] for top in tops]
        each = [
            (part * one).sum() * part.square().sum() * part.sum()
            for part, one in zip(parts, others, strict=True)
        ]
        return torch.stack(each).sum()

    direction = torch.randn(values.shape, dtype=values.dtype, generator=generator)
    found, expected = (
        functional.hvp(each, values, direction)[1]  # type: ignore[no-untyped-call]
        for each in (by_hand, plainly)
    )
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def test_what_differs_in_number_cannot_be_mapped_over() -> None:
    logits, gt, boxes = made()
    loss = SizeInvariantLoss("bce", "dice")
    with pytest.raises(
        ValueError, match=r"torch\.func\.vmap maps over the target, but.*loop over the images"
    ):
        torch.func.vmap(loss)(logits[:, None], gt[:, None])
    with pytest.raises(ValueError, match=r"torch\.func\.vmap maps over boxes, but"):
        torch.func.vmap(loss)(logits[:, None], gt[:, None], torch.stack([boxes[:1], boxes[:1]]))
    many = torch.func.vmap(loss, in_dims=(0, None, None))(torch.stack([logits, -logits]), gt, boxes)
    torch.testing.assert_close(many, torch.stack([loss(logits, gt, boxes), loss(-logits, gt, boxes)]))


def test_values_are_checked_inside_transforms_too() -> None:
    logits, gt, boxes = made()
    loss = SizeInvariantLoss("dice")
    expected = torch.func.grad(loss)(logits, gt, boxes)
    torch.testing.assert_close(torch.func.grad(loss)(logits, gt), expected)  # boxes found inside
    with pytest.raises(ValueError, match=r"target holds values from 0 to 255"):
        torch.func.grad(loss)(logits, gt * 255, boxes)
    with pytest.raises(ValueError, match="boxes row 1 is"):
        torch.func.grad(loss)(logits, gt, boxes + 1)

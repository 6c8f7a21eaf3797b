"""Parts other than boxes, `image_weight` and `gamma`, against a loop over parts in float64."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from helpers import loss_oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

import sisod
from sisod.losses import (
    PlainLoss,
    SizeInvariantLoss,
    boxes_of,
    labels_of,
    region_term,
    weight_map,
)

TERMS = ("bce", "mse", "l1", "focal(2)", "dice", "iou", "auc", "tversky(0.3,0.7)", "dice(squared=false)")
seeds = st.integers(0, 2**32)
many = settings(deadline=None, max_examples=25)
torch.set_num_threads(1)  # the tensors are small


def draw_masks(seed: int, counts: Sequence[int], shape: tuple[int, int] = (20, 26)) -> Tensor:
    """Masks with about so many rectangles each; some touch and become one object."""
    rng = np.random.default_rng(seed)
    masks = np.zeros((len(counts), *shape))
    for mask, count in zip(masks, counts, strict=True):
        for _ in range(count):
            y, x = rng.integers(shape[0]), rng.integers(shape[1])
            mask[y : y + rng.integers(1, 6), x : x + rng.integers(1, 6)] = 1
    return torch.from_numpy(masks)


def draw_logits(seed: int, gt: Tensor) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=gt.shape))


def part_masks(gt: NDArray[Any], parts: str) -> list[NDArray[np.bool_]]:
    """The pixels of every part, pixel by pixel from the definition."""
    partition = sisod.partition(gt >= 0.5)
    if parts == "boxes":
        masks = [np.zeros(gt.shape, dtype=bool) for _ in partition]
        for mask, frame in zip(masks, partition, strict=True):
            mask[frame.window] = True
        return masks
    index = partition.index_map()
    pixels = [np.argwhere(index == k) for k in range(len(partition))]
    nearest = np.zeros(gt.shape, dtype=int)
    for y, x in np.ndindex(*gt.shape):
        distances = [int(((points - (y, x)) ** 2).sum(1).min()) for points in pixels]
        nearest[y, x] = int(np.argmin(distances)) if distances else -1
    return [nearest == k for k in range(len(partition))]


def image_loss(p: Tensor, g: Tensor, term: str, parts: str, image_weight: float, gamma: float) -> Any:
    """The loss of one image by the formula of the documentation."""
    masks = [torch.from_numpy(mask) for mask in part_masks(g.numpy(), parts)]
    if term in loss_oracle.REGION:
        region = loss_oracle.REGION[term]
        plain = region(p.flatten(), g.flatten())
        values = [value for mask in masks if (value := region(p[mask], g[mask])) is not None]
        mean = sum(values) / len(values) if values else p.new_zeros(())
        return (1 - image_weight) * mean + image_weight * (p.new_zeros(()) if plain is None else plain)
    loss = loss_oracle.SEPARABLE[term]
    plain = loss(p, g)
    if not masks:
        return plain
    areas = [int(mask.sum()) for mask in masks]
    powers = [area ** (1 - gamma) for area in areas]
    weights = [power / (sum(powers) / len(powers)) for power in powers]
    total = sum(w * loss(p[mask], g[mask]) for w, mask in zip(weights, masks, strict=True))
    background = ~torch.stack(masks).any(0)
    divisor = sum(weights)
    if parts == "boxes" and background.any():
        weight = len(masks) ** (1 - gamma) * int(background.sum()) / sum(areas)
        total = total + weight * loss(p[background], g[background])
        divisor += weight
    return (1 - image_weight) * total / divisor + image_weight * plain


def batch_loss(p: Tensor, gt: Tensor, terms: Sequence[str], **options: Any) -> Tensor:
    images = [image_loss(p_, g, term, **options) for term in terms for p_, g in zip(p, gt, strict=True)]
    return torch.stack(images).sum() / len(gt)


def check(
    loss: SizeInvariantLoss, gt: Tensor, logits: Tensor, terms: Sequence[str], **options: Any
) -> None:
    expected_leaf, leaf = (logits.clone().requires_grad_() for _ in range(2))
    expected = batch_loss(expected_leaf.sigmoid(), gt, terms, **options)
    value = loss(leaf, gt)
    torch.testing.assert_close(value, expected, rtol=1e-9, atol=1e-12)
    slopes = [
        torch.autograd.grad(total + 0 * x.sum(), x)[0]
        for total, x in ((value, leaf), (expected, expected_leaf))
    ]
    torch.testing.assert_close(*slopes, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("parts", ["boxes", "cells"])
@pytest.mark.parametrize("image_weight", [0.0, 0.3, 1.0])
@many
@given(
    seed=seeds, counts=st.lists(st.integers(0, 6), min_size=1, max_size=3), term=st.sampled_from(TERMS)
)
def test_every_term_is_the_mean_over_parts_and_image(
    parts: Any, image_weight: float, seed: int, counts: list[int], term: str
) -> None:
    gt = draw_masks(seed, counts)
    loss = SizeInvariantLoss(term, parts=parts, image_weight=image_weight)
    check(loss, gt, draw_logits(seed, gt), [term], parts=parts, image_weight=image_weight, gamma=1.0)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
@many
@given(seed=seeds, count=st.integers(0, 6), image_weight=st.sampled_from([0.0, 0.5]))
def test_gamma_weighs_boxes_by_their_size(
    gamma: float, seed: int, count: int, image_weight: float
) -> None:
    gt = draw_masks(seed, [count, 3])
    terms = ("bce", "l1", "dice")
    loss = SizeInvariantLoss(*terms, image_weight=image_weight, gamma=gamma)
    check(loss, gt, draw_logits(seed, gt), terms, parts="boxes", image_weight=image_weight, gamma=gamma)


def test_gamma_zero_is_the_plain_loss_where_no_boxes_overlap() -> None:
    gt = torch.zeros(1, 20, 20, dtype=torch.float64)
    gt[0, 1:4, 1:9] = gt[0, 12:19, 3:5] = gt[0, 8, 15] = 1
    logits = draw_logits(0, gt)
    loss = SizeInvariantLoss("bce", "l1", gamma=0.0)(logits, gt)
    torch.testing.assert_close(loss, PlainLoss("bce", "l1")(logits, gt), rtol=1e-12, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("image_weight", [0.0, 0.3])
def test_one_object_is_exactly_the_plain_loss(image_weight: float, dtype: torch.dtype) -> None:
    gt = torch.zeros(3, 1, 33, 47, dtype=dtype)
    gt[0, 0, 3:9, 20:30] = gt[1, 0, 32, 46] = gt[2] = 1
    logits = draw_logits(1, gt).to(dtype).requires_grad_()
    ours, plain = (
        SizeInvariantLoss(*TERMS, parts="cells", image_weight=image_weight)(logits, gt),
        PlainLoss(*TERMS)(logits, gt),
    )
    assert ours == plain
    assert torch.equal(*(torch.autograd.grad(loss, logits)[0] for loss in (ours, plain)))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32])
def test_boxes_of_every_integer_type_give_the_same(dtype: torch.dtype) -> None:
    gt = torch.zeros(1, 1, 250, 255)
    gt[..., 10:240, 10:240] = gt[..., 244:249, 244:254] = 1  # an area beyond 16 bits
    logits = torch.linspace(-3, 3, gt.numel()).reshape(gt.shape)
    boxes = boxes_of(gt)
    for image_weight, gamma in ((0.0, 1.0), (0.5, 1.0), (0.0, 0.5)):
        loss = SizeInvariantLoss("bce", "dice", image_weight=image_weight, gamma=gamma)
        assert loss(logits, gt, boxes.to(dtype)) == loss(logits, gt, boxes)
    assert torch.equal(weight_map(boxes.to(dtype), gt.shape), weight_map(boxes, gt.shape))


def test_a_part_without_a_pixel_does_not_count() -> None:
    """Labels that were cropped after they were found; the term divides by the object's pixels."""

    @region_term
    def area_error(p: Tensor, g: Tensor, box_sum: Any) -> Any:
        return (box_sum(p) - box_sum(g)).abs() / box_sum(g)

    gt = torch.zeros(1, 4, 9)
    gt[0, 1, 1] = gt[0, 1, 7] = 1
    left, right = labels_of(gt) == 0, labels_of(gt) == 1
    labels = torch.where(right, 2, 0)  # part 1 has no pixel
    logits = torch.zeros(1, 4, 9, requires_grad=True)
    loss = SizeInvariantLoss(area_error, parts="cells")(logits, gt, labels=labels)
    expected = [abs(0.5 * int(part.sum()) - 1) for part in (left, right)]
    assert float(loss.detach()) == pytest.approx(np.mean(expected))
    loss.backward()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()

"""The losses equal the crop-by-crop loop of the equations, in value and gradient."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from helpers import loss_oracle
from helpers.loss_oracle import Box
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import sisod
from sisod.losses import (
    PlainLoss,
    SizeInvariantLoss,
    boxes_of,
    collate_boxes,
    plain_loss,
    region_term,
    size_invariant_loss,
)

TERMS = ("bce", "mse", "l1", "focal(2)", "dice", "iou", "auc", "tversky(0.3,0.7)", "dice(squared=false)")
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
many = settings(deadline=None, max_examples=60)
few = settings(deadline=None, max_examples=25)
torch.set_num_threads(1)  # the tensors are small
seeds = st.integers(0, 2**32)
alphas = st.sampled_from(["ratio", "union", 0, 1, 2.5])


@dataclass(frozen=True)
class Batch:
    """Logits and truth in float64, and any boxes at all."""

    logits: list[Tensor]
    gt: Tensor
    boxes: list[list[Box]]

    @property
    def rows(self) -> Tensor:
        """The boxes as the loss takes them."""
        return collate_boxes(self.boxes)


def drawn_box(rng: np.random.Generator, height: int, width: int, most: int) -> Box:
    y0, x0 = int(rng.integers(height)), int(rng.integers(width))
    y1 = int(rng.integers(y0 + 1, min(height, y0 + most) + 1))
    x1 = int(rng.integers(x0 + 1, min(width, x0 + most) + 1))
    return y0, x0, y1, x1


def drawn_batch(
    seed: int,
    counts: Sequence[int],
    *,
    shape: tuple[int, int] = (11, 14),
    most: int = 14,
    n_maps: int = 1,
    soft: bool = False,
) -> Batch:
    """Boxes overlap, nest, coincide and are of one pixel, as it happens."""
    rng = np.random.default_rng(seed)
    size = (len(counts), *shape)
    truth = rng.random(size) if soft else rng.random(size) < 0.4
    boxes = [[drawn_box(rng, *shape, most) for _ in range(count)] for count in counts]
    logits = [torch.from_numpy(rng.normal(size=size) * 2) for _ in range(n_maps)]
    return Batch(logits, torch.from_numpy(truth).double(), boxes)


def check(batch: Batch, dtype: torch.dtype, terms: Sequence[str], **options: Any) -> None:
    """Compare value and gradients with the oracle's in float64."""
    expected, expected_slopes = _differentiated(
        batch.logits,
        lambda maps: loss_oracle.batch_loss(
            [logits.sigmoid() for logits in maps], batch.gt, batch.boxes, terms=terms, **options
        ),
    )
    loss = SizeInvariantLoss(*terms, check_parts=False, **options)
    found, slopes = _differentiated(
        [logits.to(dtype) for logits in batch.logits],
        lambda maps: loss(maps, batch.gt.to(dtype), batch.rows),
    )
    assert found.dtype == dtype
    torch.testing.assert_close(found.double(), expected, rtol=TOLERANCE[dtype], atol=1e-14)
    for slope, expected_slope in zip(slopes, expected_slopes, strict=True):
        scale = float(expected_slope.abs().max())
        assert float((slope.double() - expected_slope).abs().max()) <= TOLERANCE[dtype] * scale


def _differentiated(maps: list[Tensor], loss: Any) -> tuple[Tensor, list[Tensor]]:
    leaves = [map_.detach().clone().requires_grad_() for map_ in maps]
    value = loss(leaves)
    # a batch without a frame of two classes has no AUC loss, which the oracle does not differentiate
    slopes = torch.autograd.grad(value + sum(leaf.sum() for leaf in leaves) * 0, leaves)
    return value.detach(), list(slopes)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@many
@given(
    seeds, st.lists(st.integers(0, 5), min_size=1, max_size=3), st.sampled_from(TERMS), alphas,
    st.booleans(), st.booleans(),
)  # fmt: skip
@pytest.mark.slow
def test_every_term_on_any_boxes(
    dtype: torch.dtype,
    seed: int,
    counts: list[int],
    term: str,
    alpha: Any,
    normalize: bool,
    soft: bool,
) -> None:
    check(drawn_batch(seed, counts, soft=soft), dtype, [term], alpha=alpha, normalize=normalize)


@few
@given(seeds, st.lists(st.sampled_from(TERMS), min_size=1, max_size=4), st.integers(1, 3))
@pytest.mark.slow
def test_terms_weights_and_side_outputs_add_up(seed: int, terms: list[str], n_maps: int) -> None:
    weights = np.random.default_rng(seed).uniform(0, 2, len(terms)).tolist()
    check(drawn_batch(seed, [2, 0, 3], n_maps=n_maps), torch.float64, terms, weights=weights)


CASES: dict[str, list[list[Box]]] = {
    "no boxes": [[], []],
    "one": [[(1, 2, 5, 9)], [(0, 0, 1, 14)]],
    "nested": [[(0, 0, 10, 10), (2, 2, 5, 5), (3, 3, 4, 4)], []],
    "overlapping": [[(0, 0, 6, 6), (4, 4, 11, 14), (4, 0, 6, 14)], [(0, 0, 2, 2)]],
    "the same twice": [[(1, 1, 4, 4), (1, 1, 4, 4)], [(5, 5, 6, 6)]],
    "one pixel": [[(0, 0, 1, 1), (10, 13, 11, 14)], [(5, 5, 6, 6)]],
    "no background": [[(0, 0, 11, 14)], [(0, 0, 11, 7), (0, 7, 11, 14)]],
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.slow
def test_cases(name: str, normalize: bool, dtype: torch.dtype) -> None:
    drawn = drawn_batch(3, [0, 0])
    batch = Batch(drawn.logits, drawn.gt, CASES[name])
    for term in TERMS:
        for alpha in ("ratio", "union", 0.5):
            check(batch, dtype, [term], normalize=normalize, alpha=alpha)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.slow
def test_three_hundred_frames_beside_one(normalize: bool, dtype: torch.dtype) -> None:
    tall = drawn_batch(5, [300, 1], shape=(192, 60), most=100)  # cut into bands of rows
    check(tall, dtype, ["bce", "dice", "iou"], normalize=normalize)
    small = drawn_batch(6, [300, 1], shape=(97, 60), most=9)  # a prime height: no bands
    check(small, dtype, ["auc", "l1"], normalize=normalize)


@few
@given(seeds, st.sampled_from([0.02, 0.2, 0.6]), st.booleans())
def test_boxes_found_are_those_of_the_evaluation(seed: int, density: float, soft: bool) -> None:
    rng = np.random.default_rng(seed)
    values = rng.random((3, 40, 60))
    gt = np.where(values < density, 1 - values, values * 0.5 * (not soft))
    rows = boxes_of(torch.from_numpy(gt)[:, None])
    expected = collate_boxes([sisod.partition(mask).boxes for mask in gt])
    assert torch.equal(rows, expected)
    logits = torch.from_numpy(rng.normal(size=gt.shape))
    loss = SizeInvariantLoss("bce", "dice")
    assert loss(logits, torch.from_numpy(gt)) == loss(logits, torch.from_numpy(gt), expected)


@many
@given(seeds, st.sampled_from(TERMS), st.booleans())
def test_plain_loss_is_one_frame_per_image(seed: int, term: str, from_probs: bool) -> None:
    batch = drawn_batch(seed, [0, 0, 0], n_maps=2)
    whole: list[list[Box]] = [[(0, 0, 11, 14)]] * 3
    probs = [logits.sigmoid() for logits in batch.logits]
    expected = loss_oracle.batch_loss(probs, batch.gt, whole, terms=[term])
    maps = probs if from_probs else batch.logits
    found = plain_loss(maps, batch.gt, terms=[term], from_probs=from_probs)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=0)
    framed = size_invariant_loss(
        maps, batch.gt, collate_boxes(whole), terms=[term], from_probs=from_probs, check_parts=False
    )
    torch.testing.assert_close(found, framed, rtol=1e-12, atol=0)


@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("from_probs", [False, True])
@pytest.mark.slow
def test_gradcheck(term: str, from_probs: bool) -> None:
    batch = drawn_batch(8, [3, 0, 1], shape=(5, 6))
    given_maps = batch.logits[0].sigmoid() if from_probs else batch.logits[0]
    loss = SizeInvariantLoss(term, from_probs=from_probs, check_parts=False)
    assert torch.autograd.gradcheck(
        lambda x: loss(x, batch.gt, batch.rows), (given_maps.requires_grad_(),)
    )


# ------------------------------------------------------------------------------- terms of one's own


@region_term
def own_dice(p: Tensor, g: Tensor, box_sum: Callable[[Tensor], Tensor]) -> Tensor:
    return 1 - 2 * box_sum(p * g) / (box_sum(p * p) + box_sum(g * g))


def own_bce(logits: Tensor, gt: Tensor) -> Tensor:
    return torch.nn.functional.softplus(logits) - logits * gt


def test_callables_are_terms() -> None:
    batch = drawn_batch(9, [3, 1])
    own = SizeInvariantLoss(own_bce, own_dice, weights=[2, 3], check_parts=False)(
        batch.logits, batch.gt, batch.rows
    )
    named = SizeInvariantLoss("bce", "dice", weights=[2, 3], check_parts=False)(
        batch.logits, batch.gt, batch.rows
    )
    torch.testing.assert_close(own, named, rtol=1e-12, atol=0)
    torch.testing.assert_close(
        PlainLoss(own_bce, own_dice)(batch.logits, batch.gt),
        PlainLoss("bce", "dice")(batch.logits, batch.gt),
        rtol=1e-12,
        atol=0,
    )
    leaf = batch.logits[0].clone().requires_grad_()
    pairs: list[list[Any]] = [[own_bce, own_dice], ["bce", "dice"]]
    slopes = [
        torch.autograd.grad(
            size_invariant_loss(leaf, batch.gt, batch.rows, terms=terms, check_parts=False), leaf
        )[0]
        for terms in pairs
    ]
    torch.testing.assert_close(*slopes, rtol=1e-10, atol=1e-14)

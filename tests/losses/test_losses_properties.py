"""Properties of the losses: cases by hand, the paper's proposition and theorem, extreme inputs."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import sisod
from sisod.losses import (
    PlainLoss,
    SizeInvariantLoss,
    boxes_of,
    collate_boxes,
    labels_of,
    plain_loss,
    size_invariant_loss,
    weight_map,
)

many = settings(deadline=None, max_examples=40)
seeds = st.integers(0, 2**32)
alphas = st.sampled_from(["ratio", "union", 0, 1, 2.5])
torch.set_num_threads(1)  # the tensors are small


def blobs(seed: int, shape: tuple[int, int] = (40, 50)) -> Tensor:
    """A mask of a few rectangles and specks, some of which touch."""
    rng = np.random.default_rng(seed)
    mask = rng.random(shape) < 0.01
    for _ in range(int(rng.integers(1, 5))):
        y, x = rng.integers(shape[0]), rng.integers(shape[1])
        mask[y : y + rng.integers(2, 14), x : x + rng.integers(2, 14)] = True
    return torch.from_numpy(mask).double()[None]


def drawn_boxes(seed: int, count: int, shape: tuple[int, int] = (12, 15)) -> Tensor:
    rng = np.random.default_rng(seed)
    y0, x0 = (rng.integers(side, size=count) for side in shape)
    y1, x1 = rng.integers(y0 + 1, shape[0] + 1), rng.integers(x0 + 1, shape[1] + 1)
    return collate_boxes([np.stack([y0, x0, y1, x1], axis=1)])


# ---------------------------------------------------------------------------------------- by hand


def two_objects() -> tuple[Tensor, Tensor]:
    """4 pixels and 1 pixel on 2 x 4, p = 0.5 everywhere but a sure miss of the single pixel."""
    gt = torch.tensor([[[1.0, 1, 0, 1], [1, 1, 0, 0]]])
    p = torch.tensor([[[0.5, 0.5, 0.5, 0.0], [0.5, 0.5, 0.5, 0.5]]])
    return p, gt


def test_l1_by_hand() -> None:
    p, gt = two_objects()
    # frames .5 and 1, background .5; alpha = 3/5
    printed = size_invariant_loss(p, gt, terms=["l1"], from_probs=True, normalize=False)
    assert printed.item() == pytest.approx(0.5 + 1 + 0.6 * 0.5)
    normalised = size_invariant_loss(p, gt, terms=["l1"], from_probs=True)
    assert normalised.item() == pytest.approx(1.8 / 2.6)
    plain = plain_loss(p, gt, terms=["l1"], from_probs=True)
    assert plain.item() == pytest.approx((7 * 0.5 + 1) / 8)


def test_a_component_below_min_area_is_no_object_by_hand() -> None:
    p, gt = two_objects()
    # one frame .5; in the background of as many pixels 2.5 / 4
    value = size_invariant_loss(p, gt, terms=["l1"], from_probs=True, min_area=2)
    assert float(value) == pytest.approx((0.5 + 2.5 / 4) / 2)


@pytest.mark.parametrize("options", [{"min_area": 0}, {"min_area": 10}, {"connectivity": 4}])
@pytest.mark.parametrize("parts", ["boxes", "cells"])
def test_the_loss_finds_the_objects_of_its_settings(parts: Any, options: dict[str, Any]) -> None:
    gt = torch.zeros(1, 100, 100)
    gt[0, 10:40, 10:40] = gt[0, 40:42, 40:42] = gt[0, 80:83, 80:83] = gt[0, 90, 90] = 1
    logits = torch.randn(1, 100, 100, generator=torch.Generator().manual_seed(0))
    given = {"boxes": boxes_of(gt, **options)}
    if parts != "boxes":
        given["labels"] = labels_of(gt, **options)
    loss = SizeInvariantLoss("bce", "dice", parts=parts)
    value = SizeInvariantLoss("bce", "dice", parts=parts, **options)(logits, gt)
    assert value == loss(logits, gt, **given) != loss(logits, gt)


def test_dice_and_iou_by_hand() -> None:
    p, gt = two_objects()
    values = {
        # first frame: 2 (4 x .5) / (4 x .25 + 4) = .8 and 2 / (2 + 4 - 2) = .5; second: no overlap
        "dice": (0.2 + 1) / 2,
        "iou": (0.5 + 1) / 2,
        "dice(squared=false)": (1 - 2 * 2 / (2 + 4) + 1) / 2,
    }
    for term, value in values.items():
        found = size_invariant_loss(p, gt, terms=[term], from_probs=True)
        assert found.item() == pytest.approx(value)
        printed = size_invariant_loss(p, gt, terms=[term], from_probs=True, normalize=False)
        assert printed.item() == pytest.approx(2 * value)


def test_auc_by_hand_and_as_the_formula_is_printed() -> None:
    gt = torch.tensor([[[1.0, 0, 0], [0, 0, 1]], [[1, 0, 0], [0, 0, 0]]]).double()
    p = torch.tensor([[[0.9, 0.2, 0.4], [0.1, 0.3, 0.6]], [[0.9, 0, 0], [0, 0, 0]]]).double()
    whole = collate_boxes([[[0, 0, 2, 3]], [[0, 0, 1, 1]]])  # the second frame has one class
    found = size_invariant_loss(p, gt, whole, terms=["auc"], from_probs=True, check_parts=False)
    a, b = [0.9, 0.6], [0.2, 0.4, 0.1, 0.3]
    pairs = np.mean([(1 - (x - y)) ** 2 for x in a for y in b])

    def m(values: list[float], power: int = 1) -> float:
        return float(np.mean(np.power(values, power)))

    printed = 1 + m(a, 2) + m(b, 2) - 2 * m(a) + 2 * m(b) - 2 * m(a) * m(b)
    assert pairs == pytest.approx(printed)
    assert found.item() == pytest.approx(printed / 2)  # the second image adds nothing


# ------------------------------------------------------------ the evaluation's rule, the plain loss


@many
@given(seeds)
def test_l1_on_probabilities_is_si_mae(seed: int) -> None:
    gt = torch.cat([blobs(seed), blobs(seed + 1)])
    p = torch.from_numpy(np.random.default_rng(seed).random(gt.shape))
    found = size_invariant_loss(p, gt, terms=["l1"], from_probs=True)
    protocol = sisod.Protocol("as it is", normalize="none")
    scores = [
        sisod.score(pred.numpy(), mask.numpy(), protocol=protocol, metrics=["si_mae", "mae"])
        for pred, mask in zip(p, gt, strict=True)
    ]
    assert found.item() == pytest.approx(np.mean([s["si_mae"] for s in scores]), rel=1e-12)
    plain = plain_loss(p, gt, terms=["l1"], from_probs=True)
    assert plain.item() == pytest.approx(np.mean([s["mae"] for s in scores]), rel=1e-12)


@pytest.mark.parametrize("term", ["bce", "mse", "l1"])
@many
@given(seed=seeds)
def test_one_object_gives_the_plain_loss(term: str, seed: int) -> None:
    boxes = torch.cat([drawn_boxes(seed, 1), drawn_boxes(seed + 1, 1) + torch.tensor([1, 0, 0, 0, 0])])
    generator = torch.Generator().manual_seed(seed % 2**31)
    logits = torch.randn(2, 12, 15, generator=generator, dtype=torch.float64)
    gt = (torch.rand(2, 12, 15, generator=generator) < 0.5).double()
    plain = PlainLoss(term)(logits, gt)
    torch.testing.assert_close(
        SizeInvariantLoss(term, check_parts=False)(logits, gt, boxes), plain, rtol=1e-12, atol=0
    )


@many
@given(seeds)
def test_as_printed_one_object_weighs_its_rareness(seed: int) -> None:
    """Eq. 16 for one object is S/S_1 times the plain loss."""
    boxes = drawn_boxes(seed, 1)
    _, y0, x0, y1, x1 = boxes[0].tolist()
    logits = torch.from_numpy(np.random.default_rng(seed).normal(size=(1, 12, 15)))
    gt = (logits > 1).double()
    printed = SizeInvariantLoss("bce", normalize=False, check_parts=False)(logits, gt, boxes)
    rareness = 12 * 15 / ((y1 - y0) * (x1 - x0))
    torch.testing.assert_close(printed, rareness * PlainLoss("bce")(logits, gt), rtol=1e-12, atol=0)


# ----------------------------------------------------------------------------------- the weight map


@many
@given(seeds, st.integers(0, 6), alphas, st.booleans())
def test_weights_in_numpy_and_torch_agree_and_make_the_loss(
    seed: int, count: int, alpha: Any, normalize: bool
) -> None:
    boxes = drawn_boxes(seed, count)
    options: dict[str, Any] = {"alpha": alpha, "normalize": normalize}
    ours = sisod.weight_map(boxes[:, 1:], (12, 15), **options)
    weight = weight_map(boxes, (1, 1, 12, 15), **options)
    assert weight.shape == (1, 1, 12, 15)
    np.testing.assert_allclose(weight[0, 0].numpy(), ours, rtol=1e-5)
    if normalize:
        assert ours.sum() == pytest.approx(1)
    p = np.random.default_rng(seed).random((12, 15))
    loss = SizeInvariantLoss("mse", from_probs=True, check_parts=False, **options)(
        torch.from_numpy(p)[None], torch.zeros(1, 12, 15), boxes
    )
    assert loss.item() == pytest.approx((ours * p**2).sum(), rel=1e-12)


# ------------------------------------------------------------------- proposition 4.1: re-attention


@many
@given(seeds, st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=6))
def test_reattention_for_disjoint_frames(seed: int, sides: list[tuple[int, int]]) -> None:
    rng = np.random.default_rng(seed)
    boxes = np.array([(1, 10 * k, 1 + h, 10 * k + w) for k, (h, w) in enumerate(sides)])
    shape = (int(rng.integers(10, 30)), 10 * len(sides))
    weight = sisod.weight_map(boxes, shape)
    framed = sum(h * w for h, w in sides)
    pixels = shape[0] * shape[1]
    n_and_alpha = len(sides) + (pixels - framed) / framed
    at = [weight[y, x] for y, x, _, _ in boxes]
    for (height, width), of_pixel in zip(sides, at, strict=True):
        if height * width < pixels / n_and_alpha * (1 - 1e-9):  # item 1
            assert of_pixel > 1 / pixels
        for (other_height, other_width), of_other in zip(sides, at, strict=True):
            if height * width < other_height * other_width:  # item 2
                assert of_pixel > of_other


def test_reattention_item_two_fails_where_frames_overlap() -> None:
    """A pixel in two large frames can weigh more than one in a smaller frame: weights add."""
    weight = sisod.weight_map([[0, 0, 4, 4], [0, 1, 4, 5], [0, 6, 3, 11]], (5, 12))
    assert 4 * 4 > 3 * 5
    assert weight[0, 2] > weight[0, 6] > weight[0, 0]


# ----------------------------------------------------------------- theorem 4.2: Lipschitz constants

MU = {"bce": 1.0, "mse": 2.0, "l1": 1.0}  # bce in logits, the others in probabilities


def slope_sum(term: str, prediction: Tensor, gt: Tensor, boxes: Tensor, **options: Any) -> float:
    """The least Lipschitz constant in the largest-entry norm at a point: the sum of absolute slopes."""
    leaf = prediction.clone().requires_grad_()
    loss = size_invariant_loss(leaf, gt, boxes, terms=[term], check_parts=False, **options)
    (slope,) = torch.autograd.grad(loss, leaf)
    return float(slope.abs().sum())


@pytest.mark.parametrize("term", MU)
@many
@given(seed=seeds, count=st.integers(0, 6))
def test_separable_terms_are_mu_lipschitz(term: str, seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    gt = torch.from_numpy(rng.random((1, 12, 15)) < 0.5).double()
    first, second = (torch.from_numpy(rng.normal(size=(1, 12, 15))) * 9 for _ in range(2))
    if term != "bce":
        first, second = first.sigmoid(), second.sigmoid()
    options: dict[str, Any] = {"from_probs": term != "bce"}
    boxes = drawn_boxes(seed, count)
    assert slope_sum(term, first, gt, boxes, **options) <= MU[term] * (1 + 1e-12)
    losses = [
        float(size_invariant_loss(point, gt, boxes, terms=[term], check_parts=False, **options))
        for point in (first, second)
    ]
    assert abs(losses[0] - losses[1]) <= MU[term] * float((first - second).abs().max()) * (1 + 1e-12)


def test_the_printed_loss_is_k_plus_alpha_times_as_steep() -> None:
    gt, boxes = torch.zeros(1, 12, 15).double(), drawn_boxes(4, 3)
    sure = torch.full((1, 12, 15), 50.0).double()  # wrong everywhere: every slope is one
    frame_areas = [(y1 - y0) * (x1 - x0) for _, y0, x0, y1, x1 in boxes.tolist()]
    background = int((sisod.weight_map(boxes[:, 1:], (12, 15), alpha=0) == 0).sum())
    k_plus_alpha = 3 + background / sum(frame_areas)
    assert k_plus_alpha > 3
    assert slope_sum("bce", sure, gt, boxes, normalize=False) == pytest.approx(k_plus_alpha)
    assert slope_sum("bce", sure, gt, boxes) == pytest.approx(1)


@many
@given(seeds, st.integers(1, 5), st.sampled_from([0.05, 0.3, 0.8]))
def test_mean_dice_is_four_over_rho_lipschitz(seed: int, count: int, density: float) -> None:
    rng = np.random.default_rng(seed)
    gt = torch.from_numpy(rng.random((1, 12, 15)) < density).double()
    boxes = drawn_boxes(seed, count)
    for _, y0, x0, y1, x1 in boxes.tolist():
        gt[0, y0, x0] = gt[0, y1 - 1, x1 - 1] = 1
    rho = min(float(gt[0, y0:y1, x0:x1].mean()) for _, y0, x0, y1, x1 in boxes.tolist())
    p = torch.from_numpy(rng.random((1, 12, 15)) ** 3)
    assert slope_sum("dice", p, gt, boxes, from_probs=True) <= 4 / rho
    printed = slope_sum("dice", p, gt, boxes, from_probs=True, normalize=False)
    assert printed == pytest.approx(count * slope_sum("dice", p, gt, boxes, from_probs=True))


# ------------------------------------------------------------------------------------------- extremes


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", ["right", "wrong", "zero"])
def test_no_nan_at_extreme_logits(kind: str, dtype: torch.dtype) -> None:
    gt = torch.cat([blobs(1), torch.zeros(1, 40, 50), torch.ones(1, 40, 50)])
    sign = {"right": 1, "wrong": -1, "zero": 0}[kind]
    logits = ((2 * gt - 1) * 1e4 * sign).to(dtype).requires_grad_()
    for loss in (
        SizeInvariantLoss("bce", "mse", "l1", "dice", "iou", "auc"),
        SizeInvariantLoss("bce", "dice", "auc", normalize=False, alpha=1),
        PlainLoss("bce", "mse", "l1", "dice", "iou", "auc"),
    ):
        value = loss(logits, gt)
        (slope,) = torch.autograd.grad(value, logits)
        assert math.isfinite(value.item())
        assert bool(slope.isfinite().all())
        assert slope.dtype == dtype
    empty = torch.zeros_like(gt)
    boxes = collate_boxes([[[0, 0, 3, 3]], [], []])  # a frame that holds nothing, predicted or true
    value = SizeInvariantLoss("bce", "dice", "iou", "auc", check_parts=False)(logits, empty, boxes)
    assert math.isfinite(value.item())


def test_a_small_frame_is_exact_beside_a_large_sum() -> None:
    """Where a summed-area table in float32 would be wrong in the third digit."""
    gt = torch.zeros(1, 512, 512)
    gt[0, 500:502, 500:502] = 1
    p = torch.rand(1, 512, 512, generator=torch.Generator().manual_seed(0))
    boxes = boxes_of(gt)
    for term in ("dice", "iou"):
        found = size_invariant_loss(p, gt, boxes, terms=[term], from_probs=True)
        inside = p[0, 500:502, 500:502].double()
        low = {"dice": (inside**2).sum() + 4, "iou": torch.tensor(4.0)}[term]
        high = {"dice": 2, "iou": 1}[term] * inside.sum()
        assert found.item() == pytest.approx(1 - float(high / low), rel=1e-6)


# --------------------------------------------------------------------------------- boxes by hand


def test_boxes_follow_the_rules_of_the_evaluation() -> None:
    gt = torch.zeros(3, 1, 100, 100)  # 0.0002 of it is two pixels
    gt[0, 0, 10:12, 10:12] = 0.5  # salient from one half on
    gt[0, 0, 12, 12] = 1  # touches by its corner
    gt[0, 0, 50, 50] = 1  # a speck
    gt[1, 0, 70, 20] = gt[1, 0, 5, 60] = 1  # specks only: the first of the largest is kept
    assert boxes_of(gt).tolist() == [[0, 10, 10, 13, 13], [1, 5, 60, 6, 61]]
    by_four = boxes_of(gt, connectivity=4, min_area=1)
    assert by_four[:2].tolist() == [[0, 10, 10, 12, 12], [0, 12, 12, 13, 13]]
    assert len(by_four) == 5

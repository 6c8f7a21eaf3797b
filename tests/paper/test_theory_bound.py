"""Proposition 4.1 and Theorem 4.2: by hand, against slow loops, and the counter-examples."""

import itertools
import math

import numpy as np
import pytest
from helpers.theory_cases import Mask, overlapping, rows_of_objects
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import sisod
from sisod.paper import theory
from sisod.scoring.size_invariant import weight_map

# -------------------------------------------------------------------------------- 4.1


def test_weights_by_hand() -> None:
    """Frames of 1 and 4 on 16 pixels: K + alpha = 21/5, so 5/21, 5/84, and 1/21 outside."""
    gt = np.zeros((4, 4), dtype=np.bool_)
    gt[0, 0] = gt[2:, 2:] = True
    result = theory.proposition_4_1(sisod.partition(gt))
    assert result.weights[0, 0] == pytest.approx(5 / 21)
    assert result.weights[3, 3] == pytest.approx(5 / 84)
    assert result.weights[0, 3] == pytest.approx(1 / 21)
    assert result.limit == pytest.approx(80 / 21)
    assert result.item_1.left == result.item_2.left == pytest.approx(5 / 21)
    assert result.item_2.right == pytest.approx(5 / 84)


def test_pixels_shared_by_two_frames_are_left_out() -> None:
    """Frames of 25 and 12 that overlap: the larger one's own pixels weigh 1/25, as they should."""
    parts = sisod.partition(overlapping(), min_area=0)
    result = theory.proposition_4_1(parts)
    scale = len(parts) + parts.alpha
    assert [result.item_2.left * scale, result.item_2.right * scale] == pytest.approx([1 / 12, 1 / 25])
    assert result.item_2.holds


def test_equal_weights_are_not_larger() -> None:
    """Frames of 20, 20 and 10: shared pixels weigh 1/20 + 1/20, the smallest frame's 1/10."""
    gt = np.zeros((12, 12), dtype=np.bool_)
    gt[:4, 0] = gt[0, :5] = True  # 4 x 5
    gt[3:7, 7] = gt[6, 3:8] = True  # 4 x 5, meeting the first at (3, 3) and (3, 4)
    gt[10:12, :5] = True  # 2 x 5
    parts = sisod.partition(gt, min_area=0)
    assert parts.frame_areas.tolist() == [20, 20, 10]
    result = theory.proposition_4_1(parts)
    assert result.item_2.left == pytest.approx(result.item_2.right)
    assert not result.item_2.holds


@given(rows_of_objects(least=1))
def test_proposition_4_1(gt: Mask) -> None:
    parts = sisod.partition(gt, min_area=0)
    result = theory.proposition_4_1(parts)
    areas, scale = parts.frame_areas.tolist(), len(parts) + parts.alpha
    assert result.weights.sum() == pytest.approx(1)
    assert result.limit == pytest.approx(gt.size / scale)
    small = [area for area in areas if area < result.limit * (1 - 1e-12)]
    assert (result.item_1.assumed, result.item_1.holds) == (small != [], True)
    if small:  # frames do not meet here: a pixel weighs 1/S_k
        assert result.item_1.left == pytest.approx(1 / (max(small) * scale))
        assert result.item_1.left > result.item_1.right == 1 / gt.size
    pairs_of_sizes = [(a, b) for a, b in itertools.product(areas, areas) if a < b]
    assert (result.item_2.assumed, result.item_2.holds) == (pairs_of_sizes != [], True)
    if pairs_of_sizes:
        least = min(b / a for a, b in pairs_of_sizes)
        assert result.item_2.left / result.item_2.right == pytest.approx(least)
    slow = np.zeros(gt.shape)
    for frame in parts:
        for y, x in itertools.product(range(frame.y0, frame.y1), range(frame.x0, frame.x1)):
            slow[y, x] += 1 / frame.area
    slow[slow == 0] = parts.alpha / max(int(parts.background.sum()), 1)
    assert result.weights == pytest.approx(slow / scale)


def test_sides_are_nan_without_a_matching_frame() -> None:
    """One frame is as large as the limit; two of equal size are not a smaller and a larger one."""
    alone = np.zeros((4, 4), dtype=np.bool_)
    alone[0, 0] = True
    result = theory.proposition_4_1(sisod.partition(alone))
    assert (result.item_1.assumed, result.item_2.assumed) == (False, False)
    assert math.isnan(result.item_1.left)
    twins = alone.copy()
    twins[3, 3] = True
    result = theory.proposition_4_1(sisod.partition(twins))
    assert (result.item_1.assumed, result.item_2.assumed) == (True, False)
    assert math.isnan(result.item_2.left)
    assert math.isnan(result.item_2.right)


def test_item_1_is_true_with_overlap() -> None:
    rng, n_tried = np.random.default_rng(0), 0
    for _ in range(100):
        gt = rng.random((16, 16)) < 0.25
        parts = sisod.partition(gt, min_area=0)
        overlap = parts.frame_areas.sum() + parts.background_area > gt.size
        result = theory.proposition_4_1(parts)
        small = [frame for frame in parts if frame.area < result.limit]
        assert result.item_1.assumed == bool(small)
        for frame in small:
            assert result.weights[frame.window].min() > 1 / gt.size
        assert result.item_1.holds
        n_tried += bool(overlap and small)
    assert n_tried > 50


# -------------------------------------------------------------------------------- 4.2


def test_bound_by_hand() -> None:
    """log(100/e^-2 ...): N = 100, R = 100/e makes the logarithm 1, whatever epsilon."""
    bound = theory.generalization_bound(
        n_samples=100, n_pixels=9, lipschitz=2, rademacher=100 / math.e, delta=2 / math.e**2, constant=5
    )
    assert bound.capacity == pytest.approx(5 * 2 * 3 / math.e)
    assert bound.confidence == pytest.approx(3 * math.sqrt(2 / 200))
    assert bound.total == bound.capacity + bound.confidence


def test_printed_loss_has_a_larger_constant() -> None:
    gt = overlapping()
    parts = sisod.partition(gt, min_area=0)
    for normalize in (True, False):
        total = weight_map(parts.boxes, gt.shape, normalize=normalize).sum()
        assert total == pytest.approx(
            theory.separable_lipschitz(1.0, n_frames=len(parts), alpha=parts.alpha, normalize=normalize)
        )


@pytest.mark.parametrize("name", sorted(theory.PIXEL_LIPSCHITZ))
def test_pixel_constants_are_least(name: str) -> None:
    """The steepest slope on a fine grid reaches the constant and does not pass it."""
    p = np.linspace(0, 1, 20001) if name != "bce" else np.linspace(-30, 30, 20001)
    loss = {"l1": p, "mse": p**2, "bce": np.logaddexp(0, p)}[name]  # gt = 0; gt = 1 is its mirror
    steepest = np.abs(np.diff(loss) / np.diff(p)).max()
    constant = theory.PIXEL_LIPSCHITZ[name]
    assert constant * 0.999 < steepest <= constant * (1 + 1e-9)


def slope_sum(p: NDArray[np.float64], g: NDArray[np.float64], power: int) -> float:
    """Sum of the absolute partial derivatives of Dice, by differences."""

    def dice(q: NDArray[np.float64]) -> float:
        return float(1 - 2 * (q * g).sum() / ((q**power).sum() + (g**power).sum()))

    step, total = 1e-6, 0.0
    for index in range(len(p)):
        ahead, back = p.copy(), p.copy()
        ahead[index] += step
        back[index] -= step
        total += abs(dice(ahead) - dice(back)) / (2 * step)
    return total


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(0, 12))
def test_dice_constants_bound_the_gradient(seed: int, salient: int, others: int) -> None:
    rng = np.random.default_rng(seed)
    g = np.array([1.0] * salient + [0.0] * others)
    rho = salient / len(g)
    p = rng.random(len(g)) ** rng.choice([0.2, 1.0, 5.0]) * rng.choice([0.0, 1.0], len(g))
    sharp = theory.sharp_dice_lipschitz(rho)
    assert slope_sum(p, g, 1) <= sharp * (1 + 1e-6) <= theory.dice_lipschitz(rho) * (1 + 1e-6)
    assert slope_sum(p, g, 2) <= theory.squared_dice_lipschitz(rho) * (1 + 1e-6)


@pytest.mark.parametrize(("salient", "others"), [(3, 0), (3, 3), (3, 6), (2, 5), (2, 10), (1, 40)])
def test_sharp_dice_constant_is_reached(salient: int, others: int) -> None:
    g = np.array([1.0] * salient + [0.0] * others)
    p = g * max(0.0, 1 - 2 * salient / others) if others else 0 * g
    assert slope_sum(p, g, 1) == pytest.approx(theory.sharp_dice_lipschitz(salient / len(g)), rel=1e-6)


def test_shares_of_a_frame_that_is_the_image() -> None:
    whole = theory.salient_shares(np.eye(4, dtype=np.bool_))
    assert whole.left == whole.right == 0.25
    assert not whole.holds


@given(rows_of_objects(least=1))
def test_true_statement_about_rho(gt: Mask) -> None:
    """The mean of the frames' shares by area is at least rho'; one object: rho itself."""
    parts = sisod.partition(gt, min_area=0)
    shares = theory.salient_shares(gt, partition=parts)
    for frame, share in zip(parts, shares.frames.tolist(), strict=True):
        assert share == pytest.approx(gt[frame.y0 : frame.y1, frame.x0 : frame.x1].sum() / frame.area)
    assert np.average(shares.frames, weights=parts.frame_areas) >= shares.right
    assert len(parts) > 1 or shares.left >= shares.right
    assert shares.dice_lipschitz <= theory.dice_lipschitz(shares.left) * (1 + 1e-12)

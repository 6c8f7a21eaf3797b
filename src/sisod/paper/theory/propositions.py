"""Propositions 3.3 and B.1, which predictor a score prefers, and 4.1, which pixels a loss weights more.

In 3.3 and B.1, A finds some objects completely and misses the others; B finds a part of each, the same
number of pixels in total. Neither has a false positive. Fractions are compared, so `holds` is exact.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sisod.common.arguments import check_number
from sisod.common.exceptions import InputError
from sisod.scoring.arrays import as_mask
from sisod.scoring.engine import score
from sisod.scoring.partition import Partition, cut_mask
from sisod.scoring.size_invariant import weight_map

Mask = NDArray[np.bool_]
_MORE = 1 + 1e-12  # beyond rounding: 1/20 + 1/20 is not more than 1/10


@dataclass(frozen=True)
class Sides:
    """Both sides of a statement, whether the paper's condition is met, and whether it is true here."""

    left: float
    right: float
    assumed: bool
    holds: bool


@dataclass(frozen=True, eq=False)
class PredictorPair:
    """Two predictors, and both sides of the proposition.

    Attributes:
        pred_a, pred_b: what A and B predict.
        plain_a, plain_b: their plain scores, which are equal.
        left, right: the size-invariant score of A, and of B.
        assumed, corrected: whether the paper's condition, and our corrected one, is met.
        holds: whether the proposition is true here: the plain scores are equal and the
            size-invariant score prefers B.
    """

    pred_a: Mask
    pred_b: Mask
    plain_a: float
    plain_b: float
    left: float
    right: float
    assumed: bool
    corrected: bool
    holds: bool


def single_object(pred: ArrayLike, gt: ArrayLike) -> Sides:
    """Return SI-MAE and MAE, which are equal if the mask has one object (Proposition 3.3, case 1).

    Example:
        >>> gt = np.zeros((5, 5), dtype=bool)
        >>> gt[1:3, 1:4] = True
        >>> single_object(np.eye(5), gt)
        Sides(left=0.28, right=0.28, assumed=True, holds=True)
    """
    mask = as_mask(gt)
    parts = cut_mask(mask, min_area=0)
    scores = score(pred, mask, metrics=["si_mae", "mae"], partition=parts)
    left, right = scores["si_mae"], scores["mae"]
    return Sides(left, right, assumed=len(parts) == 1, holds=left == right)


def proposition_3_3(
    gt: ArrayLike, found: Sequence[int], *, missed: Sequence[int] = (0,)
) -> PredictorPair:
    """Build both predictors and return their MAE and SI-MAE (Proposition 3.3, case 2 and extension).

    The paper's condition: the missed objects have the m smallest frames, and the next frame is larger
    than `next_frame_limit`; for two objects, S_1 < S_2. Our condition: frames do not overlap, and no
    frame in which B finds more than A is larger than a frame in which A finds more than B; they are not
    all equal.

    Args:
        gt: mask whose components are the objects, in the order of `sisod.partition`: top, then left.
        found: number of pixels of each object that B finds, the first ones in raster order; they must
            add up to the pixels of the objects that A finds.
        missed: indices of the objects that A misses.

    Example:
        Objects of 2 and 6 pixels. A finds the larger one; B all of the smaller and 4 of the larger:

        >>> gt = np.zeros((4, 8), dtype=bool)
        >>> gt[0, :2] = gt[2:4, 5:8] = True
        >>> result = proposition_3_3(gt, found=(2, 4))
        >>> result.plain_a == result.plain_b, round(result.left, 3), round(result.right, 3)
        (True, 0.2, 0.067)
        >>> result.holds
        True
    """
    mask, parts, sizes, pred_a, pred_b = _predictors(gt, found, missed)
    areas = parts.frame_areas.tolist()
    kept = [i for i in range(len(areas)) if i not in missed]
    gained = [areas[i] for i in missed if found[i] > 0]
    lost = [areas[i] for i in kept if found[i] < sizes[i]]
    following = min(areas[i] for i in kept)
    left, right = _si_mae(pred_a != mask, parts), _si_mae(pred_b != mask, parts)
    return PredictorPair(
        pred_a,
        pred_b,
        plain_a=float(np.count_nonzero(pred_a != mask) / mask.size),
        plain_b=float(np.count_nonzero(pred_b != mask) / mask.size),
        left=float(left),
        right=float(right),
        assumed=max(areas[i] for i in missed) <= following > next_frame_limit(found, areas),
        corrected=parts.disjoint
        and bool(gained)
        and max(gained) <= min(lost)
        and min(gained) < max(lost),
        holds=left > right,
    )


def next_frame_limit(found: Sequence[int], frame_areas: Sequence[int]) -> float:
    """Return the lower limit of S_{m+1} in the extension of Proposition 3.3: <t, 1> / <t, 1/S>.

    It is the harmonic mean of the frames' areas, weighted by the pixels t that B finds in each.

    Example:
        For two objects the condition is S_1 < S_2 for any B:

        >>> next_frame_limit((1, 3), (4, 4)), next_frame_limit((1, 3), (2, 6))
        (4.0, 4.0)
    """
    return float(sum(found) / sum(map(Fraction, found, frame_areas), Fraction()))


def proposition_b_1(
    gt: ArrayLike, found: Sequence[int], *, missed: int = 0, beta2: float = 1.0
) -> PredictorPair:
    """Build both predictors on two objects and return their F and SI-F (Proposition B.1).

    The paper's condition: B finds a part of each object. Our condition: frames do not overlap, B misses
    a part of C_2, and the missed C_1 has fewer than `f_limit` times the pixels of C_2.

    Args:
        gt: mask of two components, in the order of `sisod.partition`: top, then left.
        found: number of pixels of each object that B finds; they must add up to those of the object
            that A finds.
        missed: index of the object that A misses, C_1.
        beta2: 1 in the paper's proof, 0.3 in its tables.

    Example:
        A misses 10 pixels and finds 2; B finds 1 of the 2 and 1 of the 10, and SI-F prefers A:

        >>> gt = np.zeros((3, 10), dtype=bool)
        >>> gt[0] = gt[2, :2] = True
        >>> result = proposition_b_1(gt, found=(1, 1))
        >>> result.plain_a == result.plain_b, round(result.left, 3), round(result.right, 3)
        (True, 0.5, 0.424)
        >>> result.assumed, result.corrected, result.holds
        (True, False, False)
    """
    b = _exact(beta2)
    mask, parts, sizes, pred_a, pred_b = _predictors(gt, found, (missed,))
    if len(sizes) != 2:
        raise InputError(f"proposition B.1 is about two objects, gt has {len(sizes)}")
    lost_size, kept_size = sizes[missed], sizes[1 - missed]
    rho = Fraction(found[1 - missed], kept_size)
    left, right = (
        sum((_f(pred[frame.window], mask[frame.window], b) for frame in parts), Fraction()) / len(parts)
        for pred in (pred_a, pred_b)
    )
    return PredictorPair(
        pred_a,
        pred_b,
        plain_a=float(_f(pred_a, mask, b)),
        plain_b=float(_f(pred_b, mask, b)),
        left=float(left),
        right=float(right),
        assumed=0 < rho < 1,
        corrected=parts.disjoint and rho < 1 and lost_size < _f_limit(rho, b) * kept_size,
        holds=right > left,
    )


def f_limit(rho: float, *, beta2: float = 1.0) -> float:
    """Return the largest area of C_1, the missed object, over that of C_2 for Proposition B.1 to hold.

    It is 1 + rho (1 + 2 b) / b^2 with b = beta2 and rho the share of C_2 that B finds: 1 + 3 rho for
    beta2 = 1.

    Example:
        >>> f_limit(0.5), round(f_limit(0.5, beta2=0.3), 2)
        (2.5, 9.89)
    """
    return float(_f_limit(Fraction(check_number("rho", rho, most=1)), _exact(beta2)))


@dataclass(frozen=True, eq=False)
class Reattention:
    """Both items of Proposition 4.1 on one partition.

    Attributes:
        weights, plain: weight of every pixel in the size-invariant loss, and in the plain one, 1/S.
        limit: S / (K + alpha), the size below which a frame gains weight.
        item_1: left is the least weight of a pixel in a frame below the limit, right is 1/S.
        item_2: for two frames of different size, left is the least weight in the smaller, right the
            greatest in the larger outside the smaller; for the pair with the lowest ratio.
    """

    weights: NDArray[np.float64]
    plain: float
    limit: float
    item_1: Sides
    item_2: Sides


def proposition_4_1(partition: Partition) -> Reattention:
    """Return the weights of pixels in the size-invariant and the plain separable loss.

    Item 1 (a frame smaller than S / (K + alpha) gains weight) is true for all frames. Item 2 (pixels of
    the smaller frame have more weight) requires disjoint frames: where two overlap, weights add up.

    Args:
        partition: one or more rectangular frames.

    Example:
        Objects of 1 and 4 pixels on 4 x 4:

        >>> gt = np.zeros((4, 4), dtype=bool)
        >>> gt[0, 0] = gt[2:, 2:] = True
        >>> result = proposition_4_1(cut_mask(gt))
        >>> result.plain, round(result.limit, 3)  # K + alpha = 2 + 11/5
        (0.0625, 3.81)
        >>> [round(weight, 3) for weight in (result.item_2.left, result.item_2.right)]
        [0.238, 0.06]
        >>> result.item_1.holds, result.item_2.holds
        (True, True)
    """
    if partition.regions is not None or len(partition) == 0:
        raise InputError("proposition 4.1 needs one or more rectangular frames (kind='boxes')")
    # with "ratio", the proposition's alpha, not that of the partition
    weights = weight_map(partition.boxes, partition.shape)
    size, plain = weights.size, 1 / weights.size
    total = int(partition.frame_areas.sum())
    scale = len(partition) * total + partition.background_area  # (K + alpha) total, without rounding
    small = [frame for frame in partition if frame.area * scale < size * total]
    least = min((float(weights[frame.window].min()) for frame in small), default=math.nan)
    pairs = []
    for smaller, larger in itertools.permutations(partition.frames, 2):
        if smaller.area < larger.area:
            outside = np.ones(weights.shape, dtype=np.bool_)
            outside[smaller.window] = False
            others = weights[larger.window][outside[larger.window]]
            pairs.append((float(weights[smaller.window].min()), float(others.max())))
    left, right = min(pairs, key=lambda pair: pair[0] / pair[1], default=(math.nan, math.nan))
    return Reattention(
        weights,
        plain,
        limit=size * total / scale,
        item_1=Sides(least, plain, assumed=bool(small), holds=not small or least > plain),
        item_2=Sides(left, right, assumed=bool(pairs), holds=not pairs or left > right * _MORE),
    )


def _exact(beta2: float) -> Fraction:
    """Return the decimal number as a fraction: 0.3 as 3/10."""
    return Fraction(repr(check_number("beta2", beta2, above=True)))


def _f_limit(rho: Fraction, b: Fraction) -> Fraction:
    # without false positives F = (1 + b) r / (r + b), r the recall; solved for |C_1| / |C_2|
    return 1 + rho * (1 + 2 * b) / (b * b)


def _predictors(
    gt: ArrayLike, found: Sequence[int], missed: Sequence[int]
) -> tuple[Mask, Partition, list[int], Mask, Mask]:
    """Return the mask, its frames, the pixels of each object, and what A and B predict."""
    mask = as_mask(gt)
    parts = cut_mask(mask, min_area=0)
    owner = parts.index_map().ravel()
    objects = [np.flatnonzero(owner == index) for index in range(len(parts))]  # in raster order
    sizes = [len(pixels) for pixels in objects]
    expected = sum(size for index, size in enumerate(sizes) if index not in missed)
    some = 0 < len(set(missed)) < len(sizes) and set(missed) <= set(range(len(sizes)))
    inside = len(found) == len(sizes) and all(map(lambda n, size: 0 <= n <= size, found, sizes))
    if not some or not inside or sum(found) != expected:
        raise InputError(
            f"missed must be some but not all of {len(sizes)} objects, got {list(missed)}; found at "
            f"most {sizes}, one count per object that add up to {expected}, got {list(found)}"
        )
    pred_a, pred_b = np.zeros_like(mask), np.zeros_like(mask)
    for index, pixels in enumerate(objects):
        pred_a.flat[pixels] = index not in missed
        pred_b.flat[pixels[: found[index]]] = True
    return mask, parts, sizes, pred_a, pred_b


def _si_mae(wrong: Mask, parts: Partition) -> Fraction:
    total = int(parts.frame_areas.sum())
    errors = [Fraction(int(np.count_nonzero(wrong[frame.window])), frame.area) for frame in parts]
    outside = Fraction(int(np.count_nonzero(wrong & parts.background)), total)  # alpha / S_back each
    return (sum(errors, Fraction()) + outside) / (len(parts) + Fraction(parts.background_area, total))


def _f(pred: Mask, mask: Mask, b: Fraction) -> Fraction:
    hit = int(np.count_nonzero(pred & mask))
    return (1 + b) * hit / (int(np.count_nonzero(pred)) + b * int(np.count_nonzero(mask)))

"""Propositions 3.3 and B.1: two predictors with equally many true positives; which one a score prefers.

A finds some objects completely and misses the others; B finds a part of each, the same number of pixels
in total. Neither has a false positive. Values are compared as fractions: `holds` is exact.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sisod.common.arguments import is_number, shown
from sisod.common.errors import InputError
from sisod.paper.theory.sides import Sides
from sisod.scoring.arrays import as_mask
from sisod.scoring.engine import score
from sisod.scoring.partition import Partition, partition

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class PredictorPair:
    """Two predictors, and both sides of the proposition.

    Attributes:
        pred_a: finds some objects completely, nothing of the others.
        pred_b: finds the same number of pixels, a part of each object.
        plain_a: ordinary score of A.
        plain_b: ordinary score of B, equal to A's.
        left: size-invariant score of A.
        right: size-invariant score of B.
        assumed: whether the paper's condition is met.
        corrected: whether our corrected condition is met.
        holds: whether the proposition is true here: the ordinary scores are equal and the
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
    parts = partition(mask, min_area=0)
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
    all equal. It does not need the extension's limit. With overlapping frames the paper's condition is
    not sufficient: a missed pixel then counts in every frame that contains it.

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
    mask, parts, objects = _objects(gt)
    sizes = [len(pixels) for pixels in objects]
    pred_a, pred_b = _predictors(mask, objects, found, missed)
    areas = parts.frame_areas.tolist()
    gained = [areas[i] for i in range(len(areas)) if i in missed and found[i] > 0]
    lost = [areas[i] for i in range(len(areas)) if i not in missed and found[i] < sizes[i]]
    smallest = max(areas[i] for i in missed)
    following = min(areas[i] for i in range(len(areas)) if i not in missed)
    ordered = bool(gained) and max(gained) <= min(lost) and min(gained) < max(lost)
    left, right = _si_mae(pred_a != mask, parts), _si_mae(pred_b != mask, parts)
    return PredictorPair(
        pred_a,
        pred_b,
        plain_a=float(np.count_nonzero(pred_a != mask) / mask.size),
        plain_b=float(np.count_nonzero(pred_b != mask) / mask.size),
        left=float(left),
        right=float(right),
        assumed=smallest <= following and following > _next_frame_limit(found, areas),
        corrected=parts.disjoint and ordered,
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
    if len(found) != len(frame_areas) or not any(found) or min(found) < 0 or min(frame_areas) < 1:
        raise InputError(
            "found must be one count per frame, none negative and not all 0, and every frame must have "
            f"pixels; got {list(found)} for {list(frame_areas)}"
        )
    return float(_next_frame_limit(found, frame_areas))


def proposition_b_1(
    gt: ArrayLike, found: Sequence[int], *, missed: int = 0, beta2: float = 1.0
) -> PredictorPair:
    """Build both predictors on two objects and return their F and SI-F (Proposition B.1).

    The paper's condition: B finds a part of each object. Its proof has a sign error, and the claim is
    false as stated. Our condition: frames do not overlap, B misses a part of C_2, and the missed C_1 has
    fewer than `f_limit` times the pixels of C_2. Without overlap it is necessary and sufficient.

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
    mask, parts, objects = _objects(gt)
    if len(objects) != 2:
        raise InputError(f"proposition B.1 is about two objects, gt has {len(objects)}")
    exact = _exact(beta2)
    pred_a, pred_b = _predictors(mask, objects, found, (missed,))
    lost_size, kept_size = len(objects[missed]), len(objects[1 - missed])
    rho = Fraction(found[1 - missed], kept_size)
    left, right = (_si_f(pred, mask, parts, exact) for pred in (pred_a, pred_b))
    return PredictorPair(
        pred_a,
        pred_b,
        plain_a=float(_f(pred_a, mask, exact)),
        plain_b=float(_f(pred_b, mask, exact)),
        left=float(left),
        right=float(right),
        assumed=0 < rho < 1,
        corrected=parts.disjoint and rho < 1 and lost_size < _f_limit(rho, exact) * kept_size,
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
    if not is_number(rho) or not 0 <= rho <= 1:
        raise InputError(f"rho is a share, from 0 to 1, got {shown(rho)}")
    return float(_f_limit(Fraction(rho), _exact(beta2)))


def _exact(beta2: float) -> Fraction:
    """Return the decimal number as a fraction: 0.3 as 3/10."""
    if not is_number(beta2) or not 0 < beta2 < math.inf:
        raise InputError(
            f"beta2 must be a number above 0, got {shown(beta2)}; the paper's are 1 and 0.3"
        )
    return Fraction(repr(float(beta2)))


def _f_limit(rho: Fraction, b: Fraction) -> Fraction:
    # without false positives F = (1 + b) r / (r + b), r the recall; solved for |C_1| / |C_2|
    return 1 + rho * (1 + 2 * b) / (b * b)


def _next_frame_limit(found: Sequence[int], frame_areas: Sequence[int]) -> Fraction:
    weighted = sum((Fraction(t, area) for t, area in zip(found, frame_areas, strict=True)), Fraction())
    return Fraction(sum(found)) / weighted


def _objects(gt: ArrayLike) -> tuple[Mask, Partition, list[NDArray[np.intp]]]:
    """Return the mask, its frames, and the flat indices of every object's pixels in raster order."""
    mask = as_mask(gt)
    nearest = partition(mask, kind="voronoi", min_area=0)
    if len(nearest) < 2 or nearest.regions is None:
        raise InputError(f"gt has {len(nearest)} objects; the proposition needs two or more")
    objects = [np.flatnonzero(mask & (nearest.regions == index)) for index in range(len(nearest))]
    return mask, partition(mask, min_area=0), objects


def _predictors(
    mask: Mask, objects: list[NDArray[np.intp]], found: Sequence[int], missed: Sequence[int]
) -> tuple[Mask, Mask]:
    _check_counts(found, missed, [len(pixels) for pixels in objects])
    pred_a, pred_b = np.zeros_like(mask), np.zeros_like(mask)
    for index, pixels in enumerate(objects):
        pred_a.flat[pixels if index not in missed else pixels[:0]] = True
        pred_b.flat[pixels[: found[index]]] = True
    return pred_a, pred_b


def _check_counts(found: Sequence[int], missed: Sequence[int], sizes: list[int]) -> None:
    for name, values in (("found", found), ("missed", missed)):
        if not isinstance(values, Sequence) or not all(isinstance(n, Integral) for n in values):
            raise InputError(f"{name} must be a sequence of whole numbers, got {values!r}")
    if len(found) != len(sizes) or not all(0 <= t <= size for t, size in zip(found, sizes, strict=True)):
        raise InputError(f"found must be one count per object, at most {sizes}, got {list(found)}")
    inside = set(missed) <= set(range(len(sizes)))
    if not inside or not 0 < len(set(missed)) < len(sizes):
        raise InputError(
            f"missed must be some but not all of the objects 0 to {len(sizes) - 1}, got {list(missed)}"
        )
    expected = sum(size for index, size in enumerate(sizes) if index not in missed)
    if sum(found) != expected:
        raise InputError(
            f"found must add up to {expected}, the pixels that A finds, got {sum(found)}; "
            "both predictors must find the same number of pixels"
        )


def _si_mae(wrong: Mask, parts: Partition) -> Fraction:
    total = int(parts.frame_areas.sum())
    errors = [Fraction(int(np.count_nonzero(wrong[frame.window])), frame.area) for frame in parts]
    outside = Fraction(int(np.count_nonzero(wrong & parts.background)), total)  # alpha / S_back each
    return (sum(errors, Fraction()) + outside) / (len(parts) + Fraction(parts.background_area, total))


def _si_f(pred: Mask, mask: Mask, parts: Partition, b: Fraction) -> Fraction:
    values = [_f(pred[frame.window], mask[frame.window], b) for frame in parts]
    return sum(values, Fraction()) / len(parts)


def _f(pred: Mask, mask: Mask, b: Fraction) -> Fraction:
    hit = int(np.count_nonzero(pred & mask))
    return (1 + b) * hit / (int(np.count_nonzero(pred)) + b * int(np.count_nonzero(mask)))

"""Proposition 4.1: the pixels with a larger weight in the size-invariant loss than in the plain one."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sisod.common.errors import InputError
from sisod.paper.theory.sides import Sides
from sisod.scoring.partition import Frame, Partition
from sisod.scoring.size_invariant import weight_map

_MORE = 1 + 1e-12  # beyond rounding: 1/20 + 1/20 is not more than 1/10


@dataclass(frozen=True, eq=False)
class Reattention:
    """Both items of Proposition 4.1 on one partition.

    Attributes:
        weights: weight of every pixel in the size-invariant loss, normalised to sum to one.
        plain: weight of every pixel in the plain loss, 1/S.
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

    Example:
        Objects of 1 and 4 pixels on 4 x 4:

        >>> from sisod import partition
        >>> gt = np.zeros((4, 4), dtype=bool)
        >>> gt[0, 0] = gt[2:, 2:] = True
        >>> result = proposition_4_1(partition(gt))
        >>> result.plain, round(result.limit, 3)  # K + alpha = 2 + 11/5
        (0.0625, 3.81)
        >>> [round(weight, 3) for weight in (result.item_2.left, result.item_2.right)]
        [0.238, 0.06]
        >>> result.item_1.holds, result.item_2.holds
        (True, True)
    """
    if partition.regions is not None or len(partition) == 0:
        raise InputError(
            f"proposition 4.1 needs rectangular frames, got {len(partition)} of them"
            + (
                " as Voronoi regions; use kind='boxes'"
                if len(partition)
                else "; take a mask with an object"
            )
        )
    # with "ratio", the proposition's alpha, not that of the partition
    weights = weight_map(partition.boxes, partition.shape)
    plain = 1 / weights.size
    total, outside = int(partition.frame_areas.sum()), partition.background_area
    # S_i < S / (K + alpha) without a division: a single frame has exactly S_1 = limit
    small = [
        frame
        for frame in partition
        if frame.area * (len(partition) * total + outside) < weights.size * total
    ]
    return Reattention(
        weights,
        plain,
        limit=weights.size * total / (len(partition) * total + outside),
        item_1=_item_1(weights, plain, small),
        item_2=_item_2(weights, partition),
    )


def _item_1(weights: NDArray[np.float64], plain: float, small: list[Frame]) -> Sides:
    if not small:
        return Sides(math.nan, plain, assumed=False, holds=True)
    least = min(float(weights[frame.window].min()) for frame in small)
    return Sides(least, plain, assumed=True, holds=least > plain)


def _item_2(weights: NDArray[np.float64], partition: Partition) -> Sides:
    pairs = [
        (_least(weights, smaller), _greatest(weights, larger, smaller))
        for smaller, larger in itertools.permutations(partition.frames, 2)
        if smaller.area < larger.area
    ]
    if not pairs:
        return Sides(math.nan, math.nan, assumed=False, holds=True)
    left, right = min(pairs, key=lambda pair: pair[0] / pair[1])
    return Sides(left, right, assumed=True, holds=left > right * _MORE)


def _least(weights: NDArray[np.float64], frame: Frame) -> float:
    return float(weights[frame.window].min())


def _greatest(weights: NDArray[np.float64], frame: Frame, without: Frame) -> float:
    """Return the greatest weight in a frame, without the pixels that the other frame contains too."""
    outside = np.ones(weights.shape, dtype=np.bool_)
    outside[without.window] = False
    return float(weights[frame.window][outside[frame.window]].max())

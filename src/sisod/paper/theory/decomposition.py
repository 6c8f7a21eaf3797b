"""A score of an image -> the weights P_X of its parts (Eq. 3 to 6)."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sisod.common.arguments import check_known
from sisod.common.exceptions import InputError
from sisod.scoring.arrays import as_map, as_mask, check_same_shape, unit_values
from sisod.scoring.counting.histograms import LEVELS
from sisod.scoring.engine import score
from sisod.scoring.partition import Partition
from sisod.scoring.protocols import Protocol, find_protocol

Values = NDArray[np.float64]
Mask = NDArray[np.bool_]

_SEPARABLE = ("mae", "mse", "accuracy_binary")  # means over pixels
# a composite metric's numerator and denominator in TP, FP, FN, TN: a_t and b_t of Eq. 5
_COMPOSITE = {
    "f_binary": ((1.3, 0, 0, 0), (1.3, 1, 0.3, 0)),
    "dice_binary": ((2, 0, 0, 0), (2, 1, 1, 0)),
    "iou_binary": ((1, 0, 0, 0), (1, 1, 1, 0)),
    "precision_binary": ((1, 0, 0, 0), (1, 1, 0, 0)),
    "recall_binary": ((1, 0, 0, 0), (1, 0, 1, 0)),
    "specificity_binary": ((0, 0, 0, 1), (0, 1, 0, 1)),
    "fpr_binary": ((0, 1, 0, 0), (0, 1, 0, 1)),
}


@dataclass(frozen=True, eq=False)
class Decomposition:
    """A score and the weighted sum of its parts. Parts are the frames, in order, then the background.

    Attributes:
        left: the score of the whole image, by `sisod.score`.
        right: the same score computed from the parts, by Eq. 3 and 5.
        shares: P_X of every part: its pixels over those of the image.
        weights: weight of every part in the score. For a separable metric, the shares; for a composite
            one, the shares times the part's denominator, normalised to sum to one.
        values: metric of every part; NaN if undefined, with weight 0.
        si_weights: weight of every part in the size-invariant score, normalised to sum to one.
    """

    left: float
    right: float
    shares: Values
    weights: Values
    values: Values
    si_weights: Values

    @property
    def holds(self) -> bool:
        """Whether both sides agree up to rounding; they do if no two frames overlap."""
        return math.isclose(self.left, self.right, rel_tol=1e-9, abs_tol=1e-12)


def decompose(
    pred: ArrayLike,
    gt: ArrayLike,
    *,
    metric: str = "mae",
    protocol: str | Protocol = "default",
    partition: Partition | None = None,
) -> Decomposition:
    """Return a score of an image as the weighted sum of its parts' scores.

    Definition 3.1 requires parts that do not intersect. The paper's frames may, and then the two sides
    differ; Voronoi regions, `partition=sisod.partition(gt, kind="voronoi")`, never do.

    Args:
        pred: saliency map, as for `sisod.score`.
        gt: ground truth, as for `sisod.score`.
        metric: `mae`, `mse`, `accuracy_binary` (separable), or the `_binary` form of `f`, `dice`, `iou`,
            `precision`, `recall`, `specificity`, `fpr` (composite).
        protocol: as for `sisod.score`.
        partition: the parts; by default the protocol's.

    Example:
        Half of an object of 4 pixels is missed, all of an object of 1 pixel, on 20 pixels:

        >>> gt = np.zeros((4, 5), dtype=bool)
        >>> gt[:2, :2] = gt[3, 4] = True
        >>> pred = np.zeros((4, 5))
        >>> pred[0, :2] = 1
        >>> result = decompose(pred, gt)
        >>> result.shares, result.values  # two frames and the background
        (array([0.2 , 0.05, 0.75]), array([0.5, 1. , 0. ]))
        >>> result.left, round(result.right, 12), result.holds
        (0.15, 0.15, True)
    """
    check_known("metric to decompose", metric, (*_SEPARABLE, *_COMPOSITE))
    p, mask, parts, left = _score(pred, gt, metric, protocol, partition)
    sizes = np.append(parts.frame_areas, parts.background_area).astype(np.float64)
    shares = sizes / mask.size
    si_weights = np.append(np.ones(len(parts)), parts.alpha if metric in _SEPARABLE else 0.0)
    si_weights /= max(si_weights.sum(), 1.0)
    predicted = p > 0.5
    if metric in _SEPARABLE:
        error = np.abs(p - mask)
        pixels = {"mae": error, "mse": error * error, "accuracy_binary": predicted == mask}[metric]
        means = _ratio(_sums(pixels, parts), sizes)
        right = float(np.nansum(shares * means))
        return Decomposition(left, right, shares, shares, means, si_weights)
    outcomes = (predicted & mask, predicted & ~mask, ~predicted & mask, ~predicted & ~mask)
    counts = np.stack([_sums(outcome, parts) for outcome in outcomes])
    numerators, denominators = (np.array(row) @ counts for row in _COMPOSITE[metric])
    total = denominators.sum()
    # 0 if nothing is predicted, as everywhere in the library
    right = float(numerators.sum() / total) if total else 0.0
    weights, values = denominators / (total or 1.0), _ratio(numerators, denominators)
    return Decomposition(left, right, shares, weights, values, si_weights)


@dataclass(frozen=True, eq=False)
class AucDecomposition:
    """AUC, the paper's decomposition of it, and the exact one.

    Attributes:
        left: AUC of the whole image, by `sisod.score`.
        right: the paper's sum over frames of AUC times share of pairs.
        values: row k, column l: how often a salient pixel of part k is ranked above a non-salient pixel
            of part l; NaN without such pairs. Parts are the frames, then the background.
        weights: share of each entry in all pairs; more than 1 in all if frames overlap.
    """

    left: float
    right: float
    values: Values
    weights: Values

    @property
    def whole(self) -> float:
        """The sum over all pairs of disjoint parts: equal to AUC. Overlapping frames raise an error."""
        if self.weights.sum() > 1 + 1e-9:
            raise InputError(
                "frames overlap, so pairs of pixels are counted more than once; take disjoint parts: "
                "partition=sisod.partition(gt, kind='voronoi')"
            )
        return float(np.nansum(self.weights * self.values))

    @property
    def within(self) -> float:
        """Share of all pairs of pixels whose two pixels lie in the same frame."""
        return float(np.trace(self.weights[:-1, :-1]))

    @property
    def holds(self) -> bool:
        """Whether the paper's two sides agree up to rounding."""
        return math.isclose(self.left, self.right, rel_tol=1e-9, abs_tol=1e-12)


def decompose_auc(
    pred: ArrayLike,
    gt: ArrayLike,
    *,
    protocol: str | Protocol = "default",
    partition: Partition | None = None,
) -> AucDecomposition:
    """Return AUC as the sum over all pairs of parts, and the paper's sum over frames.

    The paper (appendix C) writes AUC as the sum over frames of AUC_k n+_k n-_k / (n+ n-), whose weights
    add up to the share of pairs that lie within a frame. The sum over all pairs of disjoint parts,
    n+_k n-_l / (n+ n-), is exact. The arguments are those of `decompose`.

    Example:
        Two objects of 2 pixels, in frames with 2 other pixels each, on 12 pixels; a perfect map:

        >>> gt = np.zeros((2, 6), dtype=bool)
        >>> gt[[0, 1, 0, 1], [0, 1, 4, 5]] = True
        >>> result = decompose_auc(gt, gt)
        >>> result.left, result.right, result.whole  # of 4 x 8 pairs, 2 x 2 lie in each frame
        (1.0, 0.25, 1.0)
    """
    p, mask, parts, left = _score(pred, gt, "auc", protocol, partition)
    joint = np.floor(255 * p).astype(np.intp) + LEVELS * mask
    if parts.regions is not None:
        pieces = [joint[parts.regions == index] for index in range(len(parts))]
    else:
        pieces = [joint[frame.window].ravel() for frame in parts]
    pieces.append(joint[parts.background])
    counts = np.stack([np.bincount(piece, minlength=2 * LEVELS) for piece in pieces]).astype(np.float64)
    other, salient = counts[:, :LEVELS], counts[:, LEVELS:]  # parts x levels
    # pairs in which the salient pixel has the higher level, ties counting one half
    outranked = salient @ (np.cumsum(other, axis=1) - other / 2).T
    pairs = np.outer(salient.sum(axis=1), other.sum(axis=1))
    values, weights = _ratio(outranked, pairs), pairs / (mask.sum() * (~mask).sum())
    frames = np.arange(len(parts))
    right = float(np.nansum(weights[frames, frames] * values[frames, frames]))
    return AucDecomposition(left, right, values, weights)


def _score(
    pred: ArrayLike, gt: ArrayLike, metric: str, protocol: str | Protocol, parts: Partition | None
) -> tuple[Values, Mask, Partition, float]:
    """Return probabilities, mask, parts, and the score of the whole image."""
    protocol = find_protocol(protocol)
    mask, array = as_mask(gt, level=protocol.gt_level), as_map(pred)
    check_same_shape(array, mask)
    parts = protocol.partition(mask) if parts is None else parts
    value = score(pred, gt, protocol=protocol, metrics=[metric], partition=parts)[metric]
    if math.isnan(value):
        raise InputError(
            f"{metric} is undefined on this image; take a mask with salient and other pixels"
        )
    return unit_values(array, normalize=protocol.normalize), mask, parts, value


def _sums(pixels: NDArray[np.generic], parts: Partition) -> Values:
    """Return the sums over the frames, then over the background."""
    values = np.asarray(pixels, dtype=np.float64)
    if parts.regions is not None:
        sums = np.bincount(parts.regions.ravel(), values.ravel(), minlength=len(parts))
    else:
        sums = np.array([values[frame.window].sum() for frame in parts])
    return np.append(sums, values[parts.background].sum())


def _ratio(numerator: Values, denominator: Values) -> Values:
    """Divide; NaN where the denominator is 0."""
    undefined = np.full(numerator.shape, np.nan)
    return np.asarray(np.divide(numerator, denominator, out=undefined, where=denominator > 0))

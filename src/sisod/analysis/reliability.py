"""Reliability of probabilities: how often a pixel predicted at p is salient, and the mean difference."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

N_BINS = 15


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """Pixels by their probability, in bins of equal width.

    Attributes:
        weights: share of all weight that falls into each bin; they add up to 1.
        probs: mean probability of each bin; NaN where a bin is empty.
        shares: share of each bin that is salient; NaN where a bin is empty.
    """

    weights: NDArray[np.float64]
    probs: NDArray[np.float64]
    shares: NDArray[np.float64]

    @property
    def error(self) -> float:
        """The expected calibration error: absolute difference of probs and shares, weighted mean."""
        filled = self.weights > 0
        differences = np.abs(self.probs[filled] - self.shares[filled])
        return float(self.weights[filled] @ differences) if filled.any() else math.nan

    def to_json(self) -> dict[str, list[float | None]]:
        """Return plain data; None stands for NaN."""
        return {
            name: [None if math.isnan(value) else value for value in getattr(self, name).tolist()]
            for name in ("weights", "probs", "shares")
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Sequence[float | None]]) -> "ReliabilityCurve":
        """Return the curve of plain data, the inverse of `to_json`."""
        return cls(**{name: np.array(values, dtype=np.float64) for name, values in data.items()})


def reliability_curve(probs: ArrayLike, salient: ArrayLike, weights: ArrayLike) -> ReliabilityCurve:
    """Return the reliability curve of weighted pixels.

    Args:
        probs: predicted probabilities in [0, 1].
        salient: whether each pixel is salient.
        weights: of the pixels; only their proportions matter.

    Example:
        Four pixels of probability 0.7, three of them salient, and six of 0.1, none of them salient:

        >>> curve = reliability_curve([0.7] * 4 + [0.1] * 6, [1, 1, 1] + [0] * 7, [1] * 10)
        >>> round(curve.error, 6)  # 0.4 * |0.7 - 0.75| + 0.6 * |0.1 - 0|
        0.08
    """
    p, y, w = (np.asarray(values, dtype=np.float64).ravel() for values in (probs, salient, weights))
    index = np.minimum((p * N_BINS).astype(np.int64), N_BINS - 1)
    total, sum_p, sum_y = (np.bincount(index, values, N_BINS) for values in (w, w * p, w * y))
    with np.errstate(invalid="ignore"):
        return ReliabilityCurve(total / max(total.sum(), 1e-300), sum_p / total, sum_y / total)

"""Pixels with known probabilities, the same on every machine: no random numbers."""

import numpy as np
from numpy.typing import NDArray


def pixels(
    count: int = 2000, *, slope: float = 0.6, shift: float = -0.8
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64]]:
    """Return logits, whether salient (with the probability of slope x logit + shift), and weights."""
    index = np.arange(count)
    logits = 6 * np.sin(0.7371 * index)
    chance = (index * 7919 % 1009) / 1009
    salient = chance < 1 / (1 + np.exp(-(slope * logits + shift)))
    return np.asarray(logits), np.asarray(salient), (1 + index % 3).astype(np.float64)

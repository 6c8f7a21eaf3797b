"""The engine's scores of one pair, by name."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import sisod
from sisod.scoring.engine import find_scorer, score_pair


@dataclass(frozen=True, eq=False)
class Scored:
    """Metric values, curves and per-object values of one image."""

    values: dict[str, float]
    curves: dict[str, NDArray[np.float64]]
    objects: dict[str, NDArray[Any]]


def score_one(
    pred: ArrayLike,
    gt: ArrayLike,
    *,
    keys: tuple[str, ...],
    protocol: sisod.Protocol = sisod.PROTOCOLS["default"],
    partition: sisod.Partition | None = None,
) -> Scored:
    """Score one prediction against its ground truth."""
    scores = score_pair(find_scorer(protocol, keys), pred, gt, partition=partition)
    return Scored(
        values=dict(zip(keys, scores.values[0].tolist(), strict=True)),
        curves=dict(zip(scores.curve_names, scores.curves[0], strict=True)),
        objects=scores.objects,
    )

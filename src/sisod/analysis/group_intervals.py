"""Intervals of scores by size and by number of objects: a bootstrap over images, for each group."""

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sisod.analysis.bootstrap import OBJECT_SCORES, Score, intervals, object_score, read_score
from sisod.analysis.groups import group_of, number_groups
from sisod.common.arguments import check_known

if TYPE_CHECKING:
    from sisod.evaluation.result import Evaluation

Values = NDArray[np.float64]
LEAST_IMAGES = 5  # with fewer, an interval says nothing
_RESAMPLES = 1000


def size_intervals(
    evaluation: "Evaluation", key: str, edges: ArrayLike, *, resamples: int = _RESAMPLES, seed: int = 0
) -> Values:
    """Return the 95 % interval of a score of objects in each size group, groups x (low, high).

    Objects of one image are drawn together, as they are not independent. NaN where fewer than
    `LEAST_IMAGES` images have an object of the group.

    Args:
        evaluation: the result; its object table is read.
        key: `found`, or `object_` + a metric of the object table.
        edges: of the groups, as of `size_edges`.
        resamples: number of resamples.
        seed: of the random numbers.
    """
    check_known("score of objects", key, OBJECT_SCORES)
    bounds = np.asarray(edges, dtype=np.float64)
    groups = group_of(evaluation.objects["share"].to_numpy(), bounds)
    order = np.arange(evaluation.images.height)
    scores = [object_score(evaluation, key, order, groups == g) for g in range(len(bounds) - 1)]
    return _intervals(scores, resamples, seed)


def number_intervals(
    evaluation: "Evaluation", key: str, *, resamples: int = _RESAMPLES, seed: int = 0
) -> Values:
    """Return the 95 % interval of a score of images by number of objects, groups x (low, high).

    The groups are those of `by_number`. NaN where the score is defined on fewer than `LEAST_IMAGES`
    images of the group.

    Args:
        evaluation: the result.
        key: a metric of the image table.
        resamples: number of resamples.
        seed: of the random numbers.
    """
    names, members = number_groups(evaluation.images["n_objects"].to_numpy())
    score = read_score(evaluation, key)
    # every score is a function of sums over images, so images of other groups become zeros
    scores = [
        dataclasses.replace(
            score,
            table=np.where((members == group)[:, None], score.table, 0.0),
            per_image=np.where(members == group, score.per_image, np.nan),
        )
        for group in range(len(names))
    ]
    return _intervals(scores, resamples, seed)


def _intervals(scores: list[Score], resamples: int, seed: int) -> Values:
    """Interval of each score that enough images define."""
    ends = np.full((len(scores), 2), np.nan)
    enough = [i for i, one in enumerate(scores) if (~np.isnan(one.per_image)).sum() >= LEAST_IMAGES]
    if enough:
        ends[enough] = intervals([scores[i] for i in enough], [], resamples, seed)[1]
    return ends

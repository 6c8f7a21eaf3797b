"""Intervals of scores by size and by number of objects: a bootstrap over images, for each group."""

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sisod.analysis.bootstrap import OBJECT_SCORES, Score, interval, read_score, resample
from sisod.analysis.groups import group_of, is_found, number_groups
from sisod.common.arguments import check_known

if TYPE_CHECKING:
    from sisod.evaluation.result import Evaluation

Values = NDArray[np.float64]
LEAST_IMAGES = 5  # with fewer, a bootstrap repeats so few values that its interval is far too short
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
    objects = evaluation.objects
    bounds = np.asarray(edges, dtype=np.float64)
    groups = group_of(objects["share"].to_numpy(), bounds)
    values = objects[OBJECT_SCORES[key]].to_numpy()
    if key == "found":
        values = is_found(values)
    n_images = evaluation.images.height
    images = np.repeat(np.arange(n_images), evaluation.images["n_objects"].to_numpy())
    score = read_score(evaluation, key)
    scores = []
    for group in range(len(bounds) - 1):
        chosen = (groups == group) & ~np.isnan(values)
        sums = np.bincount(images[chosen], weights=values[chosen], minlength=n_images)
        counts = np.bincount(images[chosen], minlength=n_images)
        table = np.stack([sums, counts], axis=1).astype(np.float64)
        scores.append((dataclasses.replace(score, table=table), int((counts > 0).sum())))
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
    scores = []
    for group in range(len(names)):
        chosen = members == group
        # every score is a function of sums over images, so images of other groups become zeros
        table = np.where(chosen[:, None], score.table, 0.0)
        n_defined = int((chosen & ~np.isnan(score.per_image)).sum())
        scores.append((dataclasses.replace(score, table=table), n_defined))
    return _intervals(scores, resamples, seed)


def _intervals(scores: list[tuple[Score, int]], resamples: int, seed: int) -> Values:
    """Interval of each score that enough images define."""
    ends = np.full((len(scores), 2), np.nan)
    enough = [i for i, (_, n_images) in enumerate(scores) if n_images >= LEAST_IMAGES]
    if enough:
        values = resample([scores[i][0] for i in enough], resamples, seed)
        for column, i in enumerate(enough):
            ends[i] = interval(values[:, column])
    return ends

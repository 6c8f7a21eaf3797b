"""Bootstrap over images: the values of a summary on images drawn with replacement, and their intervals.

Every score is a function of sums over images. A resample is therefore a row of counts (how often each
image was drawn), and all resamples of all scores are one matrix product.

Intervals are those of the symmetric studentised bootstrap (Hall 1988), for scores and for differences
alike: in every resample, the deviation from the observed value is divided by its own standard error,
which comes from the influence of each image, and the 95 % quantile of these ratios gives the width.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sisod.analysis.groups import group_of, number_groups
from sisod.analysis.scores import Score, bounds, chosen_keys, object_score, read_score
from sisod.common.arguments import check_int
from sisod.common.streams import progress_bar
from sisod.evaluation.result import Evaluation
from sisod.evaluation.results import Result
from sisod.scoring.arrays import Values

if TYPE_CHECKING:
    import polars as pl

RESAMPLES = 10_000
LEAST_IMAGES = 5  # with fewer, an interval of a group says nothing
_GROUP_RESAMPLES = 1000
_MAX_RESAMPLES = 10_000_000  # all are kept in memory
_MAX_COUNTS = 8_000_000  # elements of a matrix of resamples at a time: 64 MB


def resample(scores: Sequence[Score], resamples: int, seed: int) -> Values:
    """Return an array of resamples x scores; each resample draws as many images as there are.

    All scores must be of the same images in the same order: a resample draws the same images for all
    of them. NaN where a resample has no image on which the score is defined.
    """
    resamples = check_int("resamples", resamples, least=1, most=_MAX_RESAMPLES)
    seed = check_int("seed", seed, least=0)
    n_images = len(scores[0].per_image)
    rng = np.random.default_rng(seed)
    table, columns = share_columns(scores)
    values = np.empty((resamples, len(scores)))
    chunk = block_size(table)
    with progress_bar("resampling", resamples) as advance:
        for start in range(0, resamples, chunk):
            rows = slice(start, min(start + chunk, resamples))
            n_rows = rows.stop - start
            drawn = rng.integers(0, n_images, size=(n_rows, n_images))
            drawn += np.arange(n_rows)[:, None] * n_images
            counts = np.bincount(drawn.ravel(), minlength=n_rows * n_images)  # of each image
            sums = counts.reshape(n_rows, n_images).astype(np.float64) @ table
            for index, score in enumerate(scores):
                values[rows, index] = score.function(sums[:, columns[index]])
            advance(n_rows)
    return values


def intervals(
    scores: Sequence[Score], pairs: Sequence[tuple[int, int]], resamples: int, seed: int
) -> tuple[Values, Values]:
    """Return the resampled values of scores, and the 95 % intervals of scores and of differences.

    An interval is never shorter than Student's, and does not leave the range of its metric. It is NaN if
    fewer than two images define the score. Of a mean over seeds, seeds are drawn as well as images.

    Args:
        scores: all of the same images in the same order.
        pairs: indices of two scores, whose difference (first minus second) gets an interval.
        resamples: number of resamples.
        seed: of the resampling.

    Returns:
        The values of all resamples, and an array of scores and pairs x (low, high).
    """
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T

    def with_differences(rows: ArrayLike) -> Values:
        of_scores = np.asarray(rows)
        return np.concatenate([of_scores, of_scores[first] - of_scores[second]])

    members = [*([score] for score in scores), *([scores[a], scores[b]] for a, b in pairs)]
    observed = with_differences([score.function(score.table.sum(axis=0)[None])[0] for score in scores])
    influences = with_differences([influence(score) for score in scores])
    squares = np.nan_to_num(np.square(influences), nan=-1.0)  # NaN would spread
    columns = [replace(scores[0], table=row[:, None], function=np.ravel) for row in squares]
    drawn = resample([*scores, *columns], resamples, seed)
    rng = np.random.default_rng([seed, 2])  # other numbers than those of images and exchanges
    seeds = np.array([_resample_seeds(score, resamples, rng) for score in scores])
    values, of_seeds = with_differences(drawn[:, : len(scores)].T), with_differences(seeds)
    ends = np.full((len(members), 2), math.nan)
    for i, (value, compared) in enumerate(zip(observed, members, strict=True)):
        n_defined = int((~np.isnan([score.per_image for score in compared]).all(axis=0)).sum())
        if squares[i].min() < 0 or n_defined < 2:
            continue
        added, freedom = seed_variance(compared, squares[i].sum(), n_defined)
        student = _student_quantile(freedom) * math.sqrt((n_defined - 1) / n_defined)
        deviations, square = values[i] - value, squares[i].sum() + added
        variances = drawn[:, len(scores) + i] - n_defined * (deviations / (n_defined - 1)) ** 2 + added
        known = variances > 1e-9 * square  # not where one value was drawn throughout; NaN is not
        ratios = np.abs(deviations + of_seeds[i])[known] / np.sqrt(variances[known])
        quantile = float(np.quantile(ratios, 0.95)) if len(ratios) else 0.0
        width = max(quantile, student) * math.sqrt(square)
        low, high = bounds(compared[0].key)
        if len(compared) == 2:
            low, high = low - high, high - low
        ends[i] = max(value - width, min(low, value)), min(value + width, max(high, value))
    return drawn[:, : len(scores)] + seeds.T, ends


def influence(score: Score) -> Values:
    """Return how much the value of a score falls without each image."""
    sums = score.table.sum(axis=0, keepdims=True)
    return np.asarray(score.function(sums)[0] - score.function(sums - score.table))


def seed_variance(scores: Sequence[Score], square: float, n_images: int) -> tuple[float, float]:
    """Return what seeds add to the variance of a score, or of a difference of two.

    Two methods share one variance of seeds, which a method with a single run takes from the other.

    Args:
        scores: the one or the two.
        square: sum of the squared influences of images.
        n_images: on how many images the score is defined.

    Returns:
        The variance of the means over seeds, to be added to `square`, and the degrees of freedom of the
        sum (Satterthwaite 1946).
    """
    runs = [_defined_seeds(score) for score in scores]
    freedom = sum(len(values) - 1 for values in runs)
    if not freedom:
        return 0.0, n_images - 1
    pooled = sum(float(np.square(values - values.mean()).sum()) for values in runs) / freedom
    of_seeds = pooled * sum(1 / len(values) for values in runs)
    of_images = square * (n_images - 1) / n_images
    below = of_images**2 / (n_images - 1) + of_seeds**2 / freedom
    total = (of_images + of_seeds) ** 2 / below if below else float(n_images - 1)
    return of_seeds * n_images / (n_images - 1), total


def _defined_seeds(score: Score) -> Values:
    values = [value for value in score.seeds if not math.isnan(value)]
    return np.array(values or [score.value])


def _resample_seeds(score: Score, resamples: int, rng: np.random.Generator) -> Values:
    """How far the mean over drawn seeds is from that over all of them."""
    values = _defined_seeds(score)
    if len(values) < 2:
        return np.zeros(resamples)
    means = rng.choice(values, (resamples, len(values))).mean(axis=1)
    # drawn means vary by (n - 1) / n too little, which matters for a few seeds
    return np.asarray((means - values.mean()) * math.sqrt(len(values) / (len(values) - 1)))


def _student_quantile(freedom: float) -> float:
    """The 97.5 % quantile of Student's distribution, as a series (Fisher and Cornish 1960)."""
    z = NormalDist().inv_cdf(0.975)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return float(z + sum(term / freedom**power for power, term in enumerate(terms, start=1)))


def share_columns(scores: Sequence[Score]) -> tuple[Values, list[NDArray[np.int64]]]:
    """Return the distinct columns of all scores' tables, and each score's columns among them.

    Most scores share some columns, such as the numbers of objects.
    """
    distinct: dict[bytes, tuple[int, Values]] = {}
    columns = []
    for score in scores:
        own = [(column.tobytes(), column) for column in np.ascontiguousarray(score.table.T)]
        columns.append(np.array([distinct.setdefault(k, (len(distinct), c))[0] for k, c in own]))
    return np.stack([column for _, column in distinct.values()], axis=1), columns


def block_size(table: Values) -> int:
    """Return how many rows of resamples to compute at a time, for little memory."""
    longest: int = max(table.shape)
    return max(1, _MAX_COUNTS // longest)


def bootstrap_intervals(
    evaluation: Evaluation,
    metrics: str | Sequence[str] | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> "pl.DataFrame":
    """Return the 95 % interval of every score of one result.

    Args:
        evaluation: the result.
        metrics: as for `compare`; None for every score that can be resampled: image-level metrics,
            metrics of objects, means over objects, `f_max` and `si_f_max` (not the other maxima of mean
            curves, whose curves are not saved for each image).
        resamples: number of bootstrap resamples.
        seed: of the resampling.

    Returns:
        One row per score: `metric`, `value`, `low`, `high`.

    Example:
        >>> import sisod
        >>> evaluator = sisod.Evaluator(metrics=["mae"])
        >>> gt = np.eye(8, dtype=bool)
        >>> for shift in range(3):
        ...     evaluator.update(np.roll(gt, shift, axis=0), gt, name=str(shift))
        >>> bootstrap_intervals(evaluator.result(), "mae").columns
        ['metric', 'value', 'low', 'high']
    """
    keys = chosen_keys("all" if metrics is None else metrics, [Result("", "", evaluation)])
    scores = [read_score(evaluation, key) for key in keys]
    return interval_table(scores, intervals(scores, [], resamples, seed)[1])


def interval_table(scores: Sequence[Score], ends: Values) -> "pl.DataFrame":
    """Return scores and the ends of their intervals as a table."""
    import polars as pl

    values = {"metric": [score.key for score in scores], "value": [score.value for score in scores]}
    return pl.DataFrame(values | {"low": ends[:, 0], "high": ends[:, 1]})


def size_intervals(
    evaluation: Evaluation,
    key: str,
    edges: ArrayLike,
    *,
    resamples: int = _GROUP_RESAMPLES,
    seed: int = 0,
) -> Values:
    """Return the 95 % interval of a score of objects in each size group, groups x (low, high).

    Objects of one image are drawn together, as they are not independent. NaN where fewer than
    `LEAST_IMAGES` images have an object of the group.

    Args:
        evaluation: the result; its object table is read.
        key: of `object_scores`.
        edges: of the groups, as of `size_edges`.
        resamples: number of resamples.
        seed: of the random numbers.
    """
    limits = np.asarray(edges, dtype=np.float64)
    groups = group_of(evaluation.objects["share"].to_numpy(), limits)
    order = np.arange(evaluation.images.height)
    scores = [object_score(evaluation, key, order, groups == g) for g in range(len(limits) - 1)]
    return _enough(scores, resamples, seed)


def number_intervals(
    evaluation: Evaluation, key: str, *, resamples: int = _GROUP_RESAMPLES, seed: int = 0
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
        replace(
            score,
            table=np.where((members == group)[:, None], score.table, 0.0),
            per_image=np.where(members == group, score.per_image, np.nan),
        )
        for group in range(len(names))
    ]
    return _enough(scores, resamples, seed)


def _enough(scores: list[Score], resamples: int, seed: int) -> Values:
    """Interval of each score that enough images define."""
    ends = np.full((len(scores), 2), np.nan)
    enough = [i for i, one in enumerate(scores) if (~np.isnan(one.per_image)).sum() >= LEAST_IMAGES]
    if enough:
        ends[enough] = intervals([scores[i] for i in enough], [], resamples, seed)[1]
    return ends

"""Bootstrap over images: the values of a summary on images drawn with replacement.

Every score here is a ratio of sums over images. A resample is therefore a row of counts (how often each
image was drawn), and all resamples of all scores are one matrix product. Scores of objects are such
ratios too (sums over an image's objects, divided by their number). So is every point of a mean curve,
whose maximum is taken after the product.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sisod.analysis.groups import OBJECT_METRICS, is_found
from sisod.common.arguments import check_known, check_whole
from sisod.common.errors import InputError, UsageError
from sisod.common.progress import progress_bar
from sisod.evaluation.rows import IMAGE_CURVES
from sisod.scoring.metrics import METRICS, PAPER_KEYS, Direction, listed_keys

if TYPE_CHECKING:
    from sisod.evaluation.result import Evaluation

Values = NDArray[np.float64]
_MAX_RESAMPLES = 10_000_000  # all are kept in memory
_MAX_COUNTS = 8_000_000  # elements of the matrix of counts at a time: 64 MB
# scores over all objects of a data set, equally weighted: key -> column of the object table
OBJECT_SCORES = {"found": "recall_binary", **{f"object_{key}": key for key in OBJECT_METRICS}}


@dataclass(frozen=True, eq=False)
class Score:
    """One metric of one result, as sums over images.

    Attributes:
        key: a metric, `found`, or `object_` + a metric of the object table.
        value: the score over all images, as in the summary.
        per_image: one value per image, NaN where undefined; the sign test compares these.
        sums: images x 1, or images x 256 if the score is the maximum of a mean curve.
        counts: the divisors of the sums.
    """

    key: str
    value: float
    per_image: Values
    sums: Values
    counts: Values


def title(key: str) -> str:
    """Return the title of a score in tables."""
    if key in METRICS:
        return METRICS[key].title
    return "objects found" if key == "found" else f"{METRICS[OBJECT_SCORES[key]].title} of objects"


def direction(key: str) -> Direction:
    """Return whether a higher ("up") or a lower ("down") score is better."""
    if key == "found":
        return "up"
    return METRICS[OBJECT_SCORES.get(key, key)].direction


def score_keys(evaluation: "Evaluation") -> tuple[str, ...]:
    """Return every score that can be resampled from the tables of a result."""
    keys = [key for key in evaluation.images.columns if key in METRICS and _has_sums(key)]
    objects = evaluation.objects
    return (*keys, *(key for key, name in OBJECT_SCORES.items() if objects[name].is_not_nan().any()))


def default_keys(available: Sequence[str]) -> tuple[str, ...]:
    """Return the scores compared by default: the paper's columns and the objects found."""
    keys = tuple(key for key in (*PAPER_KEYS, "found") if key in available)
    return keys if set(keys) - {"found"} else tuple(available)


def chosen_keys(metrics: str | Sequence[str] | None, available: Sequence[str]) -> tuple[str, ...]:
    """Return the requested scores, each of which must be available."""
    if metrics is None:
        return default_keys(available)
    keys = listed_keys(metrics)
    if keys == ("all",):
        return tuple(available)
    if keys == ("paper",):
        keys = PAPER_KEYS
    if not keys:
        raise UsageError("metrics is empty; name at least one, or pass None for the default ones")
    for key in keys:
        if key in METRICS and not _has_sums(key):
            raise UsageError(
                f"{key} is the maximum of a mean curve that is not saved for each image, so it cannot "
                "be resampled; use f_max or si_f_max"
            )
        if key not in available and (key in METRICS or key in OBJECT_SCORES):
            raise InputError(f"the results have no {key}; evaluate again with this metric")
        check_known("metric", key, available)
    return tuple(dict.fromkeys(keys))


def read_score(evaluation: "Evaluation", key: str, order: NDArray[np.int64] | None = None) -> Score:
    """Read one score from the tables of a result, its images sorted by `order`."""
    if key in OBJECT_SCORES:
        return _object_score(evaluation, key, order)
    per_image = evaluation.images[key].to_numpy()
    table = per_image[:, None]
    if METRICS[key].form == "max":
        table = evaluation.image_curves[_curve_name(key)].to_numpy().astype(np.float64)
    if order is not None:
        per_image, table = per_image[order], table[order]
    defined = ~np.isnan(table)
    sums = np.where(defined, table, 0.0)
    return Score(key, evaluation.summary[key], per_image, sums, defined.astype(np.float64))


def resample(scores: Sequence[Score], resamples: int, seed: int) -> Values:
    """Return an array of resamples x scores; each resample draws as many images as there are.

    All scores must be of the same images in the same order: a resample draws the same images for all
    of them. NaN where a resample has no image on which the score is defined.
    """
    resamples = check_whole("resamples", resamples, least=1, most=_MAX_RESAMPLES)
    seed = check_whole("seed", seed, least=0)
    n_images = len(scores[0].per_image)
    rng = np.random.default_rng(seed)
    sums = np.concatenate([score.sums for score in scores], axis=1)
    counts, columns = _distinct(np.concatenate([score.counts for score in scores], axis=1))
    starts = np.cumsum([0, *(score.sums.shape[1] for score in scores)])
    both = np.concatenate([sums, counts], axis=1)
    values = np.empty((resamples, len(scores)))
    chunk = max(1, _MAX_COUNTS // n_images)
    with progress_bar("resampling", resamples) as advance:
        for start in range(0, resamples, chunk):
            rows = slice(start, min(start + chunk, resamples))
            product = _draw(rng, rows.stop - start, n_images) @ both
            with np.errstate(invalid="ignore"):
                ratios = product[:, : sums.shape[1]] / product[:, sums.shape[1] :][:, columns]
            for index, (first, last) in enumerate(pairwise(starts.tolist())):
                # fmax ignores NaN, and is NaN only where nothing is defined
                values[rows, index] = np.fmax.reduce(ratios[:, first:last], axis=1)
            advance(rows.stop - start)
    return values


def interval(values: Values) -> tuple[float, float]:
    """Return the 95 % percentile interval of resampled values; NaN if none is defined."""
    defined = values[~np.isnan(values)]
    if not len(defined):
        return math.nan, math.nan
    low, high = np.quantile(defined, [0.025, 0.975])
    return float(low), float(high)


def _draw(rng: np.random.Generator, rows: int, n_images: int) -> Values:
    """Counts of how often each image was drawn, one row per resample."""
    drawn = rng.integers(0, n_images, size=(rows, n_images))
    drawn += np.arange(rows)[:, None] * n_images
    counts = np.bincount(drawn.ravel(), minlength=rows * n_images)
    return counts.reshape(rows, n_images).astype(np.float64)


def _distinct(columns: Values) -> tuple[Values, NDArray[np.int64]]:
    """Distinct columns, and the index of each column among them: most scores share one."""
    known: dict[bytes, int] = {}
    distinct: list[Values] = []
    indices = []
    for column in np.ascontiguousarray(columns.T):
        content = column.tobytes()
        if content not in known:
            known[content] = len(distinct)
            distinct.append(column)
        indices.append(known[content])
    return np.stack(distinct, axis=1), np.array(indices)


def _object_score(evaluation: "Evaluation", key: str, order: NDArray[np.int64] | None) -> Score:
    values = evaluation.objects[OBJECT_SCORES[key]].to_numpy()
    if key == "found":
        values = is_found(values)
    n_images = evaluation.images.height
    members = np.repeat(np.arange(n_images), evaluation.images["n_objects"].to_numpy())
    defined = ~np.isnan(values)
    sums = np.bincount(members[defined], weights=values[defined], minlength=n_images).astype(np.float64)
    counts = np.bincount(members[defined], minlength=n_images).astype(np.float64)
    value = float(sums.sum() / counts.sum()) if counts.any() else math.nan
    if order is not None:
        sums, counts = sums[order], counts[order]
    per_image = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return Score(key, value, per_image, sums[:, None], counts[:, None])


def _has_sums(key: str) -> bool:
    return METRICS[key].form != "max" or _curve_name(key) in IMAGE_CURVES


def _curve_name(key: str) -> str:
    metric = METRICS[key]
    return f"si_{metric.family.key}" if metric.size_invariant else metric.family.key

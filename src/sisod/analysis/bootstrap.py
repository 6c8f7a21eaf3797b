"""Whole images drawn again and again: the values a summary would have had on other images.

Every score here is a ratio of sums over images, so a resample is a row of counts (how often each image
was drawn) and all resamples of all scores are one matrix product. Scores of objects are such ratios too
(sums over an image's objects over their number), and so is every point of a mean curve, of which the
maximum is taken after the product.
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
_MOST = 10_000_000  # resamples, which are all kept
_NUMBERS_AT_ONCE = 8_000_000  # of the matrix of counts: 64 MB
# scores over all objects of the data set, each object alike: key -> column of the object table
OBJECT_SCORES = {"found": "recall_binary", **{f"object_{key}": key for key in OBJECT_METRICS}}


@dataclass(frozen=True, eq=False)
class Score:
    """One metric of one result, as sums over images.

    Attributes:
        key: of the metric, or `found`, or `object_` + a metric of the object table.
        value: over all images, as in the summary.
        per_image: one value per image, NaN where undefined: what the sign test compares.
        sums: images x 1, or images x 256 if the score is the maximum of a mean curve.
        counts: what the sums are divided by.
    """

    key: str
    value: float
    per_image: Values
    sums: Values
    counts: Values


def title(key: str) -> str:
    """Return how tables call a score."""
    if key in METRICS:
        return METRICS[key].title
    return "objects found" if key == "found" else f"{METRICS[OBJECT_SCORES[key]].title} of objects"


def direction(key: str) -> Direction:
    """Return whether more is better."""
    if key == "found":
        return "up"
    return METRICS[OBJECT_SCORES.get(key, key)].direction


def score_keys(evaluation: "Evaluation") -> tuple[str, ...]:
    """Return everything that can be resampled from the tables of a result."""
    kept = [key for key in evaluation.images.columns if key in METRICS and _has_sums(key)]
    objects = evaluation.objects
    return (*kept, *(key for key, name in OBJECT_SCORES.items() if objects[name].is_not_nan().any()))


def default_keys(available: Sequence[str]) -> tuple[str, ...]:
    """Return what is compared if nothing was asked for: the paper's columns and the objects found."""
    shown = tuple(key for key in (*PAPER_KEYS, "found") if key in available)
    return shown if set(shown) - {"found"} else tuple(available)


def chosen_keys(metrics: str | Sequence[str] | None, available: Sequence[str]) -> tuple[str, ...]:
    """Return the scores asked for, each of which must be available."""
    if metrics is None:
        return default_keys(available)
    keys = listed_keys(metrics)
    if keys == ("all",):
        return tuple(available)
    if keys == ("paper",):
        keys = PAPER_KEYS
    if not keys:
        raise UsageError("metrics is empty; name at least one, or pass None for the usual ones")
    for key in keys:
        if key in METRICS and not _has_sums(key):
            raise UsageError(
                f"{key} is the maximum of a mean curve that is not kept for each image, so it cannot be "
                "resampled; f_max and si_f_max can"
            )
        if key not in available and (key in METRICS or key in OBJECT_SCORES):
            raise InputError(f"the results have no {key}; evaluate again with this metric")
        check_known("metric", key, available)
    return tuple(dict.fromkeys(keys))


def read_score(evaluation: "Evaluation", key: str, order: NDArray[np.int64] | None = None) -> Score:
    """Read one score off the tables; `order` puts the images into another order."""
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
    """Return resamples x scores: each score on images drawn with replacement, as many as there are.

    All scores must be of the same images in the same order; every resample draws one set of images for
    all of them. NaN where a resample has no image on which the score is defined.
    """
    resamples = check_whole("resamples", resamples, least=1, most=_MOST)
    seed = check_whole("seed", seed, least=0)
    n_images = len(scores[0].per_image)
    rng = np.random.default_rng(seed)
    sums = np.concatenate([score.sums for score in scores], axis=1)
    counts, places = _distinct(np.concatenate([score.counts for score in scores], axis=1))
    starts = np.cumsum([0, *(score.sums.shape[1] for score in scores)])
    both = np.concatenate([sums, counts], axis=1)
    found = np.empty((resamples, len(scores)))
    at_once = max(1, _NUMBERS_AT_ONCE // n_images)
    with progress_bar("drawing images", resamples) as advance:
        for begin in range(0, resamples, at_once):
            rows = slice(begin, min(begin + at_once, resamples))
            product = _draw(rng, rows.stop - begin, n_images) @ both
            with np.errstate(invalid="ignore"):
                ratios = product[:, : sums.shape[1]] / product[:, sums.shape[1] :][:, places]
            for place, (first, last) in enumerate(pairwise(starts.tolist())):
                # fmax leaves NaN out, and is NaN only where nothing is defined
                found[rows, place] = np.fmax.reduce(ratios[:, first:last], axis=1)
            advance(rows.stop - begin)
    return found


def interval(values: Values) -> tuple[float, float]:
    """Return the middle 95 % of resampled values, NaN if none is defined."""
    defined = values[~np.isnan(values)]
    if not len(defined):
        return math.nan, math.nan
    low, high = np.quantile(defined, [0.025, 0.975])
    return float(low), float(high)


def _draw(rng: np.random.Generator, rows: int, n_images: int) -> Values:
    """How often each image was drawn, one row per resample."""
    drawn = rng.integers(0, n_images, size=(rows, n_images))
    drawn += np.arange(rows)[:, None] * n_images
    counts = np.bincount(drawn.ravel(), minlength=rows * n_images)
    return counts.reshape(rows, n_images).astype(np.float64)


def _distinct(columns: Values) -> tuple[Values, NDArray[np.int64]]:
    """Different columns, and for each column its place among them: most scores share theirs."""
    known: dict[bytes, int] = {}
    kept: list[Values] = []
    places = []
    for column in np.ascontiguousarray(columns.T):
        name = column.tobytes()
        if name not in known:
            known[name] = len(kept)
            kept.append(column)
        places.append(known[name])
    return np.stack(kept, axis=1), np.array(places)


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

"""Bootstrap over images: the values of a summary on images drawn with replacement, and their intervals.

Every score here is a function of sums over images. A resample is therefore a row of counts (how often
each image was drawn), and all resamples of all scores are one matrix product. Means over images and over
objects are ratios of two sums. So is every point of a mean curve, whose maximum is taken after the
product. Metrics of objects are computed from several sums of counts.

Intervals are those of the symmetric studentised bootstrap (Hall 1988), for scores and for differences
alike: in every resample, the deviation from the observed value is divided by its own standard error,
which comes from the influence of each image, and the 95 % quantile of these ratios gives the width.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sisod.analysis.groups import OBJECT_METRICS, is_found
from sisod.analysis.object_counts import (
    counts_matrix,
    is_summed,
    needs_predicted,
    no_predicted_objects,
)
from sisod.common.arguments import check_int
from sisod.common.exceptions import InputError, UsageError, shorten_list
from sisod.common.progress import progress_bar
from sisod.evaluation.results import StoredMetrics, require_metrics
from sisod.evaluation.rows import IMAGE_CURVES, split_counts
from sisod.scoring.families.family import Direction
from sisod.scoring.metrics import (
    METRIC_SETS,
    METRICS,
    PAPER_KEYS,
    arrow,
    check_metric,
    is_custom,
    listed_keys,
)

if TYPE_CHECKING:
    from sisod.evaluation.result import Evaluation
    from sisod.evaluation.results import Result

Values = NDArray[np.float64]
_MAX_RESAMPLES = 10_000_000  # all are kept in memory
_MAX_COUNTS = 8_000_000  # elements of a matrix of resamples at a time: 64 MB
_OBJECT_COLUMNS = {"found": "recall_binary", **{f"object_{key}": key for key in OBJECT_METRICS}}
# compared by default beside the paper's columns: what is found, and what that costs in false objects
_DEFAULT_OBJECTS = ("found", "object_f1", "false_objects", "bsi_f_binary")
COUNTS = ("n_predicted", "n_false", "n_found", "false_objects")  # not shares: they may exceed 1
# two keys of the same value; the first is also known of results without predicted objects
SAME_VALUE = {"found": "object_recall"}


class _ObjectScores(Mapping[str, str]):
    """Scores over all objects of a data set, equally weighted: key -> column of the object table.

    Boundary IoU has such a column if it was requested, and metrics of the user with a size-invariant
    form, which can be added at any time.
    """

    def __getitem__(self, key: str) -> str:
        if key in _OBJECT_COLUMNS:
            return _OBJECT_COLUMNS[key]
        column = key.removeprefix("object_")
        si_metric = METRICS.get(f"si_{column}")
        if column == key or si_metric is None or not si_metric.family.per_object:
            raise KeyError(key)
        return column

    def __iter__(self) -> Iterator[str]:
        yield from _OBJECT_COLUMNS
        yield from (
            f"object_{m.family.key}"
            for m in METRICS.values()
            if m.size_invariant and m.family.per_object
        )

    def __len__(self) -> int:
        return sum(1 for _ in self)


OBJECT_SCORES = _ObjectScores()


@dataclass(frozen=True, eq=False)
class Score:
    """One metric of one result, as sums over images.

    Attributes:
        key: a metric, `found`, or `object_` + a metric of the object table.
        value: the score over all images, as in the summary.
        per_image: one value per image, NaN where undefined; the sign test compares these.
        table: images x columns; the sums of the columns over images determine the score.
        function: sums, resamples x columns -> the score of each resample, NaN where undefined.
    """

    key: str
    value: float
    per_image: Values
    table: Values
    function: Callable[[Values], Values]


def title(key: str) -> str:
    """Return the title of a score in tables."""
    return _name(key, "title")


def heading(key: str) -> str:
    """Return the title of a score with the arrow of its better direction."""
    return f"{_name(key, 'title')} {arrow(OBJECT_SCORES.get(key, key))}".rstrip()


def symbol(key: str) -> str:
    """Return the heading of a score as papers print it, in LaTeX."""
    return f"{_name(key, 'symbol')} {arrow(OBJECT_SCORES.get(key, key))}".rstrip()


def direction(key: str) -> Direction:
    """Return whether a higher ("up") or a lower ("down") score is better, or neither ("none")."""
    return METRICS[OBJECT_SCORES.get(key, key)].better


def _name(key: str, form: str) -> str:
    key = SAME_VALUE.get(key, key)
    if key in METRICS:
        return str(getattr(METRICS[key], form))
    return f"{getattr(METRICS[OBJECT_SCORES[key]], form)} of objects"


def score_keys(evaluation: "Evaluation") -> tuple[str, ...]:
    """Return every score that can be resampled from the tables of a result."""
    metrics = [key for key in evaluation.images.columns if key in METRICS and _has_sums(key)]
    if evaluation.counts is None:
        metrics = [key for key in metrics if not is_summed(key)]
    objects = evaluation.objects
    columns = {key: name for key, name in OBJECT_SCORES.items() if name in objects.columns}
    return (*metrics, *(key for key, name in columns.items() if objects[name].is_not_nan().any()))


def default_keys(available: Sequence[str]) -> tuple[str, ...]:
    """Return the scores compared by default.

    They are the named set that was evaluated or else the paper's columns, what is found and invented,
    and metrics of the user.
    """
    if not set(PAPER_KEYS) & set(available):
        return tuple(available)
    custom = [key for key in available if key in METRICS and is_custom(key)]
    evaluated = {key for key in available if key in METRICS and key not in custom}
    first = next((keys for keys in map(_set_keys, METRIC_SETS) if set(keys) == evaluated), PAPER_KEYS)
    return (*(key for key in (*first, *_DEFAULT_OBJECTS) if key in available), *custom)


def _set_keys(name: str) -> tuple[str, ...]:
    """Return the scores of a named set that can be resampled: all but e_max."""
    return tuple(key for key in METRIC_SETS[name] if _has_sums(key))


def distinct_keys(keys: Sequence[str]) -> tuple[str, ...]:
    """Return keys without those that have the same value as another one.

    Example:
        >>> distinct_keys(["object_recall", "mae", "found"])
        ('mae', 'found')
    """
    same = {SAME_VALUE[key] for key in keys if key in SAME_VALUE}
    return tuple(key for key in keys if key not in same)


def chosen_keys(metrics: str | Sequence[str] | None, results: "Sequence[Result]") -> tuple[str, ...]:
    """Return the requested scores, each of which must be available in every result."""
    first, *others = (score_keys(result.evaluation) for result in results)
    available = tuple(key for key in first if all(key in other for other in others))
    if metrics is None:
        return default_keys(available)
    keys = listed_keys(metrics, known=OBJECT_SCORES)
    if keys == ("all",):
        return available
    if len(keys) == 1 and keys[0] in METRIC_SETS:
        keys = _set_keys(keys[0])
    if not keys:
        raise UsageError("metrics is empty; name at least one, or pass None for the default ones")
    for key in keys:
        if key not in available:
            _refuse_key(key, keys, results)
        check_metric(key, available)
    return tuple(dict.fromkeys(keys))


def _refuse_key(key: str, keys: Sequence[str], results: "Sequence[Result]") -> None:
    """Say why a known score is not available."""
    if key in METRICS and not _has_sums(key):
        raise UsageError(
            f"{key} is the maximum of a mean curve that is not saved for each image, so it cannot "
            "be resampled; use f_max or si_f_max"
        )
    for result in results:
        if needs_predicted(key) and result.evaluation.counts is None:
            raise no_predicted_objects(result.evaluation, key)
    stored = [
        StoredMetrics(
            r.dataset, r.method, score_keys(r.evaluation), r.evaluation.protocol, r.evaluation.run
        )
        for r in results
    ]
    if key in METRICS:
        require_metrics(stored, [key for key in keys if key in METRICS and _has_sums(key)])
    if key in OBJECT_SCORES:
        names = [result.name for result in stored if key not in result.keys]
        raise InputError(f"no object has a value of {key} in {shorten_list(names)}; leave it out")


def read_score(evaluation: "Evaluation", key: str, order: NDArray[np.int64] | None = None) -> Score:
    """Read one score from the tables of a result, its images sorted by `order`."""
    if order is None:
        order = np.arange(evaluation.images.height)
    if key in OBJECT_SCORES:
        return object_score(evaluation, key, order)
    per_image = evaluation.images[key].to_numpy()[order]
    if is_summed(key):
        family = METRICS[key].family
        widths, counts = counts_matrix(evaluation, curves=family.on_request)

        def value_of_counts(sums: Values) -> Values:
            return np.asarray(family.function(split_counts(sums, widths)))

        return Score(key, evaluation.summary[key], per_image, counts[order], value_of_counts)
    values = per_image[:, None]
    if METRICS[key].form == "max":
        values = evaluation.image_curves[_curve_name(key)].to_numpy().astype(np.float64)[order]
    defined = ~np.isnan(values)
    table = np.concatenate([np.where(defined, values, 0.0), defined], axis=1)
    return Score(key, evaluation.summary[key], per_image, table, _largest_mean)


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
    fewer than two images define the score.

    Args:
        scores: all of the same images in the same order.
        pairs: indices of two scores, whose difference (first minus second) gets an interval.
        resamples: number of resamples.
        seed: of the resampling.

    Returns:
        The values of `resample`, and an array of scores and pairs x (low, high).
    """
    sums = [score.table.sum(axis=0, keepdims=True) for score in scores]
    observed = [score.function(row)[0] for score, row in zip(scores, sums, strict=True)]
    # influence of an image: how much the value falls without it
    influences = [
        value - score.function(row - score.table)
        for score, row, value in zip(scores, sums, observed, strict=True)
    ]
    defined = [~np.isnan(score.per_image) for score in scores]
    bounds = [_bounds(score.key) for score in scores]
    for a, b in pairs:
        observed.append(observed[a] - observed[b])
        influences.append(influences[a] - influences[b])
        defined.append(defined[a] | defined[b])
        span = bounds[a][1] - bounds[a][0]
        bounds.append((-span, span))
    squares = np.nan_to_num(np.square(influences), nan=-1.0)  # NaN would spread
    columns = [replace(scores[0], table=row[:, None], function=np.ravel) for row in squares]
    drawn = resample([*scores, *columns], resamples, seed)
    ends = np.full((len(observed), 2), math.nan)
    for i, value in enumerate(observed):
        if squares[i].min() < 0 or (n_defined := int(defined[i].sum())) < 2:
            continue
        a, b = pairs[i - len(scores)] if i >= len(scores) else (i, -1)
        values = drawn[:, a] - (drawn[:, b] if i >= len(scores) else 0.0)
        width = _half_width(values - value, drawn[:, len(scores) + i], squares[i].sum(), n_defined)
        low, high = bounds[i]
        ends[i] = max(value - width, min(low, value)), min(value + width, max(high, value))
    return drawn[:, : len(scores)], ends


def _half_width(deviations: Values, squares: Values, square: float, n_images: int) -> float:
    """Half of an interval, from resampled deviations, and sums of squared influences."""
    student = _student_quantile(n_images - 1) * math.sqrt((n_images - 1) / n_images)
    variances = squares - n_images * (deviations / (n_images - 1)) ** 2
    known = variances > 1e-9 * square  # not where the same value was drawn throughout; NaN is not
    ratios = np.abs(deviations[known]) / np.sqrt(variances[known])
    quantile = float(np.quantile(ratios, 0.95)) if len(ratios) else 0.0
    return float(max(quantile, student) * math.sqrt(square))


def _student_quantile(freedom: int) -> float:
    """The 97.5 % quantile of Student's distribution, as a series (Fisher and Cornish 1960)."""
    z = NormalDist().inv_cdf(0.975)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return float(z + sum(term / freedom**power for power, term in enumerate(terms, start=1)))


def _bounds(key: str) -> tuple[float, float]:
    """The least and the greatest possible value of a score."""
    family = METRICS[OBJECT_SCORES.get(key, key)].family
    if family.kind == "custom":
        return -math.inf, math.inf
    least = -1.0 if family.key == "kappa" else 0.0
    return least, math.inf if key in COUNTS or family.key == "hce" else 1.0


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


def object_score(
    evaluation: "Evaluation",
    key: str,
    order: NDArray[np.int64],
    members: NDArray[np.bool_] | None = None,
) -> Score:
    """Read a score over objects, or over those of them that are `members`, its images sorted."""
    values = evaluation.objects[OBJECT_SCORES[key]].to_numpy()
    if key == "found":
        values = is_found(values)
    n_images = evaluation.images.height
    images = np.repeat(np.arange(n_images), evaluation.images["n_objects"].to_numpy())
    chosen = ~np.isnan(values) & (True if members is None else members)
    sums = np.bincount(images[chosen], weights=values[chosen], minlength=n_images).astype(np.float64)
    counts = np.bincount(images[chosen], minlength=n_images).astype(np.float64)
    value = float(sums.sum() / counts.sum()) if counts.any() else math.nan
    sums, counts = sums[order], counts[order]
    per_image = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return Score(key, value, per_image, np.stack([sums, counts], axis=1), _largest_mean)


def _largest_mean(sums: Values) -> Values:
    """Largest mean of each row; the sums are in the first half of the columns, their counts follow."""
    parts, counts = np.split(sums, 2, axis=1)
    # fmax ignores NaN, and is NaN only where nothing is defined
    return np.asarray(np.fmax.reduce(parts / np.where(counts == 0, np.nan, counts), axis=1))


def _has_sums(key: str) -> bool:
    return METRICS[key].form != "max" or _curve_name(key) in IMAGE_CURVES


def _curve_name(key: str) -> str:
    metric = METRICS[key]
    return f"si_{metric.family.key}" if metric.size_invariant else metric.family.key

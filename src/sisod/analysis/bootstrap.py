"""Bootstrap over images: the values of a summary on images drawn with replacement.

Every score here is a function of sums over images. A resample is therefore a row of counts (how often
each image was drawn), and all resamples of all scores are one matrix product. Means over images and over
objects are ratios of two sums. So is every point of a mean curve, whose maximum is taken after the
product. Metrics of objects are computed from several sums of counts.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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
from sisod.common.arguments import check_whole
from sisod.common.errors import InputError, UsageError, shorten_list
from sisod.common.progress import progress_bar
from sisod.evaluation.results import StoredMetrics, require_metrics
from sisod.evaluation.rows import IMAGE_CURVES, split_counts
from sisod.scoring.metrics import (
    METRIC_SETS,
    METRICS,
    PAPER_KEYS,
    Direction,
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
    if key in METRICS:
        return METRICS[key].title
    return (
        title(SAME_VALUE["found"])
        if key == "found"
        else f"{METRICS[OBJECT_SCORES[key]].title} of objects"
    )


def direction(key: str) -> Direction:
    """Return whether a higher ("up") or a lower ("down") score is better, or neither ("none")."""
    return METRICS[OBJECT_SCORES.get(key, key)].better


def heading(key: str) -> str:
    """Return the title of a score with the arrow of its better direction."""
    return f"{title(key)} {arrow(OBJECT_SCORES.get(key, key))}".rstrip()


def symbol(key: str) -> str:
    """Return the heading of a score as papers print it, in LaTeX."""
    if key in OBJECT_SCORES and key != "found":
        name = f"{METRICS[OBJECT_SCORES[key]].symbol} of objects"
    else:
        name = METRICS[SAME_VALUE.get(key, key)].symbol
    return f"{name} {arrow(OBJECT_SCORES.get(key, key))}".rstrip()


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
        return _object_score(evaluation, key, order)
    per_image = evaluation.images[key].to_numpy()[order]
    if is_summed(key):
        family = METRICS[key].family
        widths, counts = counts_matrix(evaluation, curves=family.on_request)
        function = partial(_value_of_counts, family.function, widths)
        return Score(key, evaluation.summary[key], per_image, counts[order], function)
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
    resamples = check_whole("resamples", resamples, least=1, most=_MAX_RESAMPLES)
    seed = check_whole("seed", seed, least=0)
    n_images = len(scores[0].per_image)
    rng = np.random.default_rng(seed)
    table, columns = share_columns(scores)
    values = np.empty((resamples, len(scores)))
    chunk = block_size(table)
    with progress_bar("resampling", resamples) as advance:
        for start in range(0, resamples, chunk):
            rows = slice(start, min(start + chunk, resamples))
            sums = _draw(rng, rows.stop - start, n_images) @ table
            for index, score in enumerate(scores):
                values[rows, index] = score.function(sums[:, columns[index]])
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


def share_columns(scores: Sequence[Score]) -> tuple[Values, list[NDArray[np.int64]]]:
    """Return the distinct columns of all scores' tables, and each score's columns among them.

    Most scores share some columns, such as the numbers of objects.
    """
    known: dict[bytes, int] = {}
    distinct: list[Values] = []
    columns = []
    for score in scores:
        indices = []
        for column in np.ascontiguousarray(score.table.T):
            content = column.tobytes()
            if content not in known:
                known[content] = len(distinct)
                distinct.append(column)
            indices.append(known[content])
        columns.append(np.array(indices))
    return np.stack(distinct, axis=1), columns


def block_size(table: Values) -> int:
    """Return how many rows of resamples to compute at a time, for little memory."""
    longest: int = max(table.shape)
    return max(1, _MAX_COUNTS // longest)


def _object_score(evaluation: "Evaluation", key: str, order: NDArray[np.int64]) -> Score:
    values = evaluation.objects[OBJECT_SCORES[key]].to_numpy()
    if key == "found":
        values = is_found(values)
    n_images = evaluation.images.height
    members = np.repeat(np.arange(n_images), evaluation.images["n_objects"].to_numpy())
    defined = ~np.isnan(values)
    sums = np.bincount(members[defined], weights=values[defined], minlength=n_images).astype(np.float64)
    counts = np.bincount(members[defined], minlength=n_images).astype(np.float64)
    value = float(sums.sum() / counts.sum()) if counts.any() else math.nan
    sums, counts = sums[order], counts[order]
    per_image = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return Score(key, value, per_image, np.stack([sums, counts], axis=1), _largest_mean)


def _largest_mean(sums: Values) -> Values:
    """Largest mean of each row; the sums are in the first half of the columns, their counts follow."""
    parts, counts = np.split(sums, 2, axis=1)
    # fmax ignores NaN, and is NaN only where nothing is defined
    return np.asarray(np.fmax.reduce(parts / np.where(counts == 0, np.nan, counts), axis=1))


def _value_of_counts(function: Callable[..., Values], widths: dict[str, int], sums: Values) -> Values:
    return function(split_counts(sums, widths))


def _has_sums(key: str) -> bool:
    return METRICS[key].form != "max" or _curve_name(key) in IMAGE_CURVES


def _curve_name(key: str) -> str:
    metric = METRICS[key]
    return f"si_{metric.family.key}" if metric.size_invariant else metric.family.key

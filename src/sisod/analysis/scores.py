"""Scores of a result by name, and what is needed to compute them again on other images.

Every score is a function of sums over images: means over images and over objects are ratios of two sums,
and so is every point of a mean curve, whose maximum is taken afterwards. Metrics of objects are computed
from several sums of counts.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sisod.analysis.groups import OBJECT_METRICS, is_found
from sisod.analysis.object_counts import (
    counts_matrix,
    is_summed,
    needs_predicted,
    predicted_tables,
)
from sisod.analysis.seeds import mean_and_deviation
from sisod.common.exceptions import InputError, UsageError, shorten_list
from sisod.evaluation.result import Evaluation
from sisod.evaluation.results import Result, require_metrics
from sisod.evaluation.rows import IMAGE_CURVES, split_counts
from sisod.scoring.arrays import Values
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

_OBJECT_COLUMNS = {"found": "recall_binary", **{f"object_{key}": key for key in OBJECT_METRICS}}
# compared by default beside the paper's columns: what is found, and what that costs in false objects
_DEFAULT_OBJECTS = ("found", "object_f1", "false_objects", "bsi_f_binary")
COUNTS = ("n_predicted", "n_false", "n_found", "false_objects")  # not shares: they may exceed 1
# two keys of the same value; the first is also known of results without predicted objects
SAME_VALUE = {"found": "object_recall"}
_TRUTH_COLUMNS = ["image", "height", "width", "n_objects"]


@dataclass(frozen=True, eq=False)
class Score:
    """One metric of one result, as sums over images.

    Attributes:
        key: a metric, `found`, or `object_` + a metric of the object table.
        value: the score over all images, as in the summary.
        per_image: one value per image, NaN where undefined; the sign test compares these.
        table: images x columns; the sums of the columns over images determine the score.
        function: sums, resamples x columns -> the score of each resample, NaN where undefined.
        seeds: value of each run, if the score is a mean over the runs of a method with several seeds.
    """

    key: str
    value: float
    per_image: Values
    table: Values
    function: Callable[[Values], Values]
    seeds: tuple[float, ...] = ()


def object_scores() -> dict[str, str]:
    """Return the scores over all objects, equally weighted: key -> column of the object table.

    Boundary IoU has such a column if it was requested, and metrics of the user with a size-invariant
    form, which can be added at any time.
    """
    families = [metric.family for metric in METRICS.values() if metric.size_invariant]
    return _OBJECT_COLUMNS | {f"object_{f.key}": f.key for f in families if f.per_object}


def title(key: str) -> str:
    """Return the title of a score in tables."""
    return _name(key, "title")


def heading(key: str) -> str:
    """Return the title of a score with the arrow of its better direction."""
    return f"{_name(key, 'title')} {arrow(object_scores().get(key, key))}".rstrip()


def symbol(key: str) -> str:
    """Return the heading of a score as papers print it, in LaTeX."""
    return f"{_name(key, 'symbol')} {arrow(object_scores().get(key, key))}".rstrip()


def direction(key: str) -> Direction:
    """Return whether a higher ("up") or a lower ("down") score is better, or neither ("none")."""
    return METRICS[object_scores().get(key, key)].better


def _name(key: str, form: str) -> str:
    key = SAME_VALUE.get(key, key)
    if key in METRICS:
        return str(getattr(METRICS[key], form))
    return f"{getattr(METRICS[object_scores()[key]], form)} of objects"


def score_keys(evaluation: Evaluation) -> tuple[str, ...]:
    """Return every score that can be resampled from the tables of a result."""
    metrics = [key for key in evaluation.images.columns if key in METRICS and _has_sums(key)]
    if evaluation.counts is None:
        metrics = [key for key in metrics if not is_summed(key)]
    objects = evaluation.objects
    columns = {key: name for key, name in object_scores().items() if name in objects.columns}
    return (*metrics, *(key for key, name in columns.items() if objects[name].is_not_nan().any()))


def default_keys(available: Sequence[str]) -> tuple[str, ...]:
    """Return the scores compared by default.

    They are the named set that was evaluated or else the paper's columns, found and false objects,
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


def chosen_keys(metrics: str | Sequence[str] | None, results: Sequence[Result]) -> tuple[str, ...]:
    """Return the requested scores, each of which must be available in every result."""
    first, *others = (score_keys(result.evaluation) for result in results)
    available = tuple(key for key in first if all(key in other for other in others))
    if metrics is None:
        return default_keys(available)
    keys = listed_keys(metrics, known=object_scores())
    if keys == ("all",):
        return available
    if len(keys) == 1 and keys[0] in METRIC_SETS:
        keys = _set_keys(keys[0])
    if not keys:
        raise UsageError("metrics is empty; name at least one, or pass None for the default ones")
    for key in keys:
        if key in METRICS and not _has_sums(key):
            raise UsageError(
                f"{key} is the maximum of a mean curve that is not saved for each image, so it cannot "
                "be resampled; use f_max or si_f_max"
            )
        if needs_predicted(key):
            for result in results:
                predicted_tables(result.evaluation, key)
    stored = [(result.dataset, result.method, score_keys(result.evaluation)) for result in results]
    require_metrics(stored, [key for key in keys if key in METRICS])
    for key in keys:
        check_metric(key, available)
    return tuple(dict.fromkeys(keys))


def read_score(evaluation: Evaluation, key: str, order: NDArray[np.int64] | None = None) -> Score:
    """Read one score from the tables of a result, its images sorted by `order`."""
    if order is None:
        order = np.arange(evaluation.images.height)
    if key in object_scores():
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


def object_score(
    evaluation: Evaluation,
    key: str,
    order: NDArray[np.int64],
    members: NDArray[np.bool_] | None = None,
) -> Score:
    """Read a score over objects, or over those of them that are `members`, its images sorted."""
    values = evaluation.objects[object_scores()[key]].to_numpy()
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


def mean_score(runs: Sequence[Score], copies: int) -> Score:
    """Return the mean of a score over the runs of a method, of which each is there `copies` times.

    With copies, two methods with different numbers of runs have tables of equal shape, whose rows can
    be exchanged. A run on which the score is undefined does not count.
    """
    if len(runs) * copies == 1:
        return runs[0]
    repeated = [run for run in runs for _ in range(copies)]

    def mean_of_runs(sums: Values) -> Values:
        parts = np.split(sums, len(repeated), axis=1)
        return _mean_of_defined([run.function(p) for run, p in zip(repeated, parts, strict=True)])

    return Score(
        runs[0].key,
        mean_and_deviation([run.value for run in runs])[0],
        _mean_of_defined([run.per_image for run in runs]),
        np.concatenate([run.table for run in repeated], axis=1),
        mean_of_runs,
        tuple(run.value for run in runs) if len(runs) > 1 else (),
    )


def _mean_of_defined(values: Sequence[Values]) -> Values:
    stacked = np.stack(values)
    counts = (~np.isnan(stacked)).sum(axis=0)
    return np.asarray(np.nansum(stacked, axis=0) / np.where(counts == 0, np.nan, counts))


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


def bounds(key: str) -> tuple[float, float]:
    """The least and the greatest possible value of a score."""
    family = METRICS[object_scores().get(key, key)].family
    if family.kind == "custom":
        return -math.inf, math.inf
    least = -1.0 if family.key == "kappa" else 0.0
    return least, math.inf if key in COUNTS or family.key == "hce" else 1.0


def check_same_images(evaluations: Mapping[str, Evaluation]) -> dict[str, NDArray[np.int64]]:
    """Return the order that sorts the images of each result by name.

    Raises:
        InputError: the results are of different images, protocols or ground truths.
    """
    if not evaluations:
        raise UsageError("there are no results to compare; pass at least one")
    (first, base), *_ = evaluations.items()
    orders, truths = {}, {}
    for name, evaluation in evaluations.items():
        images = evaluation.images
        orders[name] = images["image"].arg_sort().to_numpy().astype(np.int64)
        truths[name] = {image: rest for image, *rest in images[:, _TRUTH_COLUMNS].rows()}
        problem = ""
        if only := sorted(truths[first].keys() ^ truths[name].keys()):
            problem = f"images: {len(only)} only in one of them ({shorten_list(only)})"
        elif evaluation.protocol != base.protocol:
            problem = f"protocols, {base.protocol.name!r} and {evaluation.protocol.name!r}"
        elif differ := sorted(i for i, truth in truths[first].items() if truths[name][i] != truth):
            problem = f"ground truths: {len(differ)} images differ in size or number of objects"
            problem += f" ({shorten_list(differ)})"
        if problem:
            raise InputError(
                f"{first!r} and {name!r} are results of different {problem}; evaluate both on the same"
            )
    return orders

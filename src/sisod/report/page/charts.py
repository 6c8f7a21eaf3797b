"""The data of the page's charts: curves and groups of each method, as JSON for its script."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

import numpy as np

from sisod.analysis.bootstrap import number_intervals
from sisod.analysis.groups import FOUND, SizeKind, by_size, found_curve, number_groups
from sisod.analysis.scores import title
from sisod.analysis.seeds import group_seeds, mean_and_deviation
from sisod.evaluation.result import Evaluation
from sisod.evaluation.results import Result
from sisod.report.drawing.curves import CURVES, object_points
from sisod.report.drawing.groups import GroupScores, false_by_size
from sisod.report.missing import has_curve
from sisod.scoring.metrics import METRICS

_DIGITS = 4  # as printed in tables
# measure -> the score of objects of a size, and of images with a number of objects
_OF_SIZES = {"mae": "object_mae", "f_mean": "object_f_mean", "found": "found"}
_OF_IMAGES = {"mae": "si_mae", "f_mean": "si_f_mean"}
# measure -> its name on a button, by size (a mean over objects) and by number (a mean over images)
MEASURES = {
    name: (METRICS[name].title, title(_OF_SIZES[name]), METRICS[key].title)
    for name, key in _OF_IMAGES.items()
} | {"found": (title("found"),) * 3}


def chart_data(results: Sequence[Result]) -> dict[str, Any]:
    """Return the charts of one data set for the page's script: method -> its curves and groups.

    Args:
        results: those of one data set; of runs named NAME@SEED, the means are those of one method.

    Returns:
        For each method `curves` (of the curve table), `sizes` (kind of groups -> their names, numbers of
        objects and scores), `numbers` (the same of images by number of objects), `coverage` (found
        objects by the share of pixels that is required) and `objects` (None without predicted ones).
    """
    charts = {result.method: _charts(result.evaluation) for result in results}
    return {m: mean_chart([charts[run] for run in runs]) for m, runs in group_seeds(charts).items()}


def mean_chart(charts: Sequence[Any]) -> Any:
    """Return the mean of numbers in the same places of several charts; None where none is defined.

    Args:
        charts: of the same groups; what is equal in all of them stays as it is.

    Example:
        >>> mean_chart([{"groups": ["1"], "mae": [0.25, None]}, {"groups": ["1"], "mae": [0.75, None]}])
        {'groups': ['1'], 'mae': [0.5, None]}
    """
    first = charts[0]
    if all(chart == first for chart in charts):
        return first
    if isinstance(first, dict):
        common = [key for key in first if all(chart and key in chart for chart in charts)]
        return {key: mean_chart([chart[key] for chart in charts]) for key in common}
    if isinstance(first, list):
        return [mean_chart(values) for values in zip(*charts, strict=True)]
    (mean,) = rounded([mean_and_deviation([math.nan if v is None else v for v in charts])[0]])
    return mean


def _charts(evaluation: Evaluation) -> dict[str, Any]:
    keys = {key for x, y, _, _ in CURVES.values() for key in (x, y)} - {"threshold"}
    names = [name for name in evaluation.curves.columns if name.removeprefix("si_") in keys]
    sizes = {}
    for kind in get_args(SizeKind):
        scores = {name: GroupScores.by_size(kind, evaluation, key) for name, key in _OF_SIZES.items()}
        sizes[kind] = _groups(by_size(evaluation, groups=kind)["group"].to_list(), scores)
    by_number = {
        name: GroupScores.by_number(evaluation, key)
        for name, key in _OF_IMAGES.items()
        if key in evaluation.images.columns
    }
    found = _found_by_number(evaluation)
    return {
        "curves": {name: rounded(evaluation.curves[name]) for name in names},
        "sizes": sizes,
        "numbers": _groups(list(found.names), by_number | {"found": found}),
        "coverage": rounded(found_curve(evaluation)["found"]),
        "objects": None if evaluation.counts is None else _objects(evaluation),
    }


def _found_by_number(evaluation: Evaluation) -> GroupScores:
    """Found objects as a share of those of the images with so many; also without predicted objects."""
    n_objects = evaluation.images["n_objects"].to_numpy()
    names, members = number_groups(n_objects)
    of_objects = np.repeat(members, n_objects)  # the object table is in the images' order
    found = evaluation.objects["recall_binary"].to_numpy() >= FOUND
    with np.errstate(invalid="ignore"):  # a group without objects
        n_found = np.bincount(of_objects[found], minlength=len(names))
        values = n_found / np.bincount(of_objects, minlength=len(names))
    counts = np.bincount(members, minlength=len(names))
    return GroupScores(values, number_intervals(evaluation, "found"), counts, tuple(names))


def _groups(names: list[str], scores: Mapping[str, GroupScores]) -> dict[str, Any]:
    """Groups with their number of objects or images, and scores with intervals."""
    return {
        "groups": names,
        "counts": scores["found"].counts.tolist(),
        "values": {name: rounded(one.values) for name, one in scores.items()},
        "intervals": {name: [rounded(ends) for ends in one.intervals] for name, one in scores.items()},
    }


def _objects(evaluation: Evaluation) -> dict[str, Any]:
    """Recall and precision of objects at every threshold, if saved; false objects per image by size."""
    charts: dict[str, Any] = {"false": rounded(false_by_size(evaluation))}
    if has_curve(evaluation):
        charts["all"] = [rounded(values) for values in object_points(evaluation)]
        charts["small"] = [rounded(values) for values in object_points(evaluation, "_small")]
    return charts


def rounded(values: Iterable[float | None]) -> list[float | None]:
    """Return numbers rounded as printed; None for NaN, which JSON does not have.

    Example:
        >>> rounded([0.123456, float("nan"), -0.0])
        [0.1235, None, 0.0]
    """
    return [None if v is None or math.isnan(v) else round(v, _DIGITS) + 0.0 for v in values]

"""The data of the page's charts: curves and groups of each method, as JSON for its script."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

import numpy as np

from sisod.analysis.bootstrap import number_intervals
from sisod.analysis.groups import FOUND, SizeKind, by_size, found_curve, number_groups
from sisod.analysis.scores import title
from sisod.evaluation.result import Evaluation
from sisod.evaluation.results import Result
from sisod.report.drawing.curves import CURVES, object_points, seed_mean
from sisod.report.drawing.groups import GroupScores, false_by_size, mean_scores
from sisod.report.missing import has_curve
from sisod.report.style import FigureRequest
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
    (methods,) = FigureRequest(results).by_dataset.values()
    return {method: _charts(runs) for method, runs in methods.items()}


def _charts(runs: Sequence[Evaluation]) -> dict[str, Any]:
    first = runs[0]
    keys = {key for x, y, _, _ in CURVES.values() for key in (x, y)} - {"threshold"}
    common = [name for name in first.curves.columns if all(name in run.curves.columns for run in runs)]
    sizes = {}
    for kind in get_args(SizeKind):
        scores = {
            name: mean_scores([GroupScores.by_size(kind, run, key) for run in runs])
            for name, key in _OF_SIZES.items()
        }
        sizes[kind] = _groups(by_size(first, groups=kind)["group"].to_list(), scores)
    by_number = {
        name: mean_scores([GroupScores.by_number(run, key) for run in runs])
        for name, key in _OF_IMAGES.items()
        if all(key in run.images.columns for run in runs)
    }
    found = mean_scores([_found_by_number(run) for run in runs])
    return {
        "curves": {
            name: rounded(seed_mean([run.curves[name].to_numpy() for run in runs]))
            for name in common
            if name.removeprefix("si_") in keys
        },
        "sizes": sizes,
        "numbers": _groups(list(found.names), by_number | {"found": found}),
        "coverage": rounded(seed_mean([found_curve(run)["found"].to_numpy() for run in runs])),
        "objects": None if any(run.counts is None for run in runs) else _objects(runs),
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


def _objects(runs: Sequence[Evaluation]) -> dict[str, Any]:
    """Recall and precision of objects at every threshold, if saved; false objects per image by size."""
    charts: dict[str, Any] = {"false": rounded(seed_mean([false_by_size(run) for run in runs]))}
    for name, suffix in (("all", ""), ("small", "_small")) if all(map(has_curve, runs)) else ():
        points = seed_mean([object_points(run, suffix) for run in runs])
        charts[name] = [rounded(values) for values in points]
    return charts


def rounded(values: Iterable[float | None]) -> list[float | None]:
    """Return numbers rounded as printed; None for NaN, which JSON does not have.

    Example:
        >>> rounded([0.123456, float("nan"), -0.0])
        [0.1235, None, 0.0]
    """
    return [None if v is None or math.isnan(v) else round(float(v), _DIGITS) + 0.0 for v in values]

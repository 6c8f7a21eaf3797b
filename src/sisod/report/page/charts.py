"""The data of the page's charts: curves and groups of each method, as JSON for its script."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, get_args

import numpy as np

from sisod.analysis.groups import FOUND, SizeKind, by_number, by_size, found_curve, number_groups
from sisod.analysis.scores import title
from sisod.evaluation.result import Evaluation
from sisod.evaluation.results import Result
from sisod.report.drawing.curves import CURVES
from sisod.report.objects import HALF_INDEX, false_by_size, has_curve, object_points
from sisod.scoring.metrics import METRICS

_DIGITS = 4  # as printed in tables
_IMAGE_SCORES = {"mae": "si_mae", "f_mean": "si_f_mean"}  # score of objects -> score of images
# score -> its name on a button, by size (a mean over objects) and by number (a mean over images)
MEASURES = {
    score: (METRICS[score].title, title(f"object_{score}"), METRICS[key].title)
    for score, key in _IMAGE_SCORES.items()
} | {"found": (title("found"),) * 3}


def chart_data(results: Sequence[Result]) -> dict[str, Any]:
    """Return the charts of one data set for the page's script: method -> its curves and groups.

    Args:
        results: those of one data set.
    """
    return {result.method: _charts(result.evaluation) for result in results}


def _charts(evaluation: Evaluation) -> dict[str, Any]:
    keys = {key for x, y, _, _ in CURVES.values() for key in (x, y)} - {"threshold"}
    names = [name for name in evaluation.curves.columns if name.removeprefix("si_") in keys]
    sizes = {}
    for kind in get_args(SizeKind):
        table = by_size(evaluation, groups=kind)
        values = {key: rounded(table[key]) for key in ("mae", "f_mean", "found")}
        counts = table["objects"].to_list()
        sizes[kind] = {"groups": table["group"].to_list(), "counts": counts, "values": values}
    return {
        "curves": {name: rounded(evaluation.curves[name]) for name in names},
        "sizes": sizes,
        "numbers": _numbers(evaluation),
        "coverage": rounded(found_curve(evaluation)["found"]),
        "objects": None if evaluation.counts is None else _objects(evaluation),
    }


def _numbers(evaluation: Evaluation) -> dict[str, Any]:
    """Scores of images by their number of objects; found objects as a share of those of the images."""
    keys = [key for key in _IMAGE_SCORES.values() if key in evaluation.images.columns]
    table = by_number(evaluation, metrics=keys)
    values = {score: rounded(table[key]) for score, key in _IMAGE_SCORES.items() if key in keys}
    n_objects = evaluation.images["n_objects"].to_numpy()
    names, members = number_groups(n_objects)
    of_objects = np.repeat(members, n_objects)  # the object table is in the images' order
    found = evaluation.objects["recall_binary"].to_numpy() >= FOUND
    with np.errstate(invalid="ignore"):  # a group without objects
        n_found = np.bincount(of_objects[found], minlength=len(names))
        values["found"] = rounded(n_found / np.bincount(of_objects, minlength=len(names)))
    return {
        "groups": list(names),
        "counts": table["images"].to_list(),
        "objects": table["objects"].to_list(),
        "values": values,
    }


def _objects(evaluation: Evaluation) -> dict[str, Any]:
    """Object recall and object precision at every threshold, and false objects per image by size.

    Without a curve, the values at one half are the only ones.
    """
    known = slice(None) if has_curve(evaluation) else slice(HALF_INDEX, HALF_INDEX + 1)
    return {
        "all": [rounded(values[known]) for values in object_points(evaluation)],
        "small": [rounded(values[known]) for values in object_points(evaluation, "_small")],
        "false": rounded(false_by_size(evaluation)),
    }


def rounded(values: Iterable[float | None]) -> list[float | None]:
    """Return numbers rounded as printed; None for NaN, which JSON does not have.

    Example:
        >>> rounded([0.123456, float("nan"), -0.0])
        [0.1235, None, 0.0]
    """
    return [None if v is None or math.isnan(v) else round(v, _DIGITS) + 0.0 for v in values]

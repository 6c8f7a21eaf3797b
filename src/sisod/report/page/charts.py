"""The data of the page's charts: curves and groups of each method, as JSON for its script."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, get_args

import numpy as np

from sisod.analysis.groups import FOUND, SizeKind, by_number, by_size, found_curve
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
    """Return the charts of one data set by method."""
    return {result.method: _charts(result.evaluation) for result in results}


def _charts(evaluation: Evaluation) -> dict[str, Any]:
    columns = sorted({key for x, y, _, _ in CURVES.values() for key in (x, y) if key != "threshold"})
    curves = {
        prefix + key: rounded(evaluation.curves[prefix + key])
        for prefix in ("", "si_")
        for key in columns
        if prefix + key in evaluation.curves.columns
    }
    return {
        "curves": curves,
        "sizes": {kind: _sizes(evaluation, kind) for kind in get_args(SizeKind)},
        "numbers": _numbers(evaluation),
        "coverage": rounded(found_curve(evaluation)["found"]),
        "objects": None if evaluation.counts is None else _objects(evaluation),
    }


def _sizes(evaluation: Evaluation, kind: SizeKind) -> dict[str, Any]:
    table = by_size(evaluation, groups=kind)
    return {
        "groups": table["group"].to_list(),
        "counts": table["objects"].to_list(),
        "values": {key: rounded(table[key]) for key in ("mae", "f_mean", "found")},
    }


def _numbers(evaluation: Evaluation) -> dict[str, Any]:
    keys = [key for key in _IMAGE_SCORES.values() if key in evaluation.images.columns]
    table = by_number(evaluation, metrics=keys)
    groups = table["group"].to_list()
    values = {score: rounded(table[key]) for score, key in _IMAGE_SCORES.items() if key in keys}
    values["found"] = _found_by_number(evaluation, groups)
    return {
        "groups": groups,
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


def _found_by_number(evaluation: Evaluation, groups: Sequence[str]) -> list[float | None]:
    """Share of objects found, by the number of objects of their image."""
    numbers = evaluation.images["n_objects"].to_numpy()
    group = np.minimum(np.repeat(numbers, numbers), 5)  # the object table is in the images' order
    found = evaluation.objects["recall_binary"].to_numpy() >= FOUND
    shares = []
    for name in groups:
        members = found[group == int(name.removesuffix("+"))]
        shares.append(float(members.mean()) if len(members) else math.nan)
    return rounded(shares)


def rounded(values: Iterable[float | None]) -> list[float | None]:
    """Return numbers rounded as printed; None for NaN, which JSON does not have."""
    return [None if v is None or math.isnan(v) else round(v, _DIGITS) + 0.0 for v in values]

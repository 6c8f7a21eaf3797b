"""What the analyses do not accept: type of the exception, and the offending name in its message."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from helpers.simulated_results import simulated

import sisod
from sisod import analysis
from sisod.common.exceptions import InputError, UsageError

A = simulated(np.array([0.1, 0.2]), names=["x", "y"])
OTHER_IMAGES = simulated(np.array([0.1, 0.2]), names=["y", "z"])
OTHER_TRUTHS = simulated(
    np.array([0.1, 0.2]), names=["x", "y"], n_objects=np.array([0, 1]), recall=np.ones(1)
)
OTHER_PROTOCOL = dataclasses.replace(A, protocol=sisod.PROTOCOLS["paper"])


def scored(protocol: str) -> sisod.Evaluation:
    gt = np.zeros((20, 20), dtype=bool)
    gt[2:9, 2:9] = True
    evaluator = sisod.Evaluator(protocol=protocol)
    for name in "ab":
        evaluator.update(gt, gt, name=name)
    return evaluator.result()


DEFAULT, OFFICIAL = scored("default"), scored("official")
NO_OBJECTS = "the protocol 'official' has no predicted objects"

USAGE: dict[str, list[Callable[[], object]]] = {
    "expected two or more methods to compare, got 1": [lambda: analysis.compare_many({"a": A})],
    "names must be two different strings": [lambda: analysis.compare(A, A, names=("A", "A"))],
    "resamples must be at least 1, got 0": [lambda: analysis.compare(A, A, resamples=0)],
    "unknown metric 'maee'; did you mean 'mae'": [lambda: analysis.compare(A, A, metrics="maee")],
    "iou_max is the maximum of a mean curve": [lambda: analysis.compare(A, A, metrics="iou_max")],
    "metrics is empty": [lambda: analysis.compare(A, A, metrics=[])],
    "unknown size groups 'logs'; did you mean 'log'": [lambda: analysis.by_size(DEFAULT, groups="logs")],
    "quantiles need shares": [lambda: analysis.size_edges("quantile")],
    "groups must be two or more increasing edges": [
        lambda: analysis.by_size(DEFAULT, groups=[0.5, 0.1]),
        lambda: analysis.error_breakdown(DEFAULT, by="size", groups=[1, 0]),
    ],
    "unknown image-level metric 'f_max'": [lambda: analysis.by_number(A, metrics=["f_max"])],
    "expected two or more metrics": [lambda: analysis.rank_changes({"a": A}, keys=("mae",))],
    "cannot be ranked by n_predicted": [
        lambda: analysis.rank_changes({"a": DEFAULT}, ("mae", "n_predicted"))
    ],
    "there are no results": [lambda: analysis.rank_changes({})],
    "by must be None or 'size'": [lambda: analysis.error_breakdown(DEFAULT, by="number")],  # type: ignore[arg-type]
}
INPUT: dict[str, list[Callable[[], object]]] = {
    r"2 only in one of them \(x, z\)": [lambda: analysis.compare(A, OTHER_IMAGES)],
    r"different ground truths: 1 images .*\(y\)": [lambda: analysis.compare(A, OTHER_TRUTHS)],
    "protocols, .default. and .paper.": [lambda: analysis.compare(A, OTHER_PROTOCOL)],
    r"2 of 2 results have no si_mae \(A, B\)": [lambda: analysis.compare(A, A, metrics="si_mae")],
    r"1 of 1 results have no mse \(a\)": [lambda: analysis.rank_changes({"a": A}, keys=("mae", "mse"))],
    "no curve of objects": [lambda: analysis.object_curve(DEFAULT)],
    NO_OBJECTS: [
        lambda: analysis.predicted_by_size(OFFICIAL),
        lambda: analysis.object_curve(OFFICIAL),
        lambda: analysis.bootstrap_intervals(OFFICIAL, "pq"),
        lambda: analysis.by_number(OFFICIAL, metrics=["bsi_f_binary"]),
        lambda: analysis.compare(OFFICIAL, OFFICIAL, metrics="n_predicted"),
        lambda: analysis.error_breakdown(OFFICIAL),
    ],
}


@pytest.mark.parametrize("text", [*USAGE, *INPUT])
def test_wrong_arguments(text: str) -> None:
    for call in USAGE.get(text) or INPUT[text]:
        with pytest.raises(InputError, match=text) as caught:
            call()
        assert isinstance(caught.value, UsageError) == (text in USAGE)
        assert "\n" not in str(caught.value)

"""Invalid arguments are refused where they are given, never scored as something else."""

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers.messages import check_one_sentence

import sisod
from sisod import analysis
from sisod.analysis import bootstrap, comparison
from sisod.common.arguments import (
    check_choice,
    check_number,
    short_repr,
    unknown_name_message,
)
from sisod.common.exceptions import UsageError
from sisod.data.scenes import make_scenes
from sisod.paper import theory
from sisod.scoring.metrics import find_metrics
from sisod.scoring.protocols import PROTOCOLS, find_protocol
from sisod.scoring.size_invariant import make_separable, weight_map

GT = np.zeros((8, 8), dtype=bool)
GT[1:4, 1:4] = GT[6, 6] = True
WRONG: list[Any] = [None, "", "x", [], (), b"x", object(), math.nan, math.inf, -1, 1e99, 1j]
# field of a protocol -> values that are refused, beside those that are wrong everywhere
REFUSED: dict[str, list[Any]] = {
    "name": [None, "", " ", 3, [], b"x", math.nan],
    "kind": [*WRONG, "box", "Boxes", True],
    "connectivity": [*WRONG, 1, 6, "8", 8.0, True, np.float64(8), np.array([8, 4])],
    "min_area": [*WRONG, -0.1, 1.5, "0.1", True, np.bool_(True), np.array([1])],
    "alpha": [*(one for one in WRONG if one != 1e99), "Ratio", True, -0.5, np.array([1.0])],
    "normalize": [*WRONG, "min-max", "minmax ", "None", True],
    "gt_level": [*WRONG, 0, 256, 300, 128.0, "128", True],
    "first_threshold": [*WRONG, 2, 1.0, True, "0"],
    "keep_ties": [*WRONG, 0, 1, "false"],
    "detections": [*WRONG, 0, 1, "true"],
    "released_code": [*WRONG, 0, 1, True, "si-sod"],
}
ACCEPTED: dict[str, list[Any]] = {
    "name": ["mine", "mein Protokoll"],
    "kind": ["boxes", "voronoi"],
    "connectivity": [4, 8, np.int64(8)],
    "min_area": [0, 25, 0.0, 0.5, 1, 1.0, np.int32(9), np.float32(0.25), 10**6],
    "alpha": ["ratio", "union", 0, 0.0, 1, 2.5, 1e6, np.float64(3), np.int8(1)],
    "normalize": ["minmax", "none"],
    "gt_level": [1, 128, 255, np.uint8(200)],
    "first_threshold": [0, 1, np.int64(1)],
    "keep_ties": [True, False, np.bool_(True)],
    "released_code": [False, "SI-SOD", "SI_Metric"],
}


def check_message(error: BaseException) -> None:
    assert "got" in str(error), error
    check_one_sentence(str(error), longest=300)


@pytest.mark.parametrize("field", REFUSED)
def test_a_protocol_refuses_what_it_would_not_follow(field: str) -> None:
    assert set(REFUSED) == set(sisod.Protocol.__dataclass_fields__)
    for value in REFUSED[field]:
        with pytest.raises((ValueError, TypeError), match=field) as caught:
            sisod.Protocol(**{"name": "mine", field: value})
        check_message(caught.value)


@pytest.mark.parametrize("field", ACCEPTED)
def test_a_protocol_takes_what_makes_sense_and_can_be_written(field: str) -> None:
    for value in ACCEPTED[field]:
        protocol = sisod.Protocol(**{"name": "mine", field: value})
        assert getattr(protocol, field) == value
        json.dumps(vars(protocol))  # as every result does


def result(**options: Any) -> sisod.Evaluation:
    evaluator = sisod.Evaluator(metrics=["mae", "si_mae"], **options)
    evaluator.update(GT, GT, name="a")
    evaluator.update(~GT, GT, name="b")
    return evaluator.result()


DONE = result()
MEAN = make_separable(lambda pred, gt: float(np.mean(pred != gt)))
CALLS: dict[str, tuple[Callable[[Any], object], list[Any], str]] = {
    "protocol": (lambda v: sisod.score(GT, GT, protocol=v), [3, None, [], b"paper", "papr"], "protocol"),
    "metrics": (
        lambda v: sisod.score(GT, GT, metrics=v),
        [3, [3], b"mae", [["mae"]], "", "mea", ["mae", None], [], math.nan, {"mae": 1, 2: 3}],
        "metric",
    ),
    "partition": (
        lambda v: sisod.score(GT, GT, partition=v), ["boxes", 1, [[0, 0, 1, 1]], GT], "partition",
    ),
    "merge": (lambda v: sisod.Evaluator().merge(v), [None, 3, sisod.Evaluator], "Evaluator"),
    "names of images": (lambda v: sisod.evaluate("p", "g", names=v), ["im1"], "names"),
    "resamples": (
        lambda v: bootstrap.bootstrap_intervals(DONE, resamples=v),
        [0, -1, 1.5, True, "10", math.nan, 10**15, None],
        "resamples",
    ),
    "seed": (
        lambda v: bootstrap.bootstrap_intervals(DONE, resamples=1, seed=v),
        [-1, 0.5, "1", None, True, [1]],
        "seed",
    ),
    "names of two": (
        lambda v: comparison.compare(DONE, DONE, resamples=1, names=v),
        [("a",), ("a", "a"), ("a", 2), ("a", "b", "c"), ()],
        "names",
    ),
    "size groups": (
        lambda v: analysis.by_size(DONE, groups=v),
        ["x", [], [1], [1, 0], [0, 0], [math.nan, 1], None, 3, [[0, 1]]],
        "groups",
    ),
    "shares": (
        lambda v: analysis.size_edges("quantile", v), [[-1.0], [2.0], [math.nan], [[0.1]]], "shares",
    ),
    "metrics by number": (lambda v: analysis.by_number(DONE, metrics=v), ["x", [1], 3], "metric"),
    "rows": (lambda v: analysis.kendall_tau([1, 2, 3], v), [[1], [1, 2], 1.0, [[1, 2, 3]]], "shapes"),
    "alpha of weights": (
        lambda v: weight_map([[0, 0, 1, 1]], (2, 2), alpha=v), REFUSED["alpha"], "alpha",
    ),
    "boxes of weights": (
        lambda v: weight_map(v, (4, 4)),
        [[[0.5, 0, 2, 2]], [[0, 0, 1, 1, 2]] * 4, [0, 0, 1, 1], [[0, 0, 9, 9]], [["a"] * 4]],
        "boxes",
    ),
    "shape of weights": (
        lambda v: weight_map([[0, 0, 1, 1]], v), [(2,), (2, 2.5), (0, 2), (2, 2, 2)], "shape",
    ),
    "normalize of weights": (
        lambda v: weight_map([[0, 0, 1, 1]], (2, 2), normalize=v), ["none", 0, None], "normalize",
    ),
    "count of scenes": (make_scenes, [-1, 1.5, True, "3", None], "count"),
    "seed of scenes": (lambda v: make_scenes(1, seed=v), [-1, 0.5, "1", None], "seed"),
    "shape of scenes": (lambda v: make_scenes(1, shape=v), [(9, 1), (9.5, 9), "ab"], "shape"),
    "pred of another shape": (lambda v: MEAN(v, GT), [np.zeros((8, 9)), np.zeros(8), 3.0], "pred"),
    "parts of another shape": (
        lambda v: MEAN(GT, GT, partition=v), [3, "boxes", sisod.partition(GT[:4])], "partition",
    ),
    "mu": (theory.separable_lipschitz, [-1, math.nan, "1", None, True], "mu"),
    "samples": (
        lambda v: theory.generalization_bound(n_samples=v, n_pixels=1, lipschitz=1, rademacher=1),
        [0, math.nan, math.inf, "9", None],
        "n_samples",
    ),
    "metric to decompose": (lambda v: theory.decompose(GT, GT, metric=v), [[], 3, None, "f"], "metric"),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_an_argument_is_refused_in_a_sentence(name: str) -> None:
    call, values, text = CALLS[name]
    for value in values:
        with pytest.raises((ValueError, TypeError), match=text) as caught:
            call(value)
        assert "\n" not in str(caught.value)
        assert type(caught.value).__module__.startswith(("sisod", "builtins"))
        last = caught.traceback[-1]
        assert "sisod" in str(last.path), f"{value!r} is refused by {last.path}, not by us"


def test_metrics_come_as_text_list_or_array_alike() -> None:
    keys = ("mae", "si_mae")
    for metrics in ("mae,si_mae", list(keys), keys, np.array(keys), dict.fromkeys(keys), iter(keys)):
        assert tuple(sisod.score(GT, GT, metrics=metrics)) == keys  # type: ignore[arg-type]
    assert find_metrics(["paper"]) == find_metrics("paper")
    assert analysis.by_number(DONE, metrics="mae").columns[-2:] == ["mae", "n_mae"]


def test_a_protocol_of_numpy_numbers_is_the_same_protocol() -> None:
    mine = sisod.Protocol("default", connectivity=np.int64(8), gt_level=np.int64(128))  # type: ignore[arg-type]
    assert find_protocol(mine) == PROTOCOLS["default"]
    assert hash(mine) == hash(PROTOCOLS["default"])


def test_values_are_shown_in_one_short_line() -> None:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    for value in ("two\nlines", np.zeros((3, 3)), "x" * 10**6, 10**6000, list(range(10**4)), nested):
        assert len(short_repr(value)) <= 80
        assert "\n" not in short_repr(value)
    assert len(unknown_name_message("metric", "x" * 10**6, ["mae"])) < 200
    with pytest.raises(UsageError, match="must be 1, got True"):
        check_choice("x", True, (1,))
    with pytest.raises(UsageError, match="a number above 0 and at most 1, got 2"):
        check_number("x", 2, most=1, above=True)

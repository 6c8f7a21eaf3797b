"""Metrics of the user in the engine: the same numbers as the built-in ones, and clear refusals."""

import functools
import math
from typing import Any

import numpy as np
import pytest
from helpers.custom_metrics import OVERLAP, PIXEL_ERROR, pixel_error, soft_recall
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import sisod
from sisod.common.exceptions import UsageError
from sisod.scoring.custom import CustomMetricError
from sisod.scoring.metrics import find_metrics

GT = np.zeros((10, 12), dtype=bool)
GT[1:3, 1:3] = True
GT[5:9, 4:11] = True
PRED = np.random.default_rng(0).integers(20, 220, GT.shape, dtype=np.uint8)


def value(metric: Any, pred: NDArray[np.generic] = PRED, **options: Any) -> float:
    scores = sisod.score(pred, GT, metrics=["mae", metric], **options)
    return scores[next(key for key in scores if key != "mae")]


# the same numbers


@st.composite
def pairs(draw: st.DrawFn) -> tuple[NDArray[np.generic], NDArray[np.bool_]]:
    shape = draw(st.tuples(st.integers(1, 12), st.integers(1, 12)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    gt = rng.random(shape) < draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    dtype = draw(st.sampled_from(["uint8", "uint16", "float32", "float64"]))
    pred = rng.random(shape)
    if dtype.startswith("u"):
        return (pred * np.iinfo(dtype).max).astype(dtype) // 2 + 2, gt
    return pred.astype(dtype), gt


@given(pairs(), st.sampled_from(["default", "paper", "cc", "pysodmetrics", "infrared"]))
@settings(max_examples=60, deadline=None)
def test_an_own_error_equals_mae_and_an_own_overlap_equals_iou(
    pair: tuple[NDArray[np.generic], NDArray[np.bool_]], protocol: str
) -> None:
    built_in = ("mae", "si_mae", "iou_binary", "si_iou_binary")
    scores = sisod.score(*pair, protocol=protocol, metrics=[*built_in, PIXEL_ERROR, OVERLAP])
    own = ("pixel_error", "si_pixel_error", "overlap", "si_overlap")
    for key, own_key in zip(built_in, own, strict=True):
        assert scores[own_key] == pytest.approx(scores[key], abs=1e-12, nan_ok=True), own_key


def test_by_hand() -> None:
    """Two objects of one pixel in six: p is stretched from 51..204 to 0..1."""
    gt = np.array([[True, False, True, False, False, False]])
    pred = np.array([[51, 51, 204, 51, 51, 51]], dtype=np.uint8)
    metric = sisod.CustomMetric(soft_recall, si="composite")
    assert sisod.score(pred, gt, metrics=[metric]) == {"soft_recall": 0.5, "si_soft_recall": 0.5}
    plain = sisod.score(pred, gt, protocol="default+normalize=none", metrics=[soft_recall])
    assert plain == {"soft_recall": pytest.approx(0.5, abs=1e-15)}  # (0.2 + 0.8) / 2


def test_built_in_values_do_not_change_beside_it() -> None:
    alone = sisod.score(PRED, GT, metrics="all")
    beside = sisod.score(PRED, GT, metrics=[*alone, PIXEL_ERROR])
    np.testing.assert_equal({key: beside[key] for key in alone}, alone)  # to the bit


def test_undefined_frames_and_images_are_nan() -> None:
    metric = sisod.CustomMetric(
        lambda p, _: math.nan if p.shape == (2, 2) else 1.0, key="x", si="composite"
    )
    assert sisod.score(PRED, GT, metrics=[metric]) == {"x": 1.0, "si_x": 1.0}
    nothing = sisod.score(PRED, np.zeros_like(GT), metrics=[metric])
    assert nothing["x"] == 1.0
    assert math.isnan(nothing["si_x"])


def test_the_function_sees_p_and_a_boolean_gt_that_it_cannot_change() -> None:
    seen = []

    def look(p: NDArray[np.float64], gt: NDArray[np.bool_]) -> float:
        seen.append((p.dtype.name, gt.dtype.name, float(p.min()), float(p.max()), p.shape))
        return 0.0

    for pred in (PRED, PRED.astype(np.uint16) * 257, (PRED / 255).astype(np.float32)):
        sisod.score(pred, GT.astype(np.uint8) * 255, metrics=[look])
    assert seen == [("float64", "bool", 0.0, 1.0, GT.shape)] * 3

    def write(p: NDArray[np.float64], _: object) -> float:
        p[0, 0] = 0
        return 0.0

    with pytest.raises(CustomMetricError, match="read-only"):
        sisod.score(PRED, GT, metrics=[write])

    def leave(_: object, __: object) -> float:
        raise SystemExit("no GPU")

    with pytest.raises(CustomMetricError, match="raised SystemExit: no GPU"):
        sisod.score(PRED, GT, metrics=[leave])


# how it is named


def test_a_registered_metric_is_an_entry_of_metrics() -> None:
    metric = sisod.CustomMetric(pixel_error, title="Error", direction="down", si="separable")
    assert sisod.register_metric(metric) == ("pixel_error", "si_pixel_error")
    entry = sisod.METRICS["si_pixel_error"]
    assert (entry.title, entry.direction, entry.size_invariant) == ("SI-Error", "down", True)
    scores = sisod.score(PRED, GT, metrics="si_mae,si_pixel_error")
    assert scores["si_pixel_error"] == pytest.approx(scores["si_mae"], abs=1e-12)


def test_it_is_computed_only_if_it_is_named() -> None:
    before = [find_metrics(choice) for choice in (None, "all", "paper")]
    sisod.register_metric(PIXEL_ERROR)
    assert [find_metrics(choice) for choice in (None, "all", "paper")] == before


def test_a_bare_function_has_its_name_and_no_direction() -> None:
    assert set(sisod.score(PRED, GT, metrics=soft_recall)) == {"soft_recall"}
    assert sisod.METRICS["soft_recall"].direction == "none"
    assert sisod.METRICS["soft_recall"].title == "soft_recall"


def test_the_newest_function_of_a_key_is_used_and_an_evaluator_keeps_its_own() -> None:
    first = sisod.Evaluator(metrics=[sisod.CustomMetric(lambda _p, _gt: 1.0, key="x", si="composite")])
    second = sisod.Evaluator(metrics=[sisod.CustomMetric(lambda _p, _gt: 2.0, key="x")])
    for evaluator in (first, second):
        evaluator.update(PRED, GT)
    assert first.result().summary == {"x": 1.0, "si_x": 1.0}
    assert second.result().summary == sisod.score(PRED, GT, metrics="x") == {"x": 2.0}
    assert first.result().run["custom"]["x"]["si"] == "composite"
    with pytest.raises(ValueError, match="of the same protocol and metrics"):
        first.merge(second)


def test_a_function_is_imported_by_its_name() -> None:
    scores = sisod.score(PRED, GT, metrics="mae,helpers.custom_metrics:PIXEL_ERROR")
    assert scores["pixel_error"] == pytest.approx(scores["mae"], abs=1e-12)
    assert value("helpers.custom_metrics:overlap") == overlap_value()


def overlap_value() -> float:
    return sisod.score(PRED, GT, metrics=["iou_binary"])["iou_binary"]


# refusals, each one sentence


@pytest.mark.parametrize(
    "key",
    ["mae", "iou", "MAE", "ap", "height", "error", "paper", "si_mine", "n_mae", "a,b", "x" * 61, 3],
)
def test_keys_that_are_taken_or_no_names(key: Any) -> None:
    with pytest.raises(UsageError) as caught:
        sisod.CustomMetric(pixel_error, key=key)
    assert repr(key)[:20] in str(caught.value)


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"direction": "higher"}, "direction must be 'up', 'down' or 'none', got 'higher'"),
        ({"si": True}, "si .* True"),
        ({"title": "MAE"}, "title .*'MAE'"),
        ({"title": "two\nlines"}, "title .*two"),
        ({"function": 3}, "function of p and gt, got 3"),
        ({"function": PIXEL_ERROR}, "function of p and gt, got CustomMetric"),
        ({"function": lambda _p, _gt: 0.0}, r"'<lambda>'; give one with sisod.CustomMetric\("),
        ({"function": functools.partial(pixel_error)}, "got ''; give one"),
    ],
)
def test_settings_that_are_refused(settings_: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        sisod.CustomMetric(**({"function": pixel_error} | settings_))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        (math.inf, "returned inf; expected a finite number, or NaN where it is undefined"),
        (None, "returned None"),
        ("0.5", "returned '0.5'"),
        (True, "returned True"),
        (np.zeros(3), r"returned array\(\[0., 0., 0.\]\)"),
        (IndexError("no pixel"), "raised IndexError: no pixel; it must return NaN"),
    ],
)
def test_anything_but_a_number_is_one_sentence(returned: object, text: str) -> None:
    def mine(_p: object, _gt: object) -> Any:
        if isinstance(returned, Exception):
            raise returned
        return returned

    evaluator = sisod.Evaluator(metrics=[mine])
    with pytest.raises(CustomMetricError, match=text) as caught:
        evaluator.update(PRED, GT, name="im007")
    assert str(caught.value).startswith("image 'im007': the metric 'mine' (function ")
    assert len(evaluator) == 0
    for accepted in (1, np.float32(0.5), np.array(0.25), math.nan):
        returned = accepted
        assert value(mine) == pytest.approx(float(accepted), nan_ok=True)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (":f", "':f' does not name a function; expected package.module:function"),
        ("a b:f", "does not name a function"),
        ("os:", "does not name a function"),
        ("no_such_module:f", "No module named 'no_such_module'; install it, or start in the folder"),
        ("helpers.no_such:f", "No module named 'helpers.no_such'"),
        (
            "helpers.custom_metrics:overlapp",
            "unknown function of 'helpers.custom_metrics' 'overlapp'; did you mean 'overlap'",
        ),
        ("math:pi", "a metric must be a function of p and gt, got 3.14"),
    ],
)
def test_names_that_cannot_be_imported(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        sisod.score(PRED, GT, metrics=["mae", name])
    assert "\n" not in str(caught.value)

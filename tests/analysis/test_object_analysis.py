"""Predicted objects in comparisons and groups: by hand, against evaluations from scratch, properties."""

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import sisod
from sisod.analysis import (
    Comparison,
    bootstrap_intervals,
    by_number,
    by_size,
    compare,
    object_curve,
    predicted_by_size,
    rank_changes,
    size_edges,
)
from sisod.analysis.bootstrap import resample
from sisod.analysis.object_counts import counts_matrix, sum_counts
from sisod.analysis.scores import distinct_keys, read_score, score_keys
from sisod.evaluation.rows import split_counts
from sisod.scoring.metrics import METRICS
from sisod.scoring.protocols import PROTOCOLS, Protocol

Pair = tuple[NDArray[np.floating[Any]], NDArray[np.bool_]]
few = settings(deadline=None, max_examples=8)  # each evaluates images at 49 thresholds
PLAIN = Protocol("plain", normalize="none")
OBJECT_KEYS = [key for key, metric in METRICS.items() if metric.family.kind == "objects"]
KEYS = [key for key in OBJECT_KEYS if not METRICS[key].family.detections]


def result_of(
    pairs: Iterable[Pair],
    *,
    metrics: str | Sequence[str] | None = KEYS,
    protocol: str | Protocol = PLAIN,
) -> sisod.Evaluation:
    evaluator = sisod.Evaluator(protocol=protocol, metrics=metrics)
    for pred, gt in pairs:
        evaluator.update(pred, gt)
    return evaluator.result()


def squares(*columns: int, n_columns: int = 40) -> NDArray[np.bool_]:
    """Squares of 3 x 3 pixels in a row, 10 x 40 pixels."""
    mask = np.zeros((10, n_columns), dtype=bool)
    for column in columns:
        mask[2:5, column : column + 3] = True
    return mask


def pair_of(predicted: NDArray[np.bool_], true: NDArray[np.bool_]) -> Pair:
    return 0.9 * predicted, true


FOUND_ONE = pair_of(squares(2), squares(2))
MISSED_ONE = pair_of(squares(20), squares(2))  # and a false one
FOUND_TWO_OF_THREE = pair_of(squares(2, 10, 30), squares(2, 10, 20))  # and a false one
EMPTY = pair_of(squares(20), squares())  # a false one


def random_pairs(seed: int, n_images: int) -> list[Pair]:
    """Smooth maps and masks with none to several objects each."""
    rng = np.random.default_rng(seed)

    def field(spread: float) -> NDArray[np.float64]:
        smooth = cv2.GaussianBlur(rng.random((30, 40)), (0, 0), spread)
        return np.asarray((smooth - smooth.min()) / (smooth.max() - smooth.min()))

    pairs = []
    for _ in range(n_images):
        gt = field(2.0) > rng.choice([0.65, 0.75, 0.85, 1.1])
        pairs.append((np.clip(0.6 * field(1.5) + 0.5 * gt - 0.1, 0, 1), gt))
    return pairs


def row(comparison: Comparison, metric: str) -> dict[str, Any]:
    return comparison.table.filter(metric=metric).row(0, named=True)


# --- bootstrap ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["default", "infrared"])
def test_resamples_are_evaluations_from_scratch(protocol: str) -> None:
    """Each resample is evaluated again as a data set of its own, pixels and all."""
    pairs = random_pairs(3, 5)
    keys = KEYS if protocol == "default" else OBJECT_KEYS
    result = result_of(pairs, metrics=keys, protocol=protocol)
    drawn = resample([read_score(result, key) for key in keys], 8, seed=5)
    for line, chosen in zip(drawn, np.random.default_rng(5).integers(0, 5, (8, 5)), strict=True):
        again = result_of([pairs[i] for i in chosen], metrics=keys, protocol=protocol)
        for key, value in zip(keys, line.tolist(), strict=True):
            assert value == pytest.approx(again.summary[key], rel=1e-12, nan_ok=True), key


@few
@given(st.integers(0, 10_000), st.integers(1, 6))
def test_values_are_those_of_the_summary_to_the_last_bit(seed: int, n_images: int) -> None:
    result = result_of(random_pairs(seed, n_images))
    table = bootstrap_intervals(result, KEYS, resamples=20)
    assert table["metric"].to_list() == KEYS
    np.testing.assert_array_equal(table["value"].to_numpy(), [result.summary[key] for key in KEYS])
    widths, counts = counts_matrix(result, curves=True)
    sums = split_counts(sum_counts(counts), widths)
    for key in KEYS:
        np.testing.assert_array_equal(METRICS[key].family.function(sums), result.summary[key], key)
    if n_images == 1:  # nothing is known of other images
        assert np.isnan(table.select("low", "high").to_numpy()).all()


def test_sign_test_compares_the_values_of_single_images() -> None:
    """B is better on two images of one object, A on one image with many: the sum of objects decides."""
    many = squares(2, 8, 14, 20, 26, 32)
    true = [squares(2), squares(2), many, squares()]
    a = result_of(zip([0.0 * true[0], 0.0 * true[1], 0.9 * many, 0.0 * many], true, strict=True))
    b = result_of(zip([0.9 * true[0], 0.9 * true[1], 0.0 * many, 0.0 * many], true, strict=True))
    line = row(compare(a, b, metrics="object_recall", resamples=20), "object_recall")
    assert (line["value_a"], line["value_b"]) == (6 / 8, 2 / 8)
    # the image without objects has no recall and is left out
    assert (line["a_wins"], line["b_wins"], line["ties"]) == (1, 2, 0)


def test_a_metric_without_a_better_direction() -> None:
    a, b = result_of([FOUND_TWO_OF_THREE] * 4), result_of([FOUND_ONE] * 3 + [FOUND_TWO_OF_THREE])
    b = dataclasses.replace(b, images=b.images.with_columns(n_objects=a.images["n_objects"]))
    found = compare(a, b, metrics="n_predicted", resamples=20)
    line = row(found, "n_predicted")
    assert (line["value_a"], line["value_b"], line["difference"]) == (3, 1.5, 1.5)
    assert line["low"] < 1.5 < line["high"]
    assert (line["a_wins"], line["b_wins"], line["ties"]) == (0, 0, 0)
    for key in ("a_leads", "b_leads", "p", "p_holm"):
        assert math.isnan(line[key])
    cells = found.grid(everything=True).rows[0]
    assert cells[0] == "Predicted objects"
    assert cells[5:] == ("-",) * 7


def test_object_recall_is_compared_under_one_name() -> None:
    """`found` and `object_recall` are the same number."""
    result = result_of(random_pairs(1, 3))
    for metrics in ("all", "found,object_recall", "object_recall,found"):
        comparison = compare(result, result, metrics=metrics, resamples=4)
        assert [row[0] for row in comparison.grid().rows].count("Object recall ↑") == 1
        assert row(comparison, "found")["value_a"] == result.summary["object_recall"]
    alone = compare(result, result, metrics="object_recall", resamples=4)
    assert alone.table["metric"].to_list() == ["object_recall"]
    few = result_of(random_pairs(1, 3), metrics=["pq", "object_recall"])  # no metric of the paper
    assert compare(few, few, resamples=4).table["metric"].to_list().count("object_recall") == 0


# --- groups -------------------------------------------------------------------------------------------


def test_by_number_by_hand() -> None:
    result = result_of([FOUND_ONE, MISSED_ONE, FOUND_TWO_OF_THREE, EMPTY])
    table = by_number(result, metrics=["object_recall", "object_precision", "false_objects", "n_found"])
    assert table["group"].to_list() == ["0", "1", "2", "3", "4", "5+"]
    assert table["images"].to_list() == [1, 2, 0, 1, 0, 0]
    nan = math.nan
    expected = {
        "object_recall": [nan, 1 / 2, nan, 2 / 3, nan, nan],
        "object_precision": [0, 1 / 2, nan, 2 / 3, nan, nan],
        "false_objects": [1, 1 / 2, nan, 1, nan, nan],
        "n_found": [0, 1 / 2, nan, 2, nan, nan],
    }
    for key, values in expected.items():
        assert table[key].to_list() == pytest.approx(values, nan_ok=True), key
    assert table["n_object_recall"].to_list() == [0, 2, 0, 1, 0, 0]


@pytest.mark.parametrize("seed", range(2))
def test_groups_are_evaluations_of_their_images(seed: int) -> None:
    """To the last bit; and the groups of a data set add up to it."""
    pairs = random_pairs(seed, 8)
    result = result_of(pairs)
    table = by_number(result)
    numbers = result.images["n_objects"].to_list()
    for line in table.iter_rows(named=True):
        group = int(line["group"].removesuffix("+"))
        members = [pair for pair, n in zip(pairs, numbers, strict=True) if min(n, 5) == group]
        assert line["images"] == len(members)
        values = result_of(members).summary if members else dict.fromkeys(KEYS, math.nan)
        for key in KEYS:
            np.testing.assert_array_equal(line[key], values[key], key)
    for key in KEYS:
        assert table[f"n_{key}"].sum() == result.defined[key]
    per_image, n_images = table["false_objects"].to_numpy(), table["images"].to_numpy()
    weighted = np.where(n_images > 0, per_image * n_images, 0).sum() / n_images.sum()
    assert weighted == pytest.approx(result.summary["false_objects"])


def test_predicted_by_size_by_hand() -> None:
    """400 pixels: 9 are 2.25 %, 40 are 10 %, on the edge of the second group."""
    pred = 0.9 * squares(2, 10)
    pred[6:10, 20:30] = 0.9
    gt = squares(2)
    gt[6:8, 20:30] = True  # half of the large one
    table = predicted_by_size(result_of([(pred, gt)]))
    assert table.columns == ["group", "low", "high", "predicted", "false", "object_precision"]
    assert table["group"].to_list()[:2] == ["0-10 %", "10-20 %"]
    assert table["predicted"].to_list() == [2, 1, *[0] * 8]
    assert table["false"].to_list() == [1, 0, *[0] * 8]
    assert table["object_precision"].to_list() == pytest.approx([0.5, 1.0] + [math.nan] * 8, nan_ok=True)
    whole = result_of([(np.ones((4, 4)), np.ones((4, 4), dtype=bool))])
    assert predicted_by_size(whole, groups="log")["predicted"].to_list() == [0] * 7 + [1]  # closed
    nothing = result_of([(np.zeros((4, 4)), np.ones((4, 4), dtype=bool))])
    assert predicted_by_size(nothing)["predicted"].to_list() == [0] * 10


@few
@given(st.integers(0, 10_000), st.sampled_from(["paper", "log", "quantile", (0.001, 0.01, 0.05)]))
def test_predicted_by_size_is_that_of_a_slow_loop(seed: int, kind: Any) -> None:
    result = result_of(random_pairs(seed, 4))
    assert result.predicted is not None
    rows = list(result.predicted.iter_rows(named=True))
    table = predicted_by_size(result, groups=kind)
    edges = kind if isinstance(kind, tuple) else size_edges(kind, [row["share"] for row in rows])
    assert table["low"].to_list() == list(edges[:-1])
    for index, line in enumerate(table.iter_rows(named=True)):
        low, high, last = edges[index], edges[index + 1], index == len(edges) - 2
        inside = [r for r in rows if low <= r["share"] < high or (last and r["share"] == high)]
        assert line["predicted"] == len(inside)
        assert line["false"] == sum(r["false"] for r in inside)
        share = sum(r["precision"] >= 0.5 for r in inside) / len(inside) if inside else math.nan
        assert line["object_precision"] == pytest.approx(share, nan_ok=True)


@few
@given(st.integers(0, 10_000))
def test_groups_split_at_one_percent_are_the_small_metrics(seed: int) -> None:
    result = result_of(random_pairs(seed, 3))
    small = predicted_by_size(result, groups=[0, 0.01, 1])["object_precision"][0]
    np.testing.assert_array_equal(small, result.summary["object_precision_small"])
    whole = predicted_by_size(result, groups=[0, 1])
    np.testing.assert_array_equal(whole["object_precision"][0], result.summary["object_precision"])
    n_images = result.images.height
    assert whole["predicted"][0] == round(result.summary["n_predicted"] * n_images)
    assert whole["false"][0] == round(result.summary["n_false"] * n_images)
    found = by_size(result, groups=[0, 0.01, 1])["found"][0]
    np.testing.assert_array_equal(found, result.summary["object_recall_small"])


# --- the curve ----------------------------------------------------------------------------------------


def test_object_curve_by_hand() -> None:
    """Two objects of two up to one half, then one up to logit 1.1; a false one up to logit -1.1."""
    pred = 0.75 * squares(2) + 0.5 * squares(10) + 0.25 * squares(30)
    curve = object_curve(result_of([(pred, squares(2, 10))]))
    assert curve.columns == [
        "threshold", "recall", "precision", "f1", "recall_small", "precision_small", "f1_small",
    ]  # fmt: skip
    threshold = curve["threshold"].to_numpy()
    np.testing.assert_allclose(np.log(threshold / (1 - threshold)), np.linspace(-12, 12, 49), atol=1e-9)
    assert curve["recall"].to_list() == [1.0] * 24 + [0.5] * 3 + [0.0] * 22
    precision = [2 / 3] * 22 + [1.0] * 5 + [math.nan] * 22
    assert curve["precision"].to_list() == pytest.approx(precision, nan_ok=True)
    f1 = [0.8] * 22 + [1.0] * 2 + [2 / 3] * 3 + [math.nan] * 22
    assert curve["f1"].to_list() == pytest.approx(f1, nan_ok=True)
    assert curve["recall_small"].is_nan().all()  # nothing is below 1 %


@pytest.mark.parametrize("seed", range(3))
def test_points_of_the_curve_are_evaluations_of_binary_maps(seed: int) -> None:
    pairs = random_pairs(seed, 4)
    keys = ["object_f1_max", "object_f1_max_small", "object_ap"]
    result = result_of(pairs, metrics=keys)
    curve = object_curve(result)
    names = ("recall", "precision", "f1", "recall_small", "precision_small", "f1_small")
    metrics = [f"object_{name}" for name in names]
    for line in curve[::3].iter_rows(named=True):
        binary = [((pred > line["threshold"]).astype(np.float64), gt) for pred, gt in pairs]
        expected = result_of(binary, metrics=metrics).summary
        for name in names:
            np.testing.assert_array_equal(line[name], expected[f"object_{name}"], name)
    for name, key in (("f1", "object_f1_max"), ("f1_small", "object_f1_max_small")):
        assert curve[name].fill_nan(None).max() == result.summary[key]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_metric_survives_every_analysis(name: str) -> None:
    result = result_of(random_pairs(9, 3), metrics="all", protocol=name)
    comparison = compare(result, result, metrics="all", resamples=4)
    assert comparison.table["metric"].to_list() == [*distinct_keys(score_keys(result))]
    assert comparison._repr_html_()
    for line in comparison.table.iter_rows(named=True):  # a method ties with itself
        assert (line["a_wins"], line["b_wins"]) == (0, 0)
        assert all(
            line[key] == 0 or math.isnan(line[key]) for key in ("difference", "a_leads", "b_leads")
        )
        assert line["p"] == 1 or math.isnan(line["p"])
    assert by_number(result).height in (5, 6)
    keys = ["mae", *(key for key in result.summary if key in OBJECT_KEYS and key != "n_predicted")]
    if len(keys) > 1:
        assert rank_changes({"a": result, "b": result}, keys=keys).table.height == 2

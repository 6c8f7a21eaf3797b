"""Intervals, leads and sign tests: by hand, against slow loops, by simulation, against SciPy."""

import json
import math
from collections.abc import Sequence

import numpy as np
import pytest
import scipy.stats
from helpers.simulated_results import mean_of, simulated, slow_interval
from hypothesis import example, given, settings
from hypothesis import strategies as st

import sisod
from sisod.analysis.bootstrap import bootstrap_intervals, resample
from sisod.analysis.comparison import Comparison, compare, compare_many
from sisod.analysis.scores import read_score
from sisod.analysis.significance import holm, sign_test


def row(comparison: Comparison, metric: str) -> dict[str, float]:
    return comparison.table.filter(metric=metric).row(0, named=True)


# --- coverage -----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("n_images", [8, 15])
def test_equal_methods_are_rarely_told_apart(n_images: int) -> None:
    """Skewed errors, objects found and heights of curves, of two methods that are equally good."""
    rng = np.random.default_rng(n_images)
    trials = 400
    false = dict.fromkeys(("mae", "found", "f_max"), 0)
    covered = false.copy()
    for trial in range(trials):
        hard, easy = rng.gamma(1.0, 0.05, n_images), rng.beta(4, 1, n_images)
        numbers = rng.geometric(0.4, n_images)
        results = [
            simulated(
                hard * rng.lognormal(0, 0.5, n_images),
                n_objects=numbers,
                recall=np.repeat(easy, numbers) * rng.uniform(0, 1, int(numbers.sum())) ** 0.3,
                level=easy * rng.beta(4, 1, n_images),
            )
            for _ in range(2)
        ]
        found = compare(results[0], results[1], metrics=list(false), resamples=200, seed=trial)
        for line in found.table.iter_rows(named=True):
            false[line["metric"]] += line["verdict"] != "undecided"
            covered[line["metric"]] += line["low"] <= 0 <= line["high"]
    assert sum(false.values()) <= 0.06 * 3 * trials  # of one metric, 6 % is within chance of 5 %
    assert n_images < 15 or min(covered.values()) >= 0.93 * trials


@pytest.mark.parametrize("key", ["mae", "found", "f_max"])
def test_intervals_are_those_of_a_slow_loop(key: str) -> None:
    rng = np.random.default_rng(3)
    numbers = rng.integers(0, 4, 12)
    a, b = (
        simulated(
            rng.exponential(0.1, 12),
            n_objects=numbers,
            recall=rng.uniform(0, 1, int(numbers.sum())),
            level=rng.beta(4, 1, 12),
        )
        for _ in range(2)
    )
    line = compare(a, b, metrics=[key], resamples=40, seed=2).table.row(0, named=True)
    x, y = (read_score(result, key) for result in (a, b))

    def difference(images: Sequence[int]) -> float:
        return float(
            (x.function(x.table[images].sum(0)[None]) - y.function(y.table[images].sum(0)[None]))[0]
        )

    draws = np.random.default_rng(2).integers(0, 12, (40, 12)).tolist()
    defined = np.flatnonzero(~np.isnan(x.per_image)).tolist()
    expected = slow_interval(difference, defined, draws)
    assert (line["low"], line["high"]) == pytest.approx(np.clip(expected, -1, 1), rel=1e-3)


# --- the resampling itself ----------------------------------------------------------------------------


def test_resamples_are_those_of_a_slow_loop() -> None:
    """The same resamples, image by image and object by object."""
    rng = np.random.default_rng(3)
    values, numbers = rng.uniform(0, 1, 7), rng.integers(0, 5, 7)
    values[[1, 4]] = math.nan
    ends, recalls = numbers.cumsum(), rng.uniform(0, 1, int(numbers.sum()))
    result = simulated(values, n_objects=numbers, recall=recalls, level=rng.uniform(0.2, 1, 7))
    curves = result.image_curves["f"].to_numpy().astype(np.float64)
    found = resample([read_score(result, key) for key in ("mae", "found", "f_max")], 50, seed=5)
    for line, chosen in zip(found, np.random.default_rng(5).integers(0, 7, (50, 7)), strict=True):
        of_objects = [r for i in chosen for r in recalls[ends[i] - numbers[i] : ends[i]]]
        expected = [
            mean_of(values[chosen]),
            np.mean([r >= 0.5 for r in of_objects]) if of_objects else math.nan,
            curves[chosen].mean(axis=0).max(),
        ]
        assert line.tolist() == pytest.approx(expected, nan_ok=True)


# --- leads, wins, tests -------------------------------------------------------------------------------


def test_direction_decides_who_leads() -> None:
    """B has the larger error on every image, and finds more objects."""
    numbers = np.full(30, 2)
    a = simulated(np.full(30, 0.1), n_objects=numbers, recall=np.tile([1.0, 0.0], 30))
    b = simulated(np.full(30, 0.2), n_objects=numbers, recall=np.ones(60))
    found = compare(a, b, resamples=50, names=("first", "second"))
    errors, objects = row(found, "mae"), row(found, "found")
    columns = ("a_leads", "b_leads", "a_wins", "b_wins")
    assert [errors[key] for key in columns] == [1, 0, 30, 0]
    assert [objects[key] for key in columns] == [0, 1, 0, 30]
    assert errors["difference"] == pytest.approx(-0.1)
    assert (errors["low"], errors["high"]) == pytest.approx((-0.1, -0.1))
    assert errors["p"] == errors["p_holm"] == 2 / 2**30
    assert found.intervals.filter(method="second", metric="found")["value"].to_list() == [1.0]


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 60), st.integers(0, 60))
@example(3000, 2000)
@example(5000, 0)  # less than the least float
def test_sign_test_is_that_of_scipy(wins: int, losses: int) -> None:
    expected = scipy.stats.binomtest(wins, wins + losses).pvalue
    assert sign_test(wins, losses) == pytest.approx(expected, rel=1e-9)


def test_holm_by_hand() -> None:
    """Smallest first, times the number left, never decreasing, at most 1; NaN does not count."""
    assert holm([0.01, 0.02, 0.03, 0.6]).tolist() == pytest.approx([0.04, 0.06, 0.06, 0.6])
    assert holm([0.5, 0.4]).tolist() == pytest.approx([0.8, 0.8])
    assert holm([0.9, 0.8]).tolist() == [1.0, 1.0]
    assert holm([math.nan, 0.02, 0.04]).tolist() == pytest.approx([math.nan, 0.04, 0.04], nan_ok=True)
    assert holm([]).tolist() == []


def test_many_methods_are_corrected_within_a_metric() -> None:
    rng = np.random.default_rng(2)
    base = rng.uniform(0, 1, 60)
    results = {
        name: simulated(base + rng.normal(shift, 0.1, 60))
        for name, shift in (("a", 0.0), ("b", 0.01), ("c", 0.1))
    }
    found = compare_many(results, metrics="mae", resamples=100)
    assert [(line["a"], line["b"]) for line in found.table.iter_rows(named=True)] == [
        ("a", "b"), ("a", "c"), ("b", "c"),
    ]  # fmt: skip
    assert found.table["p_holm"].to_list() == holm(found.table["p"].to_numpy()).tolist()


# --- degenerate cases ---------------------------------------------------------------------------------


def test_one_image() -> None:
    a, b = simulated(np.array([0.1])), simulated(np.array([0.3]))
    found = compare(a, b, resamples=20, names=("<script>", "b"))
    line = row(found, "mae")
    assert math.isnan(line["low"])
    expected = [1, 1, "undecided"]  # one image proves nothing
    assert [line[key] for key in ("p", "p_mean", "verdict")] == expected
    assert len(found.notes) == 2
    page = found._repr_html_()
    assert "1 image is too few" in page
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_a_metric_undefined_on_every_image() -> None:
    undefined = simulated(np.full(30, math.nan))
    found = compare(undefined, simulated(np.full(30, 0.5)), metrics="mae", resamples=20)
    line = row(found, "mae")
    for key in ("value_a", "difference", "low", "high", "a_leads", "p", "p_holm"):
        assert math.isnan(line[key])
    assert (line["a_wins"], line["b_wins"], line["ties"]) == (0, 0, 0)
    assert found.notes == ("A: MAE undefined on all 30 images",)
    assert "| MAE ↓ | - | 0.5000 | - | - | - | - |" in found.render("md")
    assert found.conclusion() == ["A against B: no metric can be judged"]
    assert json.loads(found.render("json"))["pairs"][0]["low"] is None


def test_scores_resampled_by_default() -> None:
    evaluator, gt = sisod.Evaluator(), np.eye(8, dtype=bool)
    evaluator.update(gt, gt, name="a")
    result = evaluator.result()
    keys = bootstrap_intervals(result, resamples=10)["metric"].to_list()
    assert {"mae", "f_max", "si_f_max", "found", "object_f_mean"} <= set(keys)
    assert "iou_max" not in keys  # its curve is not saved for each image
    shown = compare(result, result, resamples=10).table["metric"].to_list()
    assert shown == [
        "mae", "si_mae", "auc", "si_auc", "f_mean", "si_f_mean", "f_max_image", "si_f_max_frame",
        "e_mean", "found", "object_f1", "false_objects", "bsi_f_binary",
    ]  # fmt: skip

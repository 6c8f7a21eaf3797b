"""The permutation test: by hand, against a slow loop over exchanges, against SciPy."""

import math
from inspect import signature
from itertools import product

import numpy as np
import pytest
import scipy.stats
from helpers.simulated_results import simulated
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

import sisod
from sisod.analysis.comparison import compare, compare_many
from sisod.analysis.scores import Score, read_score
from sisod.analysis.significance import permutation_tests

Values = NDArray[np.float64]
OBJECT_KEYS = ["object_recall", "false_objects", "n_predicted"]


def p_of(a: Values, b: Values, *, permutations: int = 100, seed: int = 0) -> float:
    scores = {"a": [read_score(simulated(a), "mae")], "b": [read_score(simulated(b), "mae")]}
    return float(permutation_tests(scores, permutations, seed)["a", "b"][0])


# --- by hand ------------------------------------------------------------------------------------------


def test_by_hand() -> None:
    """Differences 1, 2, 3: of the eight signed sums, 6 and -6 are as far from zero as 6."""
    zero = np.zeros(3)
    assert p_of(np.array([1.0, 2.0, 3.0]), zero) == 2 / 8
    # sum 4: 6, 4 and their opposites; sum 0: all of them
    assert p_of(np.array([-1.0, 2.0, 3.0]), zero) == 4 / 8
    assert p_of(np.array([1.0, 2.0, -3.0]), zero) == 1
    assert p_of(np.array([0.5]), np.array([0.1])) == 1  # one image proves nothing
    assert p_of(zero, zero) == 1


def test_many_images_by_hand() -> None:
    """All images agree: a random exchange is never as extreme, and the observed one counts."""
    assert p_of(np.ones(60), np.zeros(60), permutations=999) == 1 / 1000
    assert p_of(np.ones(60), np.ones(60), permutations=999) == 1


def test_rounding_does_not_count() -> None:
    """In floating point, the sums 0.1 + 0.2 - 0.3 and 0.3 - 0.2 - 0.1 differ: all eight are extreme."""
    assert p_of(np.array([0.1, 0.2, 0.0]), np.array([0.0, 0.0, 0.3])) == 1


@pytest.mark.parametrize("n_images", [2, 12])
def test_objects_are_exchanged_with_their_image(n_images: int) -> None:
    """A finds every object, B invents one instead: only if all or none is exchanged it is as extreme."""
    gt = np.zeros((20, 20), dtype=bool)
    gt[2:6, 2:6] = True
    a, b = (sisod.Evaluator(metrics=OBJECT_KEYS) for _ in range(2))
    for index in range(n_images):
        a.update(gt, gt, name=str(index))
        b.update(np.roll(gt, 10, axis=(0, 1)), gt, name=str(index))
    table = compare(a.result(), b.result(), metrics=OBJECT_KEYS, resamples=10).table
    assert table["difference"].to_list() == [1, -1, 0]
    assert table["p_mean"].to_list()[:2] == [2 / 2**n_images] * 2
    assert math.isnan(table["p_mean"][2])  # neither more nor less is better


# --- against a slow loop ------------------------------------------------------------------------------


def slow_p(a: Score, b: Score) -> float:
    """Every exchange of images, one at a time, row by row."""
    sizes = []
    for exchanged in product((False, True), repeat=len(a.table)):
        rows_a = [y if swap else x for x, y, swap in zip(a.table, b.table, exchanged, strict=True)]
        rows_b = [x if swap else y for x, y, swap in zip(a.table, b.table, exchanged, strict=True)]
        value_a, value_b = (
            float(score.function(np.sum(rows, axis=0)[None])[0])
            for score, rows in ((a, rows_a), (b, rows_b))
        )
        sizes.append(abs(value_a - value_b))
    if math.isnan(sizes[0]):  # nothing exchanged: the observed difference
        return math.nan
    defined = [size for size in sizes if not math.isnan(size)]
    return sum(size >= sizes[0] - 1e-12 for size in defined) / len(defined)


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_all_exchanges_are_those_of_a_slow_loop(data: st.DataObject) -> None:
    n_images = data.draw(st.integers(1, 6))
    numbers = data.draw(arrays(np.int64, n_images, elements=st.integers(0, 3)))
    unit = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.9, 1.0])  # few values, so there are ties

    def result() -> sisod.Evaluation:
        mae = data.draw(arrays(np.float64, n_images, elements=st.one_of(unit, st.just(math.nan))))
        recall = data.draw(arrays(np.float64, int(numbers.sum()), elements=unit))
        level = data.draw(arrays(np.float64, n_images, elements=unit))
        return simulated(mae, n_objects=numbers, recall=recall, level=level)

    scores = {
        name: [read_score(r, key) for key in ("mae", "found", "f_max")]
        for name, r in (("a", result()), ("b", result()), ("c", result()))
    }
    for (a, b), p_values in permutation_tests(scores, 10, 0).items():
        expected = [slow_p(x, y) for x, y in zip(scores[a], scores[b], strict=True)]
        np.testing.assert_allclose(p_values, expected)


# --- against SciPy ------------------------------------------------------------------------------------


def scipy_p(a: Values, b: Values, n_resamples: float) -> float:
    seed = "rng" if "rng" in signature(scipy.stats.permutation_test).parameters else "random_state"
    found = scipy.stats.permutation_test(
        (a, b),
        lambda x, y, axis: np.abs(np.mean(x - y, axis=axis)),
        permutation_type="samples",
        vectorized=True,
        n_resamples=n_resamples,
        alternative="greater",
        **{seed: np.random.default_rng(1)},
    )
    return float(found.pvalue)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.integers(2, 10))
def test_exact_p_is_that_of_scipy(seed: int, n_images: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(0, 1, n_images), rng.uniform(0, 1, n_images)
    assert p_of(a, b) == pytest.approx(scipy_p(a, b, np.inf), rel=1e-12)


# --- the same numbers every time ----------------------------------------------------------------------


def test_blocks_and_other_methods_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    results = {name: simulated(rng.uniform(0, 1, 70)) for name in "abc"}
    whole = compare_many(results, metrics="mae", resamples=200).table
    alone = compare_many({"a": results["a"], "c": results["c"]}, metrics="mae", resamples=200).table
    assert alone["p_mean"][0] == whole["p_mean"][1]
    swapped = compare_many({"c": results["c"], "a": results["a"]}, metrics="mae", resamples=200).table
    assert swapped["p_mean"][0] == alone["p_mean"][0]
    monkeypatch.setattr("sisod.analysis.bootstrap._MAX_COUNTS", 500)  # seven at a time
    parts = compare_many(results, metrics="mae", resamples=200).table
    assert parts["p_mean"].to_list() == whole["p_mean"].to_list()
    other_seed = compare_many(results, metrics="mae", resamples=200, seed=1).table
    assert other_seed["p_mean"].to_list() != whole["p_mean"].to_list()


def test_order_of_the_files_changes_nothing() -> None:
    rng = np.random.default_rng(5)
    names = [f"{index:03d}" for index in range(40)]
    values = {name: rng.uniform(0, 1, 40) for name in "ab"}
    mixed = rng.permutation(40)

    def table(order: NDArray[np.int64]) -> list[tuple[object, ...]]:
        a, b = (
            simulated(v[order], names=[names[index] for index in order.tolist()])
            for v in values.values()
        )
        return compare(a, b, metrics="mae", resamples=100).table.select("low", "high", "p_mean").rows()

    assert table(mixed) == table(np.arange(40))

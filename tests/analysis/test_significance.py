"""The permutation test: by hand, against a slow loop over exchanges, against SciPy."""

import math
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
    # many images, which all agree: a random exchange is never as extreme, and the observed one counts
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
    """Every exchange of images, one at a time."""
    sizes = []
    for exchanged in product((False, True), repeat=len(a.table)):
        swapped = np.array(exchanged)[:, None]
        value_a = a.function(np.where(swapped, b.table, a.table).sum(axis=0)[None])[0]
        value_b = b.function(np.where(swapped, a.table, b.table).sum(axis=0)[None])[0]
        sizes.append(float(abs(value_a - value_b)))
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


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.integers(2, 10))
def test_exact_p_is_that_of_scipy(seed: int, n_images: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(0, 1, n_images), rng.uniform(0, 1, n_images)
    expected = scipy.stats.permutation_test(
        (a, b),
        lambda x, y, axis: np.abs(np.mean(x - y, axis=axis)),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
        alternative="greater",
    )
    assert p_of(a, b) == pytest.approx(expected.pvalue, rel=1e-12)


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
    for column in ("low", "high", "a_leads"):
        assert parts[column].to_list() == pytest.approx(whole[column].to_list())
        assert alone[column][0] == pytest.approx(whole[column][1])
    other_seed = compare_many(results, metrics="mae", resamples=200, seed=1).table
    assert other_seed["p_mean"].to_list() != whole["p_mean"].to_list()


def test_order_of_the_files_changes_nothing() -> None:
    rng = np.random.default_rng(5)
    values = rng.uniform(0, 1, (2, 40))

    def table(*orders: NDArray[np.int64]) -> list[tuple[object, ...]]:
        a, b = (
            simulated(v[order], names=[f"{index:03d}" for index in order.tolist()])
            for v, order in zip(values, orders, strict=True)
        )
        columns = ("low", "high", "a_wins", "p", "p_mean")
        return compare(a, b, metrics="mae", resamples=100).table.select(columns).rows()

    sorted_names = np.arange(40)
    assert table(rng.permutation(40), rng.permutation(40)) == table(sorted_names, sorted_names)

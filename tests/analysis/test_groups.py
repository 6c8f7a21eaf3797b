"""Scores by size and number: by hand, against slow loops, and against SciPy."""

import dataclasses
import math
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import sisod
from sisod.analysis.groups import (
    by_number,
    by_size,
    found_curve,
    size_bias,
    size_edges,
)
from sisod.analysis.ranks import kendall_tau, rank_changes

few = settings(deadline=None, max_examples=40)
shares = st.sampled_from([0.0, 0.0001, 0.001, 0.05, 0.1, 0.3, 0.30000001, 0.55, 0.9, 1.0])
scores = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
objects = st.lists(st.tuples(shares, scores, scores), min_size=1, max_size=40)


def evaluation(*sizes: int) -> sisod.Evaluation:
    """Image i has i squares of the i-th size in a row; the second square is missed."""
    evaluator = sisod.Evaluator(metrics=["mae", "si_mae", "f_mean", "si_f_mean", "auc", "f_max"])
    for number, size in enumerate(sizes, start=1):
        gt = np.zeros((40, 200), dtype=bool)
        for index in range(number):
            gt[2 : 2 + size, 20 * index + 1 : 20 * index + 1 + size] = True
        pred = gt.copy()
        pred[:, 20:40] = False
        evaluator.update(pred, gt, name=f"{number} of {size}")
    return evaluator.result()


def with_objects(rows: list[tuple[float, float, float]]) -> sisod.Evaluation:
    """A result with the given share, f_mean and recall_binary in its object table."""
    base = evaluation(4)
    table = pl.concat([base.objects.head(1)] * len(rows))
    share, f_mean, recall = (np.array(column) for column in zip(*rows, strict=True))
    table = table.with_columns(
        share=pl.Series(share), f_mean=pl.Series(f_mean), recall_binary=pl.Series(recall),
        area=pl.Series((share * 8000).astype(np.int64) + 1),
    )  # fmt: skip
    return dataclasses.replace(base, objects=table)


def test_edges() -> None:
    assert size_edges("paper").tolist() == [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]
    assert size_edges("log")[[0, -1]].tolist() == [0, 1]
    assert size_edges("quantile", np.arange(1, 101) / 1000)[1] == pytest.approx(0.0109)
    assert size_edges("quantile", [0.2] * 7).tolist() == [0, 0.2, 1]
    assert size_edges("quantile", []).tolist() == [0, 1]


def test_by_size_by_hand() -> None:
    """Sizes of 10, 20 and 30 %; a share on an edge belongs to the group above it, 1 to the last."""
    rows = [(0.05, 0.2, 0.4), (0.1, 0.4, 0.5), (0.19, 0.6, 1.0), (1.0, 0.9, 0.0)]
    table = by_size(with_objects(rows))
    assert table["group"].to_list()[:2] == ["0-10 %", "10-20 %"]
    assert table["objects"].to_list() == [1, 2, 0, 0, 0, 0, 0, 0, 0, 1]
    assert table["found"].to_list()[:2] == [0.0, 1.0]
    assert table["f_mean"].to_list()[:2] == [0.2, 0.5]
    assert math.isnan(table["f_mean"][2])
    assert table["n_f_mean"].to_list() == table["objects"].to_list()
    assert table["f_mean"][9] == 0.9


@few
@given(objects, st.sampled_from(["paper", "log", "quantile", (0.001, 0.1, 0.3, 0.55)]))
def test_groups_are_those_of_a_slow_loop_and_add_up(rows: list[Any], kind: Any) -> None:
    result = with_objects(rows)
    table = by_size(result, groups=kind)
    edges = kind if isinstance(kind, tuple) else size_edges(kind, [row[0] for row in rows])
    for index, line in enumerate(table.iter_rows(named=True)):
        low, high, last = edges[index], edges[index + 1], index == len(edges) - 2
        inside = [row for row in rows if low <= row[0] < high or (last and row[0] == high)]
        assert line["objects"] == line["n_f_mean"] == len(inside)
        if inside:
            assert line["f_mean"] == pytest.approx(sum(row[1] for row in inside) / len(inside))
            assert line["found"] == pytest.approx(sum(row[2] >= 0.5 for row in inside) / len(inside))
        else:
            assert math.isnan(line["f_mean"])


def test_by_number_by_hand_and_adds_up() -> None:
    result = evaluation(4, 6, 4, 3, 3, 2, 2)  # one image each of one to seven objects
    table = by_number(result)
    assert table["group"].to_list() == ["1", "2", "3", "4", "5+"]
    assert table["images"].to_list() == [1, 1, 1, 1, 3]
    assert table["objects"].to_list() == [1, 2, 3, 4, 18]
    assert "f_max" not in table.columns  # the maximum of a mean curve is not a mean over images
    assert table["si_f_mean"].to_list()[:4] == pytest.approx([1, 1 / 2, 2 / 3, 3 / 4])
    for key in ("mae", "si_mae", "f_mean", "si_f_mean", "auc"):
        assert table[f"n_{key}"].to_list() == table["images"].to_list()
        weighted = np.average(table[key].to_numpy(), weights=table["images"].to_numpy())
        assert weighted == pytest.approx(result.summary[key])
    assert by_number(result, metrics=["mae"]).columns == ["group", "images", "objects", "mae", "n_mae"]


def test_images_without_objects_have_a_group_of_their_own() -> None:
    evaluator = sisod.Evaluator(metrics=["mae", "f_mean"])
    evaluator.update(np.zeros((5, 5)), np.zeros((5, 5), dtype=bool), name="empty")
    result = evaluator.result()
    table = by_number(result)
    assert table["group"].to_list() == ["0", "1", "2", "3", "4", "5+"]
    assert table["images"].to_list() == [1, 0, 0, 0, 0, 0]
    assert table["n_f_mean"].to_list() == [0] * 6
    assert by_size(result)["objects"].sum() == 0
    assert math.isnan(size_bias(result))
    assert found_curve(result)["found"].is_nan().all()


def test_found_curve_by_hand() -> None:
    rows = [(0.1, 0.0, 0.0), (0.1, 0.0, 0.25), (0.1, 0.0, 0.5), (0.1, 0.0, 1.0)]
    curve = found_curve(with_objects(rows))
    found = dict(zip(curve["coverage"].to_list(), curve["found"].to_list(), strict=True))
    assert found[0.0] == 1.0
    shares = [found[coverage] for coverage in (0.01, 0.25, 0.26, 0.5, 0.51, 1.0)]
    assert shares == [0.75, 0.75, 0.5, 0.5, 0.25, 0.25]
    assert (np.diff(curve["found"].to_numpy()) <= 0).all()


@few
@given(objects)
def test_size_bias_is_spearman_of_scipy(rows: list[Any]) -> None:
    result = with_objects(rows)
    area, f_mean = result.objects["area"].to_numpy(), result.objects["f_mean"].to_numpy()
    if len(set(area)) < 2 or len(set(f_mean)) < 2:
        assert math.isnan(size_bias(result))
    else:
        expected = scipy.stats.spearmanr(np.log(area), f_mean).statistic
        assert size_bias(result) == pytest.approx(expected, abs=1e-12)


@few
@given(st.lists(st.tuples(scores, scores), min_size=2, max_size=12))
def test_tau_is_that_of_scipy(pairs: list[tuple[float, float]]) -> None:
    a, b = (np.array(column) for column in zip(*pairs, strict=True))
    if len(set(a)) < 2 or len(set(b)) < 2:
        assert math.isnan(kendall_tau(a, b))
    else:
        assert kendall_tau(a, b) == pytest.approx(scipy.stats.kendalltau(a, b).statistic, abs=1e-12)


def method(pred: NDArray[np.float64], gt: NDArray[np.bool_], **options: Any) -> sisod.Evaluation:
    evaluator = sisod.Evaluator(**{"metrics": ["mae", "si_mae"], **options})
    evaluator.update(pred, gt, name="only")
    return evaluator.result()


def test_rank_changes_by_hand() -> None:
    """MAE prefers the method that misses the small object, SI-MAE the one that blurs the large one."""
    gt = np.zeros((20, 20), dtype=bool)
    gt[:10, :10] = True
    gt[18:, 18:] = True
    misses, blurs = gt.astype(float), gt.astype(float)
    misses[18:, 18:] = 0.0
    blurs[:10, :10] = 0.9
    blurs[0, 0] = 1.0
    found = rank_changes({"misses": method(misses, gt), "blurs": method(blurs, gt)})
    assert found.table["rank_mae"].to_list() == [1.0, 2.0]
    assert found.table["rank_si_mae"].to_list() == [2.0, 1.0]
    assert found.tau == {("mae", "si_mae"): -1.0}
    assert found.swaps == {("mae", "si_mae"): (("misses", "blurs"),)}
    tied = rank_changes({"a": method(misses, gt), "b": method(blurs, gt), "c": method(blurs, gt)})
    assert tied.table["rank_si_mae"].to_list() == [3.0, 1.5, 1.5]


def test_rank_changes_of_one_method_and_of_undefined_metrics() -> None:
    gt = np.zeros((4, 4), dtype=bool)
    alone = method(np.zeros((4, 4)), gt, metrics=["mae", "f_mean"])
    found = rank_changes({"alone": alone}, keys=("mae", "f_mean"))
    assert found.table["rank_mae"].to_list() == [1.0]
    assert math.isnan(found.table["rank_f_mean"][0])
    assert math.isnan(found.tau["mae", "f_mean"])

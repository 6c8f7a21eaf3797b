"""The verdict of a comparison: its rule, its sentences, and what contradicts it."""

import math
from typing import Any

import numpy as np
import pytest
from helpers.simulated_results import simulated

from sisod.analysis.comparison import compare, compare_many
from sisod.analysis.significance import find_verdict, verdict_lines


def test_the_rule() -> None:
    assert find_verdict("mae", -0.2, 0.01) == "better"  # of an error, less is better
    assert find_verdict("mae", 0.1, 0.05) == "worse"
    assert find_verdict("f_mean", 0.1, 0.01) == find_verdict("found", 0.1, 0.01) == "better"
    assert find_verdict("f_mean", -0.2, 0.01) == "worse"
    assert find_verdict("f_mean", -0.2, 0.051) == "undecided"
    assert find_verdict("f_mean", math.nan, math.nan) == ""
    assert find_verdict("n_predicted", 1, 0.01) == ""


def row(metric: str, verdict: str, **values: Any) -> dict[str, Any]:
    """A row whose sign test agrees with the verdict, and which has no interval."""
    wins = {"better": (80, 20, 0.001), "worse": (20, 80, 0.001)}.get(verdict, (50, 50, 1.0))
    defaults = {
        "a": "EDN", "b": "ICON", "difference": 0.1, "a_gain": 0.01, "b_gain": 0.2,
        "low": math.nan, "high": math.nan,
    } | dict(zip(("a_wins", "b_wins", "p"), wins, strict=True))  # fmt: skip
    return {"metric": metric, "verdict": verdict} | defaults | values


def test_sentences() -> None:
    rows = [row("si_mae", "better"), row("f_mean", "better"), row("auc", "worse")]
    rows += [row("mae", "undecided"), row("n_predicted", "")]
    assert verdict_lines(rows) == [
        "EDN against ICON: better on SI-MAE and F mean; worse on AUC; undecided on MAE"
    ]
    assert verdict_lines([row("mae", "worse"), row("auc", "worse")]) == [
        "EDN against ICON: worse on both metrics"
    ]
    assert verdict_lines([row("n_predicted", "")]) == ["EDN against ICON: no metric can be judged"]
    pairs = [row("mae", "better"), row("mae", "worse", b="LDF"), row("auc", "better")]
    assert verdict_lines(pairs) == [
        "EDN against ICON: better on both metrics",
        "EDN against LDF: worse on MAE",
    ]


def test_winning_more_images_with_the_worse_mean() -> None:
    """A is better by 0.01 on 80 of 100 images, and worse by 0.2 on the others."""
    base = np.full(100, 0.3)
    other = base + np.where(np.arange(100) < 80, 0.01, -0.2)
    found = compare(simulated(base), simulated(other), metrics="mae", resamples=500)
    assert found.table["verdict"].to_list() == ["worse"]
    assert (found.table["a_gain"][0], found.table["b_gain"][0]) == pytest.approx((0.01, 0.2))
    assert found.table["p"][0] < 1e-6
    line = (
        "  MAE: {} is better on more images (sign test), but has the worse value: it gains 0.0100 on "
        "average where it is better, and loses 0.2000 where it is worse"
    )
    assert found.verdicts() == ["A against B: worse on MAE", line.format("A")]
    swapped = compare(simulated(other), simulated(base), metrics="mae", resamples=500)
    assert swapped.verdicts() == ["A against B: better on MAE", line.format("B")]


def test_where_only_one_test_decides_metrics_share_a_line() -> None:
    rows = [
        row("mae", "undecided", a_wins=63, b_wins=37, p=0.01),
        row("f_mean", "undecided", a_wins=70, b_wins=30, p=0.01),
        row("auc", "undecided", a_wins=30, b_wins=70, p=0.01),
        row("e_mean", "better"),
        row("s", "better", a_wins=52, b_wins=48, p=0.8),
        row("object_f1", "better", a_wins=0, b_wins=0, p=math.nan),  # no image has a value
    ]
    text = "is better on more images (sign test), but the difference is not significant"
    assert verdict_lines(rows)[1:] == [
        f"  MAE and F mean: EDN {text}",
        f"  AUC: ICON {text}",
        "  S: EDN has the better value, but not on more images (sign test)",
    ]


def test_an_interval_that_disagrees_with_the_verdict_is_named() -> None:
    rows = [
        row("mae", "undecided", low=0.01, high=0.2),
        row("auc", "better", low=-0.01, high=0.2),
        row("f_mean", "worse", low=-0.2, high=-0.1),
        row("e_mean", "undecided", low=-0.2, high=0.1),
    ]
    first, second = verdict_lines(rows)[1:]
    assert first.startswith("  MAE: ")
    assert first.endswith("excludes zero")
    assert second.startswith("  AUC: ")
    assert second.endswith("contains zero")


def test_documents_have_the_tests_and_the_verdict_below_the_table() -> None:
    base = np.full(100, 0.3)
    other = base + np.where(np.arange(100) < 80, 0.01, -0.2)
    a, b = simulated(base, level=base), simulated(other, level=base + 0.1)
    found = compare(a, b, metrics=["mae", "f_max"], resamples=500, names=("a_1", "b"))
    below = [found.caption(), *found.legend(), *found.verdicts()]
    assert below[-1].startswith("  MAE: a_1 is better on more images")
    table, *lines = found.render("latex").split("\n% ")
    assert table.endswith(r"\end{tabular}")
    assert lines == below
    table, items = found.render("md").split("\n\n")
    assert len(table.splitlines()) == 4
    assert items.splitlines()[-1].startswith(r"  - MAE: a\_1 is better")
    assert found.render("csv").splitlines()[-1].startswith("f_max,a_1,b,")  # for programs


def test_latex_has_symbols_and_minus_signs() -> None:
    a, b = simulated(np.full(30, 0.2)), simulated(np.full(30, 0.3))
    found = compare(a, b, metrics=["f_max", "mae"], resamples=10, names=("net-50", "si -x"))
    text = found.render("latex")
    assert r"$F_\beta^{\max}$ $\uparrow$ & " in text
    assert "& $-$0.1000 & $-$0.1000 to $-$0.1000 &" in text
    assert "metric & net-50 & si -x &" in text  # hyphens of names stay


def test_better_values_are_bold_where_decided() -> None:
    rng = np.random.default_rng(2)
    base = rng.uniform(0.1, 0.2, 50)
    results = {"a": simulated(base), "b": simulated(base + 0.01), "c": simulated(rng.permutation(base))}
    two = compare_many({"a": results["a"], "b": results["b"]}, metrics="mae", resamples=100).grid()
    assert two.headings[:3] == ("metric", "a", "b")
    assert two.bold == {(0, 1)}
    three = compare_many(results, metrics=["mae", "f_max"], resamples=100).grid()
    assert three.headings[:5] == ("metric", "method", "other", "value", "other's value")
    assert (0, 3) in three.bold  # a against b
    assert (1, 3) not in three.bold  # a against c
    assert three.sections == {3}

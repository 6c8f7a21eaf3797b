"""The verdict of a comparison: its rule, its sentences, and disagreements of its two tests."""

import math
from typing import Any

import numpy as np
import pytest
from helpers.simulated_results import simulated

from sisod.analysis.comparison import compare, compare_many
from sisod.analysis.verdict import disagreement, find_verdict, listed, verdict_lines


def test_the_rule() -> None:
    assert find_verdict("mae", -0.2, 0.01) == "better"  # of an error, less is better
    assert find_verdict("mae", 0.1, 0.05) == "worse"
    assert find_verdict("f_mean", 0.1, 0.01) == find_verdict("found", 0.1, 0.01) == "better"
    assert find_verdict("f_mean", -0.2, 0.01) == "worse"
    assert find_verdict("f_mean", -0.2, 0.051) == "undecided"
    assert find_verdict("f_mean", math.nan, math.nan) == ""
    assert find_verdict("n_predicted", 1, 0.01) == ""


def row(metric: str, verdict: str, **values: Any) -> dict[str, Any]:
    defaults = {
        "a": "EDN", "b": "ICON", "difference": 0.1, "a_wins": 0, "b_wins": 0, "ties": 0, "p": 1.0,
        "a_gain": math.nan, "b_gain": math.nan, "p_mean": math.nan, "low": math.nan, "high": math.nan,
    }  # fmt: skip
    return {"metric": metric, "verdict": verdict} | defaults | values


def test_sentences() -> None:
    rows = [row("si_mae", "better"), row("f_mean", "better"), row("auc", "worse")]
    rows += [row("mae", "undecided"), row("n_predicted", "")]
    assert verdict_lines(rows) == [
        "EDN against ICON: better on SI-MAE and F mean; worse on AUC; undecided on MAE"
    ]
    assert verdict_lines([row("mae", "better")]) == ["EDN against ICON: better on MAE"]
    assert verdict_lines([row("mae", "worse"), row("auc", "worse")]) == [
        "EDN against ICON: worse on both metrics"
    ]
    assert verdict_lines([row("n_predicted", "")]) == ["EDN against ICON: no metric can be judged"]
    pairs = [row("mae", "better"), row("mae", "worse", b="LDF"), row("auc", "better")]
    assert verdict_lines(pairs) == [
        "EDN against ICON: better on both metrics",
        "EDN against LDF: worse on MAE",
    ]
    assert listed(["a"]) == "a"


def test_winning_more_images_with_the_worse_mean() -> None:
    """A is better by 0.01 on 80 of 100 images, and worse by 0.2 on the others."""
    base = np.full(100, 0.3)
    other = base + np.where(np.arange(100) < 80, 0.01, -0.2)
    found = compare(simulated(base), simulated(other), metrics="mae", resamples=500)
    assert found.table["verdict"].to_list() == ["worse"]
    assert (found.table["a_gain"][0], found.table["b_gain"][0]) == pytest.approx((0.01, 0.2))
    assert found.table["p"][0] < 1e-6
    line = (
        "  MAE: {} is better on 80 % of the images, but its mean is worse: it loses more where it is "
        "worse (0.2000 on average) than it gains where it is better (0.0100)"
    )
    assert found.verdicts() == ["A against B: worse on MAE", line.format("A")]
    assert "is better on 80 %" in found._repr_html_()
    swapped = compare(simulated(other), simulated(base), metrics="mae", resamples=500)
    assert swapped.verdicts() == ["A against B: better on MAE", line.format("B")]


def test_an_interval_that_disagrees_with_the_verdict_is_named() -> None:
    rows = [
        row("mae", "undecided", low=0.01, high=0.2),
        row("auc", "better", low=-0.01, high=0.2),
        row("f_mean", "worse", low=-0.2, high=-0.1),
        row("e_mean", "undecided", low=-0.2, high=0.1),
        row("si_mae", "worse"),  # has no interval
    ]
    first, second = verdict_lines(rows)[1:]
    assert first.startswith("  MAE: ")
    assert first.endswith("excludes zero")
    assert second.startswith("  AUC: ")
    assert second.endswith("contains zero")


def test_no_disagreement_without_evidence() -> None:
    """Both tests must decide, in opposite directions."""
    opposite = {"difference": 0.1, "a_wins": 60, "b_wins": 40, "a_gain": 0.1, "b_gain": 0.4}
    assert disagreement(row("mae", "undecided", p=0.3, **opposite)) == ""
    assert disagreement(row("mae", "undecided", p=0.01, **opposite)) == ""
    assert disagreement(row("mae", "worse", p=0.3, **opposite)) == ""
    assert disagreement(row("mae", "worse", p=0.01, **opposite)) != ""
    assert disagreement(row("f_mean", "better", p=0.01, **opposite)) == ""  # both prefer the first
    assert disagreement(row("mae", "worse", p=1.0, difference=0.1, a_wins=50, b_wins=50)) == ""
    assert disagreement(row("mae", "", p=math.nan, difference=math.nan)) == ""


def test_reasons_of_values_that_are_no_means() -> None:
    opposite = {"difference": -0.1, "a_wins": 60, "b_wins": 40, "a_gain": 0.1, "b_gain": 0.05, "p": 0.01}
    for key in ("object_f1", "found"):
        text = disagreement(row(key, "worse", **opposite))
        assert text.endswith("its value over the data set is worse: images with many objects count more")
    assert "maximum of the mean curve" in disagreement(row("f_max", "worse", **opposite))
    assert "undefined on some images" in disagreement(row("f_mean", "worse", **opposite))


def test_more_images_without_a_difference_of_the_means() -> None:
    """A is better by 0.01 on 63 of 100 images, and worse by 0.015 on the others."""
    base = np.random.default_rng(3).uniform(0.2, 0.5, 100)
    gains = np.where(np.arange(100) < 63, 0.01, -0.015)
    found = compare(simulated(base), simulated(base + gains), metrics="mae", resamples=500)
    assert found.table["p"][0] < 0.05 < found.table["p_mean"][0]
    line = "  MAE: {} is better on 63 % of the images, but the difference in the mean is not significant"
    assert found.verdicts() == ["A against B: undecided on MAE", line.format("A")]
    swapped = compare(simulated(base + gains), simulated(base), metrics="mae", resamples=500)
    assert swapped.verdicts()[1:] == [line.format("B")]


def test_metrics_with_the_same_disagreement_share_a_line() -> None:
    images = {"p": 0.001, "p_mean": 0.2, "a_gain": 0.01, "b_gain": 0.02}
    mean = row("s", "better", a_wins=52, b_wins=48, **images | {"p": 0.8, "p_mean": 0.01})
    rows = [
        row("mae", "undecided", difference=-0.1, a_wins=63, b_wins=37, **images),
        row("f_mean", "undecided", a_wins=70, b_wins=30, **images),
        row("auc", "undecided", difference=-0.1, a_wins=30, b_wins=70, **images),
        row("e_mean", "better", a_wins=70, b_wins=30, **images | {"p_mean": 0.01}),
        row("si_mae", "undecided", difference=-0.1, a_wins=55, b_wins=45, **images | {"p": 0.3}),
        mean,
    ]
    text = "is better on {} % of the images, but the difference in the {} is not significant"
    assert verdict_lines(rows)[1:] == [
        "  MAE and F mean: EDN " + text.format("63 to 70", "mean"),
        "  AUC: ICON " + text.format("70", "mean"),
        "  S: EDN has the better mean, but is better on only 52 % of the images, not significant "
        "by the sign test",
    ]
    objects = row("object_f1", "undecided", a_wins=70, b_wins=20, ties=10, **images)
    tied = text.replace("images", "images ({}10 % tie)")
    (line,) = verdict_lines([objects])[1:]
    assert line == "  Object F1: EDN " + tied.format("70", "", "value over the data set")
    (line,) = verdict_lines([rows[0], objects])[1:]
    assert line == "  MAE and Object F1: EDN " + tied.format("63 to 70", "up to ", "value")


def test_documents_have_the_tests_and_the_verdict_below_the_table() -> None:
    base = np.full(100, 0.3)
    other = base + np.where(np.arange(100) < 80, 0.01, -0.2)
    a, b = simulated(base, level=base), simulated(other, level=base + 0.1)
    found = compare(a, b, metrics=["mae", "f_max"], resamples=500, names=("a_1", "b"))
    below = [found.caption(), *found.legend(), *found.verdicts()]
    assert below[-1].startswith("  MAE: a_1 is better on 80 % of the images")
    table, *lines = found.render("latex").split("\n% ")
    assert table.endswith(r"\end{tabular}")
    assert lines == below
    table, *lines = found.render("md").split("\n\n")
    assert len(table.splitlines()) == 4
    assert lines[:-1] == [line.replace("a_1", r"a\_1") for line in below[:-1]]
    assert lines[-1] == "- " + below[-1].strip().replace("a_1", r"a\_1")
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
    assert {"A", "B", "first", "second"}.isdisjoint(three.headings)
    assert (0, 3) in three.bold  # a against b
    assert (1, 3) not in three.bold  # a against c
    assert three.sections == {3}

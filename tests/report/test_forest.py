"""The forest plot: which pairs and metrics are drawn, where, and in which colour."""

from itertools import pairwise

import numpy as np
import pytest
from helpers.simulated_results import simulated

import sisod
from sisod.analysis.comparison import Comparison, compare, compare_many
from sisod.report.drawing.forest import UNDECIDED, _groups, comparison_figure
from sisod.report.style import COLOURS

pytest.importorskip("matplotlib", reason="extra report is not installed")


def results(n_methods: int) -> dict[str, sisod.Evaluation]:
    rng = np.random.default_rng(0)
    base = rng.uniform(0.1, 0.4, 40)
    return {
        f"method-{i}": simulated(base + 0.02 * i + rng.normal(0, 0.01, 40)) for i in range(n_methods)
    }


def compared(n_methods: int) -> Comparison:
    return compare_many(results(n_methods), metrics=["mae", "f_max"], resamples=100)


def test_metrics_of_different_scales_have_different_axes() -> None:
    keys = ["mae", "found", "false_objects", "si_f_mean", "bsi_f_binary", "object_f1", "n_predicted"]
    assert _groups(keys) == [
        ["mae", "si_f_mean"],
        ["found", "bsi_f_binary", "object_f1"],
        ["false_objects", "n_predicted"],
    ]
    assert _groups(["found"]) == [["found"]]


def test_one_pair_has_its_numbers_and_names() -> None:
    a, b = results(2).values()
    comparison = compare(a, b, metrics=["mae", "f_max"], resamples=100, names=("EDN", "IC$ON"))
    figure = comparison_figure(comparison)
    (axes,) = figure.get_axes()
    zero, interval, point, *_ = axes.get_lines()
    assert np.ravel(zero.get_xdata()).tolist() == [0, 0]
    low, high = comparison.table["low"][0], comparison.table["high"][0]
    assert np.ravel(interval.get_xdata()).tolist() == [-high, -low]  # of an error, less is better
    assert point.get_color() == COLOURS[0]
    assert [text.get_text() for text in axes.texts] == [
        f"{-comparison.table['difference'][0]:+.4f}  ({-high:+.4f} to {-low:+.4f})",
        "+0.0000  (+0.0000 to +0.0000)",
    ]
    assert axes.get_lines()[4].get_markeredgecolor() == UNDECIDED
    (legend,) = figure.legends
    names = [text.get_text().strip() for text in legend.get_texts()]
    assert names == ["EDN is better", "undecided (p > 0.05)", r"IC\$ON is better"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["MAE", "F max"]
    low, high = axes.get_xlim()
    assert low < 0 < high


def test_with_many_methods_each_is_drawn_against_the_first() -> None:
    """Five methods are ten pairs; of six, fifteen would not fit on a page."""
    for n_methods, n_panels in ((3, 3), (5, 10), (6, 5), (12, 11)):
        axes = [one for one in comparison_figure(compared(n_methods)).get_axes() if one.axison]
        assert len(axes) == n_panels
    titles = [one.get_title() for one in axes]
    assert titles[:2] == ["method-0\nagainst method-1", "method-0\nagainst method-2"]
    assert len({one.get_xlim() for one in axes}) == 1  # the same scale


@pytest.mark.parametrize("n_methods", [2, 3, 4, 6])
@pytest.mark.parametrize("scale", [0.0007, 0.012, 0.02, 0.033])
def test_labels_of_ticks_are_apart(n_methods: int, scale: float) -> None:
    base = np.random.default_rng(0).uniform(0.1, 0.4, 40)
    shifted = {f"m{i}": simulated(base + scale * i * (-1) ** i) for i in range(n_methods)}
    figure = comparison_figure(compare_many(shifted, metrics=["mae", "f_max"], resamples=20))
    figure.draw_without_rendering()
    for axes in (one for one in figure.get_axes() if one.axison):
        low, high = axes.get_xlim()
        labels = [
            label.get_window_extent()
            for tick, label in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
            if low <= tick <= high
        ]
        assert len(labels) >= 2
        assert all(right.x0 - left.x1 > 2 for left, right in pairwise(labels))  # pixels

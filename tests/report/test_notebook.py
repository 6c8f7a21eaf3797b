"""Results displayed in a notebook."""

import numpy as np
import pytest
from helpers.report_runs import Tables
from helpers.simulated_results import simulated

import sisod
from sisod.analysis.comparison import Comparison, compare, compare_many
from sisod.analysis.groups import by_size
from sisod.report.drawing.forest import UNDECIDED, comparison_figure
from sisod.report.style import COLOURS


def scored(strength: float, count: int = 12, metrics: str | None = None) -> sisod.Evaluation:
    """Images of two objects, predicted with noise around a mean strength."""
    rng = np.random.default_rng(3)
    evaluator = sisod.Evaluator(metrics=metrics)
    gt = np.zeros((40, 50), dtype=bool)
    gt[2:22, 2:22] = gt[30:33, 30:33] = True
    for number in range(count):
        pred = gt * np.clip(rng.normal(strength, 0.1, gt.shape), 0, 1)
        pred[0, 0] = 1.0
        evaluator.update(pred, gt, name=f"<b>{number}")
    return evaluator.result()


def cells(result: sisod.Evaluation) -> list[list[str]]:
    """The text of every cell of a displayed result."""
    (rows,) = Tables(result._repr_html_()).tables.values()
    return [[text for text, _ in row] for row in rows]


def test_evaluation_displays_its_summary() -> None:
    result = scored(0.6, metrics="paper")
    rows = cells(result)
    assert rows[0] == ["metric", "plain", "size-invariant"]
    assert rows[1] == ["MAE ↓", f"{result.summary['mae']:.4f}", f"{result.summary['si_mae']:.4f}"]
    assert [row[0] for row in rows[1:]] == [
        "MAE ↓", "AUC ↑", "F mean ↑", "F max image ↑", "F max frame ↑", "E mean ↑",
    ]  # fmt: skip
    assert "12 images, 24 objects, protocol default" in result._repr_html_()


def test_undefined_images_are_counted() -> None:
    evaluator = sisod.Evaluator(metrics=["f_mean", "si_f_mean"])
    gt = np.zeros((8, 8), dtype=bool)
    evaluator.update(gt.astype(float), gt)
    gt[2:4, 2:4] = True
    evaluator.update(gt.astype(float), gt)
    rows = cells(evaluator.result())
    # at threshold 0 all is predicted: F = 1.3 * 4 / (64 + 0.3 * 4); at the 255 others it is 1
    assert f"{(255 + 5.2 / 65.2) / 256:.4f}" == "0.9964"
    assert rows[1] == ["F mean ↑", "0.9964 (1 image)", "1.0000 (1 image)"]


def test_evaluation_draws_itself() -> None:
    pytest.importorskip("matplotlib", reason="extra report is not installed")
    result = scored(0.6)
    figure = result.plot()
    f_axes, pr_axes, size_axes, _ = figure.get_axes()
    np.testing.assert_array_equal(f_axes.get_lines()[0].get_ydata(), result.curves["f"])
    np.testing.assert_array_equal(pr_axes.get_lines()[1].get_xdata(), result.curves["si_recall"])
    np.testing.assert_array_equal(
        size_axes.get_lines()[0].get_ydata(), by_size(result, groups="log")["mae"]
    )
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


def test_evaluation_without_si_mae_or_objects_draws_itself() -> None:
    pytest.importorskip("matplotlib", reason="extra report is not installed")
    evaluator = sisod.Evaluator(metrics=["mae"])
    evaluator.update(np.zeros((8, 8)), np.zeros((8, 8), dtype=bool))
    texts = [[t.get_text() for t in axes.texts] for axes in evaluator.result().plot().get_axes()]
    assert texts[0] == ["undefined on every image"]
    assert texts[1] == ["precision was not evaluated"]
    assert texts[3] == ["si_mae was not evaluated"]


def results(n_methods: int) -> dict[str, sisod.Evaluation]:
    rng = np.random.default_rng(0)
    base = rng.uniform(0.1, 0.4, 40)
    return {
        f"method-{i}": simulated(base + 0.02 * i + rng.normal(0, 0.01, 40)) for i in range(n_methods)
    }


def compared(n_methods: int) -> Comparison:
    return compare_many(results(n_methods), metrics=["mae", "f_max"], resamples=100)


@pytest.mark.needs("matplotlib")
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


@pytest.mark.needs("matplotlib")
def test_with_many_methods_each_is_drawn_against_the_first() -> None:
    """Five methods are ten pairs; of six, fifteen would not fit on a page."""
    for n_methods, n_panels in ((3, 3), (5, 10), (6, 5), (12, 11)):
        axes = [one for one in comparison_figure(compared(n_methods)).get_axes() if one.axison]
        assert len(axes) == n_panels
    titles = [one.get_title() for one in axes]
    assert titles[:2] == ["method-0\nagainst method-1", "method-0\nagainst method-2"]
    assert len({one.get_xlim() for one in axes}) == 1  # the same scale

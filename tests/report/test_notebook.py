"""Results displayed in a notebook."""

import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

import sisod
from sisod.analysis.comparison import compare
from sisod.analysis.groups import by_size
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


class Cells(HTMLParser):
    """The text of every cell, row by row."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        """Called by the parser."""
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        """Called by the parser."""
        if self.rows:
            self.rows[-1][-1] += data


def test_evaluation_displays_its_summary() -> None:
    result = scored(0.6, metrics="paper")
    rows = Cells(result._repr_html_()).rows
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
    rows = Cells(evaluator.result()._repr_html_()).rows
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
    heights = [bar.get_height() for bar in size_axes.patches]  # type: ignore[attr-defined]
    table = by_size(result, groups="log")
    np.testing.assert_array_equal(heights, np.nan_to_num(table["mae"].to_numpy()))
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


def test_evaluation_without_si_mae_or_objects_draws_itself() -> None:
    pytest.importorskip("matplotlib", reason="extra report is not installed")
    evaluator = sisod.Evaluator(metrics=["mae"])
    evaluator.update(np.zeros((8, 8)), np.zeros((8, 8), dtype=bool))
    texts = [[t.get_text() for t in axes.texts] for axes in evaluator.result().plot().get_axes()]
    assert texts[0] == ["undefined on every image"]
    assert texts[1] == ["precision was not evaluated"]
    assert texts[3] == ["si_mae was not evaluated"]


def test_comparison_draws_the_better_one_to_the_right() -> None:
    pytest.importorskip("matplotlib", reason="extra report is not installed")
    found = compare(scored(0.9), scored(0.3), metrics=["mae", "si_f_mean"], resamples=200)
    axes = found.plot().get_axes()[0]
    dots = [line.get_xdata() for line in axes.get_lines() if line.get_marker() == "o"]
    assert [float(np.ravel(x)[0]) for x in dots] == [
        -found.table["difference"][0],  # of an error, less is better
        found.table["difference"][1],
    ]
    assert all(float(np.ravel(x)[0]) > 0 for x in dots)


def test_showing_a_table_needs_no_extra() -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import numpy as np, sisod\n"
        "e = sisod.Evaluator(metrics=['mae']); e.update(np.zeros((4, 4)), np.eye(4, dtype=bool))\n"
        "print(e.result()._repr_html_()[:6])\n"
        "try: e.result().plot()\n"
        "except ValueError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.splitlines() == [
        "<table",
        "drawing needs matplotlib; install it with: pip install 'sisod[report]'",
    ]


def test_metric_without_a_better_direction_is_never_an_advantage() -> None:
    pytest.importorskip("matplotlib", reason="extra report is not installed")
    first, second = scored(0.9), scored(0.2)  # the second predicts nothing
    comparison = compare(first, second, metrics=["n_predicted", "object_recall"], resamples=200)
    assert min(comparison.table["low"].to_list()) > 0
    objects, counts = comparison.plot().get_axes()  # on different axes
    _, interval, point = counts.get_lines()
    assert (interval.get_color(), point.get_color()) == ("#888888", "white")  # not filled
    _, other, _ = objects.get_lines()
    assert other.get_color() == COLOURS[0]
    assert "<td>Predicted objects</td>" in first._repr_html_()

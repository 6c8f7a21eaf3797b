"""Figures and page section on objects: equal to the tables; sentences where objects are missing."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.report_runs import Tables, data_of, with_curves, without_objects

import sisod
from sisod.analysis import bootstrap_intervals, object_curve, predicted_by_size
from sisod.common.exceptions import InputError
from sisod.evaluation.results import Result as Saved
from sisod.report import write_report
from sisod.report.drawing.curves import object_figure
from sisod.report.drawing.groups import false_object_figure
from sisod.report.style import FigureRequest

pytest.importorskip("matplotlib", reason="extra report is not installed")
pytest.importorskip("jinja2", reason="extra report is not installed")
NO_CURVE = (
    "the curve was not evaluated, so only the threshold 0.5 is shown; evaluate again with "
    "--metrics all, or with object_ap among the metrics"
)
NONE = "the protocol 'official' has no predicted objects"


@pytest.fixture(scope="module")
def curves(benchmark_root: Path) -> list[Saved]:
    return [with_curves(benchmark_root, method) for method in ("Net", "coarse")]


@pytest.fixture(scope="module")
def crowded(saved: list[Saved]) -> list[Saved]:
    """Four methods on one data set, without curves of objects."""
    return [result for result in saved if result.dataset == "crowded"]


def page_of(results: list[Saved], folder: Path) -> str:
    write_report(results, folder / "r.html", resamples=50)
    return (folder / "r.html").read_text(encoding="utf-8")


def title_of(figure: Any) -> str:
    return " ".join(figure.get_suptitle().split())


def test_drawn_curves_are_those_of_the_analysis(curves: list[Saved]) -> None:
    figure = object_figure(FigureRequest(curves))
    assert title_of(figure) == ""
    left, right = figure.get_axes()
    assert (left.get_title(), right.get_title()) == (
        "crowded, all objects",
        "crowded, objects under 1 % of the image",
    )
    for axes, suffix in ((left, ""), (right, "_small")):
        for line, result in zip(axes.get_lines(), curves, strict=True):
            curve = object_curve(result.evaluation)
            np.testing.assert_array_equal(line.get_xdata(), curve[f"recall{suffix}"])
            np.testing.assert_array_equal(line.get_ydata(), curve[f"precision{suffix}"])
            assert line.get_markevery() == [24]
            assert curve["threshold"][24] == 0.5
    assert len({line.get_linestyle() for line in left.get_lines()}) == 2
    assert len({line.get_marker() for line in left.get_lines()}) == 2


def test_without_a_curve_one_half_is_drawn_and_a_sentence(
    crowded: list[Saved], curves: list[Saved]
) -> None:
    figure = object_figure(FigureRequest(crowded))
    assert title_of(figure) == NO_CURVE
    for line, result in zip(figure.get_axes()[0].get_lines(), crowded, strict=True):
        drawn = np.flatnonzero(np.isfinite(np.asarray(line.get_ydata(), dtype=float)))
        assert drawn.tolist() == [24]
        summary = result.evaluation.summary
        assert float(np.asarray(line.get_xdata())[24]) == summary["object_recall"]
        assert float(np.asarray(line.get_ydata())[24]) == summary["object_precision"]
    some = [curves[0], *crowded[1:]]
    assert title_of(object_figure(FigureRequest(some))) == f"Net+si, coarse, large only: {NO_CURVE}"


def test_bars_are_false_objects_per_image(crowded: list[Saved]) -> None:
    axes = false_object_figure(FigureRequest(crowded)).get_axes()[0]
    n_false = 0
    for container, result in zip(axes.containers, crowded, strict=True):
        table = predicted_by_size(result.evaluation, groups="log")
        heights = [bar.get_height() for bar in container]
        np.testing.assert_allclose(heights, table["false"].to_numpy() / 6)
        n_false += int(table["false"].sum())
    assert n_false > 0
    edges = [(bar.get_x(), bar.get_x() + bar.get_width()) for c in axes.containers for bar in c]
    for (_, end), (start, _) in zip(sorted(edges), sorted(edges)[1:], strict=False):
        assert end <= start + 1e-9  # side by side
    assert [label.get_text() for label in axes.get_xticklabels()][:4] == ["0", "0.03", "0.1", "0.3"]


def test_results_without_predicted_objects(crowded: list[Saved]) -> None:
    none = [without_objects(result) for result in crowded[:2]]
    for draw in (object_figure, false_object_figure):
        with pytest.raises(InputError, match="official"):
            draw(FigureRequest(none))
    mixture = [none[0], crowded[1], Saved("other", "Net", none[0].evaluation)]
    figure = false_object_figure(FigureRequest(mixture))
    assert title_of(figure) == f"Net on crowded, Net on other: {NONE}"
    assert [text.get_text() for text in figure.get_axes()[1].texts] == ["no predicted objects saved"]
    assert len(figure.get_axes()[0].containers) == 1


def test_table_of_the_page_is_that_of_the_summary(crowded: list[Saved], tmp_path: Path) -> None:
    head, names, *rows = Tables(page_of(crowded, tmp_path)).tables["Objects on crowded"]
    assert [cell[0].split()[0] for cell in head] == ["method", "Found", "Predicted", "False", "Both"]
    assert [cell[0] for cell in names] == [
        "count", "recall", "small", "count", "precision", "small", "count", "per image", "area",
        "F1", "F1 small", "PQ", "BSI-F binary",
    ]  # fmt: skip
    keys = [
        "object_recall", "object_recall_small", "object_precision", "object_precision_small",
        "false_objects", "false_area", "object_f1", "object_f1_small", "pq", "bsi_f_binary",
    ]  # fmt: skip
    for row, result in zip(rows, crowded, strict=True):
        evaluation, cells = result.evaluation, row[1:]
        predicted = evaluation.predicted
        assert predicted is not None
        n_found = int((evaluation.objects["recall_binary"] >= 0.5).sum())
        n_false = int(predicted["false"].sum())
        counts = [cells.pop(column)[0].split()[0] for column in (6, 3, 0)]
        assert counts == [str(n_false), str(predicted.height), str(n_found)]
        intervals = bootstrap_intervals(evaluation, keys, resamples=50)
        rows_of_intervals = intervals.iter_rows(named=True)
        for cell, key, interval in zip(cells, keys, rows_of_intervals, strict=True):
            value = evaluation.summary[key]
            if np.isnan(value):
                assert cell[1]["data-tip"] == "undefined: there are no such objects"
                continue
            assert float(str(cell[1]["data-value"])) == pytest.approx(value, rel=1e-12)
            tip = f"95 % interval {interval['low']:.4f} to {interval['high']:.4f}"
            assert str(cell[1]["data-tip"]).startswith(tip)


def test_charts_of_the_page_are_those_of_the_analysis(
    curves: list[Saved], crowded: list[Saved], tmp_path: Path
) -> None:
    page = page_of([curves[0], *crowded[1:]], tmp_path)
    charts = data_of(page)["charts"]["crowded"]
    curve = object_curve(curves[0].evaluation)
    for kind, suffix in (("all", ""), ("small", "_small")):
        for values, name in zip(charts["Net"]["objects"][kind], ("recall", "precision"), strict=True):
            wanted = curve[f"{name}{suffix}"].to_numpy()
            np.testing.assert_allclose(np.array(values, dtype=float), wanted, atol=5e-5)
    for result in crowded[1:]:
        assert "all" not in charts[result.method]["objects"]  # the curve was not evaluated
        false = predicted_by_size(result.evaluation, groups="log")["false"].to_numpy() / 6
        np.testing.assert_allclose(charts[result.method]["objects"]["false"], false, atol=5e-5)
    assert f"Net+si, coarse, large only: {NO_CURVE}" in page


def test_section_needs_no_metric_of_objects(tmp_path: Path) -> None:
    gt = np.zeros((40, 40), dtype=bool)
    gt[2:9, 2:9] = True
    evaluator = sisod.Evaluator(metrics=["mae"])
    evaluator.update(np.roll(gt, 20, axis=1), gt, name="a")
    rows = Tables(page_of([Saved("D", "m", evaluator.result())], tmp_path)).tables["Objects on D"]
    texts = [cell[0] for cell in rows[2][1:]]
    assert texts == ["0", "0.0000", "-", "1", "0.0000", "-", "1", "1.0000", "0.0306", "0.0000", "-",
                     "0.0000", "-"]  # fmt: skip
    assert rows[2][-1][1]["data-tip"] == "not evaluated"

"""Figures of saved results: the drawn numbers equal the tables."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from helpers.command_line import run
from helpers.report_runs import image_options, one_object_scenes, write_benchmark

import sisod
from sisod.analysis.groups import by_number, by_size
from sisod.evaluation.results import Result as Saved
from sisod.evaluation.results import load_results
from sisod.report.drawing.curves import CURVES
from sisod.report.drawing.examples import most_different
from sisod.report.gallery import FIGURES, draw
from sisod.report.style import FigureRequest, save_figure

pytest.importorskip("matplotlib", reason="extra report is not installed")


def drawn(axes: Any) -> list[tuple[Any, Any]]:
    lines = [line for line in axes.get_lines() if line.get_markerfacecolor() != "white"]
    return [(line.get_xdata(), line.get_ydata()) for line in lines]


@pytest.mark.parametrize("kind", CURVES)
def test_curves_are_those_of_the_table(saved: list[Saved], kind: str) -> None:
    x, y, _, _ = CURVES[kind]
    panels = draw(kind, FigureRequest(saved)).get_axes()
    assert [axes.get_title() for axes in panels] == [
        f"{name}, {form}" for name in ("crowded", "mixed") for form in ("plain", "size-invariant")
    ]
    for axes, dataset, prefix in zip(
        panels, ("crowded", "crowded", "mixed", "mixed"), ("", "si_", "", "si_"), strict=True
    ):
        tables = [r.evaluation.curves for r in saved if r.dataset == dataset]
        for (xs, ys), table in zip(drawn(axes), tables, strict=True):
            wanted = np.arange(256) / 255 if x == "threshold" else table[prefix + x].to_numpy()
            np.testing.assert_array_equal(xs, wanted)
            np.testing.assert_array_equal(ys, table[prefix + y].to_numpy())


def test_groups_are_those_of_the_analysis(saved: list[Saved]) -> None:
    panels = draw("size-log", FigureRequest(saved)).get_axes()
    assert [axes.get_title() for axes in panels[:3]] == [
        "Net on crowded",  # with Net+si, the variant of the same network
        "coarse on crowded",
        "large only on crowded",
    ]
    crowded = [r for r in saved if r.dataset == "crowded"]
    for axes, methods in zip(panels, (("Net", "Net+si"), ("coarse",), ("large only",)), strict=False):
        shown = [result for result in crowded if result.method in methods]
        for (_, values), result in zip(drawn(axes), shown, strict=True):
            np.testing.assert_array_equal(values, by_size(result.evaluation, groups="log")["mae"])
    (above,) = panels[0].child_axes
    counts = [label.get_text() for label in above.get_xticklabels()]
    figure = draw(
        "size-log", FigureRequest(saved)
    )  # with a legend, which does not take room from the panels
    figure.draw_without_rendering()
    assert figure.get_axes()[0].bbox.height / figure.dpi == pytest.approx(1.0, abs=0.05)  # inches
    assert counts == [str(n) for n in by_size(crowded[0].evaluation, groups="log")["objects"]]
    numbers = draw("number", FigureRequest(saved)).get_axes()
    for (_, values), result in zip(drawn(numbers[0]), crowded[:2], strict=True):
        np.testing.assert_array_equal(values, by_number(result.evaluation)["si_mae"])


@pytest.mark.slow
def test_one_command_draws_everything(benchmark_root: Path, tmp_path: Path) -> None:
    options = ["plot", str(benchmark_root / "results" / "mixed")]
    options += ["--images", str(benchmark_root / "data" / "mixed" / "image")]
    result = run(*options, "--out", tmp_path / "out", "--format", "svg")
    assert (result.exit_code, result.stderr) == (0, ""), result.exception
    paths = [tmp_path / "out" / f"{name}.svg" for name in FIGURES]
    assert result.stdout.split() == list(map(str, paths))
    assert all(path.read_bytes().startswith(b"<?xml") for path in paths)
    for ending, begin in (("pdf", b"%PDF"), ("png", b"\x89PNG")):
        path = tmp_path / f"size.{ending}"
        assert run(*options, "--out", path, "--figure", "size").exit_code == 0
        assert path.read_bytes().startswith(begin)


def test_names_are_drawn_as_they_are(tmp_path: Path) -> None:
    write_benchmark(tmp_path, "d$1_x$", one_object_scenes(2), ("Net",))
    old = tmp_path / "results" / "d$1_x$" / "Net"
    old.rename(old.with_name("_$a$ <b>"))
    figure = draw("pr", FigureRequest(load_results([tmp_path / "results"])))
    save_figure(figure, tmp_path / "names.svg")
    text = (tmp_path / "names.svg").read_text()
    assert "_$a$ &lt;b&gt;" in text
    assert "d$1_x$, plain" in text


def test_undefined_curves_are_annotated() -> None:
    empty = np.zeros((8, 8), dtype=np.uint8)
    evaluator = sisod.Evaluator()
    evaluator.update(empty, empty, name="nothing")
    saved = [Saved("none", "m", evaluator.result())]
    for axes in draw("pr", FigureRequest(saved)).get_axes():
        assert "undefined on every image" in [text.get_text() for text in axes.texts]
    assert "no objects" in [
        text.get_text() for text in draw("size", FigureRequest(saved)).get_axes()[0].texts
    ]


def test_examples_are_where_methods_differ_most() -> None:
    a = pl.DataFrame({"image": ["x", "x", "y", "y", "z"], "f_mean": [0.9, 0.1, 0.5, 0.5, 1.0]})
    b = pl.DataFrame({"image": ["x", "x", "y", "y", "z"], "f_mean": [0.9, 0.2, 0.9, 0.9, 0.0]})
    # x differs by 0.05, y by 0.4; z by 1, but it has a single object
    assert most_different([a, b], 2) == ["y", "x"]
    assert most_different([a, b], 9) == ["y", "x", "z"]
    assert most_different([a], 1) == ["x"]  # of one method, the worst; a tie goes by name


def test_example_can_be_named(benchmark_root: Path, tmp_path: Path) -> None:
    options = ["plot", str(benchmark_root / "results"), "--figure", "examples", "--example", "scene0003"]
    result = run(*options, *image_options(benchmark_root), "--out", tmp_path / "e.svg")
    assert result.exit_code == 0, (result.stderr, result.exception)
    assert (tmp_path / "e.svg").read_text().count("<image") == 6  # photograph, mask, four methods


@pytest.mark.slow
def test_examples_without_their_files_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    evaluator = sisod.Evaluator(metrics=["mae", "si_mae"])
    gt = np.zeros((9, 9), dtype=bool)
    gt[2:5, 2:5] = True
    evaluator.update(gt, gt, name="a")
    evaluator.result().save(tmp_path / "results" / "D" / "m")
    result = run("plot", tmp_path / "results", "--out", tmp_path / "figures")
    assert result.exit_code == 0, (result.stderr, result.exception)
    assert "warning: examples.pdf is not drawn: the ground truth of 'a' cannot" in result.stderr
    assert not (tmp_path / "figures" / "examples.pdf").exists()
    assert (tmp_path / "figures" / "pr.pdf").exists()

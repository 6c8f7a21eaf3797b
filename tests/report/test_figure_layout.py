"""Every figure stays readable: with 1 to 12 methods, long names, two data sets, both widths."""

from itertools import combinations
from pathlib import Path

import pytest
from helpers.figure_text import METHODS, layout_faults, named_results

from sisod.analysis.comparison import compare_many
from sisod.evaluation.results import Result
from sisod.report.gallery import draw
from sisod.report.style import WIDTHS, FigureRequest, Width, line_styles

mpl = pytest.importorskip("matplotlib", reason="extra report is not installed")

FIGURES = ("pr", "size-log", "number", "objects", "false-objects", "errors", "examples")
PAGE = 8.9  # inches: the height of the text of a two-column paper


@pytest.mark.parametrize("n_methods", [1, 3, 8, 12])
@pytest.mark.parametrize("name", FIGURES)
def test_no_text_overlaps(saved: list[Result], benchmark_root: Path, name: str, n_methods: int) -> None:
    results = named_results(saved, n_methods, repeats=1 if name == "examples" else 20)
    photographs = benchmark_root / "data"
    roots = {"MSOD": photographs / "crowded/image", "DUTS-TE_cleaned": photographs / "mixed/image"}
    width: Width = "double" if n_methods > 3 else "single"
    figure = draw(name, FigureRequest(results, roots, width=width))
    assert layout_faults(figure) == []
    assert figure.get_figwidth() == WIDTHS[width]
    assert figure.get_figheight() <= PAGE


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_no_text_of_twelve_methods_overlaps_in_a_column(saved: list[Result], name: str) -> None:
    results = named_results(saved, 12, repeats=1 if name == "examples" else 20)
    assert layout_faults(draw(name, FigureRequest(results, width="single"))) == []


def test_no_text_of_several_metrics_overlaps(saved: list[Result]) -> None:
    metrics = ["recall_binary", "f_mean", "mae"]
    request = FigureRequest(named_results(saved, 3), metrics=metrics, width="single")
    assert layout_faults(draw("size-log", request)) == []


@pytest.mark.parametrize("n_methods", [2, 3, 8, 12])
def test_no_text_of_a_comparison_overlaps(saved: list[Result], n_methods: int) -> None:
    evaluations = [result.evaluation for result in saved if result.dataset == "mixed"]
    methods = {name: evaluations[i % 4] for i, name in enumerate(METHODS[:n_methods])}
    metrics = ["mae", "si_f_mean", "found", "false_objects"]
    figure = compare_many(methods, metrics=metrics, resamples=20).plot()
    assert layout_faults(figure) == []
    titles = [axes.get_title() for axes in figure.get_axes() if axes.get_title()]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("width", WIDTHS)
def test_no_text_of_the_overview_overlaps(saved: list[Result], width: Width) -> None:
    assert layout_faults(saved[0].evaluation.plot(width=width)) == []


def test_eight_methods_differ_in_everything() -> None:
    styles = list(line_styles(METHODS).values())
    parts = [(style.colour, style.marker, str(style.dash)) for style in styles]
    for a, b in combinations(parts[:8], 2):
        assert all(x != y for x, y in zip(a, b, strict=True)), (a, b)
    for a, b in combinations(parts, 2):
        assert sum(x != y for x, y in zip(a, b, strict=True)) >= 2, (a, b)
    assert len({(style.colour, style.hatch) for style in styles}) == 12

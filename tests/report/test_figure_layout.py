"""Every figure stays readable: with 1 to 12 methods, long names, two data sets, both widths."""

from itertools import combinations
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from helpers.figure_text import METHODS, layout_faults, named_results
from numpy.typing import NDArray

from sisod.analysis.ablation import AblationRow
from sisod.evaluation.results import Result
from sisod.report.ablation import ablation_figure
from sisod.report.drawing.layout import text_width, wrap_text
from sisod.report.figures import curve_figure
from sisod.report.gallery import FigureRequest, draw
from sisod.report.style import COLOURS, WIDTHS, Width, figure_bytes, line_styles

mpl = pytest.importorskip("matplotlib", reason="extra report is not installed")

FIGURES = ("pr", "size", "size-log", "size-quantile", "number", "objects", "false-objects")


@pytest.mark.parametrize("width", get_args(Width))
@pytest.mark.parametrize("name", FIGURES)
def test_no_text_of_twelve_methods_overlaps(saved: list[Result], name: str, width: Width) -> None:
    results = named_results(saved, 12, repeats=60)
    figure = draw(name, FigureRequest(results, width=width))
    assert figure.get_figwidth() == WIDTHS[width]
    assert layout_faults(figure) == []


@pytest.mark.slow
@pytest.mark.parametrize("width", get_args(Width))
@pytest.mark.parametrize("n_methods", [1, 3, 8])
@pytest.mark.parametrize("name", FIGURES)
def test_no_text_overlaps_with_other_numbers_of_methods(
    saved: list[Result], name: str, n_methods: int, width: Width
) -> None:
    results = named_results(saved, n_methods, repeats=60)
    assert layout_faults(draw(name, FigureRequest(results, width=width))) == []


@pytest.mark.parametrize("width", get_args(Width))
@pytest.mark.parametrize("n_methods", [1, 3, 8, 12])
def test_no_text_of_examples_overlaps(
    saved: list[Result], benchmark_root: Path, n_methods: int, width: Width
) -> None:
    results = named_results(saved, n_methods)
    photographs = benchmark_root / "data"
    roots = {"MSOD": photographs / "crowded/image", "DUTS-TE_cleaned": photographs / "mixed/image"}
    figure = draw("examples", FigureRequest(results, roots, width=width))
    assert layout_faults(figure) == []


@pytest.mark.parametrize("width", get_args(Width))
def test_no_text_of_the_ablation_overlaps(width: Width) -> None:
    losses = ("plain", "size-invariant, first epoch plain", "alpha0", METHODS[0])
    rows = [
        AblationRow(loss, name, key, (0.121 + 0.02 * i, 0.112 + 0.025 * i))
        for name in ("MSOD", "DUTS-TE")
        for key in ("mae", "si_mae", "f_mean", "si_f_mean", "si_f_max_frame")
        for i, loss in enumerate(losses)
    ]
    assert layout_faults(ablation_figure(rows, width=width)) == []
    keys = ["si_f_max_frame", "mae"]
    figure = ablation_figure(rows, metrics=keys, width=width)
    assert layout_faults(figure) == []
    assert len({axes.get_xlabel() for axes in figure.get_axes()}) == 2


@pytest.mark.parametrize(("kind", "last"), [("size-log", "mae"), ("number", "si_mae")])
def test_scores_of_several_metrics_do_not_overlap(saved: list[Result], kind: str, last: str) -> None:
    metrics = ["recall_binary", "f_mean", last]
    request = FigureRequest(named_results(saved, 3), metrics=metrics, width="single")
    assert layout_faults(draw(kind, request)) == []


def test_the_check_sees_faults() -> None:
    with mpl.rc_context():
        figure = mpl.figure.Figure(figsize=(3, 2))
        axes = figure.subplots()
        axes.set_xticks([0, 0.01, 1], ["first label", "second label", "last"])
        axes.text(1.3, 0.5, "outside of the figure")
        axes.text(0.5, 0.5, "tiny", fontsize=4)
        axes.plot([0, 1], label="a line")
        figure.legend(loc="center")
        faults = " ".join(layout_faults(figure))
    for fault in ("'second label'", "is outside", "'tiny' has 4", "the legend covers a panel"):
        assert fault in faults


def test_text_is_as_wide_as_it_is_drawn() -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = mpl.figure.Figure(figsize=(6, 1), dpi=100)
    text = figure.text(0, 0.5, METHODS[0], fontsize=8)
    renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    drawn = text.get_window_extent(renderer).width / 100
    assert text_width(METHODS[0], 8) == pytest.approx(drawn, rel=0.03)


def test_names_are_wrapped_after_separators_if_possible() -> None:
    for name in METHODS:
        lines = wrap_text(name, 0.9, 8)
        assert "".join(lines) == name
        assert all(text_width(line, 8) <= 0.9 for line in lines)
    assert wrap_text("EDN", 0.9, 8) == ["EDN"]
    assert wrap_text("again with --metrics all", 0.8, 8, hyphens=False) == [
        "again with",
        "--metrics all",
    ]
    assert wrap_text("two words", 0.4, 8) == ["two", "words"]
    assert wrap_text("", 1, 8) == [""]


def test_eight_methods_differ_in_everything() -> None:
    styles = list(line_styles(METHODS).values())
    parts = [(style.colour, style.marker, str(style.dash)) for style in styles]
    assert len(parts) == 12
    for a, b in combinations(parts[:8], 2):
        assert all(x != y for x, y in zip(a, b, strict=True)), (a, b)
    for a, b in combinations(parts, 2):
        assert sum(x != y for x, y in zip(a, b, strict=True)) >= 2, (a, b)
    bars = {(style.colour, style.hatch) for style in styles}
    assert len(bars) == 12


# Machado, Oliveira and Fernandes 2009, severity 1, for linear RGB
VISION: dict[str, NDArray[np.float64]] = {
    "normal": np.eye(3),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
}


def lab(colour: str, vision: NDArray[np.float64]) -> NDArray[np.float64]:
    """CIE L*a*b* of a colour as somebody sees it."""
    code = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(code <= 0.04045, code / 12.92, ((code + 0.055) / 1.055) ** 2.4)
    seen = np.clip(vision @ linear, 0, 1)
    xyz = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750],
           [0.0193339, 0.1191920, 0.9503041]] @ seen / [0.95047, 1, 1.08883]  # fmt: skip
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("vision", VISION)
def test_colours_differ_for_everybody(vision: str) -> None:
    seen = {colour: lab(colour, VISION[vision]) for colour in COLOURS}
    white = lab("#ffffff", VISION[vision])
    for a, b in combinations(COLOURS, 2):
        assert np.linalg.norm(seen[a] - seen[b]) > 15, (a, b)  # 2.3 is just noticeable
    assert all(np.linalg.norm(colour - white) > 30 for colour in seen.values())


def test_settings_of_the_user_change_nothing(saved: list[Result]) -> None:
    wanted = figure_bytes(curve_figure(saved[:2], "f"), "svg")
    own = {"figure.facecolor": "black", "lines.linewidth": 5, "font.family": "serif", "text.color": "w"}
    with mpl.rc_context(own):
        assert figure_bytes(curve_figure(saved[:2], "f"), "svg") == wanted


def test_fonts_are_embedded_in_a_pdf(saved: list[Result]) -> None:
    content = figure_bytes(curve_figure(saved[:1], "f"), "pdf")
    assert b"/FontFile2" in content  # TrueType, fonttype 42
    assert b"/Type3" not in content  # publishers refuse these
    assert b"/CreationDate" not in content

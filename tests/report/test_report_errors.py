"""Figures, tables, command and page section of the error breakdown: the numbers of the analysis."""

import csv
import dataclasses
import io
import json
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from helpers.command_line import run
from helpers.report_runs import Tables, without_objects

from sisod.analysis import error_breakdown
from sisod.analysis.error_breakdown import CLASS_TITLES, ERROR_CLASSES
from sisod.common.exceptions import InputError
from sisod.evaluation.results import Result as Saved
from sisod.report import write_report
from sisod.report.drawing.error_bars import error_figure, error_size_figure
from sisod.report.error_breakdown import CLASS_STYLES, error_grid, error_size_grid
from sisod.report.page.error_breakdown import error_section
from sisod.scoring.protocols import Protocol

pytest.importorskip("matplotlib", reason="extra report is not installed")
pytest.importorskip("jinja2", reason="extra report is not installed")


@pytest.fixture(scope="module")
def crowded(saved: list[Saved]) -> list[Saved]:
    """Four methods on one data set."""
    return [result for result in saved if result.dataset == "crowded"]


def widths(axes: Any) -> list[list[float]]:
    """Width of the bars of each class, as shares."""
    return [[patch.get_width() / 100 for patch in container] for container in axes.containers]


def test_bars_are_the_shares_of_the_analysis(crowded: list[Saved]) -> None:
    left, right = error_figure(crowded).get_axes()
    for axes, column in ((left, "object_share"), (right, "image_share")):
        expected = [error_breakdown(r.evaluation)[column].fill_null(0).to_list() for r in crowded]
        np.testing.assert_allclose(np.array(widths(axes)).T, expected, atol=1e-12)
    assert [label.get_text() for label in left.get_yticklabels()] == [r.method for r in crowded]
    first, last = left.get_ylim()
    assert first > last  # the first method is on top
    assert left.get_xlim() == (0, 100)


def test_size_figure_has_a_panel_for_each_method(saved: list[Saved]) -> None:
    panels = [axes for axes in error_size_figure(saved).get_axes() if axes.containers]
    assert [axes.get_title() for axes in panels] == [
        f"{result.method}, {result.dataset}" for result in sorted(saved, key=_dataset)
    ]
    for axes, result in zip(panels, sorted(saved, key=_dataset), strict=True):
        table = error_breakdown(result.evaluation, by="size")
        groups = [label.get_text() for label in axes.get_yticklabels()]
        for row, group in enumerate(groups):
            part = table.filter(pl.col("group") == group)["object_share"].fill_null(0).fill_nan(0)
            drawn = [class_widths[row] for class_widths in widths(axes)]
            np.testing.assert_allclose(drawn, [*part, 0], atol=1e-12)


def _dataset(result: Saved) -> str:
    return result.dataset


def test_classes_differ_in_colour_and_those_beside_each_other_in_lightness_or_hatch() -> None:
    styles = list(CLASS_STYLES.values())
    assert list(CLASS_STYLES) == list(ERROR_CLASSES)
    assert len({fill.colour for fill in styles}) == len(styles)
    for left_out in ("in_frame", "correct"):  # in a bar of pixels, and in one of objects
        bar = [fill for name, fill in CLASS_STYLES.items() if name != left_out]
        for one, two in pairwise(bar):
            contrast = _contrast(one.colour, two.colour)
            assert one.hatch != two.hatch or contrast > 1.5, (one, two)
    for fill in styles:
        text = {"black": "#000000", "white": "#ffffff"}[fill.text]
        assert _contrast(fill.colour, text) >= 4.5, fill


def _contrast(one: str, two: str) -> float:
    def luminance(colour: str) -> float:
        parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))

    dark, light = sorted((luminance(one), luminance(two)))
    return (light + 0.05) / (dark + 0.05)


def test_results_without_objects_are_named_and_left_out(crowded: list[Saved]) -> None:
    some = [without_objects(crowded[0]), *crowded[2:]]
    figure = error_figure(some)
    assert len(figure.get_axes()[0].get_yticklabels()) == 2
    assert figure.get_suptitle().startswith(f"{crowded[0].method}: ")
    assert "official" in figure.get_suptitle()
    with pytest.raises(InputError, match="official"):
        error_size_figure(some[:1])
    assert error_section("crowded", some[:1]).objects == ()


def test_tables(crowded: list[Saved]) -> None:
    grid = error_grid(crowded)
    assert grid.headings[:4] == ("data set", "class", "Net objects", "Net pixels")
    assert [row[1] for row in grid.rows] == [*CLASS_TITLES.values(), "sum"]
    table = error_breakdown(crowded[0].evaluation)
    count, share = table["objects"][6], table["object_share"][6]
    assert grid.rows[6][2] == f"{count:,} ({100 * share:.1f} %)"
    assert grid.rows[-1][2] == f"{table['objects'].sum():,}"
    assert grid.rows[-1][3] == f"{100 * table['image_share'].sum():.2f} %"
    sizes = error_size_grid(crowded)
    assert sizes.headings[3:] == ("objects", *(CLASS_TITLES[n] for n in ERROR_CLASSES if n in _OBJECTS))
    for row in sizes.rows:
        if row[3] != "0":
            assert sum(float(cell.removesuffix(" %")) for cell in row[4:]) == pytest.approx(100, abs=0.4)


_OBJECTS = ("correct", "partly_found", "spilled", "merged", "split", "missed", "invented")


def test_a_method_that_is_not_on_every_data_set(saved: list[Saved]) -> None:
    grid = error_grid(saved[:-1])
    assert {row[0] for row in grid.rows} == {"crowded", "mixed"}
    assert grid.sections == {10}
    assert "-" in grid.rows[-1]


def test_command(benchmark_root: Path, saved: list[Saved]) -> None:
    results = benchmark_root / "results"
    text = run("errors", results).stdout
    assert "partly found" in text
    assert "Net+si objects" in text
    assert "invented ones included" in text
    text = run("errors", results, "--by", "size").stdout
    assert "large only" in text
    assert "10-30 %" in text
    rows = json.loads(run("errors", results, "--format", "json").stdout)
    assert len(rows) == len(saved) * len(ERROR_CLASSES)
    expected = error_breakdown(saved[0].evaluation).row(6, named=True)
    assert rows[6] == {"dataset": saved[0].dataset, "method": saved[0].method} | expected
    sheet = run("errors", results / "mixed", "--by", "size", "--format", "csv").stdout
    records = list(csv.DictReader(io.StringIO(sheet)))
    assert {record["dataset"] for record in records} == {"mixed"}
    assert records[0]["group"] == "0-0.03 %"
    assert run("errors", results, "--format", "latex").stdout.startswith(r"\begin{tabular}{llrr")
    assert run("errors", results, "--format", "md", "--by", "size").stdout.startswith(
        "| data set | size"
    )


def test_command_on_different_protocols(saved: list[Saved], tmp_path: Path) -> None:
    saved[0].evaluation.save(tmp_path / "D" / "A")
    other = Protocol("default+min_area=0", min_area=0)
    dataclasses.replace(
        saved[0].evaluation,
        protocol=other,
        run=saved[0].evaluation.run | {"protocol": dataclasses.asdict(other)},
    ).save(tmp_path / "D" / "B")
    assert run("errors", tmp_path).stderr == (
        "warning: the results have different protocols (default, default+min_area=0), so numbers are "
        "not comparable\n"
    )


def test_page(crowded: list[Saved], tmp_path: Path) -> None:
    some = [without_objects(crowded[0]), *crowded[1:]]
    write_report(some, tmp_path / "r.html", resamples=20)
    page = unescape((tmp_path / "r.html").read_text(encoding="utf-8"))
    part = page[page.index('<section id="errors"') : page.index('<section id="failures"')]
    assert f'<p class="note">{crowded[0].method}: ' in part
    section = error_section("crowded", some)
    for bars in (section.objects, *(bars for _, bars in section.sizes)):
        for bar in bars:
            total = sum(part.width for part in bar.parts)
            assert total == pytest.approx(100 if bar.parts else 0, abs=0.01)
            assert f'aria-label="{bar.text}"' in part
    assert [bar.method for bar in section.objects] == [result.method for result in crowded[1:]]
    assert max(sum(part.width for part in bar.parts) for bar in section.pixels) == pytest.approx(100)
    cells = Tables(page).tables["Errors on crowded"]
    grid = error_grid(crowded[1:])
    assert [text for text, _ in cells[0]] == list(grid.headings[1:])
    assert [[text for text, _ in row] for row in cells[1:]] == [list(row[1:]) for row in grid.rows]


def test_page_of_results_without_the_breakdown(crowded: list[Saved], tmp_path: Path) -> None:
    write_report([without_objects(result) for result in crowded], tmp_path / "r.html", resamples=20)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "has no error breakdown" in page or "no predicted objects" in page
    assert "error-bar" not in page[page.index('<section id="errors"') :]

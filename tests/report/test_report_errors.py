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
from helpers.command_line import error_message, run
from helpers.report_runs import Tables, without_errors, without_objects

from sisod.analysis import error_breakdown
from sisod.analysis.errors import CLASS_TITLES, ERROR_CLASSES
from sisod.common.errors import InputError
from sisod.evaluation.results import Result as Saved
from sisod.report import write_report
from sisod.report.errors import (
    CLASS_STYLES,
    error_figure,
    error_grid,
    error_size_figure,
    error_size_grid,
    missing_errors,
)
from sisod.report.page.errors import error_section
from sisod.report.style import Width, figure_bytes
from sisod.scoring.protocols import Protocol

pytest.importorskip("matplotlib", reason="extra report is not installed")
pytest.importorskip("jinja2", reason="extra report is not installed")
OLD = "the result was saved before the error breakdown existed; evaluate again with: sisod evaluate "


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
        groups = [label.get_text().strip() for label in axes.get_yticklabels()]
        if not any(groups):  # only the panel on the left has labels
            continue
        for row, group in enumerate(groups):
            part = table.filter(pl.col("group") == group)["object_share"].fill_null(0).fill_nan(0)
            drawn = [class_widths[row] for class_widths in widths(axes)]
            np.testing.assert_allclose(drawn, [*part, 0], atol=1e-12)


@pytest.mark.parametrize("width", ["single", "double"])
@pytest.mark.parametrize("count", [2, 5, 12])
def test_size_figure_of_long_names(count: int, width: Width, crowded: list[Saved]) -> None:
    """Headings differ and name the data set; texts are apart; the figure fits on a page."""
    results = [
        Saved(dataset, f"resnet50-finetuned-seed-{i}-on-the-training-set", crowded[i % 4].evaluation)
        for dataset in ("ECSSD", "MSOD")
        for i in range(count)
    ]
    figure = error_size_figure(results, width=width)
    panels = [axes for axes in figure.get_axes() if axes.containers]
    assert len(panels) == 2 * count
    titles = [axes.get_title() for axes in panels]
    assert len(set(titles)) == len(titles)
    assert all(t.endswith("ECSSD" if i < count else "MSOD") for i, t in enumerate(titles))
    if width == "double" or count < 12:
        assert figure.get_figheight() <= 9.5
    figure.draw_without_rendering()
    boxes = [axes.title.get_window_extent() for axes in panels]
    for left, right in pairwise(boxes):
        assert left.x1 < right.x0 or left.y0 > right.y1
    assert min(box.x0 for box in boxes) >= 0
    assert max(box.x1 for box in boxes) <= figure.bbox.x1
    for axes in panels:
        labels = [label.get_window_extent() for label in axes.get_xticklabels()]
        assert all(a.x1 < b.x0 for a, b in pairwise(labels))


def _dataset(result: Saved) -> str:
    return result.dataset


@pytest.mark.parametrize("width", ["single", "double"])
@pytest.mark.parametrize("count", [1, 3, 8, 12])
def test_names_and_bars_do_not_overlap(count: int, width: Width, crowded: list[Saved]) -> None:
    names = ["a method with a very long name, its backbone and its loss", "b" * 60, "c$d_e", "short"]
    results = [Saved("D", f"{names[i % 4]}{i}", crowded[i % 4].evaluation) for i in range(count)]
    figure = error_figure(results, width=width)
    figure.draw_without_rendering()
    left, right = figure.get_axes()
    boxes = [label.get_window_extent() for label in left.get_yticklabels()]
    for above, below in pairwise(boxes):
        assert above.y0 >= below.y1 - 1  # pixels
    assert min(box.x0 for box in boxes) >= 0
    assert left.get_window_extent().width > 150
    if width == "double":
        assert right.get_window_extent().x0 > left.get_window_extent().x1
    else:
        assert right.get_window_extent().y1 < left.get_window_extent().y0
    legend = figure.legends[0].get_window_extent()
    assert legend.x0 >= 0
    assert legend.x1 <= figure.bbox.x1


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


def test_the_same_figure_gives_the_same_bytes(crowded: list[Saved]) -> None:
    assert figure_bytes(error_figure(crowded), "svg") == figure_bytes(error_figure(crowded), "svg")


def test_older_results_are_named_and_left_out(crowded: list[Saved]) -> None:
    some = [without_errors(crowded[0]), without_objects(crowded[1]), *crowded[2:]]
    notes = missing_errors(some)
    assert notes[0].startswith(f"{crowded[0].method}: {OLD}")
    assert "saved before predicted objects existed, so it has no error breakdown" in notes[1]
    figure = error_figure(some)
    assert len(figure.get_axes()[0].get_yticklabels()) == 2
    assert crowded[0].method in figure.get_suptitle()
    with pytest.raises(InputError, match="saved before the error breakdown existed"):
        error_size_figure(some[:1])
    assert error_section("crowded", some[:2]).objects == ()


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


def test_command_on_older_results(saved: list[Saved], tmp_path: Path) -> None:
    older = without_errors(saved[0])
    older.evaluation.save(tmp_path / "D" / "old")
    assert error_message(run("errors", tmp_path)).startswith(OLD)
    saved[0].evaluation.save(tmp_path / "D" / "new")
    result = run("errors", tmp_path)
    assert "new objects" in result.stdout
    assert f"warning: old: {OLD}" in " ".join(result.stderr.split())


def test_page(crowded: list[Saved], tmp_path: Path) -> None:
    some = [without_errors(crowded[0]), *crowded[1:]]
    write_report(some, tmp_path / "r.html", resamples=20)
    page = unescape((tmp_path / "r.html").read_text(encoding="utf-8"))
    part = page[page.index('<section id="errors"') : page.index('<section id="failures"')]
    assert f"{crowded[0].method}: {OLD}" in part
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
    assert "so it has no error breakdown; evaluate again" in page
    assert "error-bar" not in page[page.index('<section id="errors"') :]

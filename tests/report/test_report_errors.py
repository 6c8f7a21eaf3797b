"""Figures, tables, command and page section of the error breakdown: the numbers of the analysis."""

import csv
import io
import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.command_line import run
from helpers.report_runs import Tables, without_objects

from sisod.analysis import error_breakdown
from sisod.analysis.error_breakdown import CLASS_TITLES, ERROR_CLASSES
from sisod.common.exceptions import InputError
from sisod.evaluation.results import Result as Saved
from sisod.report import write_report
from sisod.report.error_breakdown import (
    error_figure,
    error_grid,
    error_section,
    error_size_grid,
)
from sisod.report.style import FigureRequest

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
    left, right = error_figure(FigureRequest(crowded)).get_axes()
    for axes, column in ((left, "object_share"), (right, "image_share")):
        expected = [error_breakdown(r.evaluation)[column].fill_null(0).to_list() for r in crowded]
        np.testing.assert_allclose(np.array(widths(axes)).T, expected, atol=1e-12)
    assert [label.get_text() for label in left.get_yticklabels()] == [r.method for r in crowded]
    first, last = left.get_ylim()
    assert first > last  # the first method is on top
    assert left.get_xlim() == (0, 100)


def test_results_without_objects_are_named_and_left_out(crowded: list[Saved]) -> None:
    some = [without_objects(crowded[0]), *crowded[2:]]
    figure = error_figure(FigureRequest(some))
    assert len(figure.get_axes()[0].get_yticklabels()) == 2
    assert figure.get_suptitle().startswith(f"{crowded[0].method}: ")
    assert "official" in figure.get_suptitle()
    with pytest.raises(InputError, match="official"):
        error_figure(FigureRequest(some[:1]))
    assert error_section("crowded", some[:1]).bars == {}


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


_OBJECTS = ("correct", "partly_found", "spilled", "merged", "split", "missed", "false")


def test_command(benchmark_root: Path, saved: list[Saved]) -> None:
    results = benchmark_root / "results"
    text = run("errors", results).stdout
    assert "partly found" in text
    assert "Net+si objects" in text
    assert "false ones included" in text
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


def test_page(crowded: list[Saved], tmp_path: Path) -> None:
    some = [without_objects(crowded[0]), *crowded[1:]]
    write_report(some, tmp_path / "r.html", resamples=20)
    page = unescape((tmp_path / "r.html").read_text(encoding="utf-8"))
    part = page[page.index('<section id="errors"') : page.index('<section id="failures"')]
    assert f'<p class="note">{crowded[0].method}: ' in part
    for label, parts in re.findall(
        r'aria-label="([^"]*)">(.*?)</span>\s*<span class="error-total', part
    ):
        widths = [float(width) for width in re.findall(r"width:([0-9.]+)%", parts)]
        assert label.split(": ")[0] in [result.method for result in crowded[1:]]
        if "of all pixels" not in label and widths:
            assert sum(widths) == pytest.approx(100, abs=0.01)
    assert part.count('class="error-bar"') == 2 * 3 + 3 * len(error_section("crowded", some).sizes)
    cells = Tables(page).tables["Errors on crowded"]
    grid = error_grid(crowded[1:])
    assert [text for text, _ in cells[0]] == list(grid.headings[1:])
    assert [[text for text, _ in row] for row in cells[1:]] == [list(row[1:]) for row in grid.rows]

"""The section on objects of the page in Chromium: charts, table, contrast, results without objects."""

import re
from collections.abc import Collection
from pathlib import Path

import pytest
from helpers.browser import Browser, choose, click
from helpers.report_runs import with_curves, without_objects

from sisod.analysis import predicted_by_size
from sisod.evaluation.results import Result as Saved
from sisod.report import write_report

pytest.importorskip("jinja2", reason="extra report is not installed")


def n_bars(saved: list[Saved], dataset: str, methods: Collection[str]) -> int:
    """Size groups with false objects, over the methods."""
    chosen = [r for r in saved if r.dataset == dataset and r.method in methods]
    counts = [predicted_by_size(result.evaluation, groups="log")["false"] for result in chosen]
    return sum(int((column > 0).sum()) for column in counts)


def test_objects_section(page: Browser, saved: list[Saved]) -> None:
    charts = "[...document.querySelectorAll('#object-charts .chart')]"
    bars = f"{charts}[2].querySelectorAll('.bar').length"
    assert page.evaluate(f"{charts}.map(c => c.querySelector('figcaption').textContent)") == [
        "All objects",
        "Objects under 1 % of the image",
        "False objects, by their size",
    ]
    # the curve was not evaluated: of each method the mark at one half, and no line
    summaries = {r.method: r.evaluation.summary for r in saved if r.dataset == "crowded"}
    readout = page.evaluate(f"{charts}[0].querySelector('.readout').textContent")
    assert readout.startswith("threshold 0.5")
    for method, summary in summaries.items():
        values = f"{summary['object_recall']:.4f}, {summary['object_precision']:.4f}"
        assert f"{method} {values}" in readout
    marks = f"{charts}[0].querySelectorAll('g[fill] path').length"
    assert page.evaluate(marks) == 4
    assert "the curve was not evaluated" in page.evaluate("document.body.innerText").lower()
    assert page.evaluate(bars) == n_bars(saved, "crowded", summaries)
    click(page, "#legend button", 2)
    assert page.evaluate(marks) == 3
    page.evaluate("document.querySelectorAll('#object-charts svg.plot')[2].focus()")
    page.press("ArrowRight")
    text = page.evaluate(f"{charts}[2].querySelector('.readout').textContent")
    assert text.startswith("0-0.03 %")
    choose(page, "dataset", "1")
    name = "document.querySelector('#objects .dataset-name').textContent"
    assert page.evaluate(name) == "on mixed"
    shown = ("Net", "Net+si", "large only")
    assert page.evaluate(bars) == n_bars(saved, "mixed", shown) > 0


def test_objects_table_sorts_and_shows_intervals(page: Browser) -> None:
    table = "document.querySelector('#objects table.scores')"
    invented = f"[...{table}.tBodies[0].rows].map(r => Number(r.cells[7].dataset.value))"
    before = page.evaluate(invented)
    click(page, "#objects table.scores .sort", 7)
    assert page.evaluate(invented) == sorted(before)  # the fewest, which is the best, first
    assert len(set(before)) > 1
    page.point("#objects table.scores tbody td")
    tip = page.evaluate("document.getElementById('tip').textContent")
    assert re.fullmatch(r"of \d+ objects in the ground truth", tip)
    click(page, "#intervals")
    shown = "getComputedStyle(document.querySelector('#objects .interval')).display"
    assert page.evaluate(shown) == "block"


def test_page_of_results_without_predicted_objects(
    browser: Browser, saved: list[Saved], tmp_path: Path
) -> None:
    older = [without_objects(result) for result in saved[:3]]
    for results, charts in ((older, 0), ([*older, *saved[3:]], 3)):
        write_report(results, tmp_path / "old.html", resamples=20)
        browser.open(tmp_path / "old.html")
        text = browser.evaluate("document.getElementById('objects').innerText")
        assert "the protocol 'official' has no predicted objects" in text.lower()
        number = browser.evaluate("document.querySelectorAll('#object-charts .chart').length")
        assert number == charts
        for kind in range(len(results)):
            click(browser, "#legend button", kind % 3)
        assert browser.troubles() == []


def test_object_curves_have_one_mark(browser: Browser, benchmark_root: Path, tmp_path: Path) -> None:
    results = [with_curves(benchmark_root, method) for method in ("Net", "coarse")]
    write_report(results, tmp_path / "curves.html", resamples=20)
    browser.open(tmp_path / "curves.html")
    chart = "document.querySelector('#object-charts .chart')"
    lines = browser.evaluate(f"[...{chart}.querySelectorAll('.series')].map(s => s.getAttribute('d'))")
    assert len(lines) == 2
    assert min(line.count("L") for line in lines) > 10
    assert browser.evaluate(f"{chart}.querySelectorAll('g[fill] path').length") == 2
    browser.evaluate(f"{chart}.querySelector('svg.plot').focus()")
    browser.press("End")
    readout = browser.evaluate(f"{chart}.querySelector('.readout').textContent")
    assert re.match(r"threshold 0\.\d+ \(logit \d[\d.]*\)Net ", readout)
    click(browser, "#object-charts details summary")
    browser.evaluate("new Promise(done => setTimeout(done, 100))")
    assert browser.evaluate(f"{chart}.querySelectorAll('tbody tr').length") == 49
    assert browser.troubles() == []

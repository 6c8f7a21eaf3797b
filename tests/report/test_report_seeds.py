"""Runs named NAME@SEED are one method on the page: mean and deviation over the seeds."""

from pathlib import Path

import numpy as np
import pytest
from helpers.browser import Browser, click
from helpers.report_runs import Tables, data_of

from sisod.analysis import by_size, error_breakdown
from sisod.analysis.comparison import compare_many
from sisod.evaluation.results import Result as Saved
from sisod.report import write_report

pytest.importorskip("jinja2", reason="extra report is not installed")
NAMES = {"Net": "M@0", "Net+si": "M@1", "coarse": "coarse"}


@pytest.fixture(scope="module")
def seeds(saved: list[Saved]) -> list[Saved]:
    """Two runs of one method, and another method."""
    chosen = [r for r in saved if r.dataset == "crowded" and r.method in NAMES]
    return [Saved(r.dataset, NAMES[r.method], r.evaluation) for r in chosen]


@pytest.fixture(scope="module")
def path(seeds: list[Saved], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("seeds") / "r.html"
    write_report(seeds, out, resamples=50)
    return out


def test_tables_have_mean_and_deviation(seeds: list[Saved], path: Path) -> None:
    page = path.read_text()
    first, second = Tables(page).tables["Scores on crowded"][2:]
    assert (first[0][0], second[0][0]) == ("M 2 seeds", "coarse")
    values = [r.evaluation.summary["mae"] for r in seeds[:2]]
    assert float(str(first[1][1]["data-value"])) == pytest.approx(np.mean(values), rel=1e-12)
    assert f"± {np.std(values, ddof=1):.4f}" in first[1][0]
    assert "±" not in second[1][0]
    found = [float((r.evaluation.objects["recall_binary"] >= 0.5).to_numpy().mean()) for r in seeds]
    column = [cell[0] for cell in Tables(page).tables["Scores on crowded"][1]].index("found") + 1
    for row, value in ((first, np.mean(found[:2])), (second, found[2])):
        assert float(str(row[column][1]["data-value"])) == pytest.approx(value)
    compared = compare_many({r.method: r.evaluation for r in seeds}, metrics=["mae"], resamples=50)
    low, high = compared.intervals.row(0)[3:5]
    assert f"95 % interval {low:.4f} to {high:.4f}" in str(first[1][1]["data-tip"])
    pairs = Tables(page).tables["Pairs of methods on crowded"]
    assert [cell[0] for cell in pairs[0][1:3]] == ["M", "coarse"]
    everything = Tables(page).tables["All metrics on crowded"]
    assert [cell[0] for cell in everything[0]] == ["metric", "M", "coarse"]
    assert everything[1][1][0] == f"{np.mean(values):.4f}"
    assert "On crowded, " in page.split('class="callout">')[1].split("</p>")[0]
    assert "M@" not in page.split('<section id="failures"')[0].split("Table of errors")[0]


def test_charts_are_means_and_failures_single_runs(seeds: list[Saved], path: Path) -> None:
    data = data_of(path.read_text())
    assert data["methods"] == ["M", "coarse"]
    assert data["failures"]["methods"] == ["M@0", "M@1", "coarse"]
    chart = data["charts"]["crowded"]["M"]
    tables = [by_size(r.evaluation, groups="log") for r in seeds[:2]]
    assert chart["sizes"]["log"]["counts"] == tables[0]["objects"].to_list()
    wanted = np.mean([table["mae"].to_numpy() for table in tables], axis=0)
    found = np.array(chart["sizes"]["log"]["values"]["mae"], dtype=float)
    np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_error_bars_pool_the_seeds(seeds: list[Saved], path: Path) -> None:
    tables = [error_breakdown(r.evaluation) for r in seeds[:2]]
    missed = sum(int(table["objects"][6]) for table in tables)
    share = missed / sum(int(table["objects"].sum()) for table in tables)
    assert tables[0]["class"][6] == "missed"
    assert f"missed: {missed:,} ({100 * share:.1f} %)" in path.read_text()


def test_a_bar_leads_to_the_first_run(browser: Browser, path: Path) -> None:
    browser.open(path)
    click(browser, "#errors a.error-missed")
    browser.evaluate("new Promise(done => setTimeout(done, 50))")
    text = browser.evaluate("document.getElementById('f-count').textContent")
    assert " of M@0 in the class" in text
    # the colour of a run is that of its method
    colours = browser.evaluate("""['.scores tbody th', '#f-items .method'].map(
      (s) => document.querySelector(s + ' .swatch path').getAttribute('stroke'))""")
    assert colours[0] == colours[1]
    assert browser.troubles() == []

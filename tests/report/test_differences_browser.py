"""Marks, headline and forest plot in Chromium: as shown, with many methods and long names."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.browser import Browser, chromium, contrasts, every
from helpers.report_runs import Tables

from sisod.evaluation.results import Result as Saved
from sisod.report import write_report

pytest.importorskip("jinja2", reason="extra report is not installed")
pytestmark = pytest.mark.skipif(chromium() is None, reason="Chromium is not installed")
WIDTHS = (1440, 400)
NAME = "resnet50-unet-with-a-very-long-name-baseline-seed-{}"


@pytest.fixture(scope="module", params=WIDTHS)
def browser(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile"), width=request.param) as started:
        yield started


@pytest.fixture(scope="module")
def pages(saved: list[Saved], tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Number of methods -> a page of the data set `mixed` with as many, under long names."""
    base = [result.evaluation for result in saved if result.dataset == "mixed"]
    root = tmp_path_factory.mktemp("pages")
    for count in (1, 3, 8, 12):
        results = [Saved("mixed", NAME.format(i), base[i % len(base)]) for i in range(count)]
        write_report(results, root / f"{count}.html", resamples=100)
    return {count: root / f"{count}.html" for count in (1, 3, 8, 12)}


@pytest.mark.parametrize("count", [1, 3, 8, 12])
def test_long_names_fit(browser: Browser, pages: dict[int, Path], count: int) -> None:
    browser.prefer("light")
    browser.open(pages[count])
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    # in the main table a name has at most five lines, below its line in the charts
    every(browser, ".scores tbody th", "e.getBoundingClientRect().height < 140")
    panels = browser.evaluate("document.querySelectorAll('#differences .forest').length")
    assert panels == (11 if count > 1 else 0)
    if count == 1:
        return
    assert every(browser, ".forest tbody tr", "e.getBoundingClientRect().height < 30") == 11 * count
    # nothing sticks out of its lane
    every(
        browser,
        ".forest tbody circle, .forest .span",
        "(b => b.left >= e.closest('svg').getBoundingClientRect().left - 5"
        " && b.right <= e.closest('svg').getBoundingClientRect().right + 5)(e.getBoundingClientRect())",
    )
    # every name is shown in full length, shortened in the middle, and read as a whole
    every(browser, ".forest tbody th", "e.firstChild.offsetWidth <= e.clientWidth - 8")
    shown = browser.evaluate(
        "[...document.querySelector('.forest').querySelectorAll('th')].map(h => h.innerText)"
    )
    assert len(shown) == count
    assert shown[0].startswith("resnet5…seed-0")
    assert browser.troubles() == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_scores_and_differences_have_enough_contrast(
    browser: Browser, pages: dict[int, Path], theme: str
) -> None:
    browser.prefer(theme)
    browser.open(pages[8])
    for section in ("#scores", "#differences"):
        values = contrasts(browser, f"{section} *")
        assert len(values) > 80
        assert min(values)[0] >= 4.5, min(values)
    # the two verdicts differ in colour, and in whether the dot is filled
    style = "(kind => (s => [s.stroke, s.fill])(getComputedStyle(document.querySelector(kind))))"
    worse, undecided = (
        browser.evaluate(f"{style}('.forest .{kind} circle')") for kind in ("worse", "undecided")
    )
    assert worse[0] == worse[1] != undecided[0] != undecided[1]


def test_marks_and_headline_are_those_of_the_page(browser: Browser, pages: dict[int, Path]) -> None:
    browser.prefer("light")
    browser.open(pages[3])
    callouts = browser.evaluate("[...document.querySelectorAll('.callout')].map(c => c.innerText)")
    assert len(callouts) == 1
    assert callouts[0].startswith("On mixed, ")
    rows = Tables(pages[3].read_text()).tables["Scores on mixed"][2:]
    marked = [cell[0].startswith("≈") for row in rows for cell in row[1:]]
    visible = browser.evaluate(
        "[...document.querySelectorAll('.scores')][0].querySelectorAll('tbody td').values().map("
        "d => d.innerText.startsWith('≈')).toArray()"
    )
    assert visible == marked
    assert any(marked)


def test_the_difference_under_the_pointer(browser: Browser, pages: dict[int, Path]) -> None:
    browser.prefer("light")
    browser.open(pages[3])
    row = ".forest tbody tr[data-tip]"
    browser.point(f"{row} .lane")
    tip = browser.evaluate("document.getElementById('tip').hidden ? '' : tip.textContent")
    assert tip == browser.evaluate(f"document.querySelector({json.dumps(row)}).dataset.tip")
    assert tip.startswith(NAME.format(0)[:20])
    assert ", 95 % interval " in tip

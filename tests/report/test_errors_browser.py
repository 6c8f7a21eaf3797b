"""The section on errors of the page in Chromium: bars, tips, contrast, narrow windows."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.browser import Browser, chromium

from sisod.analysis import error_breakdown
from sisod.evaluation.results import Result as Saved
from sisod.report import write_report

pytest.importorskip("jinja2", reason="extra report is not installed")
pytestmark = pytest.mark.skipif(chromium() is None, reason="Chromium is not installed")


@pytest.fixture(scope="module")
def report(saved: list[Saved], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve methods, some with long names, on one data set."""
    crowded = [result for result in saved if result.dataset == "crowded"]
    names = ("a method with a very long name, its backbone and its loss", "b" * 60, "c$d_e", "short")
    results = [Saved("D", f"{names[i % 4]} {i}", crowded[i % 4].evaluation) for i in range(12)]
    out = tmp_path_factory.mktemp("page") / "report.html"
    write_report(results, out, resamples=20)
    return out


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture
def page(browser: Browser, report: Path) -> Iterator[Browser]:
    """The report, freshly loaded, everything opened; afterwards no errors and no requests."""
    browser.prefer("light")
    browser.open(report)
    browser.evaluate("document.querySelectorAll('#errors details').forEach(d => { d.open = true; })")
    yield browser
    assert browser.troubles() == []
    assert browser.requests() == [report.resolve().as_uri()]


def test_bars_are_as_wide_as_the_shares(page: Browser, saved: list[Saved]) -> None:
    evaluation = next(r.evaluation for r in saved if r.dataset == "crowded")
    shares = [share for share in error_breakdown(evaluation)["object_share"] if share]
    widths = page.evaluate("""(() => {
      const bar = document.querySelector('#errors .error-bar');
      const whole = bar.getBoundingClientRect().width;
      return [...bar.children].map((part) => part.getBoundingClientRect().width / whole);
    })()""")
    assert widths == pytest.approx(shares, abs=0.01)
    page.point("#errors .error-part.error-correct:not(.error-key)")
    tip = page.evaluate("document.getElementById('tip').textContent")
    assert tip.startswith("correct: ")
    assert tip.endswith(" %)")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_section_has_enough_contrast(page: Browser, theme: str) -> None:
    """At least 4.5 to 1 for every text, and every class can be seen on the page."""
    page.prefer(theme)
    least = page.evaluate("""(() => {
      const parse = (text) => text.match(/[\\d.]+/g).map(Number);
      const light = (c) => (c <= 10 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4);
      const luminance = ([r, g, b]) => 0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b);
      const behind = (e) => {
        for (; e; e = e.parentElement) {
          const [r, g, b, alpha = 1] = parse(getComputedStyle(e).backgroundColor);
          if (alpha > 0) return [r, g, b];
        }
      };
      const holders = [...document.querySelectorAll('#errors *')].filter((e) =>
        [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()));
      return holders.map((e) => {
        const [a, b] = [luminance(parse(getComputedStyle(e).color)), luminance(behind(e))];
        return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      });
    })()""")
    assert len(least) > 200
    assert min(least) >= 4.5
    colours = page.evaluate(
        "[...document.querySelectorAll('.error-key')].map(e => getComputedStyle(e).backgroundColor)"
    )
    assert len(set(colours)) == 9
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background not in colours or theme == "light"  # white has an outline and dots


@pytest.mark.parametrize("width", [400, 1440])
def test_nothing_is_cut_off(browser: Browser, report: Path, width: int) -> None:
    browser.call(
        "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
    )
    browser.open(report)
    section = "document.getElementById('errors')"
    # other sections of a page with such names may be wider than the window
    assert browser.evaluate(f"{section}.scrollWidth <= {section}.clientWidth")
    rows = browser.evaluate("""[...document.querySelectorAll('#errors > .charts .error-row')].map(
      (row) => {
        const [name, bar, total] = [...row.children].map((e) => e.getBoundingClientRect());
        const top = row.getBoundingClientRect().top;
        return [name.right <= bar.left, bar.right <= total.left, bar.width, top];
      })""")
    assert len(rows) == 24
    assert all(before and after for before, after, _, _ in rows)
    assert min(bar for _, _, bar, _ in rows) > 120
    tops = [top for _, _, _, top in rows[:12]]
    assert tops == sorted(set(tops))


@pytest.mark.parametrize("width", [400, 1440])
def test_numbers_in_bars_fit_or_are_dropped(browser: Browser, report: Path, width: int) -> None:
    """A visible number is inside its part, with a gap to the next; others are below it, cut off.

    Every part with a number is made as narrow as such a part can be.
    """
    browser.call(
        "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
    )
    browser.open(report)
    browser.evaluate("document.querySelectorAll('#errors details').forEach(d => { d.open = true; })")
    labels = browser.evaluate("""[...document.querySelectorAll('#errors .error-bar b')].map((b) => {
      b.parentElement.style.width = '6.5%';
      const range = document.createRange();
      range.selectNodeContents(b);
      const [text, box, part] = [range, b, b.parentElement].map((e) => e.getBoundingClientRect());
      return [text.left - part.left, part.right - text.right, box.top >= part.bottom - 0.1];
    })""")
    shown = [label for label in labels if not label[2]]
    assert len(labels) > 100
    assert (len(shown) < 10) is (width == 400)
    assert min((gap for left, right, _ in shown for gap in (left, right)), default=2) >= 2


def test_screen_readers_hear_every_bar(page: Browser) -> None:
    labels = page.evaluate(
        "[...document.querySelectorAll('#errors .error-bar')].map(e => [e.role, e.ariaLabel])"
    )
    assert len(labels) > 24
    assert all(role == "img" and ": " in text for role, text in labels)
    heading = page.evaluate("document.querySelector('nav a[href=\"#errors\"]').textContent")
    assert heading == page.evaluate("document.getElementById('errors-title').textContent") == "Errors"

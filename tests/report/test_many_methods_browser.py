"""Pages of many methods with long names in Chromium: marks, forest plot, bars of errors, contrast."""

from pathlib import Path

import pytest
from helpers.browser import Browser, click, contrasts, every

from sisod.analysis import error_breakdown
from sisod.evaluation.results import Result as Saved

pytest.importorskip("jinja2", reason="extra report is not installed")


@pytest.fixture
def page(browser: Browser, pages: dict[int, Path]) -> Browser:
    """Twelve methods, everything opened."""
    browser.open(pages[12])
    browser.evaluate("document.querySelectorAll('#errors details').forEach(d => { d.open = true; })")
    return browser


def test_bars_are_as_wide_as_the_shares(page: Browser, saved: list[Saved]) -> None:
    evaluation = next(r.evaluation for r in saved if r.dataset == "mixed")
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


@pytest.mark.parametrize("width", [400, 1440])
def test_nothing_is_cut_off(browser: Browser, pages: dict[int, Path], width: int) -> None:
    browser.resize(width)
    browser.open(pages[12])
    section = "document.getElementById('errors')"
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


@pytest.mark.parametrize("count", [1, 12])
def test_everything_fits_and_can_be_read(browser: Browser, pages: dict[int, Path], count: int) -> None:
    """Nothing is wider than the window, every text has a contrast of 4.5 to 1, in every view."""
    for width in (1440, 400):
        for theme in ("light", "dark"):
            browser.resize(width)
            browser.prefer(theme)
            browser.open(pages[count], "#failures?all=1")
            browser.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
            assert browser.evaluate("document.documentElement.scrollWidth") <= width
            values = contrasts(browser, "body *")
            assert len(values) > 200
            assert [(c, text) for c, text in values if c < 4.5] == [], (width, theme)
            if count > 1:
                click(browser, "#legend button")  # a method that is switched off is still legible
                assert [c for c, _ in contrasts(browser, "#legend *") if c < 4.5] == []
                # the two verdicts differ in colour, and in whether the dot is filled
                style = "(k => (s => [s.stroke, s.fill])(getComputedStyle(document.querySelector(k))))"
                worse, undecided = (
                    browser.evaluate(f"{style}('.forest .{kind} circle')")
                    for kind in ("worse", "undecided")
                )
                assert worse[0] == worse[1] != undecided[0] != undecided[1]
            colours = browser.evaluate(
                "[...document.querySelectorAll('.error-key')]"
                ".map(e => getComputedStyle(e).backgroundColor)"
            )
            assert len(set(colours)) == 9
            click(browser, "#f-items .open")
            left, right, top, bottom = browser.evaluate(
                "(b => [b.left, b.right, b.top, b.bottom])"
                "(document.getElementById('f-dialog').getBoundingClientRect())"
            )
            assert 0 <= left < right <= width
            assert 0 <= top < bottom <= 900
            dialog = "document.getElementById('f-dialog')"
            assert browser.evaluate(f"{dialog}.scrollWidth - {dialog}.clientWidth") == 0
            assert [c for c, _ in contrasts(browser, "#f-dialog *") if c < 4.5] == []
            assert every(browser, "#f-dialog figure", "e.querySelector('img').alt") == count + 2
    assert browser.troubles() == []


@pytest.mark.parametrize("width", [1440, 400])
@pytest.mark.parametrize("count", [1, 3, 8, 12])
def test_long_names_fit(browser: Browser, pages: dict[int, Path], count: int, width: int) -> None:
    browser.resize(width)
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
    every(browser, ".forest tbody th", "(e.firstChild.offsetWidth ?? 0) <= e.clientWidth - 8")
    shown = browser.evaluate(
        "[...document.querySelector('.forest').querySelectorAll('th')].map(h => h.innerText)"
    )
    assert len(shown) == count
    assert shown[0].startswith("resnet5…seed-0")
    assert browser.troubles() == []

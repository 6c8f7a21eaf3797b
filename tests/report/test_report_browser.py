"""The page in Chromium: sorting, pointing, keyboard, filters, themes, printing."""

import re
from collections.abc import Collection
from pathlib import Path

import numpy as np
import pytest
from helpers.browser import Browser, choose, click, every
from helpers.report_runs import without_objects

import sisod
from sisod.analysis import by_size, predicted_by_size, size_edges
from sisod.analysis.bootstrap import size_intervals
from sisod.evaluation.results import Result as Saved
from sisod.report import write_report

pytest.importorskip("jinja2", reason="extra report is not installed")
EVIL = "<script>boom()<img src=x onerror=boom()>"


def column(page: Browser, number: int) -> list[str]:
    found = page.evaluate(
        "[...document.querySelector('table.scores').tBodies[0].rows]"
        f".map(r => r.cells[{number}].querySelector('span:not(.mark)').textContent)"
    )
    return [str(text) for text in found]


@pytest.mark.slow
def test_table_sorts(page: Browser) -> None:
    before = column(page, 1)
    click(page, "table.scores .sort", 1)
    assert column(page, 1) == sorted(before, key=float)  # MAE: the best, which is the least, first
    sorts = page.evaluate(
        "[...document.querySelector('table.scores').querySelectorAll('[aria-sort]')]"
        ".map(h => h.getAttribute('aria-sort'))"
    )
    assert sorts[:3] == ["none", "ascending", "none"]
    click(page, "table.scores .sort", 1)
    assert column(page, 1) == sorted(before, key=float, reverse=True)
    click(page, "table.scores .sort", 4)  # SI-F: the best, which is the most, first
    assert column(page, 4) == sorted(column(page, 4), key=float, reverse=True)
    click(page, "table.scores .sort", 0)
    assert column(page, 0) == ["coarse", "large only", "Net", "Net+si"]


def test_interval_under_the_pointer_and_by_button(page: Browser) -> None:
    page.point("table.scores tbody td")
    tip = page.evaluate("document.getElementById('tip').hidden ? '' : tip.textContent")
    assert tip.startswith("95 % interval 0.")
    hidden = "getComputedStyle(document.querySelector('.interval')).display"
    assert page.evaluate(hidden) == "none"
    click(page, "#intervals")
    assert page.evaluate(hidden) == "block"


def test_keyboard_alone(page: Browser) -> None:
    page.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.evaluate("document.querySelector('table.scores .sort').focus()")
    page.press("Enter")
    first = page.evaluate("document.querySelector('[aria-sort]').getAttribute('aria-sort')")
    assert first == "ascending"
    page.evaluate("[...document.querySelectorAll('table.scores .sort')].at(-1).blur()")
    page.evaluate("document.querySelector('table.scores td[tabindex=\"0\"]').focus()")
    for key, cell in (("ArrowRight", [0, 2]), ("ArrowDown", [1, 2]), ("ArrowLeft", [1, 1])):
        page.press(key)
        where = "(e => [e.parentElement.sectionRowIndex, e.cellIndex])(document.activeElement)"
        assert page.evaluate(where) == cell
    assert page.evaluate("document.getElementById('tip').textContent").startswith("95 % interval")
    # one stop for the whole table, then its details
    page.press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    page.evaluate("document.querySelector('#curve-charts svg.plot').focus()")
    page.press("ArrowRight")
    readout = "document.querySelector('#curve-charts .readout').textContent"
    assert page.evaluate(readout).startswith("threshold 0")
    page.press("ArrowRight")
    assert page.evaluate(readout).startswith("threshold 1")
    page.press("End")
    assert page.evaluate(readout).startswith("threshold 255")
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid"


def test_curve_under_the_pointer_is_the_table(page: Browser, benchmark_root: Path) -> None:
    click(page, "#curve-kind button", 2)  # F
    page.point("#curve-charts svg.plot", 0.5, 0.5)
    text = page.evaluate("document.querySelector('#curve-charts .readout').textContent")
    threshold = int(text.split()[1][:3])
    curves = sisod.Evaluation.load(benchmark_root / "results" / "crowded" / "Net").curves
    assert 100 < threshold < 156
    assert f"Net {curves['f'][threshold]:.4f}" in text
    click(page, "#curve-charts details summary")
    cell = f"document.querySelector('#curve-charts details').querySelectorAll('tr')[{threshold + 1}]"
    page.evaluate("new Promise(done => setTimeout(done, 100))")
    assert page.evaluate(f"{cell}.cells[1].textContent") == f"{curves['f'][threshold]:.4f}"


def test_charts_follow_the_choices(page: Browser) -> None:
    titles = "[...document.querySelectorAll('.chart figcaption')].map(c => c.textContent)"
    assert page.evaluate(titles)[:3] == [
        "PR, plain",
        "PR, size-invariant",
        "By size of the object",
    ]
    click(page, "#curve-kind button", 3)
    assert page.evaluate(titles)[0] == "IoU, plain"
    lines = "document.querySelectorAll('#curve-charts .chart:first-child .series').length"
    assert page.evaluate(lines) == 4
    click(page, "#legend button", 2)
    assert page.evaluate(lines) == 3
    assert page.evaluate("document.querySelectorAll('#legend button')[2].ariaPressed") == "false"
    choose(page, "dataset", "1")
    assert page.evaluate("document.querySelector('.dataset-name').textContent") == "on mixed"
    counts = "[...document.querySelectorAll('#size-charts .chart:first-child .group-count')].length"
    assert page.evaluate(counts) == 8
    click(page, "#group-kind button", 0)
    assert page.evaluate(counts) == 10


def test_size_charts_have_intervals_and_hollow_marks(page: Browser, saved: list[Saved]) -> None:
    choose(page, "dataset", "1")
    click(page, "#measure button", 2)
    chart = "document.querySelector('#size-charts .chart')"
    groups = [by_size(r.evaluation, groups="log") for r in saved if r.dataset == "mixed"]
    few = sum(int(((table["objects"] > 0) & (table["objects"] < 20)).sum()) for table in groups)
    assert page.evaluate(f"{chart}.querySelectorAll('.few').length") == few > 10
    fills = page.evaluate(f"[...{chart}.querySelectorAll('.few')].map(m => getComputedStyle(m).fill)")
    assert set(fills) == {"rgb(255, 255, 255)"}
    edges = size_edges("log")
    ends = [size_intervals(r.evaluation, "found", edges) for r in saved if r.dataset == "mixed"]
    n_intervals = sum(int(np.isfinite(one).all(axis=1).sum()) for one in ends)
    assert page.evaluate(f"{chart}.querySelectorAll('.interval-line').length") == n_intervals > 5


def test_filters_filter(page: Browser) -> None:
    cards = "[...document.querySelectorAll('#f-items .item')]"
    count = "document.getElementById('f-count').textContent"
    assert len(page.evaluate(f"{cards}.map(c => c.dataset.dataset)")) == 18
    choose(page, "f-dataset", "1")
    assert set(page.evaluate(f"{cards}.map(c => c.dataset.dataset)")) == {"mixed"}
    group = page.evaluate("document.getElementById('f-size').options[1].value")
    choose(page, "f-size", group)
    assert set(page.evaluate(f"{cards}.map(c => c.dataset.group)")) == {group}
    choose(page, "f-method", "3")
    names = page.evaluate(f"{cards}[0].querySelectorAll('strong')[0].textContent")
    assert names == "large only"
    choose(page, "f-size", "")
    before = int(page.evaluate(count).split()[0])
    choose(page, "f-list", "missed")
    after = int(page.evaluate(count).split()[0])
    assert 0 < after < before
    captions = f"{cards}.map(c => c.querySelectorAll('figcaption')[1].textContent)"
    assert len(page.evaluate(captions)) == min(after, 18)
    assert {text.partition("F ")[0] for text in page.evaluate(captions)} == {"large only"}
    assert {"missed" in text for text in page.evaluate(captions)} == {True}
    choose(page, "f-method", "0")  # of those that "large only" misses, all score the same
    values = [float(text.split("F mean ")[1][:6]) for text in page.evaluate(captions)]
    assert values == sorted(values)  # the worst first
    assert len(set(values)) > 5
    choose(page, "f-other", "")
    assert page.evaluate(f"{cards}[0].querySelectorAll('figure').length") == 2


def test_pictures_are_shown_with_words(page: Browser) -> None:
    images = "[...document.querySelectorAll('#f-items img')]"
    page.evaluate(f"Promise.all({images}.map(i => i.decode()))")
    before = page.evaluate(f"{images}.length")
    assert before == 3 * 18  # of each card the photograph and the maps of two methods
    assert every(page, "#f-items img", "e.naturalWidth >= 20 && e.clientWidth > 50") == before
    alts = page.evaluate(f"{images}.map(i => i.alt)")
    assert {re.sub(r"\d+", "N", alt) for alt in alts[::3]} == {"object N of sceneN in its frame"}
    assert alts[1::3] == ["map of Net around the object"] * 18
    assert alts[2::3] == ["map of Net+si around the object"] * 18
    click(page, "#f-more")
    assert page.evaluate(f"{images}.length") > before


def test_light_and_dark(page: Browser) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(paper) == "rgb(255, 255, 255)"
    page.prefer("dark")
    dark = page.evaluate(paper)
    assert dark == "rgb(20, 23, 27)"
    click(page, "#theme")
    assert page.evaluate(paper) == "rgb(255, 255, 255)"
    click(page, "#theme")
    assert page.evaluate(paper) == dark


def test_headings_and_labels_for_screen_readers(page: Browser) -> None:
    # not those of the options of a select that is inside
    words_of_label = "[...e.labels[0].childNodes].some(n => n.nodeType === 3 && n.data.trim())"
    for selector, named, least in (
        ("h1, h2, h3, h4", "e.textContent.trim()", 8),
        ("table", "e.caption.textContent.trim()", 6),
        ("select, input", f"e.labels.length === 1 && {words_of_label}", 6),
        ("button", "e.textContent.trim() || e.ariaLabel", 20),
        ("img", "e.alt.trim()", 30),
        ("svg.plot", "e.ariaLabel", 5),
    ):
        assert every(page, selector, named) >= least, selector
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids)) > 20


def test_names_are_shown_as_text(browser: Browser, tmp_path: Path) -> None:
    evaluator = sisod.Evaluator()
    gt = np.zeros((40, 40), dtype=bool)
    gt[2:9, 2:9] = True
    evaluator.update(np.zeros((40, 40)), gt, name="</script>" + EVIL)
    result = evaluator.result()
    saved = [Saved("D" + EVIL, "A" + EVIL, result), Saved("D" + EVIL, "B" + EVIL, result)]
    write_report(saved, tmp_path / "evil.html", title="</title>" + EVIL, resamples=20)
    browser.open(tmp_path / "evil.html")
    assert browser.evaluate("document.querySelector('h1').textContent") == "</title>" + EVIL
    assert browser.evaluate("document.querySelector('table.scores tbody th').textContent") == "A" + EVIL
    assert browser.evaluate("document.querySelector('#legend button').textContent") == "A" + EVIL
    card = browser.evaluate("document.querySelector('#f-items h4').textContent")
    assert card == f"</script>{EVIL}, object 1"
    assert browser.evaluate("document.querySelectorAll('img[src=x], script').length") == 2
    assert browser.troubles() == []
    assert len(browser.requests()) == 1


def edge_case(name: str) -> list[Saved]:
    """Results of extreme cases."""
    gt, empty = np.zeros((40, 40), dtype=bool), np.zeros((40, 40), dtype=np.uint8)
    gt[2:9, 2:9] = True
    evaluator = sisod.Evaluator()
    if name == "no objects":
        for number in range(3):
            evaluator.update(empty, empty, name=str(number))
    elif name == "one image":
        evaluator.update(gt.astype(float) * 0.7, gt, name="a")
    elif name == "one metric":
        evaluator = sisod.Evaluator(metrics=["kappa_mean"])
        evaluator.update(np.ones((40, 40)), np.ones((40, 40), dtype=bool), name="a")
    return [Saved("D", "m", evaluator.result())]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no objects", "no image has an object: most metrics are undefined"),
        ("one image", "one image: there are no intervals"),
        ("one metric", "D: Kappa mean undefined on the only image"),
    ],
)
def test_edge_cases_open_with_a_note(browser: Browser, tmp_path: Path, name: str, message: str) -> None:
    write_report(edge_case(name), tmp_path / "edge.html", resamples=50)
    browser.open(tmp_path / "edge.html")
    assert message in browser.evaluate("document.body.innerText")
    for kind in range(4):
        click(browser, "#curve-kind button", kind)
    assert browser.troubles() == []


def n_bars(saved: list[Saved], dataset: str, methods: Collection[str]) -> int:
    """Size groups with false objects, over the methods."""
    chosen = [r for r in saved if r.dataset == dataset and r.method in methods]
    counts = [predicted_by_size(result.evaluation, groups="log")["false"] for result in chosen]
    return sum(int((column > 0).sum()) for column in counts)


def test_objects_section(page: Browser, saved: list[Saved]) -> None:
    charts = "[...document.querySelectorAll('#object-charts .chart')]"
    bars = f"{charts}[0].querySelectorAll('.bar').length"
    # the curve was not evaluated: a chart of single dots is not drawn
    titles = page.evaluate(f"{charts}.map(c => c.querySelector('figcaption').textContent)")
    assert titles == ["False objects, by their size"]
    assert "the curve was not evaluated" in page.evaluate("document.body.innerText").lower()
    methods = [r.method for r in saved if r.dataset == "crowded"]
    assert page.evaluate(bars) == n_bars(saved, "crowded", methods)
    click(page, "#legend button", 2)
    page.evaluate("document.querySelectorAll('#object-charts svg.plot')[0].focus()")
    page.press("ArrowRight")
    text = page.evaluate(f"{charts}[0].querySelector('.readout').textContent")
    assert text.startswith("0-0.03 %")
    choose(page, "dataset", "1")
    name = "document.querySelector('#objects .dataset-name').textContent"
    assert page.evaluate(name) == "on mixed"
    shown = ("Net", "Net+si", "large only")
    assert page.evaluate(bars) == n_bars(saved, "mixed", shown) > 0


def test_page_of_results_without_predicted_objects(
    browser: Browser, saved: list[Saved], tmp_path: Path
) -> None:
    older = [without_objects(result) for result in saved[:3]]
    for results, charts in ((older, 0), ([*older, *saved[3:]], 1)):
        write_report(results, tmp_path / "old.html", resamples=20)
        browser.open(tmp_path / "old.html")
        text = browser.evaluate("document.getElementById('objects').innerText")
        assert "the protocol 'official' has no predicted objects" in text.lower()
        number = browser.evaluate("document.querySelectorAll('#object-charts .chart').length")
        assert number == charts
        for kind in range(len(results)):
            click(browser, "#legend button", kind % 3)
        assert browser.troubles() == []

"""The browser of failures in Chromium: lists, outlines, small targets, large view, link, CSV."""

import csv
import io
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import cv2
import numpy as np
import polars as pl
import pytest
from helpers.browser import Browser, choose, click, every
from helpers.report_runs import data_of

import sisod
from sisod.evaluation.results import Result as Saved
from sisod.evaluation.results import load_results
from sisod.report import write_report

pytest.importorskip("jinja2", reason="extra report is not installed")
CARDS = "[...document.querySelectorAll('#f-items .item')]"
COUNT = "document.getElementById('f-count').textContent"


def items(report: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = data_of(report.read_text(encoding="utf-8"))["failures"]["items"]
    return found


def captions(page: Browser, figure: int) -> list[str]:
    texts = page.evaluate(f"{CARDS}.map(c => c.querySelectorAll('figcaption')[{figure}].innerText)")
    return [str(text) for text in texts]


def test_one_finds_another_misses(page: Browser, saved: list[Saved]) -> None:
    choose(page, "f-list", "differ")
    choose(page, "f-method", "3")
    choose(page, "f-other", "0")
    labels = (
        "['f-method', 'f-other'].map(i => document.getElementById(i).labels[0].firstChild.data.trim())"
    )
    assert page.evaluate(labels) == ["Missed by", "Found by"]
    assert set(captions(page, 1)) != set()
    assert all("large only" in text and "missed" in text for text in captions(page, 1))
    assert all("Net" in text and "found" in text for text in captions(page, 2))
    tables = {r.method: r.evaluation.objects for r in saved if r.dataset == "mixed"}
    choose(page, "f-dataset", "1")
    names = page.evaluate(f"{CARDS}.map(c => c.querySelector('h4').textContent)")
    for name in names:
        image, _, index = name.partition(", object ")
        for method, found in (("large only", False), ("Net", True)):
            table = tables[method]
            row = table.filter((table["image"] == image) & (table["index"] == int(index) - 1))
            assert (row["recall_binary"][0] >= 0.5) is found
    # a method cannot be compared with itself
    choose(page, "f-other", "3")
    assert page.evaluate("document.getElementById('f-other').value") != "3"


def test_false_objects_and_worst_images(page: Browser, report: Path) -> None:
    choose(page, "f-list", "false")
    expected = [i for i in items(report) if i["kind"] == "false" and i["worst_of"] == [0]]
    assert page.evaluate(COUNT).startswith(f"{len(expected)} false objects of Net")
    assert len(expected) > 2
    assert all("false object (mean p 0." in caption for caption in captions(page, 1))
    choose(page, "f-list", "images")
    assert page.evaluate("document.getElementById('f-size').disabled")
    values = [float(caption.rsplit(maxsplit=1)[-1]) for caption in captions(page, 1)]
    assert values == sorted(values)
    assert len(values) > 3
    assert all("SI-F mean 0." in caption for caption in captions(page, 1))


def test_all_methods_beside_each_other_and_search(page: Browser) -> None:
    assert page.evaluate(f"{CARDS}[0].querySelectorAll('figure').length") == 3
    click(page, "#f-all")
    assert page.evaluate(f"{CARDS}[0].querySelectorAll('figure').length") == 5
    names = page.evaluate(f"[...{CARDS}[0].querySelectorAll('strong')].map(s => s.textContent)")
    assert names == ["Net", "Net+si", "coarse", "large only"]
    page.evaluate("(() => {const s = document.getElementById('f-search'); s.value = 'ENE0003';"
                  "s.dispatchEvent(new Event('input'))})()")  # fmt: skip
    titles = page.evaluate(f"{CARDS}.map(c => c.querySelector('h4').textContent)")
    assert titles
    assert {title.split(",")[0] for title in titles} == {"scene0003"}


def write_targets(root: Path) -> list[Saved]:
    """Infrared-like images of 256 x 256 pixels with a target of three pixels each."""
    for name in ("image", "mask", "maps"):
        (root / name).mkdir()
    rng = np.random.default_rng(0)
    for number in range(4):
        y, x = rng.integers(20, 230, 2)
        mask = np.zeros((256, 256), dtype=np.uint8)
        mask[y, x] = mask[y, x + 1] = mask[y + 1, x] = 255
        image = np.where(mask > 0, 230, rng.integers(60, 90, mask.shape)).astype(np.uint8)
        pred = np.zeros_like(mask)
        pred[9:11, 9:11] = 255
        for name, picture in (("image", image), ("mask", mask), ("maps", pred)):
            cv2.imwrite(str(root / name / f"{number}.png"), picture)
    sisod.evaluate(root / "maps", root / "mask", protocol="infrared", jobs=1, out=root / "IR" / "net")
    return load_results([root / "IR"])


def test_target_of_three_pixels_is_visible(browser: Browser, tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    write_report(write_targets(tmp_path), out, image_roots={"IR": tmp_path / "image"}, resamples=20)
    for width, least in ((1440, 8), (400, 8)):
        browser.resize(width)
        browser.open(out)
        browser.evaluate("Promise.all([...document.images].map(i => i.decode()))")
        sides = browser.evaluate(
            "[...document.querySelectorAll('#f-items .item')].map(c => {const b ="
            "c.querySelector('.outline.line').getBoundingClientRect(); return [b.width, b.height]})"
        )
        assert len(sides) == 4
        assert min(map(min, sides)) >= least
        assert every(browser, "#f-items img", "getComputedStyle(e).imageRendering === 'pixelated'") == 8
        click(browser, "#f-items .open")
        crop = "document.querySelector('#f-dialog figure:not(.whole) .outline.line')"
        large = browser.evaluate(f"{crop}.getBoundingClientRect().width")
        assert large >= 14
    assert browser.troubles() == []


def test_large_view_by_keyboard(page: Browser) -> None:
    focused = "document.activeElement.textContent"
    title = "document.getElementById('f-dialog-title').textContent"
    is_open = "document.getElementById('f-dialog').open"
    names = page.evaluate(f"{CARDS}.map(c => c.querySelector('h4').textContent)")
    page.evaluate("document.querySelectorAll('#f-items .open')[1].focus()")
    page.press("Enter")
    assert page.evaluate(is_open)
    assert page.evaluate(title) == names[1]
    assert page.evaluate("document.querySelectorAll('#f-dialog figure').length") == 6
    methods = "[...document.querySelectorAll('#f-dialog strong')].map(s => s.textContent)"
    assert page.evaluate(methods) == ["Net", "Net+si", "coarse", "large only"]
    assert "pixels at x" in page.evaluate("document.getElementById('f-dialog-place').textContent")
    page.press("ArrowRight")
    assert page.evaluate(title) == names[2]
    for _ in range(3):
        page.press("ArrowLeft")  # stops at the first
    assert page.evaluate(title) == names[0]
    assert page.evaluate("document.getElementById('f-previous').disabled")
    page.press("Escape")
    assert not page.evaluate(is_open)
    page.evaluate(
        "new Promise(done => setTimeout(done, 100))"
    )  # the dialog reports later that it closed
    assert page.evaluate(focused) == names[0]  # the one that was shown last


def test_large_view_shows_the_whole_photograph(page: Browser, report: Path) -> None:
    """The corners are around the object, in the whole image as in the crop."""
    click(page, "#f-items .open")
    page.evaluate("Promise.all([...document.querySelectorAll('#f-dialog img')].map(i => i.decode()))")
    name = str(page.evaluate("document.getElementById('f-dialog-title').textContent"))
    image, _, number = name.partition(", object ")
    item = next(
        i
        for i in items(report)
        if (i["kind"], i["image"], i["index"]) == ("object", image, int(number) - 1)
    )
    (height, width), (x0, y0, x1, y1) = item["shape"], item["frame"]
    assert page.evaluate("document.querySelector('.whole figcaption').textContent") == "whole photograph"
    share = page.evaluate("""(() => {
      const whole = document.querySelector('.whole .picture').getBoundingClientRect();
      const box = document.querySelector('.whole .corners.line').getBoundingClientRect();
      const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
      return [(x - whole.left) / whole.width, (y - whole.top) / whole.height];
    })()""")
    assert share == pytest.approx([(x0 + x1) / 2 / width, (y0 + y1) / 2 / height], abs=0.06)


def test_a_bar_of_errors_lists_its_objects(page: Browser, saved: list[Saved]) -> None:
    tables = {r.method: r.evaluation.objects for r in saved if r.dataset == "crowded"}
    links = "[...document.querySelectorAll('#errors > .charts a.error-part')]"
    seen = set()
    for number, link in enumerate(page.evaluate(f"{links}.map(a => a.getAttribute('href'))")):
        wanted = parse_qs(link.partition("?")[2])
        if wanted["dataset"] != ["crowded"]:
            continue
        click(page, "#errors > .charts a.error-part", number)
        page.evaluate("new Promise(done => setTimeout(done, 50))")
        method, error = wanted["method"][0], wanted["error"][0]
        seen.add(error)
        if error == "false":
            assert page.evaluate("document.getElementById('f-list').value") == "false"
            continue
        count = int((tables[method]["error"] == error).sum())
        assert page.evaluate(COUNT).startswith(f"{count} object")  # all are on this small page
        for name in page.evaluate(f"{CARDS}.map(c => c.querySelector('h4').textContent)"):
            image, _, index = name.partition(", object ")
            row = tables[method].filter(pl.col("image") == image, pl.col("index") == int(index) - 1)
            assert row["error"][0] == error
        if error in ("spilled", "merged"):
            assert any("region that spills over" in c or "merged with" in c for c in captions(page, 1))
    assert {"missed", "merged", "spilled", "false"} <= seen


def test_link_keeps_the_filter(page: Browser, report: Path) -> None:
    for name, value in (("f-list", "missed"), ("f-dataset", "1"), ("f-method", "3"), ("f-other", "")):
        choose(page, name, value)
    size = page.evaluate("document.getElementById('f-size').options[2].textContent")
    choose(page, "f-size", page.evaluate("document.getElementById('f-size').options[2].value"))
    shown = page.evaluate(f"[{COUNT}, {CARDS}.map(c => c.textContent)]")
    link = page.evaluate("location.hash")
    assert page.evaluate("document.getElementById('f-link').getAttribute('href')") == link
    assert link.startswith("#failures?list=missed&dataset=mixed&method=large+only&other=&size=0.")
    page.open(report)
    assert page.evaluate(f"[{COUNT}, {CARDS}.map(c => c.textContent)]") != shown
    page.open(report, link)
    assert page.evaluate(f"[{COUNT}, {CARDS}.map(c => c.textContent)]") == shown
    assert page.evaluate("document.getElementById('f-size').selectedOptions[0].textContent") == size
    top = page.evaluate("document.getElementById('failures').getBoundingClientRect().top")
    assert -45 <= top < 200
    # names that the page does not have: the first choice, and no error
    page.open(report, "#failures?list=nothing&method=%3Cscript%3E&dataset=gone&size=9")
    controls = "['f-list', 'f-dataset', 'f-method', 'f-size']"
    values = page.evaluate(f"{controls}.map(i => document.getElementById(i).value)")
    assert values == ["worst", "", "0", ""]


def downloaded(page: Browser) -> list[list[str]]:
    """Rows of the CSV file that the button makes."""
    page.evaluate(
        "URL.createObjectURL = ((make) => (blob) => {window.made = blob; return make.call(URL, blob)})"
        "(URL.createObjectURL)"
    )
    click(page, "#f-csv")
    text = str(page.evaluate("window.made.text()"))
    assert page.evaluate("window.made.type").startswith("text/csv")
    assert text.endswith("\r\n")
    return list(csv.reader(io.StringIO(text, newline="")))


def test_csv_has_the_rows_of_the_list(page: Browser, saved: list[Saved]) -> None:
    choose(page, "f-list", "missed")
    choose(page, "f-dataset", "0")
    head, *rows = downloaded(page)
    assert [head[1], head[3], head[8]] == ["data set", "object", "share of the image"]
    assert head[9:12] == ["F mean: Net", "recall: Net", "found: Net"]
    assert len(head) == 9 + 3 * 4
    assert len(rows) == int(page.evaluate(COUNT).split()[0]) > 3
    table = next(r for r in saved if (r.dataset, r.method) == ("crowded", "Net")).evaluation.objects
    for row in rows:
        chosen = table.filter((table["image"] == row[2]) & (table["index"] == int(row[3]) - 1)).row(
            0, named=True
        )
        assert [int(value) for value in row[4:8]] == [chosen[key] for key in ("x0", "y0", "x1", "y1")]
        assert float(row[9]) == round(chosen["f_mean"], 4)
        assert row[11] == "no"
    choose(page, "f-list", "false")
    head, *rows = downloaded(page)
    assert head[9:] == ["method", "mean p", "false object of"]
    assert {row[9] for row in rows} == {"Net"}
    choose(page, "f-list", "images")
    head, *rows = downloaded(page)
    assert head[3:] == [f"SI-F mean: {name}" for name in ("Net", "Net+si", "coarse", "large only")]
    assert len(rows) == int(page.evaluate(COUNT).split()[0])


def test_page_without_scripts(browser: Browser, report: Path) -> None:
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(report)
        text = browser.evaluate("document.body.textContent")
        n_hidden = every(browser, ".screen-only, #theme", "!e.checkVisibility()")
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
    assert "need JavaScript, which is switched off" in text
    assert "MAE of objects" in text
    assert n_hidden > 5

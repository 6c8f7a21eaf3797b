"""One Chromium, and the pages that its tests look at."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.browser import Browser, chromium

from sisod.evaluation.results import Result
from sisod.report import write_report

LONG_NAME = "resnet50-unet-with-a-very-long-name-baseline-seed-{}"


@pytest.fixture(scope="session")
def _chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture
def browser(request: pytest.FixtureRequest) -> Browser:
    """The one Chromium, in a light window of 1440 x 900."""
    if chromium() is None:
        pytest.skip("Chromium is not installed")
    window: Browser = request.getfixturevalue("_chromium")
    window.resize(1440)
    window.prefer("light")
    return window


@pytest.fixture(scope="session")
def report(saved: list[Result], benchmark_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of two data sets and four methods, with photographs; no curves of objects."""
    pytest.importorskip("jinja2", reason="extra report is not installed")
    out = tmp_path_factory.mktemp("page") / "report.html"
    roots = {name: benchmark_root / "data" / name / "image" for name in ("mixed", "crowded")}
    write_report(saved, out, image_roots=roots, resamples=50)
    return out


@pytest.fixture
def page(browser: Browser, report: Path) -> Iterator[Browser]:
    """The report, freshly loaded; afterwards there must be no errors and no requests."""
    browser.open(report)
    yield browser
    assert browser.troubles() == []
    assert {address.partition("#")[0] for address in browser.requests()} == {report.resolve().as_uri()}


@pytest.fixture(scope="session")
def pages(saved: list[Result], tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Number of methods -> a page of the data set `mixed` with as many, every second name long."""
    pytest.importorskip("jinja2", reason="extra report is not installed")
    base = [result.evaluation for result in saved if result.dataset == "mixed"]
    root = tmp_path_factory.mktemp("pages")
    for count in (1, 3, 8, 12):
        names = [f"M{i}" if i % 2 else LONG_NAME.format(i) for i in range(count)]
        results = [Result("mixed", name, base[i % 4]) for i, name in enumerate(names)]
        write_report(results, root / f"{count}.html", resamples=50)
    return {count: root / f"{count}.html" for count in (1, 3, 8, 12)}

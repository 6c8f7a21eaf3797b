"""Make the pictures of docs/report.md; needs Chromium.

    PYTHONPATH=tests python tools/make_report_pictures.py

Scenes and methods are synthetic; no image of a data set enters the repository.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from helpers.browser import Browser
from helpers.report_runs import METHODS, mixed_scenes, write_benchmark
from PIL import Image

from sisod.analysis import compare_many
from sisod.data.scenes import make_scenes
from sisod.evaluation.result import Evaluation
from sisod.evaluation.results import load_results
from sisod.report import write_report
from sisod.report.drawing.forest import comparison_figure
from sisod.report.gallery import write_figure
from sisod.report.style import FigureRequest, save_figure

DOCS = Path(__file__).parents[1] / "docs"


def main() -> None:
    """Write every picture."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        write_benchmark(root, "mixed", mixed_scenes(200, seed=1), tuple(METHODS))
        write_benchmark(root, "crowded", make_scenes(60, seed=3), tuple(METHODS))
        results = load_results([root / "results" / "mixed", root / "results" / "crowded"])
        images = {name: root / "data" / name / "image" for name in ("mixed", "crowded")}
        write_report(results, root / "report.html", image_roots=images, title="Five synthetic methods")
        with Browser(root / "profile", width=1280, height=860) as browser:
            photograph(browser, root)
        mixed = FigureRequest([r for r in results if r.dataset == "mixed"], images)
        for name in ("size-log", "examples"):
            write_figure(DOCS / f"figure_{name}.png", name, mixed)
        draw_forest({result.method: result.evaluation for result in mixed.results})
    for path in [*DOCS.glob("report_*.png"), *DOCS.glob("figure_*.png")]:
        shrink(path)


def draw_forest(evaluations: Mapping[str, Evaluation]) -> None:
    """Draw the comparison of two methods."""
    comparison = compare_many({name: evaluations[name] for name in ("Net+si", "Net")})
    save_figure(comparison_figure(comparison), DOCS / "figure_forest.png")


def photograph(browser: Browser, root: Path) -> None:
    """Photograph the page in light colours, its failures, and its charts in dark colours."""
    browser.open(root / "report.html")
    browser.evaluate("scrollTo(0, 0)")
    browser.point("table.scores tbody tr:nth-child(2) td:nth-child(5)")
    browser.evaluate("scrollTo(0, 0)")
    browser.screenshot(DOCS / "report_scores.png")
    link = "#failures?list=differ&dataset=mixed&method=Net&other=Net%2Bsi&size=0.3-1+%25"
    browser.open(root / "report.html", link)
    browser.evaluate("Promise.all([...document.images].map(i => i.decode()))")
    browser.evaluate("document.getElementById('failures').scrollIntoView(); scrollBy(0, 90)")
    browser.screenshot(DOCS / "report_failures.png")
    browser.evaluate("document.querySelector('#f-items .open').click()")
    browser.evaluate("Promise.all([...document.images].map(i => i.decode()))")
    browser.screenshot(DOCS / "report_failure.png")
    browser.evaluate("document.getElementById('f-close').click()")
    browser.prefer("dark")
    browser.evaluate("document.querySelectorAll('#curve-kind button')[2].click()")
    browser.evaluate("scrollTo(0, document.querySelector('.chart-sections').offsetTop)")
    browser.point("#curve-charts svg.plot", 0.45, 0.5)
    browser.evaluate("scrollTo(0, document.querySelector('.chart-sections').offsetTop)")
    browser.screenshot(DOCS / "report_charts.png")


def shrink(path: Path) -> None:
    """Compress a PNG; one without photographs to 256 colours, which makes it a third of the size."""
    with Image.open(path) as picture:
        small = picture.convert("RGB")
    if path.name not in ("report_failures.png", "report_failure.png", "figure_examples.png"):
        small = small.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


if __name__ == "__main__":
    main()

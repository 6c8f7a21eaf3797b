"""Metrics of the user in tables, in a notebook, in figures and on the page."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.command_line import run
from helpers.custom_metrics import overlap, pixel_error
from helpers.report_runs import Tables

import sisod
from sisod.evaluation.results import Result
from sisod.report import write_report
from sisod.report.summary import SummaryRow, render

TITLE = "Own <b>50 %_error"
METRICS: list[Any] = [
    "mae",
    "si_mae",
    sisod.CustomMetric(pixel_error, title=TITLE, direction="down", si="separable"),
    overlap,
]


def result(noise: float) -> sisod.Evaluation:
    rng = np.random.default_rng(0)
    evaluator = sisod.Evaluator(metrics=METRICS)
    for index in range(6):
        gt = np.zeros((20, 20), dtype=bool)
        gt[2:6, 2:6] = gt[12:14, 12 : 13 + index] = True
        evaluator.update(np.clip(gt + noise * rng.normal(size=gt.shape), 0, 1), gt, name=str(index))
    return evaluator.result()


def lines() -> list[SummaryRow]:
    results = {"good": result(0.2), "bad": result(0.6)}
    return [SummaryRow("D", name, r.summary, r.defined) for name, r in results.items()]


def test_tables_mark_the_best_by_the_direction_and_escape_the_title() -> None:
    keys = ("mae", "pixel_error", "si_pixel_error", "overlap")
    table = render(lines(), [keys], "md").splitlines()
    good, bad = (line.split(" | ") for line in table[2:4])
    assert [cell.startswith("**") for cell in good[2:5]] == [True] * 3
    assert not any(cell.startswith("**") for cell in [*bad, *good[5:]])  # overlap has no direction
    assert r"| Own \<b>50 %\_error ↓ | SI-Own \<b>50 %\_error ↓ | overlap |" in table[0]
    latex = render(lines(), [keys], "latex")
    assert r"50 \%\_error" in latex
    assert render(lines(), [keys], "csv").splitlines()[0].endswith("pixel_error,si_pixel_error,overlap")


@pytest.mark.needs("jinja2")
def test_the_page_has_its_columns_intervals_and_no_markup_of_the_title(tmp_path: Path) -> None:
    results = [Result("D", name, result(noise)) for name, noise in (("good", 0.2), ("bad", 0.6))]
    write_report(results, tmp_path / "r.html", resamples=30)
    page = (tmp_path / "r.html").read_text()
    assert "<b>50" not in page
    tables = Tables(page).tables
    table = next(rows for caption, rows in tables.items() if caption.startswith("Scores on D"))
    texts = [cell[0] for row in table for cell in row]
    assert any(text.startswith(TITLE) for text in texts)
    values = results[0].evaluation.summary
    assert sum(f"{values['mae']:.4f}" in text for text in texts) >= 2  # mae and pixel_error are equal


def test_the_table_of_saved_results_has_them_by_default(tmp_path: Path) -> None:
    result(0.2).save(tmp_path / "D" / "good")
    text = run("table", tmp_path, "--format", "csv").stdout
    assert text.splitlines()[0] == "dataset,method,mae,si_mae,pixel_error,si_pixel_error,overlap"
    assert run("table", tmp_path, "--metrics", "overlap", "--format", "md").stdout.startswith(
        "| data set | method | overlap |"
    )

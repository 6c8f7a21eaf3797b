"""The page: what cannot be told from the best, the forest plot, the headline, the columns."""

import dataclasses
import math
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from helpers.report_runs import Tables
from helpers.simulated_results import simulated
from numpy.typing import NDArray

import sisod
from sisod.analysis.comparison import compare_many
from sisod.analysis.groups import size_bias
from sisod.analysis.scores import heading
from sisod.evaluation.results import Result as Saved
from sisod.report import write_report
from sisod.report.differences import forest_panels, read_differences
from sisod.report.page.scores import DatasetScores
from sisod.report.page.size_bias import size_bias_test

pytest.importorskip("jinja2", reason="extra report is not installed")
Values = NDArray[np.float64]


def result(**columns: Values) -> sisod.Evaluation:
    """A result with the given values of each image."""
    return dataclasses.replace(
        BLANK,
        summary={key: float(np.nanmean(values)) for key, values in columns.items()},
        defined={key: int((~np.isnan(values)).sum()) for key, values in columns.items()},
        images=BLANK.images.drop("mse").with_columns(
            **{key: pl.Series(values) for key, values in columns.items()}
        ),
    )


def blank_images(n_images: int) -> sisod.Evaluation:
    evaluator = sisod.Evaluator(metrics=["mse"])
    for index in range(n_images):
        evaluator.update(np.zeros((4, 4)), np.zeros((4, 4), dtype=bool), name=f"{index:03d}")
    return evaluator.result()


BLANK = blank_images(80)
rng = np.random.default_rng(3)
HARD = rng.uniform(0.3, 0.6, 80)
NOISE = rng.normal(0, 0.05, 80)
NOISE -= NOISE.mean()


def table_of(results: dict[str, sisod.Evaluation]) -> str:
    return DatasetScores("D", [Saved("D", *pair) for pair in results.items()], resamples=200).headline


# --- the headline -------------------------------------------------------------------------------------


def test_metrics_prefer_different_methods() -> None:
    """A wins two of three metrics, one of them by noise; F mean clearly prefers B."""
    a = result(mae=HARD, si_mae=HARD, f_mean=HARD)
    b = result(mae=HARD + 0.1, si_mae=HARD + 0.001 + NOISE, f_mean=HARD + 0.1)
    assert table_of({"A": a, "B": b}) == (
        "On D, A is better than B by 2 of 3 metrics. A is preferred by MAE (decided) and by SI-MAE "
        "(undecided); B is preferred by F mean (decided)."
    )


def test_a_lead_must_be_decided_against_every_other_method() -> None:
    maes = {"A": HARD, "B": HARD + 0.001 + NOISE, "C": HARD + 0.1}
    results = {name: result(mae=mae, si_mae=mae) for name, mae in maes.items()}
    best = "On D, A is the best of 3 methods by 2 of 2 metrics. "
    assert table_of(results) == best + "A is preferred by MAE and SI-MAE (undecided)."
    two = table_of({name: results[name] for name in "AC"})
    assert two.endswith("A is preferred by MAE and SI-MAE (decided).")


def test_headline_of_equal_single_or_undefined_methods() -> None:
    equal = result(mae=HARD, si_mae=HARD)
    assert table_of({"A": equal, "B": equal}) == "On D, no metric prefers one of the methods."
    assert table_of({"A": equal}) == ""


# --- what cannot be told from the best ----------------------------------------------------------------


def test_values_that_cannot_be_told_from_the_best_are_marked(tmp_path: Path) -> None:
    """By MAE, A is best, B differs from it by noise, C by 0.1 on every image."""
    maes = {"A": HARD, "B": HARD + 0.001 + NOISE, "C": HARD + 0.1}
    saved = [Saved("D", name, result(mae=mae, si_mae=HARD)) for name, mae in maes.items()]
    write_report(saved, tmp_path / "r.html", resamples=200)
    page = (tmp_path / "r.html").read_text()
    a, b, c = (row[1] for row in Tables(page).tables["Scores on D"][2:])
    assert "tied" in str(b[1]["class"]).split()
    assert b[0] == f"≈{maes['B'].mean():.4f} cannot be told from the best" + b[0].split("best")[1]
    assert re.search(
        r"; differs from A by \+0\.0010 \(-0\.\d+ to \+0\.\d+\): undecided$", b[1]["data-tip"] or ""
    )
    for cell in (a, c):
        assert "tied" not in str(cell[1]["class"])
        assert "≈" not in cell[0]
    assert a[0].startswith(f"{HARD.mean():.4f} best")
    # all are best by SI-MAE: nothing else to mark
    assert ["best" in str(row[2][1]["class"]) for row in Tables(page).tables["Scores on D"][2:]] == [
        True
    ] * 3
    assert "marks values that cannot be told from the best" in page


def test_one_method_has_no_marks_and_no_forest(tmp_path: Path) -> None:
    write_report([Saved("D", "A", result(mae=HARD, si_mae=HARD))], tmp_path / "r.html", resamples=20)
    page = (tmp_path / "r.html").read_text()
    assert "≈" not in page
    assert 'id="differences"' not in page


# --- the forest plot ----------------------------------------------------------------------------------


def test_forest_by_hand() -> None:
    """Worse is left: an axis from -0.2 to 0, with a margin of 4 % on both sides."""
    results = {"A": result(mae=HARD), "B": result(mae=HARD + 0.2), "C": result(mae=HARD + 0.05)}
    differences = read_differences(compare_many(results, resamples=20))
    (panel,) = forest_panels(["mae"], list(results), differences)
    assert (panel.heading, panel.best, panel.position(0)) == ("MAE ↓", "A", 96.0)
    assert [*panel.rows] == ["A", "B", "C"]
    best, b, c = panel.rows.values()
    assert best is None
    assert b is not None
    assert c is not None
    assert (b.signed, b.interval, b.verdict) == ("+0.2000", "+0.2000 to +0.2000", "worse")
    assert [panel.position(x) for x in b.advantage] == pytest.approx([4, 4, 4])
    assert panel.position(c.advantage[0]) == pytest.approx(96 - 0.25 * 92)
    assert panel.ticks == [(4.0, "+0.2"), (50.0, "+0.1"), (96.0, "0")]


def test_small_differences_have_more_digits() -> None:
    """A method that is not the best never shows +0.0000 where more is better."""
    results = {
        "A": result(f_mean=HARD),
        "B": result(f_mean=HARD - 0.00003),
        "C": result(f_mean=HARD),
    }
    differences = read_differences(compare_many(results, resamples=20))
    (panel,) = forest_panels(["f_mean"], list(results), differences)
    assert [row and row.signed for row in panel.rows.values()] == [None, "-0.00003", "0.0000"]


def test_forest_of_equal_and_of_undefined_methods() -> None:
    equal = {name: result(f_mean=HARD) for name in "AB"}
    (panel,) = forest_panels(["f_mean"], ["A", "B"], read_differences(compare_many(equal, resamples=20)))
    other = panel.rows["B"]
    assert other is not None
    assert (panel.best, other.verdict, other.advantage[0]) == ("A", "undecided", 0)
    assert panel.ticks == [(panel.position(0), "0")]
    undefined = {"A": simulated(np.full(30, math.nan)), "B": simulated(np.full(30, 0.5))}
    compared = compare_many(undefined, metrics="mae", resamples=20)
    assert forest_panels(["mae"], ["A", "B"], read_differences(compared)) == []


def test_forest_on_the_page(saved: list[Saved], tmp_path: Path) -> None:
    write_report(saved, tmp_path / "r.html", resamples=50)
    page = (tmp_path / "r.html").read_text()
    captions = re.findall(r"<caption>(.*?) <span class=\"hidden\">on crowded, difference", page)
    assert captions == [
        "MAE ↓", "SI-MAE ↓", "AUC ↑", "SI-AUC ↑", "F mean ↑", "SI-F mean ↑", "F max image ↑",
        "SI-F max frame ↑", "E mean ↑", "Object recall ↑", "False objects per image ↓",
    ]  # fmt: skip
    rows = next(rows for name, rows in Tables(page).tables.items() if name.startswith("SI-MAE ↓ on cr"))
    values = {r.method: r.evaluation.summary["si_mae"] for r in saved if r.dataset == "crowded"}
    best = min(values, key=values.__getitem__)
    for cells in rows[: len(values)]:
        name, text = cells[0][0], cells[2][0]
        expected = "best" if name == best else f"{values[name] - values[best]:+.4f}, 95 % interval "
        assert text.startswith(expected)


# --- the columns --------------------------------------------------------------------------------------


def test_chosen_metrics_are_the_columns(tmp_path: Path) -> None:
    gt = np.zeros((20, 20), dtype=bool)
    gt[3:9, 3:9] = True
    evaluator = sisod.Evaluator(metrics=["iou_mean", "si_iou_mean", "wf", "object_ap"])
    evaluator.update(gt, gt, name="a")
    evaluator.update(np.roll(gt, 3), gt, name="b")
    write_report([Saved("D", "A", evaluator.result())], tmp_path / "r.html", resamples=20)
    groups, columns, _ = Tables((tmp_path / "r.html").read_text()).tables["Scores on D"]
    assert [cell[0].split("\n")[0].split(" ↑")[0] for cell in groups[1:]] == [
        "IoU mean",
        "wF",
        "Objects",
    ]
    assert [cell[0] for cell in columns] == ["plain", "SI", "plain", "found", "AP", "size bias"]


def with_mae(values: NDArray[np.float64]) -> sisod.Evaluation:
    """A result with the given MAE of each image."""
    evaluator = sisod.Evaluator(metrics=["mae"])
    for index, value in enumerate(values):
        evaluator.update(np.full((4, 4), value), np.zeros((4, 4), dtype=bool), name=f"{index:03d}")
    return evaluator.result()


def test_disagreement_of_tests_stands_under_its_pair(tmp_path: Path) -> None:
    """B is a little better on 30 of 40 images and much worse on the others."""
    base = np.full(40, 0.3)
    results = {"A": base, "B": np.where(np.arange(40) < 30, 0.29, 0.5), "C": base + 0.1}
    saved = [Saved("D", name, with_mae(values)) for name, values in results.items()]
    write_report(saved, tmp_path / "r.html", resamples=50)
    page = (tmp_path / "r.html").read_text()
    lists = page.split('<ul class="verdicts">')[1].split("</details>")[0]
    before, found, _ = lists.partition('<li class="contradiction">MAE: B is better on more images')
    assert found
    assert before.rpartition("<li>")[2].startswith("A against B: ")
    assert lists.count('class="contradiction"') == lists.count("B is better on more images") == 1


def test_pairs_of_methods_are_those_of_the_comparison(saved: list[Saved], tmp_path: Path) -> None:
    write_report(saved, tmp_path / "r.html", resamples=50)
    tables = Tables((tmp_path / "r.html").read_text()).tables
    for dataset in ("mixed", "crowded"):
        methods = {r.method: r.evaluation for r in saved if r.dataset == dataset}
        head, *rows = tables[f"Pairs of methods on {dataset}"]
        keys = {heading(key): key for key in (*sisod.METRICS, "found")}
        metrics = [keys[title] for title in dict.fromkeys(row[0][0] for row in rows)]
        assert {"mae", "si_mae", "f_mean", "si_f_mean", "found", "si_auc", "object_f1"} < set(metrics)
        compared = compare_many(methods, metrics=metrics, resamples=50)
        grid = compared.grid(everything=True)
        assert [cell[0] for cell in head] == list(grid.headings)
        assert [[cell[0] for cell in row] for row in rows] == [[*row] for row in grid.rows]


# --- the test of the size bias ------------------------------------------------------------------------


def with_objects(areas: list[Values], scores: list[Values]) -> sisod.Evaluation:
    """A result with objects of given areas and F means, image by image."""
    rows = [
        {"image": f"{image:03d}", "index": index, "area": area, "f_mean": score}
        for image, pair in enumerate(zip(areas, scores, strict=True))
        for index, (area, score) in enumerate(zip(*pair, strict=True))
    ]
    schema = {"image": pl.String, "index": pl.Int64, "area": pl.Float64, "f_mean": pl.Float64}
    return dataclasses.replace(BLANK, objects=pl.DataFrame(rows, schema=schema))


def test_size_bias_is_tested_by_exchanging_images() -> None:
    rng = np.random.default_rng(0)
    areas = [rng.uniform(10, 1000, 4) for _ in range(40)]
    neutral = [rng.uniform(0, 1, 4) for _ in areas]
    biased = [area / 1000 + 0.1 * one for area, one in zip(areas, neutral, strict=True)]
    alike = [one + rng.normal(0, 0.01, 4) for one in neutral]
    base = with_objects(areas, neutral)
    assert size_bias_test(base, with_objects(areas, biased)) < 0.01
    assert size_bias_test(base, with_objects(areas, alike)) > 0.05
    assert size_bias_test(base, base) == 1.0
    # one image has two exchanges, both as large as the observed difference
    assert (
        size_bias_test(with_objects(areas[:1], neutral[:1]), with_objects(areas[:1], biased[:1])) == 1.0
    )
    assert math.isnan(size_bias_test(with_objects([], []), with_objects([], [])))


def test_size_bias_of_the_page_says_whether_it_differs(saved: list[Saved], tmp_path: Path) -> None:
    write_report(saved, tmp_path / "r.html", resamples=20)
    rows = Tables((tmp_path / "r.html").read_text()).tables["Scores on mixed"][2:]
    cells = {row[0][0]: row[-1] for row in rows}
    biases = {r.method: size_bias(r.evaluation) for r in saved if r.dataset == "mixed"}
    best = min(biases, key=lambda method: abs(biases[method]))
    for method, (text, attributes) in cells.items():
        if method != best:
            result = next(r for r in saved if (r.dataset, r.method) == ("mixed", method))
            other = next(r for r in saved if (r.dataset, r.method) == ("mixed", best))
            p = size_bias_test(result.evaluation, other.evaluation)
            verdict = "undecided" if p > 0.05 else "decided"
            expected = f"difference to {best} {verdict} (permutation test, p = {p:.3g})"
            assert expected in str(attributes["data-tip"])
            assert text.startswith("≈") is (p > 0.05)

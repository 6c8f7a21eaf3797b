"""The page: numbers equal the tables, names are escaped, missing files do not stop it."""

import base64
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from helpers.command_line import run
from helpers.report_runs import Tables, data_of, image_options
from hypothesis import given
from hypothesis import strategies as st

import sisod
from sisod.analysis.bootstrap import size_intervals
from sisod.analysis.comparison import compare_many
from sisod.analysis.groups import by_number, by_size, found_curve, size_bias
from sisod.evaluation.results import Result as Saved
from sisod.evaluation.results import load_results
from sisod.report import write_report
from sisod.report.page.failures import choose_objects
from sisod.report.page.pictures import crop_window
from sisod.report.page.render import compare_with_paper
from sisod.scoring.metrics import PAPER_KEYS

pytest.importorskip("jinja2", reason="extra report is not installed")
METHODS = ["Net", "Net+si", "coarse", "large only"]


@pytest.fixture(scope="module")
def page(benchmark_root: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("page") / "report.html"
    result = run("report", benchmark_root / "results", "--out", out, *image_options(benchmark_root))
    assert result.exit_code == 0, (result.stderr, result.exception)
    assert result.stderr == ""
    assert result.stdout == f"{out}\n"
    return out.read_text(encoding="utf-8")


@pytest.mark.slow
def test_scores_are_those_of_the_summaries(page: str, saved: list[Saved]) -> None:
    keys = list(PAPER_KEYS)  # the columns of 'sisod evaluate'
    for dataset in ("mixed", "crowded"):
        found = {r.method: r.evaluation for r in saved if r.dataset == dataset}
        compared = compare_many(found, metrics=[*keys, "found", "false_objects"])
        rows = Tables(page).tables[f"Scores on {dataset}"][2:]
        assert [row[0][0] for row in rows] == METHODS
        for row, (method, evaluation) in zip(rows, found.items(), strict=True):
            values = [float(str(cell[1]["data-value"])) for cell in row[1:]]
            assert values[:-3] == [evaluation.summary[key] for key in keys]
            assert values[-2] == evaluation.summary["false_objects"]
            assert values[-1] == size_bias(evaluation)
            intervals = [r for r in compared.intervals.iter_rows(named=True) if r["method"] == method]
            for cell, interval in zip(row[1:-1], intervals, strict=True):
                assert str(cell[1]["data-tip"]).split("; differs from ")[0] == (
                    f"95 % interval {interval['low']:.4f} to {interval['high']:.4f}"
                )


def test_charts_are_those_of_the_tables(page: str, saved: list[Saved]) -> None:
    charts = data_of(page)["charts"]
    for result in saved:
        chart = charts[result.dataset][result.method]
        for key in ("f", "si_f", "precision", "si_recall", "fpr", "si_iou"):
            np.testing.assert_allclose(
                np.array(chart["curves"][key], dtype=float), result.evaluation.curves[key], atol=5e-5
            )
        for kind in ("paper", "log", "quantile"):
            table = by_size(result.evaluation, groups=kind)
            assert chart["sizes"][kind]["groups"] == table["group"].to_list()
            assert chart["sizes"][kind]["counts"] == table["objects"].to_list()
            for key in ("mae", "f_mean", "found"):
                np.testing.assert_allclose(
                    np.array(chart["sizes"][kind]["values"][key], dtype=float), table[key], atol=5e-5
                )
            ends = chart["sizes"][kind]["intervals"]["found"]
            edges = [*table["low"], table["high"][-1]]
            wanted = size_intervals(result.evaluation, "found", edges)
            np.testing.assert_allclose(np.array(ends, dtype=float), wanted, atol=5e-5)
        numbers = by_number(result.evaluation)
        assert chart["numbers"]["counts"] == numbers["images"].to_list()
        np.testing.assert_allclose(
            np.array(chart["numbers"]["values"]["mae"], dtype=float), numbers["si_mae"], atol=5e-5
        )
        np.testing.assert_allclose(
            np.array(chart["coverage"], dtype=float), found_curve(result.evaluation)["found"], atol=5e-5
        )


def test_failures_hold_the_worst_of_every_group(page: str, saved: list[Saved]) -> None:
    content = data_of(page)["failures"]
    objects_only = [item for item in content["items"] if item["kind"] == "object"]
    items = {(i["dataset"], i["image"], i["index"]): i for i in objects_only}
    n_checked = 0
    for result in saved:
        objects = result.evaluation.objects
        number = METHODS.index(result.method)
        for kind in np.unique([item["group"] for item in items.values()]):
            low, high = (
                float(part) / 100 for part in content["groups"][kind].removesuffix(" %").split("-")
            )
            inside = objects.filter((objects["share"] >= low) & (objects["share"] < high))
            if inside.height:
                worst = inside.sort("f_mean").row(0, named=True)
                item = items[result.dataset, worst["image"], worst["index"]]
                assert item["scores"][str(number)] == [
                    round(worst["f_mean"], 4), round(worst["recall_binary"], 4),
                ]  # fmt: skip
                assert (number in item["missed"]) == (worst["recall_binary"] < 0.5)
                n_checked += 1
    assert n_checked > 4 * len(saved)  # of a result most size groups have an object
    pictures = [set(item["pictures"]) for item in content["items"]]
    assert pictures == [{"photo", "0", "1", "2", "3"}] * len(content["items"])


def test_failures_are_taken_in_turn() -> None:
    evaluator = sisod.Evaluator(metrics=["mae", "si_mae"])
    gt = np.zeros((100, 100), dtype=bool)
    gt[0:50, 0:50] = gt[60:64, 60:64] = gt[80:84, 60:64] = gt[60:64, 80:84] = True
    pred = np.zeros(gt.shape)
    pred[0:20, 0:50], pred[60:62, 60:64], pred[80:81, 60:64], pred[5, 5] = 0.9, 0.8, 0.9, 1.0
    evaluator.update(pred, gt, name="a")
    result = Saved("D", "m", evaluator.result())
    boxes = {row["index"]: (row["y0"], row["x0"]) for row in result.evaluation.objects.to_dicts()}
    # the small ones are one group, worst first: nothing, one row, two rows of four; the large another;
    # the one with two rows is alone in its error class, the others are missed
    chosen = [boxes[failure.index] for failure in choose_objects([result])]
    assert chosen == [(60, 80), (0, 0), (60, 60), (80, 60)]
    assert len(choose_objects([result], count=2)) == 2


@given(st.data())
def test_crops_hold_the_frame_and_stay_in_the_image(data: st.DataObject) -> None:
    height, width = data.draw(st.integers(1, 500)), data.draw(st.integers(1, 500))
    y0, x0 = data.draw(st.integers(0, height - 1)), data.draw(st.integers(0, width - 1))
    y1, x1 = data.draw(st.integers(y0 + 1, height)), data.draw(st.integers(x0 + 1, width))
    rows, columns = crop_window((x0, y0, x1, y1), (height, width))
    assert 0 <= rows.start <= y0 < y1 <= rows.stop <= height
    assert 0 <= columns.start <= x0 < x1 <= columns.stop <= width


def test_missing_pictures_are_reported(tmp_path: Path, benchmark_root: Path) -> None:
    result = sisod.Evaluation.load(benchmark_root / "results" / "mixed" / "Net")
    result.run["inputs"]["predictions"] = result.run["inputs"]["ground_truths"] = "/gone"
    result.save(tmp_path / "mixed" / "Net")
    out = run("report", tmp_path, "--out", tmp_path / "r.html")
    assert out.exit_code == 0, (out.stderr, out.exception)
    assert out.stderr.startswith("warning: '/gone' does not exist; expected a folder of images")
    page = (tmp_path / "r.html").read_text()
    assert "No pictures: the maps and masks are not at the paths" in page
    assert data_of(page)["failures"]["items"][0]["pictures"] == {}


def test_pictures_show_the_object(benchmark_root: Path, tmp_path: Path) -> None:
    """In the picture of the mask, what the frame surrounds is the object, to its edges."""
    saved = load_results([benchmark_root / "results" / "mixed" / "Net"])
    write_report(saved, tmp_path / "r.html", resamples=20)
    content = data_of((tmp_path / "r.html").read_text())["failures"]["items"]
    items = [item for item in content if item["kind"] == "object"]
    assert len(items) > 5
    for item in items:
        code = np.frombuffer(base64.b64decode(item["pictures"]["photo"]), dtype=np.uint8)
        picture = cv2.imdecode(code, cv2.IMREAD_GRAYSCALE)
        assert picture is not None
        left, top, right, bottom = item["window"]
        down, across = picture.shape[0] / (bottom - top), picture.shape[1] / (right - left)
        x0, y0, x1, y1 = item["frame"]
        inside = picture[
            round((y0 - top) * down) : round((y1 - top) * down),
            round((x0 - left) * across) : round((x1 - left) * across),
        ]
        middle = inside[inside.shape[0] // 2, inside.shape[1] // 2]
        assert middle > 127
        assert inside.mean() > 100


def test_what_cannot_be_compared_is_not_ranked(benchmark_root: Path, tmp_path: Path) -> None:
    """Two protocols in one data set: nothing is best, not even the size bias or a count of objects."""
    maps, masks = benchmark_root / "maps" / "crowded", benchmark_root / "data" / "crowded" / "mask"
    protocols = {"A": "default", "B": "infrared"}
    methods = {"A": "Net", "B": "Net+si"}
    saved = [
        Saved("D", name, sisod.evaluate(maps / methods[name], masks, protocol=protocol, jobs=1))
        for name, protocol in protocols.items()
    ]
    write_report(saved, tmp_path / "r.html", resamples=20)
    page = (tmp_path / "r.html").read_text()
    assert (
        "the methods are not compared with each other: &#39;A&#39; and &#39;B&#39; are results" in page
    )
    tables = Tables(page).tables
    for caption in ("Scores on D", "Objects on D", "All metrics on D"):
        classes = [str(cell[1].get("class")).split() for row in tables[caption] for cell in row]
        assert len(classes) > 20
        assert not [names for names in classes if "best" in names]
    # the same under one protocol
    saved[1] = Saved("D", "B", sisod.evaluate(maps / "Net+si", masks, jobs=1))
    write_report(saved, tmp_path / "r.html", resamples=20)
    best = Tables((tmp_path / "r.html").read_text()).tables["Scores on D"]
    assert [cell for row in best for cell in row if "best" in str(cell[1].get("class")).split()]


def test_images_that_a_mean_leaves_out_are_counted(tmp_path: Path) -> None:
    """F mean is undefined on an image without objects; one line says so, below the table."""
    gt = np.zeros((12, 12), dtype=bool)
    gt[2:6, 2:6] = True
    evaluator = sisod.Evaluator(metrics=["mae", "f_mean", "si_f_mean"])
    for name, truth in {"a": gt, "b": gt, "c": np.zeros_like(gt)}.items():
        evaluator.update(np.full(gt.shape, 0.2), truth, name=name)
    saved = [Saved("D", method, evaluator.result()) for method in ("A", "B")]
    write_report(saved, tmp_path / "r.html", resamples=20)
    below = (tmp_path / "r.html").read_text().split("Scores on D")[1].split("</table>")[1]
    text = "D: F mean, SI-F mean undefined on 1 of 3 images, which is left out of the mean"
    assert f'<p class="note">{text}</p>' in below.split("<details>")[0]


def test_comparison_with_the_paper(benchmark_root: Path, tmp_path: Path) -> None:
    result = sisod.evaluate(
        benchmark_root / "maps" / "mixed" / "Net",
        benchmark_root / "data" / "mixed" / "mask",
        protocol="official",
        jobs=1,
    )
    default = sisod.Evaluation.load(benchmark_root / "results" / "mixed" / "Net")
    saved = [
        Saved("MSOD", "EDN+si", result),
        Saved("made", "EDN", result),
        Saved("MSOD", "edn", default),
    ]
    found, unmatched = compare_with_paper(saved)
    assert [(r.method, row.row.name) for r, row in found] == [("EDN+si", "MSOD/EDN+SI")]
    assert unmatched[0].startswith("made/EDN is not compared with the paper: unknown data set 'made'")
    assert unmatched[1].startswith("MSOD/edn is not compared with the paper: the run was scored under")
    result.save(tmp_path / "MSOD" / "EDN+si")
    out = run("report", tmp_path, "--out", tmp_path / "r.html", "--against-paper")
    assert out.exit_code == 0, (out.stderr, out.exception)
    table = Tables((tmp_path / "r.html").read_text()).tables["EDN+si on MSOD compared with the paper"]
    cells = {row[0][0]: [cell[0] for cell in row[1:4]] for row in table[1:]}
    assert cells["SI-MAE ↓"][:2] == [f"{result.summary['si_mae']:.4f}", "0.0724"]


def test_calibrated_maps_are_named(saved: list[Saved], tmp_path: Path) -> None:
    """The page says so, once for each method; `evaluate` learnt it from the run.json of the maps."""
    first, second, *_ = (result for result in saved if result.dataset == "crowded")
    inputs = first.evaluation.run["inputs"] | {"calibration": {"temperature": 0.97, "shift": -0.75}}
    run = first.evaluation.run | {"inputs": inputs}
    calibrated = replace(first, evaluation=replace(first.evaluation, run=run))
    write_report([calibrated, second], tmp_path / "r.html", resamples=9)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert page.count("calibrated maps") == 1
    assert f"{first.method}: calibrated maps, temperature 0.97, shift -0.75" in page

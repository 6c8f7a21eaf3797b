"""Metrics of boundaries and named sets all the way: folders, processes, tables, comparisons, pages."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.command_line import run
from helpers.evaluate_runs import SOME, copied, finished

import sisod
from sisod.analysis import bootstrap_intervals, by_size, compare
from sisod.data.truths import read_prediction, read_truth
from sisod.scoring.metrics import METRIC_SETS

KEYS = ("biou", "si_biou", "mba", "hce", "nsd")


def scored(root: Path, method: str = "A", **options: Any) -> sisod.Evaluation:
    return sisod.evaluate(root / method, root / "MSOD/mask", **({"metrics": KEYS} | options))


def read_pair(root: Path, name: str) -> tuple[Any, Any]:
    return read_prediction(root / "A", f"{name}.png"), read_truth(
        root / "MSOD/mask", f"{name}.png"
    ).mask(level=128)


@pytest.fixture(scope="module")
def root(method_folders: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied(method_folders, tmp_path_factory.mktemp("boundaries"), SOME)


@pytest.fixture(scope="module")
def results(root: Path) -> dict[str, sisod.Evaluation]:
    return {method: scored(root, method, jobs=1) for method in "AB"}


def test_the_summary_is_the_mean_of_the_images(root: Path, results: dict[str, sisod.Evaluation]) -> None:
    images = results["A"].images
    for name in images["image"].to_list()[::20]:
        pred, gt = read_pair(root, name)
        row = images.filter(images["image"] == name).row(0, named=True)
        assert {key: row[key] for key in KEYS} == pytest.approx(
            sisod.score(pred, gt, metrics=KEYS), abs=0, nan_ok=True
        )
    for key in KEYS:
        defined = images[key].to_numpy()[~np.isnan(images[key].to_numpy())]
        assert results["A"].summary[key] == pytest.approx(defined.mean(), abs=1e-12)
        assert results["A"].defined[key] == len(defined)
    assert results["A"].summary["hce"] > 1  # not a share


def test_an_evaluator_merges_them(root: Path, results: dict[str, sisod.Evaluation]) -> None:
    names = results["A"].images["image"].to_list()
    halves = []
    for part in (names[: SOME // 2], names[SOME // 2 :]):
        evaluator = sisod.Evaluator(metrics=KEYS)
        for name in part:
            evaluator.update(*read_pair(root, name), name=name)
        halves.append(evaluator)
    halves[0].merge(halves[1])
    merged = halves[0].result()
    assert merged.images.equals(results["A"].images)
    assert merged.objects.equals(results["A"].objects)


def test_each_object_has_its_value(root: Path, results: dict[str, sisod.Evaluation]) -> None:
    objects, images = results["A"].objects, results["A"].images
    for name in images["image"].to_list()[::10]:
        of_image = objects.filter(objects["image"] == name)["biou"].to_numpy()
        row = images.filter(images["image"] == name).row(0, named=True)
        assert row["si_biou"] == pytest.approx(of_image.mean(), abs=1e-12)
    assert "biou" not in scored(root, metrics="biou", jobs=1).objects.columns  # the plain form alone
    sizes = by_size(results["A"], groups=[0, 1])
    assert sizes["biou"][0] == pytest.approx(objects["biou"].mean(), abs=1e-12)
    assert sizes["n_biou"][0] == objects.height


def test_comparison_and_intervals(results: dict[str, sisod.Evaluation]) -> None:
    keys = [*KEYS, "object_biou"]
    table = compare(results["A"], results["B"], metrics=keys, resamples=50).table
    assert table["metric"].to_list() == keys
    better = dict(zip(table["metric"].to_list(), (table["a"] > table["b"]).to_list(), strict=True))
    effort = table.filter(table["metric"] == "hce").row(0, named=True)
    assert (effort["a_wins"] > effort["b_wins"]) != better["hce"]  # fewer clicks are better
    intervals = bootstrap_intervals(results["A"], metrics=keys, resamples=50)
    rows = {row["metric"]: row for row in intervals.iter_rows(named=True)}
    for key in KEYS:
        assert rows[key]["low"] <= results["A"].summary[key] <= rows[key]["high"]


@pytest.mark.usefixtures("four_images")
@pytest.mark.parametrize("name", ["sod", "dis"])
def test_a_named_set_is_shown_whole(name: str) -> None:
    finished("--metrics", name, preds=("A", "B"))
    keys = METRIC_SETS[name]
    result = sisod.Evaluation.load("out/MSOD/A")
    assert tuple(result.summary) == keys
    assert "more metric" not in repr(result)
    titles = [sisod.METRICS[key].title for key in keys]
    table = run("table", "out", "--format", "md")
    assert all(title in table.stdout for title in titles)
    csv = run("table", "out", "--format", "csv", "--metrics", name).stdout.splitlines()
    assert csv[0].split(",")[2:] == list(keys)
    other = sisod.Evaluation.load("out/MSOD/B")
    # e_max cannot be resampled: its curves are not saved for each image
    resampled = [key for key in keys if key != "e_max"]
    assert compare(result, other, resamples=20).table["metric"].to_list() == [*resampled, "found"]
    assert compare(result, other, metrics=name, resamples=20).table["metric"].to_list() == resampled


@pytest.mark.usefixtures("four_images")
def test_a_set_among_keys() -> None:
    finished("--metrics", "dis,si_biou,mae")
    assert tuple(sisod.Evaluation.load("out/MSOD/A").summary) == (*METRIC_SETS["dis"], "si_biou")


@pytest.mark.usefixtures("four_images")
def test_latex_has_the_symbols_of_the_field() -> None:
    finished("--metrics", "dis", preds=("A", "B"))
    latex = run("table", "out", "--format", "latex").stdout
    for symbol in (r"$S_\alpha$", r"$F_\beta^w$", r"$\mathrm{HCE}_\gamma$", "BIoU", "MBA"):
        assert symbol in latex


def test_the_list_of_metrics_explains_them() -> None:
    text = run("metrics", "--format", "csv").stdout
    lines = {line.partition(",")[0]: line for line in text.splitlines()}
    assert lines["hce"].startswith("hce,HCE,lower,on request,")
    assert "clicks" in lines["hce"]
    assert lines["si_biou"].startswith("si_biou,SI-BIoU,higher,on request,")
    assert "mean over the objects' frames" in lines["si_biou"]
    assert lines["object_biou"].startswith("object_biou,")


def test_nothing_is_computed_unless_requested() -> None:
    gt = np.eye(8, dtype=bool)
    assert not set(KEYS) & set(sisod.score(gt, gt))
    assert set(KEYS) <= set(sisod.score(gt, gt, metrics="all"))

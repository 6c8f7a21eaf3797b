"""Metrics of boundaries and named sets all the way: folders, processes, resumed runs, tables."""

from pathlib import Path

import numpy as np
import pytest
from helpers.command_line import run
from helpers.evaluate_runs import SOME, evaluate_refusal, finished
from helpers.results import assert_same_result

import sisod
from sisod.analysis import by_size, compare
from sisod.data.truths import read_prediction, read_truth
from sisod.scoring.metrics import METRIC_SETS

KEYS = ("biou", "si_biou", "mba", "hce", "nsd")


def test_folders_processes_and_a_resumed_run_have_the_numbers_of_single_images(
    three_batches: Path,
) -> None:
    evaluators = [sisod.Evaluator(metrics=KEYS) for _ in range(2)]
    for place, path in enumerate(sorted((three_batches / "A").iterdir())):
        gt = read_truth(three_batches / "MSOD/mask", path.name).mask(level=128)
        pair = read_prediction(three_batches / "A", path.name), gt
        evaluators[place >= SOME // 2].update(*pair, name=path.stem)
    expected = evaluators[0].merge(evaluators[1]).result()
    assert_same_result(sisod.evaluate("A", "MSOD/mask", metrics=KEYS, jobs=2), expected)
    file = three_batches / "A" / "scene066.png"
    whole = file.read_bytes()
    file.write_bytes(b"")
    evaluate_refusal("--metrics", ",".join(KEYS))
    file.write_bytes(whole)
    finished("--metrics", ",".join(KEYS), "--resume", jobs=2)
    assert_same_result(sisod.Evaluation.load("out/MSOD/A"), expected)


@pytest.mark.usefixtures("three_batches")
def test_means_of_images_and_of_objects() -> None:
    result = sisod.evaluate("A", "MSOD/mask", metrics=KEYS, jobs=1)
    for key in KEYS:
        defined = result.images[key].to_numpy()[~np.isnan(result.images[key].to_numpy())]
        assert result.summary[key] == pytest.approx(defined.mean(), abs=1e-12)
        assert result.defined[key] == len(defined)
    assert result.summary["hce"] > 1  # not a share
    for name in result.images["image"].to_list()[::10]:
        of_image = result.objects.filter(result.objects["image"] == name)["biou"].to_numpy()
        row = result.images.filter(result.images["image"] == name).row(0, named=True)
        assert row["si_biou"] == pytest.approx(of_image.mean(), abs=1e-12)
    sizes = by_size(result, groups=[0, 1])
    assert sizes["biou"][0] == pytest.approx(result.objects["biou"].mean(), abs=1e-12)
    assert sizes["n_biou"][0] == result.objects.height
    plain = sisod.evaluate("A", "MSOD/mask", metrics="biou", jobs=1)
    assert "biou" not in plain.objects.columns


@pytest.mark.usefixtures("four_images")
@pytest.mark.parametrize("name", ["sod", "dis"])
def test_a_named_set_is_shown_whole(name: str) -> None:
    finished("--metrics", name, preds=("A", "B"))
    keys = METRIC_SETS[name]
    result = sisod.Evaluation.load("out/MSOD/A")
    assert tuple(result.summary) == keys
    assert "more metric" not in repr(result)
    table = run("table", "out", "--format", "md").stdout
    assert all(sisod.METRICS[key].title in table for key in keys)
    other = sisod.Evaluation.load("out/MSOD/B")
    # e_max cannot be resampled: its curves are not saved for each image
    resampled = [key for key in keys if key != "e_max"]
    assert compare(result, other, resamples=20).table["metric"].to_list() == [*resampled, "found"]
    assert compare(result, other, metrics=name, resamples=20).table["metric"].to_list() == resampled
    chosen = sisod.evaluate("A", "MSOD/mask", metrics=f"{name},si_biou,mae", jobs=1)
    assert tuple(chosen.summary) == (*keys, "si_biou")  # mae is in both sets


def test_nothing_is_computed_unless_requested() -> None:
    gt = np.eye(8, dtype=bool)
    assert not set(KEYS) & set(sisod.score(gt, gt))
    assert set(KEYS) <= set(sisod.score(gt, gt, metrics="all"))

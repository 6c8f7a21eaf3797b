"""Metrics of boundaries and named sets all the way: folders, processes, resumed runs, tables."""

import numpy as np
import pytest
from helpers.command_line import run
from helpers.evaluate_runs import finished

import sisod
from sisod.analysis import by_size, compare
from sisod.scoring.metrics import METRIC_SETS

KEYS = ("biou", "si_biou", "mba", "hce", "nsd")


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

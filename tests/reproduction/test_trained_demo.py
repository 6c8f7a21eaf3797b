"""The demo that trains: its tables by hand, and all of it at a small scale."""

import json
from pathlib import Path

import numpy as np
import pytest
from helpers.command_line import run
from helpers.report_runs import Tables, data_of

pytest.importorskip("lightning", reason="extra torch is not installed")

import sisod
from sisod.common.exceptions import InputError
from sisod.reproduction.demo_training import LOSSES, Plan, TrainedDemo, run_trained_demo

SMALL, LARGE = slice(2, 6), slice(20, 80)  # 16 of 10,000 pixels, and 3600


def evaluation(*, sees_small: bool) -> sisod.Evaluation:
    """One image of two objects; the larger one is seen."""
    mask = np.zeros((100, 100), np.uint8)
    mask[SMALL, SMALL] = mask[LARGE, LARGE] = 255
    pred = np.zeros_like(mask)
    pred[LARGE, LARGE] = 255
    pred[SMALL, SMALL] = 255 if sees_small else 0
    evaluator = sisod.Evaluator()
    evaluator.update(pred, mask, name="a")
    return evaluator.result()


@pytest.fixture
def demo() -> TrainedDemo:
    seen = {"plain@0": False, "plain@1": True}
    results = {
        f"{loss}@{seed}": evaluation(sees_small=seen.get(f"{loss}@{seed}", True))
        for loss in LOSSES
        for seed in (0, 1)
    }
    return TrainedDemo(Plan(seeds=(0, 1), n_test=1), results)


def test_numbers_table_and_verdict_by_hand(demo: TrainedDemo) -> None:
    assert demo.scores("plain", "mae") == pytest.approx([16 / 10_000, 0])
    grid = demo.grid()
    columns = dict(zip(grid.headings, zip(*grid.rows, strict=True), strict=True))
    # one of two seeds misses the small one of two objects: mean 0.75, deviation 0.5 / sqrt(2)
    assert columns["Object recall ↑"] == ("0.750 ± 0.354", "1.000 ± 0.000", "1.000 ± 0.000")
    assert columns["Object recall small ↑"][0] == "0.500 ± 0.707"
    assert {(1, 1), (2, 1), (1, 5)} <= grid.bold
    assert (0, 1) not in grid.bold
    assert demo.verdict().splitlines()[1] == (
        "Balanced finds 100% of the small objects (plain: 50%), with 0.0 false objects per image "
        "(plain: 0.0); its object F1 is 1.00 (plain: 0.83)."
    )


@pytest.mark.slow
def test_whole_demo_at_a_small_scale(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    plan = Plan(n_train=8, n_test=12, side=48, epochs=1, seeds=(7,))
    demo = run_trained_demo(folder, plan)
    assert list(demo.results) == [f"{loss}@7" for loss in LOSSES]
    for name, result in demo.results.items():
        assert result.run["images"] == 12
        settings = json.loads((folder / f"runs/{name}/run.json").read_text())["config"]
        assert (settings["seed"], settings["images"]) == (7, 8)
        saved = sisod.Evaluation.load(folder / f"results/synthetic/{name}")
        assert saved.summary == result.summary
        assert len(list((folder / f"maps/{name}").glob("*.png"))) == 12
    assert len({demo.scores(loss, "mae")[0] for loss in LOSSES}) == 3  # three different losses
    record = json.loads((folder / "run.json").read_text())
    assert (record["finished"], record["config"]["n_train"]) == (True, 8)
    assert demo.page == folder / "report.html"
    page = demo.page.read_text()
    assert [row[0][0] for row in Tables(page).tables["Scores on synthetic"][2:]] == [
        f"{loss}@7" for loss in LOSSES
    ]
    pictures = [set(item["pictures"]) for item in data_of(page)["failures"]["items"]]
    assert pictures
    assert pictures == [{"photo", "0", "1", "2"}] * len(pictures)
    # the same again: nothing is trained; and only the same
    stamps = {path: path.stat().st_mtime_ns for path in folder.glob("runs/*/*.safetensors")}
    assert run_trained_demo(folder, plan).scores("plain", "mae") == demo.scores("plain", "mae")
    assert len(stamps) == 3
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    with pytest.raises(InputError, match="is another run: seeds was"):
        run_trained_demo(folder, Plan(n_train=8, n_test=12, side=48, epochs=1, seeds=(8,)))


def test_another_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="exists and is not a result of"):
        run_trained_demo(tmp_path / "mine")


def test_command_prints_both_parts(
    demo: TrainedDemo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders: list[Path] = []

    def finished(folder: Path) -> TrainedDemo:
        folders.append(folder)
        return demo

    monkeypatch.setattr("sisod.reproduction.demo_training.run_trained_demo", finished)
    result = run("demo", "--out", str(tmp_path))
    assert result.exit_code == 0, result.stderr
    assert folders == [tmp_path / "trained"]
    figure, trained = result.stdout.split("Now a small network learns such scenes")
    assert "Method A is preferred by MAE" in figure
    assert "size-invariant" in trained
    assert demo.caption() in trained
    assert demo.verdict() in trained

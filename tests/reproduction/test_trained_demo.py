"""The demo that trains: its tables by hand, and all of it at a small scale."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from helpers.command_line import run
from helpers.report_runs import Tables, data_of

pytest.importorskip("lightning", reason="extra torch is not installed")

import sisod
from sisod.common.exceptions import InputError
from sisod.reproduction.demo_training import LOSSES, Plan, TrainedDemo, run_trained_demo
from sisod.scoring.metrics import PAPER_KEYS

SMALL, LARGE = slice(2, 6), slice(20, 80)  # 16 of 10,000 pixels, and 3600


def evaluation(*, sees_small: bool) -> sisod.Evaluation:
    """One image of two objects; the larger one is seen."""
    mask = np.zeros((100, 100), np.uint8)
    mask[SMALL, SMALL] = mask[LARGE, LARGE] = 255
    pred = np.zeros_like(mask)
    pred[LARGE, LARGE] = 255
    pred[SMALL, SMALL] = 255 if sees_small else 0
    evaluator = sisod.Evaluator(metrics="paper")
    evaluator.update(pred, mask, name="a")
    return evaluator.result()


@pytest.fixture
def demo() -> TrainedDemo:
    results = {
        ("plain", 0): evaluation(sees_small=False),
        ("plain", 1): evaluation(sees_small=True),
        ("si", 0): evaluation(sees_small=True),
        ("si", 1): evaluation(sees_small=True),
    }
    return TrainedDemo(Plan(seeds=(0, 1), n_test=1), results)


def test_numbers_and_table_by_hand(demo: TrainedDemo) -> None:
    scores = {name: [values.tolist() for values in pair] for name, pair in demo.scores().items()}
    assert scores["mae"] == [pytest.approx([16 / 10_000, 0]), [0, 0]]
    assert scores["si_f_mean"][1] == [1, 1]
    found = {name: pair for name, pair in scores.items() if name.startswith("found")}
    assert found == {"found, 0-0.3 %": [[0, 1], [1, 1]], "found, 5-100 %": [[1, 1], [1, 1]]}
    grid = demo.grid()
    rows = {row[0]: row[1:] for row in grid.rows}
    # 0.0016 and 0: mean 0.0008, deviation 0.0016 / sqrt(2)
    assert rows["MAE ↓"] == ("0.0008 ± 0.0011", "0.0000 ± 0.0000", "-0.0008", "-0.0016", "+0.0000")
    assert rows["found, 0-0.3 %"][:3] == ("0.5000 ± 0.7071", "1.0000 ± 0.0000", "+0.5000")
    assert {(0, 2), (9, 2)} <= grid.bold


@pytest.mark.slow
def test_whole_demo_at_a_small_scale(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    plan = Plan(n_train=8, n_test=12, side=48, epochs=1, seeds=(7,))
    demo = run_trained_demo(folder, plan)
    assert list(demo.results) == [("plain", 7), ("si", 7)]
    for loss in LOSSES:
        assert demo.results[loss, 7].run["images"] == 12
        settings = json.loads((folder / f"runs/{loss}-7/run.json").read_text())["config"]
        assert (settings["loss"], settings["seed"], settings["images"]) == (loss, 7, 8)
        saved = sisod.Evaluation.load(folder / f"results/synthetic/{loss}-7")
        assert tuple(saved.summary) == PAPER_KEYS
        assert saved.summary == demo.results[loss, 7].summary
        assert len(list((folder / f"maps/{loss}-7").glob("*.png"))) == 12
    (plain,), (si,) = demo.scores()["mae"]
    assert 0 < min(plain, si) < max(plain, si) < 1
    record = json.loads((folder / "run.json").read_text())
    assert (record["finished"], record["config"]["n_train"]) == (True, 8)
    assert demo.page == folder / "report.html"
    page = demo.page.read_text()
    assert [row[0][0] for row in Tables(page).tables["Scores on synthetic"][2:]] == ["plain-7", "si-7"]
    pictures = [set(item["pictures"]) for item in data_of(page)["failures"]["items"]]
    assert pictures
    assert pictures == [{"photo", "0", "1"}] * len(pictures)
    # the same again: nothing is trained; and only the same
    stamps = {path: path.stat().st_mtime_ns for path in folder.glob("runs/*/*.safetensors")}
    assert run_trained_demo(folder, plan).scores()["mae"][1] == [si]
    assert len(stamps) == 2
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    with pytest.raises(InputError, match="is another run: seeds was"):
        run_trained_demo(folder, Plan(n_train=8, n_test=12, side=48, epochs=1, seeds=(8,)))


class Threads(ThreadPoolExecutor):
    """Takes the place of loky's processes, whose start takes seconds."""

    def __init__(self, n_workers: int, **_: object) -> None:
        super().__init__(n_workers)

    def shutdown(self, wait: bool = True, **_: bool) -> None:  # noqa: D102
        super().shutdown(wait)


def test_failed_training_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sisod.reproduction.demo_training.ProcessPoolExecutor", Threads)
    with pytest.raises(
        InputError, match=r"training (plain|si)-0 failed: 4 images do not fill one step of 8"
    ):
        run_trained_demo(tmp_path / "demo", Plan(n_train=4, n_test=2, side=48, epochs=1, seeds=(0,)))
    assert json.loads((tmp_path / "demo/run.json").read_text())["finished"] is False
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
    assert "found, 0-0.3 %" in trained
    assert demo.caption() in trained
    assert str(tmp_path / "trained") in trained

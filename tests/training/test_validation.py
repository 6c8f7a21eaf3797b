"""Validation during training: the metric of the best epoch, its protocol, early stopping; progress."""

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="extra torch is not installed")
pytest.importorskip("lightning", reason="extra torch is not installed")

from helpers.command_line import run  # noqa: E402
from helpers.training_runs import SMALL, same_data, train_tiny, write_data  # noqa: E402

from sisod.common.exceptions import InputError, UsageError  # noqa: E402
from sisod.training.recipe import find_recipe, write_toml  # noqa: E402
from sisod.training.trainer import ProgressLines, read_metrics  # noqa: E402

pytestmark = same_data


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("validation") / "data", 16)


def test_the_best_epoch_is_that_of_the_monitor(data: Path, tmp_path: Path) -> None:
    settings = ("train.epochs=4", "validate.monitor=pd", "validate.protocol=infrared")
    record = train_tiny(data, tmp_path / "run", *settings, val=data)
    rows = [row for row in read_metrics(tmp_path / "run/metrics.csv") if row["pd"]]
    assert len(rows) == 4
    values = [float(row["pd"]) for row in rows]
    assert record["best_pd"] == pytest.approx(max(values))
    best = torch.load(tmp_path / "run/checkpoints/best.ckpt", weights_only=True)
    assert best["epoch"] == values.index(max(values))
    assert find_recipe(tmp_path / "run/recipe.toml").validate.monitor == "pd"


def test_a_run_that_gets_no_better_stops(data: Path, tmp_path: Path) -> None:
    settings = ("train.epochs=9", "optimizer.lr=0", "validate.patience=2")
    record = train_tiny(data, tmp_path / "run", *settings, val=data)
    assert (record["epochs"], record["finished"]) == (3, True)  # the first is the best
    assert train_tiny(data, tmp_path / "run", *settings, val=data, resume=True)["epochs"] == 3


def test_wrong_names_are_said_before_anything_is_written(data: Path, tmp_path: Path) -> None:
    for setting, name in (("monitor=si_maee", "si_maee"), ("protocol=paperr", "paperr")):
        with pytest.raises(InputError, match=name):
            find_recipe("tiny", [f"validate.{setting}"])
    settings = ("validate.monitor=object_f1", "validate.protocol=official")
    with pytest.raises(UsageError, match="object_f1"):
        train_tiny(data, tmp_path / "run", *settings, val=data)
    assert not (tmp_path / "run").exists()
    assert "[validate]" not in write_toml(find_recipe("tiny"))


def test_epochs_and_seed_of_the_command(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ProgressLines, "seconds", 0.0)
    settings = [word for setting in SMALL for word in ("--set", setting)]
    options = ("--data", data, "--out", tmp_path / "run", "--workers", "0", "--epochs", "1")
    done = run("train", "tiny", *settings, *options, "--seed", "7")
    assert done.exit_code == 0, done.stderr
    record = json.loads((tmp_path / "run/run.json").read_text())
    assert (record["epochs"], record["config"]["seed"]) == (1, 7)
    lines = [line for line in done.stderr.splitlines() if line.startswith("epoch ")]
    assert [line.partition(", loss ")[0] for line in lines] == [
        "epoch 1 of 1, step 1 of 2",
        "epoch 1 of 1, step 2 of 2",
    ]

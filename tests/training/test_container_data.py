"""Training and calibrating from containers: the same weights and maps as from folders."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from helpers.command_line import refusal, run
from helpers.container_files import IMAGE, write_tar
from helpers.folder_contents import content as files_of

torch = pytest.importorskip("torch", reason="extra torch is not installed")

from helpers.training_runs import same_weights, train_tiny, write_data  # noqa: E402

from sisod.data.datasets import open_dataset  # noqa: E402
from sisod.training.data import TrainingSet, ValidationSet  # noqa: E402
from sisod.training.loaders import make_loaders  # noqa: E402
from sisod.training.recipe import find_recipe  # noqa: E402


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data set as folders, as one Parquet file and as one tar."""
    monkeypatch.chdir(tmp_path)
    folder = write_data(tmp_path / "data", 24)
    images, masks = files_of(folder / "image"), files_of(folder / "mask")
    columns = {
        kind: pl.Series([{"bytes": one, "path": name} for name, one in files.items()], dtype=IMAGE)
        for kind, files in (("image", images), ("mask", masks))
    }
    pl.DataFrame(columns).write_parquet(tmp_path / "data.parquet")
    write_tar(
        tmp_path / "data.tar",
        images | {name.replace(".png", ".mask.png"): one for name, one in masks.items()},
    )
    return folder


def test_the_same_weights(data: Path, tmp_path: Path) -> None:
    train_tiny(data, tmp_path / "folder", "train.epochs=1")
    for kind in ("parquet", "tar"):
        train_tiny(tmp_path / f"data.{kind}", tmp_path / kind, "train.epochs=1")
        same_weights(tmp_path / "folder", tmp_path / kind)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "tar"])
def test_processes_that_read(data: Path, tmp_path: Path, kind: str) -> None:
    """Threads of polars are here already, so a process that reads Parquet must not be forked."""
    batches: list[Any] = []
    recipe = find_recipe("tiny")
    for root, workers in ((data, 0), (tmp_path / f"data.{kind}", 1)):
        samples = open_dataset(root).samples
        training = TrainingSet(samples, recipe.data, seed=0)
        validation = ValidationSet(samples[:2], recipe.data.size)
        _, loader = make_loaders(recipe.train, training, validation, workers=workers)
        assert loader is not None
        batches.append(next(iter(loader)))
        del loader
    np.testing.assert_array_equal(batches[0].images, batches[1].images)


@pytest.mark.parametrize("kind", ["parquet", "tar"])
def test_calibrated_run(data: Path, tmp_path: Path, kind: str) -> None:  # noqa: ARG001
    """The images that a run was not trained on are found in the container that it was trained on."""
    container = tmp_path / f"data.{kind}"
    train_tiny(container, tmp_path / "run", "train.epochs=1", "train.batch=2", limit=4)
    # its own images as test images: nothing is left to calibrate on
    refused = refusal("calibrate", tmp_path / "run", "--test", container)
    assert refused.startswith("0 images are too few to calibrate on; expected at least 20")
    container.rename(tmp_path / f"moved.{kind}")
    assert refusal("calibrate", tmp_path / "run").endswith("; name it with --data")
    ended = run("calibrate", tmp_path / "run", "--data", tmp_path / f"moved.{kind}")
    assert ended.exit_code == 0, (ended.stderr, ended.exception)
    record = json.loads((tmp_path / "run/calibration.json").read_text())
    trained = json.loads((tmp_path / "run/images.json").read_text())["trained"]
    assert len({*record["images"], *trained}) == 24

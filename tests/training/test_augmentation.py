"""Augmentation, loggers and callbacks of one's own: named in a recipe, or given in Python."""

import random
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="extra torch is not installed")
lightning = pytest.importorskip("lightning", reason="extra torch is not installed")

from helpers.training_runs import SMALL, losses, same_weights, train_tiny, write_data  # noqa: E402

from sisod.common.exceptions import InputError, UsageError  # noqa: E402
from sisod.data.datasets import open_dataset  # noqa: E402
from sisod.losses import boxes_of  # noqa: E402
from sisod.training.data import TrainingSet, load_transform  # noqa: E402
from sisod.training.loaders import collate  # noqa: E402
from sisod.training.recipe import find_recipe, write_toml  # noqa: E402
from sisod.training.recipe_parts import DataPart  # noqa: E402
from sisod.training.train import Machine, TrainingRequest, train  # noqa: E402

MODULE = """
import random


def roll(image, mask):
    shift = random.randrange(1, 20)
    return {"image": image[:, ::-1], "mask": mask[:, ::-1] if shift else mask}
"""


def shifted(image: Any, mask: Any) -> dict[str, Any]:
    """Move both to the right by a random number of pixels."""
    n = random.randrange(20) + int(np.random.randint(20))  # noqa: NPY002, S311
    return {"image": np.roll(image, n, axis=1), "mask": np.roll(mask, n, axis=1)}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("augmented") / "data", 8)


def batch(data: Path, transform: Any, epoch: int = 0, seed: int = 0) -> Any:
    part = DataPart(size=48, flip=0.0)
    samples = open_dataset(data).samples
    items = TrainingSet(samples, part, seed=seed, transform=transform)
    return collate([items[epoch, index] for index in range(4)])


def test_parts_are_found_after_a_transform_decided_by_seed_epoch_and_image(data: Path) -> None:
    first, plain = batch(data, shifted), batch(data, None)
    assert torch.equal(first.boxes, boxes_of(first.labels["mask"].float() / 255))
    assert not torch.equal(first.boxes, plain.boxes)
    random.seed(5)
    assert torch.equal(batch(data, shifted).images, first.images)
    assert not torch.equal(batch(data, shifted, epoch=1).images, first.images)
    assert not torch.equal(batch(data, shifted, seed=1).images, first.images)


def test_masks_of_another_size_are_brought_to_that_of_the_image(tmp_path: Path) -> None:
    other = write_data(tmp_path / "other", 4)
    for path in (other / "mask").iterdir():
        mask = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
        assert mask is not None
        cv2.imwrite(str(path), mask.repeat(2, axis=0).repeat(2, axis=1))
    shapes = []

    def noted(image: Any, mask: Any) -> dict[str, Any]:
        shapes.append((image.shape[:2], mask.shape))
        return {"image": image, "mask": mask}

    batch(other, noted)
    assert set(shapes) == {((48, 64), (48, 64))}


def test_a_function_is_named_by_the_user_or_not_run(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_augment.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    setting = "data.augment=py:own_augment:roll"
    Path("own.toml").write_text(write_toml(find_recipe("tiny", [*SMALL, setting])))
    with pytest.raises(UsageError, match=r"--set data\.augment=py:own_augment:roll"):
        find_recipe("own.toml")
    assert "own_augment" not in sys.modules
    train_tiny(data, tmp_path / "named", setting)
    train_tiny(data, tmp_path / "plain")
    assert losses(tmp_path / "named") != losses(tmp_path / "plain")
    train_tiny(data, tmp_path / "python", transform=load_transform("py:own_augment:roll"))
    same_weights(tmp_path / "named", tmp_path / "python")
    with pytest.raises(InputError, match="is another run: transform was"):
        train_tiny(data, tmp_path / "python", transform=shifted, resume=True)
    for wrong in ("data.augment=roll", "data.augment=3"):
        with pytest.raises(InputError):
            find_recipe("tiny", [wrong])
    with pytest.raises(UsageError, match="labels of a first stage"):
        train_tiny(data, tmp_path / "ldf", recipe="ldf-lite", transform=shifted)


def test_a_file_of_albumentations(data: Path, tmp_path: Path) -> None:
    albumentations = pytest.importorskip("albumentations", reason="albumentations is not installed")
    transform = albumentations.Compose([albumentations.Affine(translate_percent=(-0.3, 0.3), p=1.0)])
    path = tmp_path / "augment.json"
    albumentations.save(transform, path, data_format="json")
    loaded, before = load_transform(str(path)), batch(data, transform)
    assert torch.equal(batch(data, loaded).images, before.images)
    assert torch.equal(before.boxes, boxes_of(before.labels["mask"].float() / 255))
    assert not torch.equal(batch(data, loaded, epoch=1).images, before.images)
    path.write_text("{")
    with pytest.raises(InputError, match="cannot be loaded by albumentations"):
        load_transform(str(path))


def test_loggers_and_callbacks_by_name_and_in_python(data: Path, tmp_path: Path) -> None:
    epochs = []

    class Noted(lightning.Callback):  # type: ignore[misc, name-defined]
        def on_train_epoch_end(self, trainer: Any, *_: Any) -> None:
            epochs.append(trainer.current_epoch)

    settings = (
        "lightning.loggers={CSVLogger={name='second'}}",
        "lightning.callbacks={LearningRateMonitor={logging_interval='step'}}",
    )
    recipe, out = find_recipe("tiny", [*SMALL, *settings]), tmp_path / "run"
    train(recipe, TrainingRequest(data=data, out=out), Machine(workers=0, callbacks=(Noted(),)))
    assert epochs == [0, 1]
    [path] = (out / "second").rglob("metrics.csv")
    assert "lr-AdamW" in path.read_text()
    assert find_recipe(out / "recipe.toml") == find_recipe(out / "recipe.toml", settings)


@pytest.mark.parametrize(
    ("setting", "logger", "name"),
    [
        ("lightning.callbacks={EarlyStoping={}}", "csv", "EarlyStoping"),
        ("lightning.loggers={CSVLogger={wrong=1}}", "csv", "wrong"),
        ("train.seed=0", "NoLogger", "NoLogger"),
    ],
)
def test_wrong_names(setting: str, logger: str, name: str, data: Path, tmp_path: Path) -> None:
    machine = Machine(workers=0, logger=logger)
    request = TrainingRequest(data=data, out=tmp_path / "run")
    with pytest.raises(UsageError, match=name):
        train(find_recipe("tiny", [*SMALL, setting]), request, machine)
    assert not (tmp_path / "run").exists()

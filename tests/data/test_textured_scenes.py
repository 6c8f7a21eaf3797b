"""Synthetic scenes: decided by the seed, of very different sizes, labelled correctly."""

from pathlib import Path

import cv2
import numpy as np
import pytest

import sisod
from sisod.data.datasets import open_dataset
from sisod.data.images import read_array, read_colour
from sisod.data.scenes import Scene, textured_scenes, write_scenes


@pytest.fixture(scope="module")
def scenes() -> list[Scene]:
    return list(textured_scenes(50, seed=5, shape=(96, 112)))


def test_same_for_a_seed_however_many(scenes: list[Scene]) -> None:
    again = list(textured_scenes(3, seed=5, shape=(96, 112)))
    for ours, first in zip(again, scenes, strict=False):
        assert ours.name == first.name
        assert (ours.image == first.image).all()
        assert (ours.labels == first.labels).all()
    other = next(textured_scenes(1, seed=6, shape=(96, 112)))
    assert (other.image != scenes[0].image).any()


def test_masks_are_the_objects(scenes: list[Scene]) -> None:
    for scene in scenes:
        assert scene.image.shape == (96, 112, 3)
        assert set(np.unique(scene.mask)) == {0, 255}
        assert ((scene.mask > 0) == (scene.labels > 0)).all()
        n_objects = int(scene.labels.max())
        assert 1 <= n_objects <= 6
        # every object is a component of its own, and none is dropped as a speck
        assert len(sisod.partition(scene.mask)) == n_objects
        assert cv2.connectedComponents(scene.mask, connectivity=8)[0] == n_objects + 1


def test_sizes_are_spread_over_the_decades(scenes: list[Scene]) -> None:
    shares = np.concatenate([np.bincount(s.labels.ravel())[1:] / s.labels.size for s in scenes])
    assert shares.min() >= 0.0006  # a few pixels more or less at the least sizes
    assert shares.max() <= 0.27
    counts, _ = np.histogram(shares, [0, 0.003, 0.01, 0.03, 0.1, 0.3])
    assert (counts > 0.1 * len(shares)).all()


def test_objects_differ_in_hue_and_specks_are_none(scenes: list[Scene]) -> None:
    """What tells an object is there to be learnt: hues inside are far from those of the background."""
    far = []
    for scene in scenes:
        hue = cv2.cvtColor(cv2.medianBlur(scene.image, 5), cv2.COLOR_BGR2HSV)[..., 0] * (np.pi / 90)
        mean = np.angle(np.exp(1j * hue[scene.mask == 0]).mean())
        away = np.abs(np.angle(np.exp(1j * (hue - mean))))
        big = scene.labels == np.bincount(scene.labels.ravel())[1:].argmax() + 1
        far.append((np.median(away[big]), np.median(away[scene.mask == 0])))
    inside, outside = np.array(far).T
    assert np.median(inside) > 4 * np.median(outside)


def test_written_as_a_data_set(tmp_path: Path) -> None:
    folder = write_scenes(tmp_path / "made", 4, seed=5, shape=(96, 112))
    found = open_dataset(folder)
    assert found.name == "made"
    assert [sample.name for sample in found.samples] == [f"made{index:05d}" for index in range(4)]
    scene = next(textured_scenes(1, seed=5, shape=(96, 112)))
    assert (read_colour(folder / "image", "made00000.png") == scene.image).all()
    assert (read_array(folder / "mask", "made00000.png") == scene.mask).all()

"""Training batches: image and mask are augmented alike, decided by seed, epoch and image alone."""

import json
import re
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="extra torch is not installed")

from helpers.image_files import encoded, exif, with_exif  # noqa: E402
from helpers.training_runs import train_tiny, write_data  # noqa: E402

from sisod import networks  # noqa: E402
from sisod.common.exceptions import InputError, UsageError  # noqa: E402
from sisod.data.datasets import Sample, open_dataset  # noqa: E402
from sisod.data.images import resize  # noqa: E402
from sisod.losses import boxes_of, labels_of  # noqa: E402
from sisod.networks.architectures.ldf import split_label  # noqa: E402
from sisod.scoring.loss_options import Weighting  # noqa: E402
from sisod.training.calibration import calibrate_run  # noqa: E402
from sisod.training.data import (  # noqa: E402
    TrainingSet,
    augment,
    check_samples,
    limit_samples,
    read_image,
    read_truth,
)
from sisod.training.loaders import EpochSampler, collate  # noqa: E402
from sisod.training.recipe_parts import DataPart  # noqa: E402


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> tuple[Sample, ...]:
    return open_dataset(write_data(tmp_path_factory.mktemp("data") / "made", 6)).samples


@pytest.mark.parametrize("crop", [0.0, 0.5])
def test_image_and_mask_are_augmented_alike(crop: float) -> None:
    gen = rng(0)
    plane = cv2.GaussianBlur(gen.integers(0, 255, (60, 90), dtype=np.uint8), (0, 0), 3).astype(np.uint8)
    flips = 0
    for seed in range(12):
        part = DataPart(size=32, flip=0.5, crop=crop)
        done = augment({"image": np.stack([plane] * 3, axis=2), "mask": plane}, part, rng(seed))
        np.testing.assert_array_equal(done["image"][..., 0], done["mask"])
        whole = resize(plane, 32)
        flips += bool(np.abs(done["mask"][:, ::-1].astype(int) - whole).sum() == 0)
    assert (0 < flips < 12) == (crop == 0)  # both ways occur; a crop is neither


def test_flip_is_left_right_and_crop_keeps_most() -> None:
    plane = np.zeros((40, 40), dtype=np.uint8)
    plane[:10, :10] = 255
    turned = augment({"mask": plane}, DataPart(size=40, flip=1.0), rng(0))["mask"]
    assert turned[:10, 30:].min() == 255
    assert turned.sum() == plane.sum()
    full = np.full((40, 40), 7, dtype=np.uint8)
    assert (augment({"mask": full}, DataPart(size=40, crop=0.9), rng(1))["mask"] == 7).all()


def test_items_depend_on_seed_epoch_and_index_only(samples: tuple[Sample, ...]) -> None:
    part = DataPart(size=32, crop=0.3)
    data = TrainingSet(samples, part, seed=1)
    first = data[0, 3]
    for key in [(0, 2), (5, 3), (0, 0)]:
        data[key]
    np.testing.assert_array_equal(data[0, 3].image, first.image)
    assert (data[1, 3].image != first.image).any()
    assert (TrainingSet(samples, part, seed=2)[0, 3].image != first.image).any()


def test_boxes_are_those_of_the_augmented_masks(samples: tuple[Sample, ...]) -> None:
    data = TrainingSet(samples, DataPart(size=48, crop=0.3), seed=0)
    batch = collate([data[2, index] for index in range(6)])
    assert batch.images.shape == (6, 3, 48, 48)
    assert batch.images.dtype == torch.uint8
    assert batch.labels["mask"].shape == (6, 1, 48, 48)
    assert torch.equal(batch.boxes, boxes_of(batch.labels["mask"].float() / 255))
    assert batch.names == tuple(sample.name for sample in samples)


def test_cells_are_those_of_the_augmented_masks(samples: tuple[Sample, ...]) -> None:
    options: dict[str, Any] = {"min_area": 60, "connectivity": 4}
    weighting = Weighting("cells", **options)
    data = TrainingSet(samples, DataPart(size=48, crop=0.3), seed=0, weighting=weighting)
    batch = collate([data[2, index] for index in range(6)])
    gt = batch.labels["mask"].float() / 255
    assert batch.parts is not None
    assert batch.parts.dtype == torch.int16
    assert torch.equal(batch.parts, labels_of(gt, **options))
    assert torch.equal(batch.boxes, boxes_of(gt, **options))
    assert len(batch.boxes) < len(boxes_of(gt))


def test_labels_of_ldf(samples: tuple[Sample, ...], tmp_path: Path) -> None:
    part = DataPart(size=48)
    ldf = networks.find("ldf")
    item = TrainingSet(samples, part, seed=0, network=ldf)[0, 1]
    body, detail = split_label(item.labels["mask"])
    np.testing.assert_array_equal(item.labels["body"], body)
    np.testing.assert_array_equal(item.labels["detail"], detail)
    for kind in ("body", "detail"):  # of a first stage: augmented as the mask is
        (tmp_path / kind).mkdir()
        for sample in samples:
            cv2.imwrite(str(tmp_path / kind / f"{sample.name}.png"), read_truth(sample) * np.uint8(255))
    part = DataPart(size=48, crop=0.4)
    data = TrainingSet(samples, part, seed=0, network=ldf, labels_dir=tmp_path)
    for index in range(6):
        item = data[0, index]
        np.testing.assert_array_equal(item.labels["body"], item.labels["mask"])


def test_order_is_a_permutation_that_processes_share() -> None:
    sampler = EpochSampler(22, step=4, seed=3)
    sampler.set_epoch(5)
    order = list(sampler)
    assert len(order) == len(sampler) == 20  # two do not fill a step
    assert {epoch for epoch, _ in order} == {5}
    assert len({index for _, index in order}) == 20
    assert order == list(sampler)
    sampler.set_epoch(6)
    assert [index for _, index in sampler] != [index for _, index in order]
    shares = []
    for rank in (0, 1):
        share = EpochSampler(22, step=4, seed=3, rank=rank, world=2)
        share.set_epoch(5)
        shares.append(list(share))
    # the batches of two processes, two images each, are the batches of one
    for start in range(0, 20, 4):
        both = [key for share in shares for key in share[start // 2 : start // 2 + 2]]
        assert sorted(both) == sorted(order[start : start + 4])
    with pytest.raises(InputError, match=r"^3 images do not fill one step of 4; lower train\.batch"):
        EpochSampler(3, step=4, seed=0)


def test_limit_takes_the_same_images_spread_over_the_set() -> None:
    many = [Sample(f"{i:03d}", Path("a"), Path("b")) for i in range(100)]
    few = limit_samples(many, 10)
    assert len(few) == 10
    assert few == limit_samples(many, 10)
    assert [s.name for s in few] == sorted(s.name for s in few)
    assert few[-1].name > "050"
    assert limit_samples(many, None) == limit_samples(many, 200) == tuple(many)


def test_several_data_sets_are_one(tmp_path: Path) -> None:
    """Names tell them apart; a run is calibrated on what it has not seen of either."""
    first, second = write_data(tmp_path / "first", 12), write_data(tmp_path / "second", 16)
    for path in (second / "mask").iterdir():  # as SIRST is published
        path.rename(path.with_name(f"{path.stem}_pixels0.png"))
    out = tmp_path / "run"
    record = train_tiny([first, second], out, "train.epochs=1", "train.batch=4", limit=8)
    assert record["images"] == 8
    trained = json.loads((out / "images.json").read_text())["trained"]
    assert {name.partition("/")[0] for name in trained} == {"first", "second"}
    fitted = calibrate_run(out)
    assert len({*fitted.images, *trained}) == 12 + 16
    with pytest.raises(InputError, match="two data sets have the same name"):
        train_tiny([first, first], tmp_path / "other")
    with pytest.raises(UsageError, match="--masks"):
        train_tiny([first, second], tmp_path / "other", masks=first / "mask")


def broken(root: Path, what: str) -> str:
    """Break one file of a data set; return its path."""
    image, mask = root / "image" / "scene002.jpg", root / "mask" / "scene002.png"
    if what == "truncated":
        image.write_bytes(image.read_bytes()[:-300])
    elif what == "colour":
        cv2.imwrite(str(mask), np.dstack([np.full((48, 64), v, np.uint8) for v in (0, 90, 255)]))
    elif what == "form":
        cv2.imwrite(str(mask), np.zeros((64, 48), np.uint8))
    else:
        cv2.imwrite(str(mask), np.eye(48, 64, dtype=np.uint8))
    return str(image if what in ("truncated", "form") else mask)


def test_photographs_and_masks_are_read_the_same_way_up(tmp_path: Path) -> None:
    """A photograph that a camera stored on its side, and the mask that was drawn over it upright."""
    upright = np.zeros((48, 64, 3), np.uint8)
    upright[5:17, 40:60] = 255
    for kind in ("image", "mask"):
        (tmp_path / kind).mkdir()
    sideways = np.ascontiguousarray(np.rot90(upright))
    tagged = with_exif(encoded(".jpg", sideways, cv2.IMWRITE_JPEG_QUALITY, 100), exif(6))
    (tmp_path / "image/a.jpg").write_bytes(tagged)
    (tmp_path / "mask/a.png").write_bytes(encoded(".png", upright[..., 0]))
    samples = open_dataset(tmp_path).samples
    assert check_samples(samples).samples == samples
    image, mask = read_image(samples[0]), read_truth(samples[0])
    np.testing.assert_array_equal(image[..., 0] >= 128, mask)

    (tmp_path / "mask/a.png").write_bytes(encoded(".png", sideways[..., 0]))
    with pytest.raises(InputError) as caught:
        check_samples(samples)
    assert "its mask is 48 x 64; expected the same aspect ratio" in str(caught.value)
    assert "(the mask is rotated, as if drawn without" in str(caught.value)


@pytest.mark.parametrize("what", ["truncated", "colour", "form", "binary"])
def test_bad_files_are_named_or_counted(tmp_path: Path, what: str) -> None:
    root = write_data(tmp_path / "made", 4)
    message = broken(root, what)
    samples = open_dataset(root).samples
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        check_samples(samples)
    assert str(caught.value).endswith("; or leave such images out with --skip-bad")
    good, bad, *_ = check_samples(samples, skip_bad=True)
    assert [sample.name for sample in good] == ["scene000", "scene001", "scene003"]
    assert len(bad) == 1
    assert message in bad[0]
    with pytest.raises(InputError, match=r"^none of the 1 images can be used; the first: "):
        check_samples(samples[2:3], skip_bad=True)


def test_masks_with_an_ending_of_their_own(tmp_path: Path) -> None:
    data = write_data(tmp_path / "data", 4)
    plain = open_dataset(data).samples
    for path in (data / "mask").iterdir():
        path.rename(path.with_name(f"{path.stem}_gt.png"))
    for options in ({}, {"mask_suffix": "_gt"}):
        dataset = open_dataset(data, **options)
        assert [sample.name for sample in dataset.samples] == [sample.name for sample in plain]
        assert dataset.mask_suffix == "_gt"
    (data / "image" / "scene001.jpg").unlink()
    with pytest.raises(InputError, match="1 of 4 masks have no image"):
        open_dataset(data, mask_suffix="_gt")

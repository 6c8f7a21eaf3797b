"""Data sets are found in the usual layouts, and an error says why one is not."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from helpers.dataset_folders import write, write_set
from helpers.platforms import slashes

from sisod.common.exceptions import InputError
from sisod.data.datasets import find_known, open_dataset

LAYOUTS = [
    ("DUTS-TR", "DUTS-TR/image", "DUTS-TR/mask"),
    ("DUTS-TR", "DUTS-TR/DUTS-TR-Image", "DUTS-TR/DUTS-TR-Mask"),
    ("DUTS-TR", "DUTS/DUTS-TR/DUTS-TR-Image", "DUTS/DUTS-TR/DUTS-TR-Mask"),
    ("DUTS-TR", "DUTS/Train/Image", "DUTS/Train/Mask"),
    ("DUTS-TR", "DUTS-TR-Image", "DUTS-TR-Mask"),
    ("DUTS-TE", "duts_te/imgs", "duts_te/gt"),
    ("DUTS-TE", "DUTS-TE/Test/images", "DUTS-TE/Test/masks"),
    ("ECSSD", "ECSSD/images", "ECSSD/ground_truth_mask"),
    ("ECSSD", "sod/ecssd/img", "sod/ecssd/gt"),
    ("HKU-IS", "HKU-IS/imgs", "HKU-IS/gt"),
    ("DUT-OMRON", "DUT-OMRON/DUT-OMRON-image", "DUT-OMRON/pixelwiseGT-new-PNG"),
    (
        "DUT-OMRON",
        "DUTS-OMRON/DUT-OMRON-image/DUT-OMRON-image",
        "DUTS-OMRON/DUT-OMRON-gt-pixelwise.zip/pixelwiseGT-new-PNG",
    ),
    ("PASCAL-S", "salObj/datasets/imgs/pascal", "salObj/datasets/masks/pascal"),
    ("PASCAL-S", "PASCAL-S/Image", "PASCAL-S/Mask"),
    ("SOD", "SOD/Images", "SOD/GT"),
    ("XPIE", "XPIE/image", "XPIE/mask"),
    ("MSOD", "MSOD/image", "MSOD/mask"),
]


@pytest.mark.parametrize(("name", "images", "masks"), LAYOUTS)
def test_layouts(tmp_path: Path, name: str, images: str, masks: str) -> None:
    write_set(tmp_path, images, masks, "b", "a")
    write_set(tmp_path, "__MACOSX/DUTS-TR/image", "__MACOSX/DUTS-TR/mask", "x")  # not a data set
    write(tmp_path / images, "._a", extension="jpg")
    found = open_dataset(tmp_path, prefer=[name])
    assert (found.name, found.image_dir, found.mask_dir) == (name, tmp_path / images, tmp_path / masks)
    assert [sample.name for sample in found.samples] == ["a", "b"]
    assert found.samples[0].image == tmp_path / images / "a.jpg"
    assert found.samples[0].mask == tmp_path / masks / "a.png"
    assert list(find_known(tmp_path)) == [name]
    if "/" not in images:
        return
    own = Path(os.path.commonpath([tmp_path / images, tmp_path / masks]))
    if own.name == "datasets":  # PASCAL-S's archive holds other sets beside it
        write_set(own, "imgs/judd", "masks/judd", "b")
        own = own.parent
    for prefer in ([name], [], ["DUTS-TR"]):
        found = open_dataset(own, prefer=prefer)
        assert (found.name, len(found.samples)) == (name, 2)


def test_preference_and_all_that_is_there(tmp_path: Path) -> None:
    write_set(tmp_path, "ECSSD/image", "ECSSD/mask", "a")
    write_set(tmp_path, "DUTS/DUTS-TR-Image", "DUTS/DUTS-TR-Mask", "a", "b")
    write_set(tmp_path, "DUTS/DUTS-TE-Image", "DUTS/DUTS-TE-Mask", "c")
    assert list(find_known(tmp_path)) == ["DUTS-TR", "DUTS-TE", "ECSSD"]
    for prefer, name in (
        (["DUTS-TR"], "DUTS-TR"),
        (["MSOD", "DUTS-TE"], "DUTS-TE"),
        (["ECSSD"], "ECSSD"),
    ):
        assert open_dataset(tmp_path, prefer=prefer).name == name
    assert open_dataset(tmp_path / "DUTS").name == "DUTS-TR"
    write(tmp_path / "ECSSD/gt", "a")  # one unclear set does not hide the others
    assert open_dataset(tmp_path).name == "DUTS-TR"
    assert "(gt, mask)" in refusal(tmp_path, prefer=["ECSSD"])


def test_any_folder_pair(tmp_path: Path) -> None:
    write(tmp_path / "ships/photographs/day", "b", "a.x", extension="jpg")
    write(tmp_path / "ships/shapes/day", "b", "a.x", extension="bmp")
    found = open_dataset(tmp_path / "ships/photographs", masks=tmp_path / "ships/shapes")
    assert found.name == "photographs"
    assert [sample.name for sample in found.samples] == ["day/a.x", "day/b"]
    write_set(tmp_path, "ships/image", "ships/gt", "c")
    assert open_dataset(tmp_path / "ships").name == "ships"
    assert open_dataset(tmp_path / "ships/image", masks=tmp_path / "ships/gt").name == "ships"


def refusal(root: Path, masks: Path | None = None, prefer: Sequence[str] = ("DUTS-TR",)) -> str:
    with pytest.raises(InputError) as caught:
        open_dataset(root, masks=masks, prefer=prefer)
    return slashes(str(caught.value)).replace(root.parent.as_posix(), "")


def test_what_is_no_data_set(tmp_path: Path) -> None:
    root = tmp_path / "data"
    assert refusal(root).startswith("'/data' cannot be read")
    root.mkdir()
    assert refusal(root).startswith("'/data' has no folder of images")
    write(root, "a")
    assert "--masks" in refusal(root)
    write_set(root, "ECSSD/image", "ECSSD/mask", "a")
    assert "it holds ECSSD" in refusal(root)
    assert refusal(root, prefer=["DUTS"]).startswith("unknown data set 'DUTS'")
    assert refusal(root / "a.png").startswith("'/a.png' cannot be read")


def test_images_and_masks_that_do_not_fit(tmp_path: Path) -> None:
    root = tmp_path / "data"
    (root / "image").mkdir(parents=True)
    assert "'/data/image' has images but no folder of masks" in refusal(root)
    (root / "mask").mkdir()
    assert "'/data/image' has no image files" in refusal(root)
    write(root / "image", "a", "b", "c", "d", "e")
    write(root / "mask", "a", "x")
    assert refusal(root).startswith(
        "4 of 5 images have no mask in '/data/mask' (b, c, d, ...) and 1 of 2 masks have no image in "
        "'/data/image' (x); "
    )
    write(root / "mask", "a", extension="jpg")
    assert "has two files for the image 'a': 'a.jpg' and 'a.png'" in refusal(root)
    write(root / "masks", "a")
    assert "'/data' has 2 folders that could hold the same thing (mask, masks)" in refusal(root)

"""Parquet and tar in place of folders: which column or member, which name, every way to read."""

from pathlib import Path
from unittest.mock import Mock

import cv2
import numpy as np
import polars as pl
import pytest
from helpers.container_files import IMAGE, in_shards, write_parquet, write_tar
from helpers.folder_contents import content as files_of

from sisod.common.exceptions import InputError
from sisod.data.containers import find_member, parquet, plain_root, read_shard, split_root
from sisod.data.datasets import open_dataset
from sisod.data.images import read_array, read_colour
from sisod.data.inspection import inspect_datasets
from sisod.data.pairs import find_masks, find_photographs, pair_files
from sisod.data.scenes import make_scenes
from sisod.data.storage import list_files, list_shards, read_bytes

pytestmark = pytest.mark.usefixtures("inside_tmp_path")


def png(value: int) -> bytes:
    """Return a picture of one grey value."""
    data: bytes = cv2.imencode(".png", np.full((4, 6), value, np.uint8))[1].tobytes()
    return data


# which member


def test_files_of_operating_systems_are_no_members() -> None:
    """Nor are hidden ones, in folders, tar and Parquet alike: their maps would be hidden files."""
    hidden = ("._a.jpg", ".trash/d.jpg", "b/._c.mask.png", "b/Thumbs.db")
    write_tar("x.tar", dict.fromkeys(hidden, b"x") | {"a.jpg": png(1)})
    assert list(find_photographs("x.tar")) == ["a"]
    with pytest.raises(InputError, match=r"expected jpg behind the #"):
        find_masks("x.tar#mask.png")
    write_parquet("x.parquet", {"._a.png": png(1), "a.png": png(2)})
    assert list(find_masks("x.parquet")) == ["a"]
    in_shards(write_tar, Path("gt"), {f"{name}.png": png(255) for name in "abc"}, ".tar")
    Path("gt", "._train-00000-of-00003.tar").write_bytes(b"Mac OS X")
    Path("gt", "._a.png").write_bytes(b"Mac OS X")
    assert list(find_masks("gt")) == ["a", "b", "c"]
    Path("gt", "d.png").write_bytes(png(1))  # beside images, archives are not read
    assert list(find_masks("gt")) == ["d"]


def test_webdataset_naming() -> None:
    """A key is the part before the first dot; the rest is what can be selected."""
    images = {"a.jpg": png(1), "a.mask.png": png(2), "b/c.jpg": png(3), "b/c.mask.png": png(4)}
    write_tar("x.tar", images | {"a.json": b"{}"})
    assert list(find_masks("x.tar#mask.png")) == ["a", "b/c"]
    assert list(find_photographs("x.tar#jpg")) == ["a", "b/c"]
    assert list(find_masks("x.tar")) == ["a", "a.mask", "b/c", "b/c.mask"]
    assert list(find_masks("x.tar", gt_suffix=".mask")) == ["a", "b/c"]
    pairs = pair_files("x.tar#jpg", "x.tar#mask.png").pairs
    values = [read_array("x.tar#mask.png", pair.gt.path)[0, 0] for pair in pairs]
    assert values == [2, 4]
    with pytest.raises(InputError, match=r"'x\.tar#seg\.png' has .* expected jpg, mask.png behind"):
        find_masks("x.tar#seg.png")


def test_columns_and_names_of_parquet() -> None:
    rows = [{"bytes": png(index), "path": f"{'./' * (index == 1)}im{index}.jpg"} for index in range(3)]
    table = pl.DataFrame({"image": pl.Series(rows, dtype=IMAGE), "gt": [png(9)] * 3, "id": [7, 8, 9]})
    table.write_parquet("x.parquet")
    assert list(find_masks("x.parquet#image")) == ["im0", "im1", "im2"]  # the path comes first
    assert list(find_masks("x.parquet#gt")) == ["7", "8", "9"]
    files = find_masks("x.parquet#gt")
    assert files["8"].path == "row 1/8"
    assert read_array("x.parquet#gt", files["8"].path)[0, 0] == 9
    unnamed = [row | {"path": None} for row in rows]
    table.with_columns(pl.Series("image", unnamed, dtype=IMAGE)).write_parquet("x.parquet")
    assert list(find_masks("x.parquet#image")) == ["7", "8", "9"]
    names = pl.Series(["a.b", "c.png", "d.tar"], dtype=pl.Categorical)  # dictionary-encoded
    table.rename({"id": "file_name"}).with_columns(file_name=names).write_parquet("x.parquet")
    assert list(find_masks("x.parquet#gt")) == ["a.b", "c", "d.tar"]  # an image, whatever its name
    paths = table.select(bytes="gt").with_columns(path=names).to_struct("image")
    pl.DataFrame({"image": paths}).write_parquet("x.parquet")
    assert list(find_masks("x.parquet")) == ["a.b", "c", "d.tar"]


@pytest.mark.parametrize("column", ["^x$", "^.*$", "*", "a b"])
def test_any_name_of_a_column(column: str) -> None:
    """Polars takes some names for patterns."""
    table = pl.DataFrame({"x": [png(1)] * 2, column: [png(7)] * 2, "name": ["a", "b"]})
    table.write_parquet("t.parquet")
    files = find_masks(f"t.parquet#{column}")
    assert list(files) == ["a", "b"]
    assert read_array(f"t.parquet#{column}", files["b"].path)[0, 0] == 7
    [shard] = list_shards(f"t.parquet#{column}")
    assert [content for _, content in read_shard(shard)] == [png(7)] * 2


def test_names_with_a_number_sign() -> None:
    """A name that exists is taken as it is; otherwise the last `#` begins the selection."""
    Path("a#b").mkdir()
    Path("a#b/x.png").write_bytes(png(5))
    assert [read_bytes("a#b", file.path) for file in list_files("a#b")] == [png(5)]
    write_parquet("a#b/x.parquet", {"y.png": png(6)})
    Path("a#b/x.png").unlink()
    for root in ("a#b", "a#b#image", "a#b/x.parquet", "a#b/x.parquet#image"):
        [file] = list_files(root)
        assert (file.name, read_bytes(root, file.path)) == ("y.png", png(6))
    assert split_root("a#c") == ("a#c", "")
    assert plain_root("a#b/x.parquet#image") == "a#b/x"
    with pytest.raises(InputError, match="'a#c' does not exist"):
        list_files("a#c")


def test_member_that_looks_like_a_place_in_another_container() -> None:
    write_tar("secret.tar", {"s.png": png(1)})
    write_tar("x.tar", {"secret.tar/bytes 512-600/s.png": png(2)})
    [file] = list_files("x.tar")
    place = find_member(f"x.tar/{file.path}")
    assert place is not None
    assert place.file == "x.tar"
    assert read_bytes("x.tar", file.path) == png(2)


def test_big_files_are_read_in_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """In any order, from several files in turns; a file that is listed again is read again."""
    monkeypatch.setattr(parquet, "_WINDOW", 400)
    members = {f"{index:02d}.png": png(index) for index in range(50)}
    for name in ("x.parquet", "y.parquet"):
        write_parquet(name, members)
    files = {name: list_files(name) for name in ("x.parquet", "y.parquet")}
    for index in np.random.default_rng(0).permutation(50):
        for name, listed in files.items():
            assert read_bytes(name, listed[index].path) == png(int(index))
    [shard] = list_shards("x.parquet")
    assert [content for _, content in read_shard(shard)] == list(members.values())
    write_parquet("x.parquet", {name: png(200) for name in members})
    assert read_bytes("x.parquet", list_files("x.parquet")[0].path) == png(200)


def test_a_window_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    write_parquet("x.parquet", {f"{index:03d}.png": png(index) for index in range(200)})
    query = Mock(side_effect=parquet._query)
    monkeypatch.setattr(parquet, "_query", query)
    for file in list_files("x.parquet"):
        read_bytes("x.parquet", file.path)
    assert query.call_count <= 6  # schema twice, names, number of rows, and one window


# data sets


def write_dataset(folder: Path, count: int = 6) -> None:
    """Write photographs and masks of synthetic scenes."""
    for kind in ("image", "mask"):
        (folder / kind).mkdir(parents=True)
    for scene in make_scenes(count, seed=1, shape=(24, 32)):
        colour = cv2.merge([scene.mask // 2 + 40] * 3)
        cv2.imwrite(str(folder / "image" / f"{scene.name}.jpg"), colour)
        cv2.imwrite(str(folder / "mask" / f"{scene.name}.png"), scene.mask)


def write_both(folder: Path, path: Path) -> None:
    """Write images and masks of a data set to one container."""
    images, masks = files_of(folder / "image"), files_of(folder / "mask")
    if path.suffix == ".tar":
        write_tar(
            path, images | {name.replace(".png", ".mask.png"): data for name, data in masks.items()}
        )
        return
    columns = {
        kind: pl.Series([{"bytes": data, "path": name} for name, data in files.items()], dtype=IMAGE)
        for kind, files in (("image", images), ("mask", masks))
    }
    pl.DataFrame(columns).write_parquet(path)


@pytest.mark.parametrize("kind", [".parquet", ".tar"])
def test_data_set_in_one_container(kind: str) -> None:
    write_dataset(Path("folder"))
    write_both(Path("folder"), Path(f"MSOD{kind}"))
    folder, packed = open_dataset("folder"), open_dataset(f"MSOD{kind}")
    assert packed.name == "MSOD"
    assert [sample.name for sample in packed.samples] == [sample.name for sample in folder.samples]
    for one, other in zip(folder.samples, packed.samples, strict=True):
        for reader, path in ((read_colour, "image"), (read_array, "mask")):
            first, second = getattr(one, path), getattr(other, path)
            np.testing.assert_array_equal(
                reader(first.parent, first.name), reader(second.parent, second.name)
            )
    given = open_dataset(packed.image_dir, masks=packed.mask_dir)
    assert given == packed
    with pytest.raises(InputError, match="has images but no folder of masks beside it"):
        open_dataset(packed.image_dir)


def test_known_data_sets_in_containers() -> None:
    """A file of both, a folder of such, folders of shards; and a table without images."""
    write_dataset(Path("folder"))
    Path("data/ECSSD").mkdir(parents=True)
    Path("data/XPIE").mkdir()
    write_both(Path("folder"), Path("data/MSOD.tar"))
    write_both(Path("folder"), Path("data/ECSSD/train-00000-of-00001.parquet"))
    in_shards(write_tar, Path("data/XPIE/image"), files_of("folder/image"), ".tar")
    in_shards(write_parquet, Path("data/XPIE/mask"), files_of("folder/mask"), ".parquet")
    pl.DataFrame({"a": [1]}).write_parquet("data/PASCAL-S.parquet")
    inspections = {one.name: one for one in inspect_datasets("data") if one.image_dir}
    n_images = {name: one.images for name, one in inspections.items()}
    assert n_images == {"MSOD": 6, "ECSSD": 6, "XPIE": 6, "PASCAL-S": 0}
    assert [inspections[name].trouble for name in ("MSOD", "ECSSD", "XPIE")] == [None] * 3
    assert "data/PASCAL-S.parquet' holds nothing to choose from" in str(inspections["PASCAL-S"].trouble)
    assert [one.images for one in inspect_datasets("data/MSOD.tar") if one.image_dir] == [6]


# URLs


def test_containers_behind_urls() -> None:
    fsspec = pytest.importorskip("fsspec", reason="extra cluster is not installed")
    memory = fsspec.filesystem("memory")
    members = {f"{index}.png": png(index) for index in range(5)}
    write_tar("x.tar", members)
    write_parquet("x.parquet", members)
    for name in ("x.tar", "x.parquet", "shards/0.tar"):
        memory.pipe(f"/sisod-box/{name}", Path(name if "/" not in name else "x.tar").read_bytes())
    try:
        for root in ("x.tar", "x.tar#png", "x.parquet", "x.parquet#image", "shards", "shards#png"):
            url = f"memory://sisod-box/{root}"
            files = find_masks(url)
            assert {name: read_bytes(url, file.path) for name, file in files.items()} == {
                name.removesuffix(".png"): content for name, content in members.items()
            }
        with pytest.raises(
            InputError, match=r"'memory://sisod-box/y\.tar' cannot be read: it does not exist"
        ):
            find_masks("memory://sisod-box/y.tar")
    finally:
        memory.rm("/sisod-box", recursive=True)

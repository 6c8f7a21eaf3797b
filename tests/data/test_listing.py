"""Listing the files below a folder: link cycles, links listed once, undecodable names, pipes."""

import os
from pathlib import Path
from typing import Any

import pytest
from helpers.pair_folders import Folders, fill
from helpers.platforms import byte_names, links, pipes_by_name

from sisod.common.exceptions import InputError
from sisod.data.pairs import find_photographs
from sisod.data.storage import list_files

pytestmark = pytest.mark.usefixtures("inside_tmp_path")


@links
def test_links_to_files_and_folders_are_followed() -> None:
    folders = Folders([], ["a.png", "day/b.png", "night/b.png"])
    fill(Path("store"), ["1.png", "far/b.png"])
    (folders.preds / "a.png").symlink_to("../store/1.png")
    for name in ("day", "night"):
        (folders.preds / name).symlink_to("../store/far", target_is_directory=True)
    assert [name for name, _, _ in folders.paired()] == ["a", "day/b", "night/b"]


@links
def test_links_that_lead_nowhere_or_in_circles() -> None:
    folders = Folders(["a.png", "sub/b.png"], ["a.png", "sub/b.png"])
    (folders.preds / "self.png").symlink_to("self.png")
    (folders.preds / "sub" / "up").symlink_to("..", target_is_directory=True)
    (folders.preds / "dangling.png").symlink_to("nowhere.png")
    assert [name for name, _, _ in folders.paired()] == ["a", "sub/b"]
    assert folders.pair().extra == ()


@links
def test_nested_links_do_not_multiply() -> None:
    """Twenty folders inside one another, a link beside each: 2^20 paths to the last."""
    fill(Path("gts"), ["a.png"])
    folder = Path("gts")
    for _ in range(20):
        (folder / "link").symlink_to("real", target_is_directory=True)
        folder = folder / "real"
        folder.mkdir()
    (folder / "deep.png").write_bytes(b"x")
    paths = [file.path for file in list_files("gts")]
    assert "real/" * 20 + "deep.png" in paths
    assert len(paths) == 22  # the real path, and one for each link
    assert len(set(paths)) == len(paths)


@pipes_by_name
def test_pipes_are_not_opened() -> None:
    folders = Folders(["a.png"], ["a.png"])
    os.mkfifo(folders.preds / "b.png")
    assert folders.paired() == [("a", "a.png", "a.png")]


NO_TEXT = "b\udcff"  # how Python spells the byte 255 in a name


@byte_names
def test_names_that_are_no_text_are_extra_or_named() -> None:
    odd = [f"{NO_TEXT}.txt", f"{NO_TEXT}/notes.md"]  # other files stop nothing
    folders = Folders(["a.png", f"{NO_TEXT}.png", *odd], ["a.png", *odd])
    assert folders.paired() == [("a", "a.png", "a.png")]
    assert folders.pair().extra == ("b\\udcff",)  # as JSON can hold it
    assert list(find_photographs("gts", all_used=True)) == ["a"]
    (folders.gts / f"{NO_TEXT}.png").write_bytes(b"x")
    assert folders.paired(names=["a"]) == [("a", "a.png", "a.png")]
    text = "gts: the file name 'b\\udcff.png' is not valid UTF-8; rename the file"
    assert folders.refusal() == text
    assert folders.refusal(names=["a", NO_TEXT]) == text
    with pytest.raises(InputError, match="is not valid UTF-8"):
        find_photographs("gts", all_used=True)


def test_unreadable_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    folders = Folders(["a.png", "locked/b.png"], ["a.png"])
    real = os.scandir

    def scandir(path: Path) -> Any:
        if Path(path).name == "locked":
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    text = folders.refusal()
    assert "preds/locked" in text
    assert "Permission denied" in text


def test_stamp_tells_size_and_time() -> None:
    folders = Folders(["a.png"], [])
    file = folders.preds / "a.png"
    stamps = {list_files("preds")[0].stamp}
    os.utime(file, ns=(1, 1))
    stamps.add(list_files("preds")[0].stamp)
    file.write_bytes(b"xx")
    os.utime(file, ns=(1, 1))
    stamps.add(list_files("preds")[0].stamp)
    assert len(stamps) == 3


def test_hidden_files_are_no_images() -> None:
    """Those of users, and what macOS and Windows write, are neither paired nor extra nor predicted."""
    system = ["._a.png", "._c.png", ".DS_Store", "Thumbs.db", "desktop.ini", "sub/._b.png"]
    system += [".e.png", ".ipynb_checkpoints/a-checkpoint.png", "__MACOSX/a.png", "sub/.old/b.png"]
    folders = Folders(["a.png", "sub/b.png", *system], ["a.png", "sub/b.png", *system, "._d.npy"])
    pairing = folders.pair()
    assert ([pair.name for pair in pairing.pairs], pairing.extra) == (["a", "sub/b"], ())
    assert [file.path for file in list_files("preds")] == ["a.png", "sub/b.png"]
    assert list(find_photographs("preds", all_used=True)) == ["a", "sub/b"]

"""Files are paired by their path without extension; whatever does not fit is said in so many words."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from sisod.errors import InputError
from sisod.pairs import Pairing, pair_files, read_names
from sisod.requests import read_request
from sisod.storage import list_files


def fill(root: Path, paths: Iterable[str]) -> Path:
    """Make a folder of files; pairing looks at names only, so a byte each will do."""
    root.mkdir()
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(b"x")
    return root


class _Folders:
    """A folder of predictions and one of ground truths, called by the same names in every test."""

    def __init__(self, preds: Iterable[str], gts: Iterable[str]) -> None:
        self.preds = fill(Path("preds"), preds)
        self.gts = fill(Path("gts"), gts)

    def pair(self, **options: Any) -> Pairing:
        return pair_files("preds", "gts", **options)

    def paired(self, **options: Any) -> list[tuple[str, str, str]]:
        return [(p.name, p.pred.path, p.gt.path) for p in self.pair(**options).pairs]

    def refusal(self, **options: Any) -> str:
        with pytest.raises(InputError) as caught:
            self.pair(**options)
        return str(caught.value)


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_by_relative_stem_whatever_the_extension() -> None:
    folders = _Folders(
        ["a.PNG", "b.jpeg", "sub/a.npy", "sub/deep/c.webp"],
        ["a.bmp", "b.tif", "sub/a.tiff", "sub/deep/c.jpg"],
    )
    assert folders.paired() == [
        ("a", "a.PNG", "a.bmp"),
        ("b", "b.jpeg", "b.tif"),
        ("sub/a", "sub/a.npy", "sub/a.tiff"),
        ("sub/deep/c", "sub/deep/c.webp", "sub/deep/c.jpg"),
    ]
    assert (folders.pair().missing, folders.pair().extra) == ((), ())


ODD = [
    "a.b.c",
    "a b",
    " a",
    "a\nb",
    "a'b",
    'a"b',
    "ähre",
    "图像",
    "a\\b",
    "a*b",
    "-a",
    "a.png",
    "%s",
    "{0}",
]


@pytest.mark.parametrize("name", ODD)
def test_odd_names(name: str) -> None:
    folders = _Folders([f"{name}.png", "b.png"], [f"{name}.jpg", "b.jpg"])
    assert (name, f"{name}.png", f"{name}.jpg") in folders.paired()
    Path("preds", f"{name}.png").unlink()
    assert folders.refusal() == (
        f"1 of 2 ground truths have no prediction in 'preds' ({name}); "
        "use --allow-missing to score the other 1"
    )


def test_folder_of_one() -> None:
    assert _Folders(["only.png"], ["only.png"]).paired() == [("only", "only.png", "only.png")]


def test_names_that_are_all_extension_are_no_images() -> None:
    folders = _Folders(["a.png", ".png", "sub/.png"], ["a.png", ".png", "sub/.png"])
    assert [name for name, _, _ in folders.paired()] == ["a"]


def test_other_files_are_not_looked_at() -> None:
    folders = _Folders(["a.png", "a.txt", "log", "b.png.tmp"], ["a.png", "Thumbs.db", "c.xml"])
    assert folders.paired() == [("a", "a.png", "a.png")]
    assert folders.pair().extra == ()


def test_suffixes() -> None:
    folders = _Folders(["a_sal.png", "b_sal.png", "a_edge.png"], ["a.mask.png", "b.mask.png", "b.png"])
    expected = [("a", "a_sal.png", "a.mask.png"), ("b", "b_sal.png", "b.mask.png")]
    assert folders.paired(pred_suffix="_sal", gt_suffix=".mask") == expected
    assert folders.refusal(gt_suffix="_gt") == (
        "'gts' has no image files ending in '_gt'; expected ground truths as "
        "png, jpg, jpeg, bmp, tif, tiff, webp, npy"
    )


def test_missing_are_counted_and_named() -> None:
    folders = _Folders(["a.png", "e.png"], [f"{name}.png" for name in "abcdef"])
    assert folders.refusal() == (
        "4 of 6 ground truths have no prediction in 'preds' (b, c, d, ...); "
        "use --allow-missing to score the other 2"
    )
    found = folders.pair(allow_missing=True)
    assert [pair.name for pair in found.pairs] == ["a", "e"]
    assert found.missing == ("b", "c", "d", "f")


def test_extra_are_counted() -> None:
    folders = _Folders(["a.png", "z.png", "y/b.png"], ["a.png"])
    assert folders.pair().extra == ("y/b", "z")


@pytest.mark.parametrize("where", ["preds", "gts"])
def test_duplicates(where: str) -> None:
    folders = _Folders(["s/a.png"], ["s/a.png"])
    Path(where, "s", "a.jpg").write_bytes(b"x")
    assert folders.refusal() == (
        f"{where!r} has two files for the image 's/a': 's/a.jpg' and 's/a.png'; keep one of them"
    )


def test_nothing_in_common() -> None:
    folders = _Folders(["a_sal.png", "b_sal.png", "c_sal.png"], ["a.png", "b.png"])
    assert folders.refusal(allow_missing=True) == (
        "none of the 2 ground truths has a prediction in 'preds'; it has a_sal, b_sal, ... where a, b "
        "were expected; if names end differently use --pred-suffix or --gt-suffix"
    )


def test_empty_folders() -> None:
    folders = _Folders([], ["a.png"])
    text = "none of the 1 ground truths has a prediction in 'preds'; it has no image files at all"
    assert folders.refusal(allow_missing=True) == text
    Path("gts", "a.png").unlink()
    assert folders.refusal() == (
        "'gts' has no image files; expected ground truths as png, jpg, jpeg, bmp, tif, tiff, webp, npy"
    )


def test_no_folder_and_a_file_instead_of_one() -> None:
    fill(Path("gts"), ["a.png"])
    with pytest.raises(InputError) as caught:
        pair_files("nowhere", "gts")
    assert str(caught.value) == "'nowhere' does not exist; expected a folder of maps"
    with pytest.raises(InputError) as caught:
        pair_files("gts/a.png", "gts")
    assert str(caught.value) == "'gts/a.png' is a file; expected a folder of maps"


def test_directory_with_the_name_of_an_image() -> None:
    folders = _Folders(["x.png/a.png", "b.png"], ["x.png/a.png", "b.png"])
    Path("preds", "b.jpg").mkdir()
    assert [name for name, _, _ in folders.paired()] == ["b", "x.png/a"]


def test_links_to_files_and_folders_are_followed() -> None:
    folders = _Folders([], ["a.png", "sub/b.png"])
    fill(Path("store"), ["1.png", "far/b.png"])
    (folders.preds / "a.png").symlink_to("../store/1.png")
    (folders.preds / "sub").symlink_to("../store/far", target_is_directory=True)
    assert folders.paired() == [("a", "a.png", "a.png"), ("sub/b", "sub/b.png", "sub/b.png")]


def test_two_links_to_one_folder_are_both_followed() -> None:
    folders = _Folders(["day/a.png"], ["day/a.png", "night/a.png", "noon/a.png"])
    for name in ("night", "noon"):
        (folders.preds / name).symlink_to("day", target_is_directory=True)
    assert [name for name, _, _ in folders.paired()] == ["day/a", "night/a", "noon/a"]


def test_links_that_lead_nowhere_or_in_circles() -> None:
    folders = _Folders(["a.png", "sub/b.png"], ["a.png", "sub/b.png"])
    (folders.preds / "sub" / "up").symlink_to("..", target_is_directory=True)
    (folders.preds / "dangling.png").symlink_to("nowhere.png")
    assert [name for name, _, _ in folders.paired()] == ["a", "sub/b"]
    assert folders.pair().extra == ()


def test_link_to_itself() -> None:
    folders = _Folders(["a.png"], ["a.png"])
    (folders.preds / "self.png").symlink_to("self.png")
    assert folders.paired() == [("a", "a.png", "a.png")]


def test_pipes_are_not_opened() -> None:
    folders = _Folders(["a.png"], ["a.png"])
    os.mkfifo(folders.preds / "b.png")
    assert folders.paired() == [("a", "a.png", "a.png")]


def test_names_that_are_no_text() -> None:
    folders = _Folders(["a.png"], ["a.png"])
    Path(os.fsdecode(b"preds/b\xff.png")).write_bytes(b"x")
    assert folders.refusal() == (
        "preds: the file name 'b\\udcff.png' is not valid UTF-8; rename the file"
    )


def test_unreadable_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    folders = _Folders(["a.png", "locked/b.png"], ["a.png"])
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
    folders = _Folders(["a.png"], [])
    file = folders.preds / "a.png"
    stamps = {list_files("preds")[0].stamp}
    os.utime(file, ns=(1, 1))
    stamps.add(list_files("preds")[0].stamp)
    file.write_bytes(b"xx")
    os.utime(file, ns=(1, 1))
    stamps.add(list_files("preds")[0].stamp)
    assert len(stamps) == 3


def listed(content: str | bytes) -> list[str]:
    data = content if isinstance(content, bytes) else content.encode()
    Path("list.txt").write_bytes(data)
    return read_names(Path("list.txt"))


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("a\nb.png\n\n s/c.d \n", ["a", "b", "s/c.d"]),
        ("a.png\r\nb.JPG\r\n", ["a", "b"]),
        ("\ufeffa.png\nb\n", ["a", "b"]),  # as Windows' Notepad writes it
        ("a b\nä\u2028c\nd\x0be", ["a b", "ä\u2028c", "d\x0be"]),  # only a newline ends a line
    ],
)
def test_list_file(content: str, names: list[str]) -> None:
    assert listed(content) == names


def test_only_what_is_listed() -> None:
    folders = _Folders(["a.png", "b.png", "z.png"], ["a.png", "b.png", "c.png"])
    found = folders.pair(names=["b", "b"])
    assert [pair.name for pair in found.pairs] == ["b"]
    assert (found.missing, found.extra) == ((), ("z",))
    assert folders.refusal(names=["c", "b"]) == (
        "1 of 2 ground truths have no prediction in 'preds' (c); "
        "use --allow-missing to score the other 1"
    )
    assert folders.refusal(names=["b", "x", "y"]) == (
        "2 of 3 listed images have no ground truth in 'gts' (x, y); correct the list"
    )


def test_empty_list() -> None:
    folders = _Folders(["a.png"], ["a.png"])
    with pytest.raises(InputError) as caught:
        listed(" \n\n")
    assert str(caught.value) == "list file 'list.txt' names no image; expected one name a line"
    text = folders.refusal(names=[])
    assert "names" in text
    assert "where  were expected" not in text


def test_list_file_that_cannot_be_read() -> None:
    with pytest.raises(InputError, match=r"^list file 'none.txt' cannot be read: .*No such file"):
        read_names(Path("none.txt"))
    with pytest.raises(InputError, match=r"^list file 'list.txt' cannot be read: .*utf-8"):
        listed(b"\xff\n")


@pytest.mark.parametrize(
    ("paths", "cells"),
    [
        (["maps/edn", "MSOD/mask"], [("MSOD", "edn", "maps/edn")]),
        (["maps/edn/", "data/MSOD/GT/"], [("MSOD", "edn", "maps/edn/")]),
        (["E=maps/edn", "I J=x=y", "MSOD"], [("MSOD", "E", "maps/edn"), ("MSOD", "I J", "x=y")]),
        (["s3://bucket/maps/edn", "s3://bucket/MSOD/gt"], [("MSOD", "edn", "s3://bucket/maps/edn")]),
    ],
)
def test_methods_and_data_sets_are_named_after_folders(
    paths: list[str], cells: list[tuple[str, str, str]]
) -> None:
    found = read_request(paths).cells
    assert [(cell.dataset, cell.method, cell.pred_root) for cell in found] == cells


def test_folder_with_an_equals_sign_in_its_name() -> None:
    Path("lr=0.1").mkdir()
    assert read_request(["lr=0.1", "MSOD"]).cells[0].pred_root == "lr=0.1"


@pytest.mark.parametrize(
    ("paths", "text"),
    [
        (
            ["EDN"],
            "expected folders of predictions and then the folder of ground truths, "
            "or one TOML file; got 'EDN' only",
        ),
        (["a/edn", "b/edn", "MSOD"], "two predictions are called 'edn'; give them names, as NAME=DIR"),
        ([".", "MSOD"], "method name '.' cannot name a folder; give another, as NAME=DIR"),
        ([".hidden", "MSOD"], "method name '.hidden' cannot name a folder; give another, as NAME=DIR"),
    ],
)
def test_requests_that_are_refused(paths: list[str], text: str) -> None:
    with pytest.raises(InputError) as caught:
        read_request(paths)
    assert str(caught.value) == text


def test_name_without_a_folder() -> None:
    with pytest.raises(InputError, match="'EDN='"):
        read_request(["EDN=", "MSOD"])

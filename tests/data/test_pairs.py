"""Files are paired by their path without extension; everything that does not fit is reported."""

import re
import unicodedata
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from helpers.pair_folders import Folders, fill
from helpers.platforms import posix_names
from numpy.typing import NDArray

import sisod
from sisod import score
from sisod.common.exceptions import InputError, InputWarning, printable
from sisod.data.files import StoredFile
from sisod.data.pairs import Pair, find_masks, pair_files, read_names
from sisod.evaluation import tasks
from sisod.evaluation.rows import Rows
from sisod.evaluation.tasks import PairBatch, make_request, score_images

pytestmark = pytest.mark.usefixtures("inside_tmp_path")


def test_by_relative_stem_whatever_the_extension() -> None:
    folders = Folders(
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
    *("a.b.c", " a b", "a'b", "图像", "-a", "a.png", "{0}%s"),
    pytest.param('a\n"\\*b', marks=posix_names),
]


@pytest.mark.parametrize("name", ODD)
def test_odd_names(name: str) -> None:
    folders = Folders([f"{name}.png", "b.png"], [f"{name}.jpg", "b.jpg"])
    assert (name, f"{name}.png", f"{name}.jpg") in folders.paired()
    Path("preds", f"{name}.png").unlink()
    assert folders.refusal() == (
        f"1 of 2 ground truths have no prediction in 'preds' ({printable(name)}); "
        "use --allow-missing to score the other 1"
    )


REFUSALS: dict[str, tuple[list[str], list[str], dict[str, Any], str]] = {
    "missing": (["a.png", "e.png"], ["a.png", "b.png", "c.png"], {}, "2 of 3 ground truths .* (b, c)"),
    "two predictions": (["a.png", "a.jpg"], ["a.png"], {}, "'preds' has two files for the image 'a'"),
    "two masks": (["a.png"], ["a.png", "a.jpg"], {}, "'gts' has two files for the image 'a'"),
    "others": (["a_sal.png"], ["a.png"], {"allow_missing": True}, "it has a_sal; .* use --pred-suffix"),
    "no predictions": ([], ["a.png"], {"allow_missing": True}, "it has no image files at all"),
    "no masks": (["a.png"], ["a.txt"], {}, "'gts' has no image files; expected ground truths as jpg"),
    "no such suffix": (["a.png"], ["a.png"], {"gt_suffix": "_gt"}, "no image files ending in '_gt'"),
    "no names": (["a.png"], ["a.png"], {"names": []}, "names is empty"),
    "names": (["a.png"], ["a.png"], {"names": ["x", "y"]}, "2 of 2 listed .* no ground truth .* (x, y)"),
    "no folder": (["a.png"], ["a.png"], {"gt_root": "nowhere"}, "'nowhere' does not exist; expected a"),
    "a file": (["a.png"], ["a.png"], {"gt_root": "gts/a.png"}, "a.png' is a file; expected a folder"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_does_not_fit(case: str) -> None:
    preds, gts, options, text = REFUSALS[case]
    fill(Path("preds"), preds)
    fill(Path("gts"), gts)
    pattern = re.escape(text).replace(r"\ \.\*\ ", " .* ")
    with pytest.raises(InputError, match=pattern):
        pair_files("preds", options.pop("gt_root", "gts"), **options)


def test_missing_and_extra_are_told() -> None:
    folders = Folders(["a.png", "z.png", "y/b.png", "log", "c.png.tmp"], ["a.png", "b.png", "c.xml"])
    found = folders.pair(allow_missing=True)
    assert [pair.name for pair in found.pairs] == ["a"]
    assert (found.missing, found.extra) == (("b",), ("y/b", "z"))


def test_suffixes() -> None:
    """Photographs beside their masks are left out; other ground truths without the suffix are named."""
    folders = Folders(
        ["a_sal.png", "b_sal.png", "a_edge.png", "_sal.png"],
        ["a.jpg", "a_mask.png", "b_mask.png", "b.txt", "b_edge.png"],
    )
    suffixes = {"pred_suffix": "_sal", "gt_suffix": "_mask"}
    expected = [("a", "a_sal.png", "a_mask.png"), ("b", "b_sal.png", "b_mask.png")]
    assert folders.paired(**suffixes) == expected  # a warning is an error
    assert folders.pair(**suffixes).extra == ()  # "_sal" names no image
    for name in ("c_Mask.png", "d.jpg"):
        (folders.gts / name).write_bytes(b"x")
    message = r"^not used: 2 files in 'gts' whose name does not end in '_mask' \(c_Mask, d\)$"
    with pytest.warns(InputWarning, match=message):
        assert folders.paired(**suffixes) == expected
    # the others are not asked for
    assert list(find_masks("gts", gt_suffix="_mask", names=["a"])) == ["a"]


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("a\nb.png\n\n s/c.d \n", ["a", "b", "s/c.d"]),
        ("\ufeffa.png\r\nb.JPG\r\n", ["a", "b"]),  # as Windows' Notepad writes it
        ("a b\nä\u2028c\nd\x0be", ["a b", "ä\u2028c", "d\x0be"]),  # only a newline ends a line
    ],
)
def test_list_file(content: str, names: list[str]) -> None:
    Path("list.txt").write_bytes(content.encode())
    assert read_names(Path("list.txt")) == names


@pytest.mark.parametrize("content", [b" \n\n", b"\xff\n"])
def test_list_file_without_names(content: bytes) -> None:
    Path("list.txt").write_bytes(content)
    with pytest.raises(InputError, match=r"^list file 'list.txt' names no image"):
        read_names(Path("list.txt"))


def test_only_what_is_listed() -> None:
    folders = Folders(["a.png", "b.png", "z.png"], ["a.png", "b.png", "c.png"])
    found = folders.pair(names=["b", "b"])
    assert [pair.name for pair in found.pairs] == ["b"]
    assert (found.missing, found.extra) == ((), ("z",))


# what becomes of a pair: ground truths of 6 x 8, two objects

GT = np.zeros((6, 8), dtype=bool)
GT[1:4, 1:4] = GT[5, 7] = True


def scored(*, strict: bool = False, **maps: NDArray[Any]) -> Rows:
    """Save the maps, and GT for each unless it is given as gt_NAME; score the pairs."""
    for folder in ("preds", "gts"):
        Path(folder).mkdir()
    names = [name for name in maps if not name.startswith("gt_")]
    for name in names:
        np.save(f"preds/{name}.npy", maps[name])
        np.save(f"gts/{name}.npy", maps.get(f"gt_{name}", GT))
    request = make_request(tasks.Folders("preds", "gts"), metrics="mae,f_mean", strict=strict)
    files = {name: StoredFile(f"{name}.npy", "") for name in names}
    batch = PairBatch(0, tuple(Pair(name, file, file) for name, file in files.items()))
    return score_images(request.scorer, batch.images(request), level=128, strict=strict)


def test_another_size_is_resized_bilinearly_and_counted() -> None:
    small = np.array([[10, 200, 30], [90, 0, 255]], dtype=np.uint8)
    rows = scored(a=small, b=GT, c=small)
    assert rows.tables["facts"]["resized"].sum() == 2
    large = np.asarray(cv2.resize(small, (8, 6), interpolation=cv2.INTER_LINEAR), dtype=np.uint8)
    assert rows.values[0, 0] == score(large, GT, metrics=["mae"])["mae"]


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "longdouble", "uint16", "bool", ">f4"]
)
def test_every_kind_of_map_can_be_resized(dtype: str) -> None:
    board = (np.indices((3, 4)).sum(axis=0) % 2).astype(dtype)
    assert scored(a=board * 65535 if dtype == "uint16" else board).tables["facts"]["resized"].sum() == 1


def test_resizing_that_rounds_to_more_than_one() -> None:
    row = np.array([[0.0, 1, 1, 1, 1]])  # of a single row in double precision OpenCV makes 1 + 3e-8
    assert cv2.resize(row, (8, 6)).max() > 1
    assert scored(a=row).tables["facts"]["resized"].sum() == 1


def test_integers_of_0_and_1_are_counted() -> None:
    rows = scored(a=GT.astype(np.uint8), b=GT, c=np.zeros((6, 8), np.uint8))
    assert rows.tables["facts"]["looks_binary"].sum() == 1


def test_objects_that_are_scored_for_want_of_larger_ones_are_told() -> None:
    speck = np.zeros((100, 100), dtype=bool)
    speck[10, 10] = True  # half of the least size
    for folder in ("preds", "gts"):
        Path(folder).mkdir()
        np.save(f"{folder}/a.npy", speck)
    with pytest.warns(UserWarning, match="^1 objects are scored only because their ground truth"):
        sisod.evaluate("preds", "gts", jobs=1)


@pytest.mark.parametrize(
    ("maps", "text"),
    [
        ({"a": np.zeros((3, 4))}, "preds/a.npy has shape (3, 4) but its ground truth (6, 8)"),
        ({"a": np.full((6, 8), 1.5)}, "preds/a.npy: pred is a float array with values from 1.5 to 1.5"),
        ({"a": np.zeros((0, 8))}, "preds/a.npy: pred has shape (0, 8); expected"),
        ({"a": GT, "gt_a": GT.astype(np.uint8)}, "gts/a.npy: gt is an integer array whose maximum is 1"),
        ({"a": GT, "gt_a": np.full((6, 8), "a")}, "gts/a.npy: gt has dtype <U1; expected bool"),
    ],
)
def test_arrays_that_cannot_be_scored(maps: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(text)}"):
        scored(strict=True, **maps)


def test_names_that_only_look_the_same() -> None:
    """On macOS, accents are written apart from their letters; on the screen both names are the same."""
    one, two = (unicodedata.normalize(form, "Käfer") for form in ("NFC", "NFD"))
    note = "; names that look the same differ in the Unicode form of their accents"
    folders = Folders([f"{two}.png"], [f"{one}.png"])
    assert note in folders.refusal()
    assert note in folders.refusal(names=[two])
    assert note not in folders.refusal(names=["b"])

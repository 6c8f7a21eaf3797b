"""`sisod datasets` counts files, reports what is wrong, and says where to get missing data sets."""

import json
import os
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from helpers.command_line import refusal, run
from helpers.dataset_folders import write, write_set
from helpers.image_files import encoded, exif, with_exif
from helpers.paths import DOCS
from typer.testing import Result

from sisod.data.catalogue import KNOWN
from sisod.data.inspection import inspect_datasets

DATA = Path(os.environ.get("SISOD_DATA", ""))
NAMES = [f"{index:03d}" for index in range(5)]


def run_datasets(root: Path, *options: str) -> Result:
    return run("datasets", root, *options)


def rows(result: Result) -> dict[str, list[str]]:
    """The lines of the table by their first cell."""
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in result.stdout.splitlines()]
    return {line[0]: line[1:] for line in cells if line}


def as_json(result: Result) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in json.loads(result.stdout)}


def test_sizes_are_read_off_headers(tmp_path: Path) -> None:
    write_set(tmp_path, "MSOD/image", "MSOD/mask", *NAMES)
    for kind in ("png", "jpg", "bmp", "tif", "webp"):
        name = f"other_{kind}"
        cv2.imwrite(str(tmp_path / "MSOD/image" / f"{name}.{kind}"), np.zeros((4, 7, 3), np.uint8))
        write(tmp_path / "MSOD/mask", name)
    path = tmp_path / "MSOD/image/000.jpg"
    long = b"\xff\xfe\xff\xff" + bytes(0xFFFD)  # a comment of 64 KiB before the size is told
    # headers are enough: the pixels may be cut short
    path.write_bytes(path.read_bytes()[:2] + 2 * long + path.read_bytes()[2:-20])
    np.save(tmp_path / "MSOD/mask/001.npy", np.zeros((2, 2)))
    (tmp_path / "MSOD/mask/001.png").unlink()
    result = run_datasets(tmp_path)
    assert result.exit_code == 0, result.stderr
    assert rows(result)["MSOD"] == ["MSOD/image, MSOD/mask", "10 of 300", "", "", "5"]
    found = as_json(run_datasets(tmp_path / "MSOD", "--format", "json"))["MSOD"]
    assert found["other_size"] == [f"other_{kind}" for kind in ("bmp", "jpg", "png", "tif", "webp")]
    assert found["image_dir"] == str(tmp_path / "MSOD/image")
    assert (found["images"], found["expected"], found["trouble"]) == (10, 300, None)


def test_sizes_are_those_that_are_shown(tmp_path: Path) -> None:
    """Photographs on their side, of which WebP says so at the end of the file; masks drawn upright."""
    write_set(tmp_path, "MSOD/image", "MSOD/mask", "plain")
    for kind in ("jpg", "png", "webp"):
        for name, shape in (("upright", (4, 6)), ("sideways", (6, 4))):
            photo = encoded(f".{kind}", np.zeros((6, 4, 3), np.uint8))
            (tmp_path / f"MSOD/image/{name}_{kind}.{kind}").write_bytes(with_exif(photo, exif(8)))
            mask = encoded(".png", np.zeros(shape, np.uint8))
            (tmp_path / f"MSOD/mask/{name}_{kind}.png").write_bytes(mask)
    found = as_json(run_datasets(tmp_path / "MSOD", "--format", "json"))["MSOD"]
    assert found["other_size"] == [f"sideways_{kind}" for kind in ("jpg", "png", "webp")]
    (tmp_path / "MSOD/mask/plain.png").write_bytes(b"")
    found = as_json(run_datasets(tmp_path / "MSOD", "--format", "json"))["MSOD"]
    assert found["unreadable"] == ["plain.png"]


def test_what_is_amiss_is_counted_and_fails(tmp_path: Path) -> None:
    write_set(tmp_path, "SOD/image", "SOD/mask", *NAMES)
    (tmp_path / "SOD/mask/002.png").unlink()
    write(tmp_path / "SOD/mask", "stray", "another")
    write_set(tmp_path, "XPIE/image", "XPIE/mask", *NAMES)
    result = run_datasets(tmp_path)
    assert result.exit_code == 1
    table = rows(result)
    assert list(table) == list(KNOWN)
    assert table["SOD"] == ["SOD/image, SOD/mask", "5 of 300", "1", "2", ""]
    assert table["MSOD"] == ["https://github.com/EricDengbowen/DSLRDNet", "missing, 300", "", "", ""]
    assert "1 of 2 data sets found cannot be used as they are (SOD: " in result.stderr
    result = run_datasets(tmp_path, "--format", "json")
    assert result.exit_code == 1
    assert as_json(result)["SOD"]["without_image"] == ["another", "stray"]
    for kind, start in (("md", "| data set |"), ("latex", r"\begin{tabular}"), ("csv", "name,title,")):
        assert run_datasets(tmp_path, "--format", kind).stdout.startswith(start)


def test_troubles_in_words(tmp_path: Path) -> None:
    write(tmp_path / "SOD/image", *NAMES)
    (tmp_path / "XPIE/image").mkdir(parents=True)
    (tmp_path / "XPIE/mask").mkdir(parents=True)
    write_set(tmp_path, "HKU-IS/imgs", "HKU-IS/gt", "a")
    write(tmp_path / "HKU-IS/mask", "a")
    troubles = {one.name: one.trouble or "" for one in inspect_datasets(tmp_path)}
    assert troubles["SOD"] == "no folder of masks"
    assert troubles["XPIE"] == "no images"
    assert "2 folders that could hold the same thing (gt, mask)" in troubles["HKU-IS"]
    assert troubles["DUTS-TR"] == ""
    assert rows(run_datasets(tmp_path))["SOD"][0] == "SOD/image: no folder of masks"


def test_root_that_is_none(tmp_path: Path) -> None:
    assert "nowhere" in refusal("datasets", tmp_path / "nowhere")
    empty = run_datasets(tmp_path)
    assert empty.exit_code == 0
    counts = {name: cells[1] for name, cells in rows(empty).items()}
    assert counts == {name: f"missing, {known.count}" for name, known in KNOWN.items()}


@pytest.mark.skipif(not (DATA / "MSOD").is_dir(), reason="needs the real data, SISOD_DATA")
@pytest.mark.slow
def test_real_data_set() -> None:
    result = run_datasets(DATA / "MSOD")
    assert result.exit_code == 0, result.stderr
    assert rows(result)["MSOD"][1:] == ["300 of 300", "", "", "50"]


def test_document_lists_the_known_sets() -> None:
    text = (DOCS / "formats.md").read_text()
    for known in KNOWN.values():
        assert f"| {known.name} | {known.count:,} | {known.description} | <{known.url}> |\n" in text

"""Two files for one photograph: one is taken, in a fixed order, and a line says which."""

import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest
from helpers.command_line import refusal, run
from numpy.typing import NDArray

import sisod
from sisod.common.exceptions import InputWarning
from sisod.data.datasets import open_dataset
from sisod.data.pairs import find_photographs

LINE = (
    "warning: 2 images in 'photos' have more than one file; one of them is used, in the order "
    "jpg, jpeg, png, bmp, tif, tiff, webp: '1.jpg' and not '1.bmp'\n"
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three photographs, two of which were saved twice, and their masks."""
    monkeypatch.chdir(tmp_path)
    for name in ("1.bmp", "1.jpg", "2.jpg", "3.png", "3.webp"):
        value = 200 if name.endswith((".jpg", ".png")) else 50
        write(f"photos/{name}", np.full((20, 20, 3), value, dtype=np.uint8))
    for name in "123":
        mask = np.zeros((20, 20), dtype=np.uint8)
        mask[4:12, 5:15] = 255
        write(f"masks/{name}.png", mask)


def write(path: str, picture: NDArray[np.uint8]) -> None:
    Path(path).parent.mkdir(exist_ok=True)
    assert cv2.imwrite(path, picture)


def test_order() -> None:
    with pytest.warns(InputWarning, match="2 images in 'photos' have more than one file"):
        photographs = find_photographs("photos")
    assert [file.path for file in photographs.values()] == ["1.jpg", "2.jpg", "3.png"]
    with pytest.warns(InputWarning):
        dataset = open_dataset("photos", masks="masks")
    assert [sample.image.name for sample in dataset.samples] == ["1.jpg", "2.jpg", "3.png"]


def test_frames_are_drawn_on_one_of_them() -> None:
    result = run("frames", "masks", "--images", "photos", "--out", "frames")
    assert (result.exit_code, result.stderr) == (0, LINE)
    assert np.asarray(cv2.imread("frames/1.png"))[1, 1].min() > 120  # the JPEG, not the BMP


def test_photographs_of_another_data_set() -> None:
    """No page is written without the photographs that were asked for."""
    pytest.importorskip("jinja2", reason="extra report is not installed")
    shutil.copytree("masks", "A")
    sisod.evaluate("A", "masks", out="results/D/A", metrics="paper", jobs=1)
    write("other/4.jpg", np.zeros((20, 20, 3), dtype=np.uint8))
    arguments = ("report", "results", "--out", "page.html", "--images")
    assert "0 of 3 photographs of 'D' found in 'other'" in refusal(*arguments, "other")
    assert not Path("page.html").exists()
    write("other/2.jpg", np.zeros((20, 20, 3), dtype=np.uint8))
    result = run(*arguments, "other")
    assert result.exit_code == 0
    assert "1 of 3 photographs of 'D' found in 'other' (not 1, 3)" in result.stderr
    assert Path("page.html").exists()

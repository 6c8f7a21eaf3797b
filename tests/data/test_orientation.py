"""Photographs, masks and maps are read upright, as a viewer shows them, in every format."""

import struct
from pathlib import Path

import cv2
import numpy as np
import pytest
from helpers.image_files import Array, chunk, encoded, exif, png, tiff, with_exif

from sisod.data.headers import read_header
from sisod.data.images import read_colour
from sisod.data.truths import read_prediction, read_truth

STORED = np.array([[1, 2, 3], [4, 5, 6]], dtype=np.uint8)
SHOWN = {  # as the standard of EXIF draws it: where the first row and the first column are seen
    1: [[1, 2, 3], [4, 5, 6]],
    2: [[3, 2, 1], [6, 5, 4]],
    3: [[6, 5, 4], [3, 2, 1]],
    4: [[4, 5, 6], [1, 2, 3]],
    5: [[1, 4], [2, 5], [3, 6]],
    6: [[4, 1], [5, 2], [6, 3]],
    7: [[6, 3], [5, 2], [4, 1]],
    8: [[3, 6], [2, 5], [1, 4]],
}


def enlarged(pixels: Array) -> Array:
    """Squares of 16 pixels, which survive lossy compression, each of its own grey."""
    return np.kron(pixels, np.ones((16, 16), np.uint8)) * np.uint8(40)


def stored(kind: str, picture: Array, orientation: int) -> bytes:
    if kind == "png, at the end":
        return with_exif(encoded(".png", picture), exif(orientation), at_end=True)
    if kind == "tif":
        return tiff(picture, orientation=orientation)
    quality = {".jpg": [cv2.IMWRITE_JPEG_QUALITY, 100], ".webp": [cv2.IMWRITE_WEBP_QUALITY, 101]}
    block = exif(orientation, order="<" if orientation % 2 else ">")
    return with_exif(encoded(kind, picture, *quality.get(kind, [])), block)


@pytest.mark.parametrize("orientation", SHOWN)
@pytest.mark.parametrize("kind", [".jpg", ".png", "png, at the end", ".webp", "tif"])
def test_every_reader_turns_every_format(tmp_path: Path, kind: str, orientation: int) -> None:
    data, name = stored(kind, enlarged(STORED), orientation), f"x.{kind[:4].strip('.,')}"
    (tmp_path / name).write_bytes(data)
    expected = enlarged(np.array(SHOWN[orientation], dtype=np.uint8)).astype(int)
    header = read_header(data)
    assert header
    assert (header.height, header.width) == expected.shape
    assert np.abs(read_prediction(tmp_path, name) - expected).max() <= 2
    np.testing.assert_array_equal(read_truth(tmp_path, name).mask(level=100), expected >= 100)
    assert np.abs(read_colour(tmp_path, name) - expected[..., None]).max() <= 2


def test_deep_and_colour_files_are_turned_too(tmp_path: Path) -> None:
    wide = enlarged(STORED).astype(np.uint16) * 257
    colour = np.dstack([enlarged(STORED), enlarged(STORED[:, ::-1]), enlarged(STORED[::-1])])
    (tmp_path / "wide.png").write_bytes(with_exif(encoded(".png", wide), exif(6)))
    (tmp_path / "colour.png").write_bytes(with_exif(encoded(".png", colour), exif(6)))
    (tmp_path / "real.tif").write_bytes(tiff((wide / 65535).astype(np.float32), orientation=6))
    turned = np.rot90(wide, -1)  # clockwise
    np.testing.assert_array_equal(read_prediction(tmp_path, "wide.png"), turned)
    np.testing.assert_allclose(read_prediction(tmp_path, "real.tif"), turned / 65535, rtol=1e-6)
    np.testing.assert_array_equal(read_colour(tmp_path, "colour.png"), np.rot90(colour, -1))


GREY_PNG = png(enlarged(STORED))
AS_STORED = {
    "no such orientation": with_exif(GREY_PNG, exif(9)),
    "orientation 0": with_exif(GREY_PNG, exif(0)),
    "not EXIF": with_exif(GREY_PNG, b"not a block of EXIF"),
    "cut short": with_exif(GREY_PNG, exif(6)[:12]),
    "directory past the end": with_exif(GREY_PNG, b"MM\0*" + struct.pack(">I", 2**32 - 2)),
    "after the last chunk": GREY_PNG + chunk(b"eXIf", exif(6)),
}


@pytest.mark.parametrize("case", AS_STORED)
def test_what_states_no_orientation_is_read_as_stored(tmp_path: Path, case: str) -> None:
    (tmp_path / "x.png").write_bytes(AS_STORED[case])
    np.testing.assert_array_equal(read_prediction(tmp_path, "x.png"), enlarged(STORED))


def test_the_first_of_two_blocks_counts_and_webp_may_name_it(tmp_path: Path) -> None:
    plain = encoded(".webp", enlarged(STORED), cv2.IMWRITE_WEBP_QUALITY, 101)
    (tmp_path / "x.png").write_bytes(with_exif(with_exif(GREY_PNG, exif(3)), exif(6)))
    (tmp_path / "x.webp").write_bytes(with_exif(plain, b"Exif\0\0" + exif(6)))
    for name in ("x.png", "x.webp"):
        np.testing.assert_array_equal(read_prediction(tmp_path, name), np.rot90(enlarged(STORED), -1))

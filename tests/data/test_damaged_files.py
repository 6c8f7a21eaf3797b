"""Damaged files of every format give an image, or an error of one sentence that names the file.

No crash, no other exception, nothing on standard error, no more memory or time than the size of the
file explains.
"""

import os
import struct
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from helpers.damaged_images import GREY, KINDS, SOUND_FILES, check_file, mutated
from helpers.image_files import bmp, chunk, encoded, png, tiff
from helpers.platforms import glibc, posix_limits

from sisod.common.exceptions import InputError
from sisod.data import images
from sisod.data.headers import read_header
from sisod.data.truths import read_prediction

Check = Callable[[bytes, str], int]


@pytest.fixture
def check(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Check:
    """Read a file with every reader, and return how many of them refuse it."""

    def checked(data: bytes, kind: str) -> int:
        n_refused = check_file(tmp_path, data, kind)
        assert capfd.readouterr().err == "" or glibc.args[0]
        return n_refused

    return checked


@pytest.mark.parametrize("kind", KINDS)
def test_whole_cut_short_and_changed(kind: str, check: Check) -> None:
    # a transparent map, and by read_colour an array or a float TIFF: those alone are refused
    n_refused = sum(check(data, kind) for data in SOUND_FILES[kind])
    assert n_refused == {"webp": 2, "npy": 2, "tif": 1}.get(kind, 0)
    parts = [data[:length] for data in SOUND_FILES[kind] for length in range(0, len(data), 61)]
    # BMP and TIFF state where pixels are: one without its last, unused bytes is whole
    assert sum(check(part, kind) for part in parts) > 0.9 * 3 * len(parts)
    if kind in ("png", "jpg"):  # decoders do not miss the last bytes
        assert [check(data[:-1], kind) for data in SOUND_FILES[kind]] == [3] * len(SOUND_FILES[kind])
    n_files = int(os.environ.get("SISOD_FUZZ", "40"))
    assert sum(check(mutated(kind, number), kind) for number in range(n_files)) > 0.5 * n_files


SIDES = [0, -1, 65535, 2**31 - 1]


@pytest.mark.parametrize("width", SIDES)
@pytest.mark.parametrize("height", SIDES)
def test_sizes_that_lie(width: int, height: int, check: Check) -> None:
    wide, high = width % 2**32, height % 2**32
    grey = png(GREY)
    check(grey[:8] + chunk(b"IHDR", struct.pack(">II", wide, high) + grey[24:29]) + grey[33:], "png")
    check(bmp(GREY).replace(struct.pack("<ii", 19, 14), struct.pack("<ii", width, height)), "bmp")
    check(tiff(GREY, width=wide, height=high), "tif")
    size = struct.pack(">HH", high % 2**16, wide % 2**16)
    check(encoded(".jpg", GREY).replace(struct.pack(">HH", 14, 19), size), "jpg")
    extended = bytearray(SOUND_FILES["webp"][0])
    extended[24:30] = struct.pack("<I", wide)[:3] + struct.pack("<I", high)[:3]
    check(bytes(extended), "webp")
    text = str({"descr": "|u1", "fortran_order": False, "shape": (height, width)})
    check(b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text.encode() + GREY.tobytes(), "npy")


@pytest.mark.parametrize("kind", [b"tEXt", b"IDAT", b"IEND"])
def test_a_chunk_longer_than_its_file_takes_no_memory(
    kind: bytes, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenCV takes two gigabytes, and seconds, for a chunk that says it is so long."""
    data = png(GREY)
    monkeypatch.setattr(cv2, "imdecode", lambda *_: pytest.fail("the file was given to the decoder"))
    assert check(data[:33] + struct.pack(">I", 0x7FFFFFFF) + kind + data[33:], "png") == 3


@pytest.mark.parametrize("marker", [0x01, 0xD0, 0x00, 0xFF])
def test_markers_that_hide_the_size_of_a_jpeg(marker: int) -> None:
    """A marker without a segment must not be taken for one that skips over the frame."""
    fake = encoded(".jpg", GREY)
    at = fake.index(b"\xff\xc0")
    large = (
        fake[:at] + bytes([0xFF, marker]) + fake[at:].replace(b"\0\x0e\0\x13", b"\x75\x30\x75\x30", 1)
    )
    header = read_header(large)
    assert header is None or (header.height, header.width) == (30000, 30000)


@pytest.mark.parametrize("first", [3, 11])
def test_the_first_of_two_widths_counts(first: int) -> None:
    """As for libtiff; whatever its type, the second does not hide it."""
    data = tiff(GREY)
    entry = struct.pack("<HHII", 256, first, 1, 30000)
    (count,) = struct.unpack_from("<H", data, 8)
    twice = data[:8] + struct.pack("<H", count + 1) + entry + data[10:]
    header = read_header(twice)
    assert header is None or (header.height, header.width) == (14, 30000)


@pytest.mark.parametrize("count", [0, 1, 2**32 - 1])
@pytest.mark.parametrize("tag", [256, 257, 258, 262, 274, 277])
def test_tags_of_a_tiff_with_a_wrong_count(tag: int, count: int, check: Check) -> None:
    """An orientation that libtiff ignores must not exchange height and width here."""
    data = bytearray(tiff(GREY, orientation=6))
    (n_entries,) = struct.unpack_from("<H", data, 8)
    entries = range(10, 10 + 12 * n_entries, 12)
    (entry,) = (at for at in entries if struct.unpack_from("<H", data, at) == (tag,))
    struct.pack_into("<I", data, entry + 4, count)
    n_refused = check(bytes(data), "tif")
    if tag == 274:
        header = read_header(bytes(data))
        assert header
        assert (header.height, header.width) == ((19, 14) if count == 1 else (14, 19))
        assert n_refused == 0


NOISY = {
    "warning of libpng": png(GREY)[:33] + chunk(b"gAMA", b"x") + png(GREY)[33:],
    "error of libpng": png(GREY)[:-14] + b"x" + png(GREY)[-13:],
    "warning of libjpeg": encoded(".jpg", GREY)[:-2] + b"rubbish" + encoded(".jpg", GREY)[-2:],
}


@glibc
@pytest.mark.parametrize("case", NOISY)
def test_decoders_print_nothing_and_others_may(case: str, capfd: pytest.CaptureFixture[str]) -> None:
    try:
        images.decode(NOISY[case], "x.png")
    except InputError:
        assert case.startswith("error")
    assert capfd.readouterr().err == ""
    # once nobody is inside, OpenCV and the C libraries print again
    cv2.imdecode(np.frombuffer(NOISY[case], np.uint8), cv2.IMREAD_UNCHANGED)
    assert capfd.readouterr().err != ""


@posix_limits
def test_a_file_too_large_for_any_image_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "x.png").open("wb") as file:
        file.truncate(3 << 30)  # of holes, which take no room
    with pytest.raises(InputError, match=r"x\.png' cannot be read: File too large"):
        read_prediction(tmp_path, "x.png")

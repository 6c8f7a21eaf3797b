"""Damaged files of every format end in one sentence that names them, or in an image: nothing else.

No crash, no other exception, nothing on standard error, no memory or time that the file itself does
not account for.
"""

import os
import random
import signal
import struct
import threading
import time
import warnings
from pathlib import Path

import cv2
import numpy as np
import pytest
from helpers.image_files import bmp, chunk, encoded, exif, grey_as, npy, png, tiff, with_exif
from helpers.platforms import forks, glibc, posix_limits
from numpy.typing import NDArray

from sisod.common.errors import InputError
from sisod.data import images
from sisod.data.headers import image_size, read_header
from sisod.data.quiet import quiet_decoders

GREY = np.random.default_rng(5).integers(0, 256, (14, 19), dtype=np.uint8)
RGB = grey_as(GREY, GREY, GREY)
OPAQUE = np.full_like(GREY, 255)
PALETTE = bytes(value for value in range(256) for _ in range(3))
WEBP = cv2.IMWRITE_WEBP_QUALITY

WHOLE: dict[str, list[bytes]] = {
    "png": [
        with_exif(encoded(".png", GREY), exif(6)),
        encoded(".png", grey_as(GREY, GREY, GREY, OPAQUE)),
        png(GREY, colour=3, palette=PALETTE, transparent=b"\xff\xff"),
        encoded(".png", GREY.astype(np.uint16) * 257),
    ],
    "jpg": [
        with_exif(encoded(".jpg", GREY), exif(6)),
        encoded(".jpg", RGB, cv2.IMWRITE_JPEG_PROGRESSIVE, 1),
    ],
    "bmp": [bmp(GREY), bmp(GREY >= 128, bits=1), encoded(".bmp", RGB)],
    "tif": [
        tiff(GREY, orientation=6),
        encoded(".tif", RGB),
        tiff((GREY / 255).astype(np.float32), order=">"),
        tiff(grey_as(GREY, GREY, GREY, OPAQUE), photometric=2),
    ],
    "webp": [
        with_exif(encoded(".webp", RGB, WEBP, 101), exif(6)),
        encoded(".webp", RGB, WEBP, 60),
        encoded(".webp", grey_as(GREY, GREY, GREY, OPAQUE // 2), WEBP, 60),
    ],
    "npy": [npy(GREY), npy(np.asfortranarray(GREY / 255))],
}
ENDINGS = tuple(WHOLE)


class Outcome:
    """Reads what it is given by every reader, and keeps count."""

    def __init__(self, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capfd = folder, capfd
        self.n_refused = 0

    def check(self, data: bytes, ending: str) -> None:
        """Read one file."""
        name = f"x.{ending}"
        (self.folder / name).write_bytes(data)
        size = image_size(data)
        assert size is None or min(size) > 0
        begin = time.perf_counter()
        for reader in (images.read_map, images.read_colour, read_mask):
            text = ""
            try:
                array = reader(self.folder, name)
            except InputError as error:
                text = str(error)
            if text:
                assert name in text
                assert "\n" not in text
                self.n_refused += 1
            else:
                assert array.ndim >= 2
                assert ending == "npy" or array.shape[:2] == size
        assert self.capfd.readouterr().err == "" or glibc.args[0]
        assert time.perf_counter() - begin < 5


def read_mask(root: Path, name: str) -> NDArray[np.bool_]:
    return images.read_mask(root, name, level=128)


@pytest.fixture
def outcome(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Outcome:
    return Outcome(tmp_path, capfd)


@pytest.mark.parametrize("ending", ENDINGS)
def test_whole_files_are_read(ending: str, outcome: Outcome) -> None:
    for data in WHOLE[ending]:
        outcome.check(data, ending)
    # a transparent map, and by read_colour an array or a float TIFF: those alone are refused
    assert outcome.n_refused == {"webp": 2, "npy": 2, "tif": 1}.get(ending, 0)


@pytest.mark.parametrize("ending", ENDINGS)
def test_cut_short(ending: str, outcome: Outcome) -> None:
    n_cut = 0
    for data in WHOLE[ending]:
        for length in range(0, len(data), 10):
            outcome.check(data[:length], ending)
            n_cut += 1
    # BMP and TIFF state where pixels are: one without its last, unused bytes is whole
    assert outcome.n_refused > 0.9 * 3 * n_cut


@pytest.mark.parametrize("ending", ENDINGS)
def test_changed_bytes(ending: str, outcome: Outcome) -> None:
    """A few hundred of the ten thousand files of each kind that were read once."""
    rng = random.Random(ending)  # noqa: S311  (the same files every time)
    for _ in range(150):
        data = bytearray(rng.choice(WHOLE[ending]))
        for _ in range(rng.choice([1, 1, 2, 8])):
            at = rng.randrange(min(len(data), rng.choice([60, 300, len(data)])))
            data[at : at + 1] = rng.choice(
                [
                    b"\0",
                    b"\xff",
                    b"\x7f",
                    bytes([rng.randrange(256)]),
                    b"",
                    b"\xff\xff\xff\xff",
                    bytes(8),
                ]
            )
        outcome.check(bytes(data), ending)
    assert outcome.n_refused > 100


SIDES = [0, -1, 1, 20, 16384, 65535, 2**31 - 1, -(2**31)]


@pytest.mark.parametrize("width", SIDES)
@pytest.mark.parametrize("height", SIDES)
def test_sizes_that_lie(width: int, height: int, outcome: Outcome) -> None:
    wide, high = width % 2**32, height % 2**32
    outcome.check(repaired_png(struct.pack(">II", wide, high)), "png")
    outcome.check(
        bmp(GREY).replace(struct.pack("<ii", 19, 14), struct.pack("<ii", width, height)), "bmp"
    )
    outcome.check(tiff(GREY, width=wide, height=high), "tif")
    size = struct.pack(">HH", high % 2**16, wide % 2**16)
    outcome.check(encoded(".jpg", GREY).replace(struct.pack(">HH", 14, 19), size), "jpg")
    extended = bytearray(WHOLE["webp"][0])
    extended[24:30] = struct.pack("<I", wide)[:3] + struct.pack("<I", high)[:3]
    outcome.check(bytes(extended), "webp")
    text = str({"descr": "|u1", "fortran_order": False, "shape": (height, width)})
    header = b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text.encode()
    outcome.check(header + GREY.tobytes(), "npy")


def repaired_png(size: bytes) -> bytes:
    """A PNG that states another size, with the checksum that belongs to it."""
    data = png(GREY)
    return data[:8] + chunk(b"IHDR", size + data[24:29]) + data[33:]


@pytest.mark.parametrize("ending", ENDINGS)
def test_wrong_ending(ending: str, outcome: Outcome) -> None:
    for other in ENDINGS:
        for data in WHOLE[other]:
            outcome.check(data, ending)


@pytest.mark.parametrize("kind", [b"tEXt", b"IDAT", b"iCCP", b"acTL"])
def test_a_chunk_longer_than_its_file_takes_no_memory(
    kind: bytes, outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenCV takes two gigabytes, and seconds, for a chunk that says it is so long."""
    data = png(GREY)

    def opened(*_: object) -> None:
        pytest.fail("the file was given to the decoder")

    monkeypatch.setattr(cv2, "imdecode", opened)
    outcome.check(data[:33] + struct.pack(">I", 0x7FFFFFFF) + kind + data[33:], "png")
    assert outcome.n_refused == 3


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


@pytest.mark.parametrize("first", [3, 4, 8, 9, 11])
def test_the_first_of_two_widths_counts(first: int) -> None:
    """As for libtiff; whatever its type, the second does not hide it."""
    data = tiff(GREY)
    entry = struct.pack("<HHII", 256, first, 1, 30000)
    (count,) = struct.unpack_from("<H", data, 8)
    twice = data[:8] + struct.pack("<H", count + 1) + entry + data[10:]
    size = image_size(twice)
    assert size is None or size == (14, 30000)


NOISY = {
    "warning of libpng": png(GREY)[:33] + chunk(b"gAMA", b"x") + png(GREY)[33:],
    "error of libpng": png(GREY)[:-14] + b"x" + png(GREY)[-13:],
    "warning of libjpeg": encoded(".jpg", GREY)[:-2] + b"rubbish" + encoded(".jpg", GREY)[-2:],
}


@glibc
@pytest.mark.parametrize("case", NOISY)
def test_decoders_print_nothing_and_others_may(case: str, capfd: pytest.CaptureFixture[str]) -> None:
    decode = images.decode
    try:
        decode(NOISY[case], "x.png")
    except InputError:
        assert case.startswith("error")
    assert capfd.readouterr().err == ""
    # once nobody is inside, OpenCV and the C libraries print again
    cv2.imdecode(np.frombuffer(NOISY[case], np.uint8), cv2.IMREAD_UNCHANGED)
    assert capfd.readouterr().err != ""


@glibc
def test_decoders_are_quiet_until_the_last_thread_is_out(capfd: pytest.CaptureFixture[str]) -> None:
    noisy = np.frombuffer(NOISY["error of libpng"], np.uint8)
    with quiet_decoders:
        thread = threading.Thread(target=lambda: images.decode(png(GREY), "x.png"))
        thread.start()
        thread.join()
        cv2.imdecode(noisy, cv2.IMREAD_UNCHANGED)
        assert capfd.readouterr().err == ""
    cv2.imdecode(noisy, cv2.IMREAD_UNCHANGED)
    assert "CRC" in capfd.readouterr().err


@forks
@glibc
def test_a_forked_process_does_not_wait_for_the_threads_it_left(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of forking beside threads, which is the case to be tested
        with quiet_decoders, quiet_decoders._lock:
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    signal.alarm(20)  # which ends a process that waits
                    cv2.imdecode(np.frombuffer(NOISY["error of libpng"], np.uint8), cv2.IMREAD_UNCHANGED)
                    code = 0 if images.decode(png(GREY), "x.png").shape == GREY.shape else 2
                finally:
                    os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert "CRC" in capfd.readouterr().err  # nobody is inside there


@posix_limits
def test_a_file_too_large_for_any_image_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "x.png").open("wb") as file:
        file.truncate(3 << 30)  # of holes, which take no room
    with pytest.raises(InputError, match=r"x\.png' cannot be read: File too large"):
        images.read_map(tmp_path, "x.png")

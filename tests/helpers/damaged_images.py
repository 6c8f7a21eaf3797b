"""Sound image files of every kind, seeded mutations of them, and what a reader must do with any file."""

import random
import struct
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from helpers.image_files import bmp, encoded, exif, grey_as, npy, png, tiff, with_exif
from sisod.common.exceptions import InputError
from sisod.data import images, truths
from sisod.data.headers import read_header

GREY = np.random.default_rng(5).integers(0, 256, (14, 19), dtype=np.uint8)
RGB = grey_as(GREY, GREY, GREY)
OPAQUE = np.full_like(GREY, 255)
PALETTE = bytes(value for value in range(256) for _ in range(3))
WEBP = cv2.IMWRITE_WEBP_QUALITY

SOUND_FILES: dict[str, list[bytes]] = {
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
KINDS = tuple(SOUND_FILES)
Reader = Callable[[Path, str], NDArray[Any]]
SLOWEST = 5.0  # seconds for one file, on a busy machine


def check_file(folder: Path, data: bytes, kind: str) -> int:
    """Write one file and read it with every reader: an image of the stated size, or an InputError.

    Returns:
        The number of readers that raised an InputError.

    Raises:
        AssertionError: a size, a message or a duration is wrong. Any other exception of a reader is
            passed on.
    """
    name = f"x.{kind}"
    (folder / name).write_bytes(data)
    begin = time.perf_counter()
    header = read_header(data)
    assert header is None or min(header.height, header.width, header.pixel_bytes) > 0
    answers: list[NDArray[Any] | str] = []
    for reader in READERS:
        try:
            answers.append(reader(folder, name))
        except InputError as error:
            answers.append(str(error))
    assert time.perf_counter() - begin < SLOWEST
    for answer in answers:
        if isinstance(answer, str):
            assert name in answer
            assert "\n" not in answer
        else:
            assert answer.ndim >= 2
            assert kind == "npy" or (header and answer.shape[:2] == (header.height, header.width))
    return sum(isinstance(answer, str) for answer in answers)


def _read_mask(root: Path, name: str) -> NDArray[np.bool_]:
    return truths.read_truth(root, name).mask(level=128)


READERS: tuple[Reader, ...] = (truths.read_prediction, images.read_colour, _read_mask)

_PIECES = (b"", b"\0", b"\xff", b"\x7f\xff", b"\x80\0", b"\0\x80", b"\xff\xff\xff\xff", bytes(8))


def mutated(kind: str, number: int) -> bytes:
    """Return a sound file of a kind with one to eight changes, most of them near its beginning.

    The file depends on the kind and the number alone.
    """
    rng = random.Random(f"{kind} 0 {number}")  # noqa: S311
    data = bytearray(rng.choice(SOUND_FILES[kind]))
    for _ in range(rng.choice([1, 1, 2, 8])):
        at = rng.randrange(min(len(data), rng.choice([60, 300, len(data)])))
        piece = rng.choice(_PIECES) or rng.randbytes(1)
        data[at : at + rng.choice([0, len(piece), len(piece), 40])] = piece
    if kind == "png" and rng.random() < 0.5:
        return with_png_checksums(bytes(data))
    return bytes(data)


def with_png_checksums(data: bytes) -> bytes:
    """Return a PNG whose chunks have correct checksums, so that changes get past the decoder's check."""
    repaired = bytearray(data)
    at = 8
    while at + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, at)
        end = at + 8 + length
        if end + 4 <= len(data):
            repaired[end : end + 4] = struct.pack(">I", zlib.crc32(data[at + 4 : end]))
        at = end + 4
    return bytes(repaired)

"""How each kind of image file is read, which ones are refused, and that headers are not trusted."""

import re
import struct
import time
import tracemalloc

import cv2
import numpy as np
import pytest
from helpers.image_files import Array, bmp, encoded, grey_as, npy, png, tiff
from hypothesis import given
from hypothesis import strategies as st

from sisod.common.exceptions import InputError
from sisod.data.headers import read_header
from sisod.data.images import decode

GREY = np.random.default_rng(5).integers(0, 256, (12, 17), dtype=np.uint8)
GREY[0, :2] = 0, 255
MASK = GREY >= 128
BLACK_WHITE = MASK.astype(np.uint8) * np.uint8(255)
WIDE = GREY.astype(np.uint16) * 257
REAL = (GREY / 255).astype(np.float32)
COLOUR = np.dstack([GREY, GREY[::-1], GREY[:, ::-1]])
SMOOTH = np.add.outer(np.arange(40), np.arange(60)).astype(np.uint8)  # survives lossy compression

UNREADABLE = "is not an image that can be read, or is cut short"
COLOURED = "is a colour image whose channels differ"
TRANSPARENT = "has transparency or other channels"
SHAPE = "holds an array of shape"
NOT_NPY = "is not a .npy file of two-dimensional arrays of numbers"
TOO_LARGE = "pixels of 8 bytes; expected at most 268 megapixels and 1073 megabytes"


def npy_header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text) + 1) + text.encode() + b"\n"


def npy_of_shape(shape: str) -> bytes:
    return npy_header(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}")


def odd_npy(array: Array) -> bytes:
    """Without the blanks that let the values begin at a multiple of 64."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {array.shape}}}"
    return npy_header(header + " " * (len(header) % 2)) + array.tobytes()


GREY_PALETTE = bytes(value for value in range(256) for _ in range(3))
OPAQUE = np.full_like(GREY, 255)
LEVELS_2 = GREY // 64
HEAVY_PNG = png(np.zeros((1, 1), np.uint8), colour=2, bits=16).replace(
    struct.pack(">II", 1, 1), struct.pack(">II", 16384, 16384)
)
HEAVY_TIFF = tiff(REAL.astype(np.float64), width=16384, height=16384)

READ: dict[str, tuple[str, bytes, Array]] = {
    "grey png": ("x.png", encoded(".png", GREY), GREY),
    "upper case ending": ("X.PNG", encoded(".png", GREY), GREY),
    "rgb png": ("x.png", encoded(".png", grey_as(GREY, GREY, GREY)), GREY),
    "rgba png": ("x.png", encoded(".png", grey_as(GREY, GREY, GREY, OPAQUE)), GREY),
    "grey and alpha png": ("x.png", png(grey_as(GREY, OPAQUE), colour=4), GREY),
    "palette png": ("x.png", png(GREY, colour=3, palette=GREY_PALETTE), GREY),
    "1-bit png": ("x.png", png(MASK, bits=1), BLACK_WHITE),
    "2-bit png": ("x.png", png(LEVELS_2, bits=2), LEVELS_2 * 85),
    "16-bit png": ("x.png", encoded(".png", WIDE), WIDE),
    "16-bit rgb png": ("x.png", encoded(".png", grey_as(WIDE, WIDE, WIDE)), WIDE),
    "grey bmp": ("x.bmp", encoded(".bmp", GREY), GREY),
    "1-bit bmp": ("x.bmp", bmp(MASK, bits=1), BLACK_WHITE),
    "bmp from the top down": ("x.bmp", bmp(GREY, top_down=True), GREY),
    "bmp with the old header": ("x.bmp", bmp(GREY, core=True), GREY),
    "grey tiff": ("x.tif", encoded(".tif", GREY), GREY),
    "big-endian 16-bit tiff": ("x.tiff", tiff(WIDE, order=">"), WIDE),
    "float tiff": ("x.tif", tiff(REAL), REAL),
    "double tiff": ("x.tif", tiff(REAL.astype(np.float64)), REAL.astype(np.float64)),
    "float rgb tiff": ("x.tif", tiff(grey_as(REAL, REAL, REAL), photometric=2), REAL),
    "float rgba tiff": ("x.tif", tiff(grey_as(REAL, REAL, REAL, REAL**0), photometric=2), REAL),
    "white is zero": ("x.tif", tiff(GREY, photometric=0), 255 - GREY),
    "white is zero in 16 bits": ("x.tif", tiff(WIDE, photometric=0), 65535 - WIDE),
    "white is zero in floats": ("x.tif", tiff(REAL, photometric=0), 1 - REAL),
    "lossless webp": ("x.webp", encoded(".webp", GREY, cv2.IMWRITE_WEBP_QUALITY, 101), GREY),
    "bool npy": ("x.npy", npy(MASK), MASK),
    "float npy": ("x.npy", npy(REAL), REAL),
    "npy by columns": ("x.npy", npy(np.asfortranarray(REAL)), REAL),
    "npy of no pixels": ("x.npy", npy(REAL[:0]), REAL[:0]),
    "npy with more behind it": ("x.npy", npy(REAL) + b"more", REAL),
    "npy that begins at an odd place": ("x.npy", odd_npy(REAL), REAL),
}


@pytest.mark.parametrize("case", READ)
def test_read(case: str) -> None:
    name, data, expected = READ[case]
    array = decode(data, name)
    assert array.dtype == expected.dtype
    np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("extension", [".jpg", ".webp"])
@pytest.mark.parametrize("channels", [1, 3])
def test_lossy_grey_stays_grey(extension: str, channels: int) -> None:
    quality = cv2.IMWRITE_JPEG_QUALITY if extension == ".jpg" else cv2.IMWRITE_WEBP_QUALITY
    array = decode(encoded(extension, grey_as(*[SMOOTH] * channels), quality, 60), "x" + extension)
    assert (array.dtype, array.shape) == (np.dtype(np.uint8), SMOOTH.shape)
    assert np.abs(array.astype(int) - SMOOTH).max() <= 6


def test_channels_may_differ_by_two_levels_of_8_bits() -> None:
    two, three = GREY // 2 + 2, GREY // 2 + 3
    base = GREY // 2
    np.testing.assert_array_equal(decode(encoded(".png", grey_as(base, two, base)), "x.png"), two)
    with pytest.raises(InputError, match="channels differ"):
        decode(encoded(".png", grey_as(base, three, base)), "x.png")


REFUSED: dict[str, tuple[str, bytes, str]] = {
    "text": ("x.png", b"not an image\n", UNREADABLE),
    "colour png": ("x.png", encoded(".png", COLOUR), COLOURED),
    "colour float tiff": ("x.tif", tiff((COLOUR / 255).astype(np.float32), photometric=2), COLOURED),
    "colour palette": (
        "x.png",
        png(MASK.astype(np.uint8), colour=3, palette=bytes(3) + b"\x80\0\0"),
        COLOURED,
    ),
    "transparent rgba": ("x.png", encoded(".png", grey_as(GREY, GREY, GREY, OPAQUE - 1)), TRANSPARENT),
    "transparent palette": (
        "x.png",
        png(GREY, colour=3, palette=GREY_PALETTE, transparent=b"\0"),
        TRANSPARENT,
    ),
    "one transparent grey level": ("x.png", png(GREY, transparent=b"\0\0"), TRANSPARENT),
    "transparent webp": (
        "x.webp",
        encoded(".webp", grey_as(GREY, GREY, GREY, OPAQUE // 2), cv2.IMWRITE_WEBP_QUALITY, 101),
        TRANSPARENT,
    ),
    "grey and alpha tiff": ("x.tif", tiff(grey_as(GREY, OPAQUE // 2)), TRANSPARENT),
    "transparent rgba tiff": (
        "x.tif",
        tiff(grey_as(GREY, GREY, GREY, OPAQUE // 2), photometric=2),
        TRANSPARENT,
    ),
    "float rgb tiff with NaN in one channel": (
        "x.tif",
        tiff(grey_as(np.where(MASK, np.nan, REAL).astype(np.float32), REAL, REAL), photometric=2),
        COLOURED,
    ),
    "float rgba tiff with NaN for alpha": (
        "x.tif",
        tiff(grey_as(REAL, REAL, REAL, np.full_like(REAL, np.nan)), photometric=2),
        TRANSPARENT,
    ),
    "3-D npy": ("x.npy", npy(GREY[..., None]), SHAPE),
    "object npy": ("x.npy", npy(np.array([[1, None]], dtype=object), pickled=True), NOT_NPY),
    "pickle": ("x.npy", b"\x80\x04K\x01.", NOT_NPY),
    "truncated npy": ("x.npy", npy(GREY)[:-1], NOT_NPY),
    "npy header of odd keys": ("x.npy", npy_header("{1: 2, 'descr': 3}"), NOT_NPY),
    "npy of 30,000 x 30,000": ("x.npy", npy_of_shape("(30000, 30000)"), TOO_LARGE),
    "npy of sizes that wrap": ("x.npy", npy_of_shape("(4294967296, 4294967296)"), TOO_LARGE),
    # as many pixels as may be, of more bytes than those of 8 bits
    "16-bit rgb png of 1.6 GB": ("x.png", HEAVY_PNG, "16384 x 16384 pixels of 6 bytes; expected"),
    "double tiff of 2 GB": ("x.tif", HEAVY_TIFF, "16384 x 16384 pixels of 8 bytes; expected"),
    "npy header of 2 GB": ("x.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\x7f{", NOT_NPY),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    name, data, text = REFUSED[case]
    with pytest.raises(InputError, match=re.escape(text)) as caught:
        decode(data, name)
    assert repr(name) in str(caught.value)


STATED = struct.pack(">II", 30000, 30000)
BOMBS = {
    "png": png(GREY).replace(struct.pack(">II", 17, 12), STATED),
    "bmp": bmp(GREY).replace(struct.pack("<ii", 17, 12), struct.pack("<ii", 30000, 30000)),
    "tif": tiff(GREY, width=30000, height=30000),
    "jpg": encoded(".jpg", GREY).replace(struct.pack(">HH", 12, 17), struct.pack(">HH", 30000, 30000)),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_bomb_is_refused_unopened(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """30,000 x 30,000 pixels, or a header that says so."""
    monkeypatch.setattr(cv2, "imdecode", lambda *_: pytest.fail("the bomb was given to the decoder"))
    name = f"x.{kind[-3:]}"
    begin = time.perf_counter()
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=f"{name}' is 30000 x 30000 pixels"):
            decode(BOMBS[kind], name)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000
    assert time.perf_counter() - begin < 1


IMAGES = {
    case: data
    for case, (name, data, _) in {**READ, **REFUSED}.items()
    if not name.endswith("npy") and case != "text" and " GB" not in case
}


@pytest.mark.parametrize("case", IMAGES)
def test_memory_of_an_image_is_known_before_it_is_decoded(case: str) -> None:
    """Exactly, but for channels that OpenCV drops and levels of few bits."""
    header = read_header(IMAGES[case])
    unpacked = cv2.imdecode(np.frombuffer(IMAGES[case], np.uint8), cv2.IMREAD_UNCHANGED)
    assert header is not None
    assert unpacked is not None
    stated = header.height * header.width * header.pixel_bytes
    drops = header.hidden_channels or "bmp" in case
    assert stated == unpacked.nbytes or (drops and unpacked.nbytes < stated <= 3 * unpacked.nbytes)


@given(st.sampled_from(["x.png", "x.npy"]), st.sampled_from([b"", b"PK", b"\x93NUMPY"]), st.binary())
def test_rubbish_is_refused_by_name(name: str, start: bytes, rest: bytes) -> None:
    with pytest.raises(InputError, match=f"^'{name}' is not"):
        decode(start + rest, name)

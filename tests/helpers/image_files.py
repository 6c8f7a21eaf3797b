"""Image files of every kind, byte by byte, also unusual ones that no library writes."""

import io
import struct
import zlib
from pathlib import Path
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def grey_as(*channels: Array) -> Array:
    """Stack channels."""
    return np.dstack(channels)


def encoded(extension: str, array: Array, *options: int) -> bytes:
    """Return the file that OpenCV writes."""
    done, data = cv2.imencode(extension, array, options)
    assert done
    return data.tobytes()


def read_stored(path: Path) -> Array:
    """Return the pixels of an image file with their type and channels."""
    array = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
    assert array is not None
    return np.asarray(array)


def packed(array: Array, bits: int) -> list[bytes]:
    """Return the rows of an array as bytes, with samples of 1, 2, 4 or 8 bits."""
    spread = (array.astype(np.uint8)[..., None] >> np.arange(bits)[::-1]) & 1
    return [np.packbits(row.ravel()).tobytes() for row in spread]


def chunk(kind: bytes, data: bytes) -> bytes:
    """Return a PNG chunk."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(
    array: Array, *, colour: int = 0, bits: int = 8, palette: bytes = b"", transparent: bytes = b""
) -> bytes:
    """Return a PNG; colour type 0 is grey, 3 palette, 4 grey and alpha."""
    height, width = array.shape[:2]
    rows = [row.tobytes() for row in array] if bits == 8 else packed(array, bits)
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)),
            chunk(b"PLTE", palette) if palette else b"",
            chunk(b"tRNS", transparent) if transparent else b"",
            chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows))),
            chunk(b"IEND", b""),
        ]
    )


def tiff(
    array: Array,
    *,
    order: Literal["<", ">"] = "<",
    photometric: int = 1,
    orientation: int | None = None,
    width: int | None = None,
    height: int | None = None,
) -> bytes:
    """Return an uncompressed TIFF; photometric 0 is white at zero, 1 black at zero, 2 RGB.

    `width` and `height` are stated instead of the true ones.
    """
    samples = 1 if array.ndim == 2 else array.shape[2]
    form = 3 if array.dtype.kind == "f" else 1
    entries = [
        (256, 4, array.shape[1] if width is None else width),
        (257, 4, array.shape[0] if height is None else height),
        (258, 3, 8 * array.itemsize),
        (259, 3, 1),
        (262, 3, photometric),
        (273, 4, 0),
        *([] if orientation is None else [(274, 3, orientation)]),
        (277, 3, samples),
        (278, 4, array.shape[0]),
        (279, 4, array.nbytes),
        *([(338, 3, 2)] if samples in (2, 4) else []),
        (339, 3, form),
    ]
    begin = 8 + 2 + 12 * len(entries) + 4
    extra = {258: [8 * array.itemsize] * samples, 339: [form] * samples}
    directory, tail = struct.pack(order + "H", len(entries)), b""
    for tag, kind, value in entries:
        count = samples if tag in extra else 1
        head = struct.pack(order + "HHI", tag, kind, count)
        if count > 2:
            directory += head + struct.pack(order + "I", begin + len(tail))
            tail += struct.pack(f"{order}{count}H", *extra[tag])
        elif count == 2:
            directory += head + struct.pack(order + "HH", value, value)
        elif tag == 273:
            directory += head + struct.pack(order + "I", begin + (2 * 2 * samples if samples > 2 else 0))
        else:
            directory += head + struct.pack(order + ("Hxx" if kind == 3 else "I"), value)
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", 8)
    pixels = array.astype(array.dtype.newbyteorder(order)).tobytes()
    return head + directory + bytes(4) + tail + pixels


def bmp(array: Array, *, bits: int = 8, top_down: bool = False, core: bool = False) -> bytes:
    """Return a BMP with a grey palette; `core` takes the old header of OS/2."""
    height, width = array.shape
    rows = packed(array, bits)
    rows = [row + bytes(-len(row) % 4) for row in (rows if top_down else rows[::-1])]
    levels = [value * 255 // (2**bits - 1) for value in range(2**bits)]
    palette = b"".join(bytes([v, v, v] if core else [v, v, v, 0]) for v in levels)
    if core:
        header = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        size = -height if top_down else height
        header = struct.pack("<IiiHHIIiiII", 40, width, size, 1, bits, 0, 0, 0, 0, len(levels), 0)
    start = 14 + len(header) + len(palette)
    body = b"".join(rows)
    return b"BM" + struct.pack("<IHHI", start + len(body), 0, 0, start) + header + palette + body


def npy(array: Array, *, pickled: bool = False) -> bytes:
    """Return the file that NumPy writes."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=pickled)
    return file.getvalue()


def exif(orientation: int, *, order: Literal["<", ">"] = ">") -> bytes:
    """Return an EXIF block that states an orientation and nothing else."""
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "IH", 8, 1)
    return head + struct.pack(order + "HHIHH", 274, 3, 1, orientation, 0) + bytes(4)


def with_exif(data: bytes, block: bytes, *, at_end: bool = False) -> bytes:
    """Return a PNG, JPEG or WebP with an EXIF block; `at_end` puts it behind the pixels of a PNG."""
    if data.startswith(b"\x89PNG"):
        at = len(data) - 12 if at_end else 33
        return data[:at] + chunk(b"eXIf", block) + data[at:]
    if data.startswith(b"\xff\xd8"):
        segment = b"Exif\0\0" + block
        return data[:2] + b"\xff\xe1" + struct.pack(">H", len(segment) + 2) + segment + data[2:]
    plain = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_GRAYSCALE)
    assert plain is not None
    height, width = plain.shape
    sides = b"".join(struct.pack("<I", side - 1)[:3] for side in (width, height))
    extended = b"VP8X" + struct.pack("<IB3x", 10, 0x08) + sides
    block += bytes(len(block) % 2)
    body = b"WEBP" + extended + data[12:] + b"EXIF" + struct.pack("<I", len(block)) + block
    return b"RIFF" + struct.pack("<I", len(body)) + body

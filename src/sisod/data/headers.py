"""Image headers: size, memory, orientation and hidden channels, read before anything is decoded.

They are read here and not by a decoder, so that a decompression bomb is refused before it is unpacked,
and so that the orientation of an image does not depend on the version of a decoder.
"""

import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from sisod.common.exceptions import InputError

MOST_PIXELS = 1 << 28  # 268 megapixels, 16384 x 16384
MOST_BYTES = 1 << 30  # of an unpacked image: so many pixels of four bytes


class Header(NamedTuple):
    """What the header of an image file states.

    Attributes:
        height: rows of the image as it is shown, upright.
        width: columns of the image as it is shown.
        pixel_bytes: memory of one decoded pixel, all channels together.
        orientation: how the stored pixels must be turned, 1 to 8 as in EXIF; always 1 (not at all) for
            TIFF, which OpenCV turns itself.
        hidden_channels: there is transparency, or a channel beside the grey one, that OpenCV drops.
        white_is_zero: grey values are inverted.
        is_cut: the file ends before its image does, which decoders notice late or never.
        is_lossy: the pixels are not exactly those that were saved.
    """

    height: int
    width: int
    pixel_bytes: int
    orientation: int = 1
    hidden_channels: bool = False
    white_is_zero: bool = False
    is_cut: bool = False
    is_lossy: bool = False


def read_header(data: bytes) -> Header | None:
    """Return what the header states; None if the format is unknown or the header is broken.

    Example:
        >>> import cv2, numpy as np
        >>> header = read_header(cv2.imencode(".png", np.zeros((3, 5, 3), np.uint16))[1].tobytes())
        >>> header.height, header.width, header.pixel_bytes
        (3, 5, 6)
    """
    try:
        if data[:4] == b"\x89PNG":
            header = _png(data)
        elif data[:2] == b"BM":
            header = _bmp(data)
        elif data[:2] == b"\xff\xd8":
            header = _jpeg(data)
        elif data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            header = _webp(data)
        else:
            header = _tiff(data)
    except (struct.error, IndexError, OverflowError):  # truncated, or with offsets past its end
        return None
    return header if header is not None and min(header.height, header.width) > 0 else None


def check_size(shape: tuple[int, ...], pixel_bytes: int, name: str) -> None:
    """Raise if an image of the size that its file states would take too much memory.

    Args:
        shape: height and width.
        pixel_bytes: memory of a pixel.
        name: of the file, for the message.
    """
    pixels = shape[0] * shape[1]
    if pixels > MOST_PIXELS or pixels * pixel_bytes > MOST_BYTES:
        raise InputError(
            f"{name!r} is {shape[1]} x {shape[0]} pixels of {pixel_bytes} bytes; expected at most "
            f"{MOST_PIXELS // 10**6} megapixels and {MOST_BYTES // 10**6} megabytes; scale it down, or "
            "leave it out"
        )


def _turned(height: int, width: int, pixel_bytes: int, exif: bytes, **more: bool) -> Header:
    """Return the header of an image with an EXIF block, which may be empty or damaged."""
    orientation = 1
    if exif:
        with suppress(struct.error, OverflowError):
            orientation = tiff_tags(exif.removeprefix(b"Exif\0\0")).get(_ORIENTATION, 1)
        orientation = orientation if 1 <= orientation <= 8 else 1
    if orientation >= 5:  # these exchange height and width
        height, width = width, height
    return Header(height, width, pixel_bytes, orientation, **more)


_PNG_CHANNELS = {0: 1, 2: 3, 3: 3, 4: 4, 6: 4}  # by colour type, as OpenCV decodes it
_PNG_PALETTE = 3


def _png(data: bytes) -> Header | None:
    width, height, bits, colour = struct.unpack_from(">IIBB", data, 16)
    if colour not in _PNG_CHANNELS:
        return None
    exif, transparent, is_cut = b"", False, True
    for kind, begin, end in _chunks(data, is_png=True):
        if kind == b"tRNS":
            transparent = True
        elif kind == b"eXIf" and not exif:  # may stand before or after the pixels
            exif = data[begin:end]
        elif kind == b"IEND":
            # a chunk before it may state a length that the file has not, which OpenCV would allocate
            is_cut = end + 4 > len(data)
            break
    channels = _PNG_CHANNELS[colour]
    if transparent and colour == _PNG_PALETTE:  # which OpenCV turns into an alpha channel
        channels, transparent = 4, False
    pixel_bytes = channels * (2 if bits == 16 else 1)
    return _turned(height, width, pixel_bytes, exif, hidden_channels=transparent, is_cut=is_cut)


def _chunks(data: bytes, *, is_png: bool) -> Iterator[tuple[bytes, int, int]]:
    """Yield kind, and begin and end of the content, of every chunk of a PNG or WebP file."""
    at = 8 if is_png else 12
    while at + 8 <= len(data):
        if is_png:
            length, kind = struct.unpack_from(">I4s", data, at)
        else:
            kind, length = struct.unpack_from("<4sI", data, at)
        end = at + 8 + length
        yield kind, at + 8, end
        at = end + 4 if is_png else end + end % 2  # behind the checksum, or at an even place


_IHDR_END = 33  # signature, then length, kind, 13 bytes and checksum of the first chunk
_PNG_GREY = 0
_KEPT_CHUNKS = (b"IDAT", b"IEND", b"eXIf")


def palette_as_grey(data: bytes) -> tuple[bytes, int]:
    """Return a palette PNG as a grey PNG, and the number by which its grey values exceed the indices.

    A grey PNG stores its pixels just as a palette PNG stores its indices; decoders multiply grey values
    of 1, 2 and 4 bits by the number that is returned. Any other file is returned unchanged.
    """
    is_png = data[:4] == b"\x89PNG" and data[12:16] == b"IHDR" and len(data) > _IHDR_END
    if not is_png or data[25] != _PNG_PALETTE:
        return data, 1
    header = data[12:25] + bytes([_PNG_GREY]) + data[26:29]
    parts = [data[:12], header, struct.pack(">I", zlib.crc32(header))]
    chunks = _chunks(data, is_png=True)
    parts += [data[begin - 8 : end + 4] for kind, begin, end in chunks if kind in _KEPT_CHUNKS]
    bits = data[24]
    return b"".join(parts), 255 // (2**bits - 1) if bits in (1, 2, 4) else 1


def _bmp(data: bytes) -> Header:
    if data[14:18] == b"\x0c\0\0\0":  # the short header of OS/2
        width, height, _, bits = struct.unpack_from("<HHHH", data, 18)
    else:
        width, height, _, bits = struct.unpack_from("<iiHH", data, 18)
    return Header(abs(height), abs(width), 4 if bits == 32 else 3)  # negative for rows from the top down


_SCAN, _EXIF_SEGMENT = 0xDA, 0xE1
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # markers that begin a frame
_HUFFMAN = frozenset({0xC0, 0xC1, 0xC2, 0xC3})  # of those, the ones without arithmetic coding
_ALONE = frozenset({0x01, *range(0xD0, 0xD8)})  # markers without a segment


def _jpeg(data: bytes) -> Header | None:
    size, exif, least, is_cut, at = None, b"", 0, True, 2
    while at + 4 <= len(data) and data[at] == 0xFF:  # segments up to the first scan
        marker = data[at + 1]
        if marker == 0xFF or marker in _ALONE:
            at += 1 if marker == 0xFF else 2  # the first is a fill byte
            continue
        if marker < 0xC0:  # no segment
            break
        (length,) = struct.unpack_from(">H", data, at + 2)
        begin, at = at + 4, at + 2 + length
        if marker == _SCAN:  # some decoders fill missing pixels with grey
            is_cut = data.rfind(b"\xff\xd9", begin) < 0 or len(data) < least
            break
        if marker in _FRAMES and size is None:
            size = struct.unpack_from(">HHB", data, begin + 1)
            if marker in _HUFFMAN:  # at least one bit for every block of 8 x 8 pixels
                least = size[0] * size[1] // 512
        elif marker == _EXIF_SEGMENT and not exif and data[begin : begin + 6] == b"Exif\0\0":
            exif = data[begin:at]
    if size is None:
        return None
    height, width, channels = size
    return _turned(height, width, 1 if channels == 1 else 3, exif, is_cut=is_cut, is_lossy=True)


def _webp(data: bytes) -> Header | None:
    kind, head, channels, exif = data[12:16], data[:30], 3, b""
    parts = reversed(list(_chunks(data, is_png=False)))  # of two of a kind, the first counts
    chunks = {name: slice(begin, end) for name, begin, end in parts}
    if kind == b"VP8X" and len(head) == 30:
        width, height = (int.from_bytes(head[at : at + 3], "little") + 1 for at in (24, 27))
        channels = 4 if head[20] & 0x10 else 3
        exif = data[chunks[b"EXIF"]] if head[20] & 0x08 and b"EXIF" in chunks else b""
    elif kind == b"VP8L" and len(head) >= 25:
        bits = int.from_bytes(head[21:25], "little")
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        channels = 4 if bits >> 28 & 1 else 3
    elif kind == b"VP8 ":
        width, height = (side & 0x3FFF for side in struct.unpack_from("<HH", head, 26))
    else:
        return None
    return _turned(height, width, channels, exif, is_lossy=b"VP8 " in chunks)


# TIFF tags, and values of the photometric one
_WIDTH, _HEIGHT, _BITS, _PHOTOMETRIC, _ORIENTATION, _SAMPLES = 256, 257, 258, 262, 274, 277
_READ = (_WIDTH, _HEIGHT, _BITS, _PHOTOMETRIC, _ORIENTATION, _SAMPLES)
_WHITE_IS_ZERO, _BLACK_IS_ZERO = 0, 1
_TIFF = {b"II*\0": "<", b"MM\0*": ">"}  # byte order
_INTEGERS = {1: "B", 3: "H", 4: "I", 6: "b", 8: "h", 9: "i"}  # integer types, as letters of struct


def _tiff(data: bytes) -> Header | None:
    tags = tiff_tags(data)
    if not {_WIDTH, _HEIGHT} <= tags.keys():
        return None
    height, width = tags[_HEIGHT], tags[_WIDTH]
    if 5 <= tags.get(_ORIENTATION, 1) <= 8:
        height, width = width, height
    bits, samples = tags.get(_BITS, 1), tags.get(_SAMPLES, 1)
    photometric = tags.get(_PHOTOMETRIC)
    is_grey = photometric in (_WHITE_IS_ZERO, _BLACK_IS_ZERO)
    all_given = bits > 16 and samples in (3, 4)  # then OpenCV returns the channels beside the grey one
    channels = max(samples, 1 if is_grey else 3)
    depth = next((size for size in (1, 2, 4) if bits <= 8 * size), 8)
    return Header(
        height,
        width,
        channels * depth,
        hidden_channels=is_grey and samples > 1 and not all_given,
        white_is_zero=photometric == _WHITE_IS_ZERO,
    )


def tiff_tags(data: bytes) -> dict[int, int]:
    """Return the first number of each tag that is used here; an empty dict for BigTIFF and the like.

    As in libtiff, the first entry of a repeated tag counts, and an entry that does not hold exactly one
    number is ignored; only the number of bits may be given for every sample.
    """
    if data[:4] not in _TIFF:
        return {}
    order = _TIFF[data[:4]]
    (at,) = struct.unpack_from(order + "I", data, 4)
    (entries,) = struct.unpack_from(order + "H", data, at)
    tags: dict[int, int] = {}
    seen: set[int] = set()
    for begin in range(at + 2, at + 2 + 12 * min(entries, 1000), 12):
        tag, kind, length = struct.unpack_from(order + "HHI", data, begin)
        if tag not in _READ or tag in seen:
            continue
        if kind not in _INTEGERS:
            return {}
        seen.add(tag)
        if length != 1 and (tag != _BITS or length == 0):
            continue
        place = begin + 8
        if length * struct.calcsize(_INTEGERS[kind]) > 4:  # then the entry holds an offset
            (place,) = struct.unpack_from(order + "I", data, place)
        (tags[tag],) = struct.unpack_from(order + _INTEGERS[kind], data, place)
    return tags

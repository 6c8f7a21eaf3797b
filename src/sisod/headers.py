"""Size of an image read off its header, so that a bomb is refused before it is unpacked."""

import struct

MOST_PIXELS = 1 << 28  # 268 megapixels, 16384 x 16384


def image_size(data: bytes) -> tuple[int, int] | None:
    """Return height and width as the header states them, None for a format not known here.

    Example:
        >>> import cv2, numpy as np
        >>> [image_size(cv2.imencode(kind, np.zeros((3, 5), np.uint8))[1].tobytes())
        ...  for kind in (".png", ".jpg", ".bmp", ".tif", ".webp")]
        [(3, 5), (3, 5), (3, 5), (3, 5), (3, 5)]
    """
    try:
        if data.startswith(b"\x89PNG"):
            width, height = struct.unpack(">II", data[16:24])
            return height, width
        if data.startswith(b"BM"):
            return _bmp_size(data)
        if data.startswith(b"\xff\xd8"):
            return _jpeg_size(data)
        if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            return _webp_size(data)
        if data[:4] in _TIFF:
            tags = tiff_tags(data)
            return (tags[257], tags[256]) if {256, 257} <= tags.keys() else None
    except (struct.error, IndexError):
        return None
    return None


def has_transparent_level(data: bytes) -> bool:
    """Say whether a PNG without alpha channel names a grey level or colour as transparent."""
    if not data.startswith(b"\x89PNG"):
        return False
    at = 8
    while at + 8 <= len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        if kind == b"tRNS":
            return data[25] in (0, 2)  # grey or RGB; OpenCV turns a palette's into an alpha channel
        if kind == b"IDAT":
            return False
        at += 12 + length
    return False


def _bmp_size(data: bytes) -> tuple[int, int]:
    form = "<HH" if data[14:18] == b"\x0c\0\0\0" else "<ii"  # the header of OS/2 is a short one
    width, height = struct.unpack(form, data[18 : 18 + struct.calcsize(form)])
    return abs(height), abs(width)  # negative for rows from the top down


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    at = 2
    while at < len(data):
        if data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if marker == 0xFF:  # fill byte
            at += 1
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):  # a start of frame
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return height, width
        else:
            at += 2 + struct.unpack(">H", data[at + 2 : at + 4])[0]
    return None


def _webp_size(data: bytes) -> tuple[int, int] | None:
    kind, head = data[12:16], data[:30]
    if kind == b"VP8X" and len(head) == 30:
        width, height = (int.from_bytes(head[at : at + 3], "little") + 1 for at in (24, 27))
        return height, width
    if kind == b"VP8L" and len(head) >= 25:
        bits = int.from_bytes(head[21:25], "little")
        return (bits >> 14 & 0x3FFF) + 1, (bits & 0x3FFF) + 1
    if kind == b"VP8 ":
        width, height = struct.unpack("<HH", head[26:30])
        return height & 0x3FFF, width & 0x3FFF
    return None


# byte order; type of offsets and values; type of the number of entries; letters of struct
_TIFF = {b"II*\0": ("<", "I", "H"), b"MM\0*": (">", "I", "H")}
_TIFF |= {b"II+\0": ("<", "Q", "Q"), b"MM\0+": (">", "Q", "Q")}  # BigTIFF


def tiff_tags(data: bytes) -> dict[int, int]:
    """Return the whole numbers of a TIFF's first directory, by tag; none for another format."""
    if data[:4] not in _TIFF:
        return {}
    order, offset, count = _TIFF[data[:4]]
    size = struct.calcsize(offset)
    (at,) = struct.unpack_from(order + offset, data, size)
    (entries,) = struct.unpack_from(order + count, data, at)
    tags = {}
    for index in range(min(entries, 1000)):
        begin = at + struct.calcsize(count) + index * (4 + 2 * size)
        tag, kind = struct.unpack_from(order + "HH", data, begin)
        if kind in _WHOLE:
            (tags[tag],) = struct.unpack_from(order + _WHOLE[kind], data, begin + 4 + size)
    return tags


_WHOLE = {3: "H", 4: "I", 16: "Q"}  # short, long, and BigTIFF's long

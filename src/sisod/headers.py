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
            width, height = struct.unpack("<ii", data[18:26])
            return abs(height), width  # negative for rows from the top down
        if data.startswith(b"\xff\xd8"):
            return _jpeg_size(data)
        if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            return _webp_size(data)
        if data[:4] in (b"II*\x00", b"MM\x00*"):
            return _tiff_size(data)
    except (struct.error, IndexError):
        return None
    return None


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
    kind = data[12:16]
    if kind == b"VP8X":
        width, height = (int.from_bytes(data[at : at + 3], "little") + 1 for at in (24, 27))
        return height, width
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return (bits >> 14 & 0x3FFF) + 1, (bits & 0x3FFF) + 1
    if kind == b"VP8 ":
        width, height = struct.unpack("<HH", data[26:30])
        return height & 0x3FFF, width & 0x3FFF
    return None


def _tiff_size(data: bytes) -> tuple[int, int] | None:
    order = "<" if data[:2] == b"II" else ">"
    at = struct.unpack(order + "I", data[4:8])[0]
    sizes = {}
    for entry in range(struct.unpack(order + "H", data[at : at + 2])[0]):
        begin = at + 2 + 12 * entry
        tag, kind = struct.unpack(order + "HH", data[begin : begin + 4])
        if tag in (256, 257):  # width, height, as a short or a long
            form, length = ("H", 2) if kind == 3 else ("I", 4)
            sizes[tag] = struct.unpack(order + form, data[begin + 8 : begin + 8 + length])[0]
    return (sizes[257], sizes[256]) if len(sizes) == 2 else None

"""Masks of COCO: run lengths, plain or compressed, and polygons, as runs of pixels in an image.

Run lengths are decoded here and not by pycocotools, whose decoder trusts the string that it is given: a
damaged one makes it read and write outside its memory. Polygons are checked and then drawn by
pycocotools, so that every mask is the one that other tools of COCO see, pixel by pixel.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from sisod.common.exceptions import require

_LONGEST = 7  # characters of a number, of five bits each: more than the pixels of any image
_OUTSIDE = 1.0  # pixels by which a polygon may leave its image; pycocotools cuts it off there


class _RunLengths(msgspec.Struct):
    size: tuple[int, int]
    counts: str | list[Annotated[int, msgspec.Meta(ge=0, lt=1 << 40)]]


_Polygon = Annotated[list[float], msgspec.Meta(min_length=6)]
_SEGMENTATION: msgspec.json.Decoder[Any] = msgspec.json.Decoder(
    Annotated[list[_Polygon], msgspec.Meta(min_length=1)] | _RunLengths
)


@dataclass(frozen=True, eq=False)
class ColumnRuns:
    """Pixels of a mask as runs down its columns, one column after the other.

    `counts` are the lengths of the runs: pixels outside the mask, then inside, and so on.
    """

    counts: NDArray[np.int64]

    @property
    def area(self) -> int:
        """Pixels of the mask."""
        return int(self.counts[1::2].sum())

    def window(self, columns: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return the part of an image from the first pixel of the mask to its last, and where it is.

        Args:
            columns: pixels of the image, one column after the other.
        """
        lengths = self.counts[1 : len(self.counts) // 2 * 2]  # from the first run inside to the last
        begin = int(self.counts[0])
        inside = np.zeros(len(lengths), dtype=np.bool_)
        inside[::2] = True
        return columns[begin : begin + int(lengths.sum())], np.repeat(inside, lengths)


def read_segmentation(segmentation: bytes | msgspec.Raw, height: int, width: int) -> ColumnRuns:
    """Return the mask of an annotation in an image of this size.

    Args:
        segmentation: JSON of a list of polygons, or of run lengths with size and counts.
        height: of the image.
        width: of the image.

    Raises:
        ValueError: it is not valid.
    """
    content = _SEGMENTATION.decode(segmentation)  # its errors are ValueErrors
    if isinstance(content, list):
        counts = _draw_polygons(content, height, width)
    elif content.size != (height, width):
        raise ValueError(f"its run lengths are for an image of size {list(content.size)}")
    elif isinstance(content.counts, str):
        counts = decode_counts(content.counts.encode())
    else:
        counts = np.array(content.counts, dtype=np.int64)
    if not len(counts) or counts.min() < 0 or int(counts.sum()) != height * width:
        raise ValueError(
            f"its run lengths cover {int(counts.sum())} pixels, or one is negative; expected "
            f"{height * width}"
        )
    return ColumnRuns(counts)


def decode_counts(text: bytes) -> NDArray[np.int64]:
    """Return the run lengths of COCO's compressed string.

    Every character holds five bits of a number and a sixth bit if more follow; every number from the
    fourth on is the difference to the last but one.

    Raises:
        ValueError: the string is damaged.

    Example:
        >>> decode_counts(b"52204").tolist()
        [5, 2, 2, 2, 6]
    """
    codes = np.frombuffer(text, dtype=np.uint8).astype(np.int64) - 48
    if not len(codes) or codes.min() < 0 or codes.max() > 63 or codes[-1] & 32:
        raise ValueError("the string of its counts is damaged")
    last = np.flatnonzero(codes < 32)
    first = np.append(0, last[:-1] + 1)
    lengths = last - first + 1
    if lengths.max() > _LONGEST:
        raise ValueError("the string of its counts is damaged: it holds a number that is too long")
    places = np.arange(len(codes)) - np.repeat(first, lengths)
    numbers = np.add.reduceat((codes & 31) << (5 * places), first)
    numbers -= np.where(codes[last] & 16, 1 << (5 * lengths), 0)  # the last bit is the sign
    for start in (1, 2):
        np.cumsum(numbers[start::2], out=numbers[start::2])
    return numbers


def _draw_polygons(polygons: Sequence[Sequence[float]], height: int, width: int) -> NDArray[np.int64]:
    for polygon in polygons:
        for values, most in ((polygon[0::2], width), (polygon[1::2], height)):
            if len(polygon) % 2 or min(values) < -_OUTSIDE or max(values) > most + _OUTSIDE:
                raise ValueError(
                    f"one of its polygons has {len(polygon)} numbers from {min(polygon):g} to "
                    f"{max(polygon):g}; expected x and y of points inside an image of {width} x {height}"
                )
    require("a COCO file with polygons", "pycocotools")
    from pycocotools import mask

    runs = mask.frPyObjects(polygons, height, width)
    return decode_counts(mask.merge(runs)["counts"] if len(runs) > 1 else runs[0]["counts"])

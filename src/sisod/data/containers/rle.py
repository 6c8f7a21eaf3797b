"""Masks of COCO: run lengths, plain or compressed, and polygons, as runs of pixels in an image.

Run lengths are decoded here and not by pycocotools, whose decoder trusts the text that it is given: a
damaged one makes it read and write outside its memory. Polygons are checked and then drawn by
pycocotools, so that every mask is the one that other tools of COCO see, pixel by pixel.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sisod.common.arguments import shown
from sisod.common.errors import require

_LONGEST = 7  # characters of a number, of five bits each: more than the pixels of any image
_HUGE = 1e9  # coordinates that no image has
_OUTSIDE = 1.0  # pixels by which a polygon may leave its image; pycocotools cuts it off there


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

    def paint(self, columns: NDArray[Any], value: float) -> None:
        """Give the pixels of the mask a value; `columns` holds the columns one after the other."""
        window, inside = self._window(columns)
        np.copyto(window, value, where=inside)

    def raise_to(self, columns: NDArray[Any], value: float) -> None:
        """Give the pixels of the mask at least a value."""
        window, inside = self._window(columns)
        np.maximum(window, value, out=window, where=inside)

    def _window(self, columns: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return the part of the columns from the first pixel of the mask to its last."""
        lengths = self.counts[1 : len(self.counts) // 2 * 2]  # from the first run inside to the last
        begin = int(self.counts[0])
        inside = np.zeros(len(lengths), dtype=np.bool_)
        inside[::2] = True
        return columns[begin : begin + int(lengths.sum())], np.repeat(inside, lengths)


def read_segmentation(segmentation: object, height: int, width: int) -> ColumnRuns:
    """Return the mask of an annotation in an image of this size; raise ValueError if it is not valid."""
    if isinstance(segmentation, list):
        return ColumnRuns(_checked(_draw_polygons(segmentation, height, width), height, width))
    if not isinstance(segmentation, dict) or not {"size", "counts"} <= segmentation.keys():
        raise ValueError(
            f"its segmentation is {shown(segmentation)}; expected a list of polygons, or run lengths "
            "with size and counts"
        )
    if segmentation["size"] != [height, width]:
        raise ValueError(
            f"the size of its run lengths is {shown(segmentation['size'])}; expected "
            f"[{height}, {width}], height and width of its image"
        )
    counts = segmentation["counts"]
    if isinstance(counts, str):
        numbers = decode_counts(counts.encode("utf-8", "replace"))
    elif isinstance(counts, list) and all(
        type(count) is int and 0 <= count < 1 << 40 for count in counts
    ):
        numbers = np.array(counts, dtype=np.int64)
    else:
        raise ValueError(f"its counts are {shown(counts)}; expected text, or a list of whole numbers")
    return ColumnRuns(_checked(numbers, height, width))


def decode_counts(text: bytes) -> NDArray[np.int64]:
    """Return the run lengths of COCO's compressed text; raise ValueError if it is damaged.

    Every character holds five bits of a number and a sixth bit if more follow; every number from the
    fourth on is the difference to the last but one.

    Example:
        >>> decode_counts(b"52204").tolist()
        [5, 2, 2, 2, 6]
    """
    codes = np.frombuffer(text, dtype=np.uint8).astype(np.int64) - 48
    if not len(codes) or codes.min() < 0 or codes.max() > 63 or codes[-1] & 32:
        raise ValueError(
            "the text of its counts is damaged; expected run lengths as COCO compresses them"
        )
    last = np.flatnonzero(codes < 32)
    first = np.append(0, last[:-1] + 1)
    lengths = last - first + 1
    if lengths.max() > _LONGEST:
        raise ValueError("the text of its counts is damaged: it holds a number that is too long")
    places = np.arange(len(codes)) - np.repeat(first, lengths)
    numbers = np.add.reduceat((codes & 31) << (5 * places), first)
    numbers -= np.where(codes[last] & 16, 1 << (5 * lengths), 0)  # the last bit is the sign
    for start in (1, 2):
        np.cumsum(numbers[start::2], out=numbers[start::2])
    return numbers


def _checked(counts: NDArray[np.int64], height: int, width: int) -> NDArray[np.int64]:
    if not len(counts) or counts.min() < 0 or int(counts.sum()) != height * width:
        total = int(counts.sum()) if len(counts) else 0
        raise ValueError(
            f"its run lengths cover {total} pixels, or one is negative; expected the "
            f"{height * width} of an image of {width} x {height}"
        )
    return counts


def _draw_polygons(polygons: list[Any], height: int, width: int) -> NDArray[np.int64]:
    if not polygons:
        raise ValueError("its list of polygons is empty; expected at least one, or run lengths")
    for polygon in polygons:
        _check_polygon(polygon, height, width)
    require("a COCO file with polygons", "pycocotools")
    from pycocotools import mask

    runs = mask.frPyObjects(polygons, height, width)
    return decode_counts(mask.merge(runs)["counts"] if len(runs) > 1 else runs[0]["counts"])


def _check_polygon(polygon: object, height: int, width: int) -> None:
    if not isinstance(polygon, list) or len(polygon) < 6 or len(polygon) % 2:
        got = f"{len(polygon)} numbers" if isinstance(polygon, list) else shown(polygon)
        raise ValueError(f"one of its polygons is {got}; expected x, y of three points or more")
    # written so that NaN, infinity and numbers too large for a float fail
    if not all(type(value) in (int, float) and abs(value) < _HUGE for value in polygon):
        raise ValueError("one of its polygons has a coordinate that is not a finite number")
    for axis, values, most in (("x", polygon[0::2], width), ("y", polygon[1::2], height)):
        low, high = min(values), max(values)
        if low < -_OUTSIDE or high > most + _OUTSIDE:
            raise ValueError(
                f"{axis} of one of its polygons goes from {low:g} to {high:g}, outside its image of "
                f"{width} x {height}; cut it off at the border, or correct the image's size"
            )

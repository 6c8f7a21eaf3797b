"""Voronoi regions: every pixel belongs to the nearest component, exactly; ties go to the lower index.

There are two exact ways, and the faster one is taken. A few components: a distance transform each,
in the window that the component can be nearest in. Many: the key of a pixel is its squared distance
times a base, plus the index, and the least key is found for all components at once.
"""

import math
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.scoring.arrays import Mask

Index = NDArray[np.int32]
# float32 preserves integer squared distances up to 2^21: three roundings of 2^-24 stay below one half
_FLOAT32_REACH = math.isqrt(1 << 21)
_MANY = 25  # components from which keys are faster: few pixels are far from all of them,
_SMALL = 1 << 18  # if the image has no more pixels than this
_SHIFTS = 8  # between two looks at which pixels are finished


def nearest_component(index: Index, boxes: NDArray[np.int64]) -> Index:
    """Return the index of the nearest component for every pixel; ties go to the lower index.

    Args:
        index: component of every pixel, -1 for none.
        boxes: bounding box of each component, half-open y0, x0, y1, x1; at least one.

    Example:
        The pixel in the middle is equally near to both components:

        >>> index = np.array([[0, -1, -1, -1, 1]], dtype=np.int32)
        >>> nearest_component(index, np.array([[0, 0, 1, 1], [0, 4, 1, 5]]))
        array([[0, 0, 0, 1, 1]], dtype=int32)
    """
    if len(boxes) == 1:
        return np.zeros_like(index)
    if len(boxes) >= _MANY and index.size <= _SMALL:
        return _nearest_by_keys(index, len(boxes))
    distance = _distance(index < 0)
    if math.ceil(float(distance.max())) >= _FLOAT32_REACH:
        return _nearest_by_keys(index, len(boxes))
    return _nearest_by_windows(index, boxes, _squared(distance))


def _nearest_by_windows(index: Index, boxes: NDArray[np.int64], least: NDArray[np.int32]) -> Index:
    """Compare the squared distance to each component with `least`, that to the nearest one."""
    nearest = np.full_like(index, len(boxes) - 1)  # the last component has what no other one takes
    for number in range(len(boxes) - 2, -1, -1):  # so that a lower index replaces a higher one
        window = _window(least, boxes[number])
        is_nearest = _squared(_distance(index[window] != number)) == least[window]
        np.copyto(nearest[window], np.int32(number), where=is_nearest)
    return nearest


def _window(least: NDArray[np.int32], box: NDArray[np.int64]) -> tuple[slice, slice]:
    """Return a window that holds every pixel whose nearest component has this box.

    Such a pixel is no further from the box than from its nearest component.
    """
    y0, x0, y1, x1 = box.tolist()
    window = slice(0, least.shape[0]), slice(0, least.shape[1])
    for _ in range(3):  # distances are smaller in a smaller window
        reach = math.isqrt(int(least[window].max()))
        window = slice(max(y0 - reach, 0), y1 + reach), slice(max(x0 - reach, 0), x1 + reach)
    height, width = least[window].shape
    rows, columns = _gaps(window[0].start, height, y0, y1), _gaps(window[1].start, width, x0, x1)
    is_near = rows[:, None] + columns <= least[window]
    near_rows, near_columns = (np.asarray(is_near.any(axis=axis)) for axis in (1, 0))
    return _extent(window[0].start, near_rows), _extent(window[1].start, near_columns)


def _gaps(start: int, count: int, first: int, stop: int) -> NDArray[np.int32]:
    """Return the squared distances of `count` lines from the lines of a box."""
    line = np.arange(start, start + count, dtype=np.int32)
    return np.asarray(np.maximum(np.maximum(first - line, line - (stop - 1)), 0) ** 2)


def _extent(start: int, chosen: Mask) -> slice:
    """Return the range from the first to the last chosen line; lines are counted from `start`."""
    lines = np.flatnonzero(chosen)
    return slice(start + int(lines[0]), start + int(lines[-1]) + 1)


def _distance(outside: Mask) -> NDArray[np.float32]:
    return np.asarray(cv2.distanceTransform(outside.view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE))


def _squared(distance: NDArray[np.float32]) -> NDArray[np.int32]:
    return np.asarray(cv2.multiply(distance, distance, dtype=cv2.CV_32S))


def _nearest_by_keys(index: Index, count: int) -> Index:
    """Find the least key of every pixel: the nearest component and, among ties, the lowest index.

    First along columns, where only the next component pixel above and below can be nearest, then along
    rows, one shift at a time, as long as a pixel can still find a lower key.
    """
    height, width = index.shape
    bits = count.bit_length()  # of the index
    far = (height**2 + width**2) << bits  # more than any key
    dtype = np.dtype("int32" if 2 * far < 1 << 31 else "int64")
    above, below = _key_above(index, bits, far, dtype), _key_above(index[::-1], bits, far, dtype)[::-1]
    # transposed, so that what is shifted is in one piece of memory
    padded = np.full((3 * width, height), far, dtype=dtype)
    key = np.minimum(above, below, out=above).T.copy()
    padded[width : 2 * width] = key
    candidate = np.empty_like(key)
    columns = slice(0, width)
    for shift in range(1, width):
        step = (shift * shift) << bits
        if shift % _SHIFTS == 1:
            is_open = key[columns].max(axis=1) >= step
            if not is_open.any():
                break
            columns = _extent(columns.start, is_open)
        start, stop = width + columns.start, width + columns.stop
        new, old = candidate[columns], key[columns]
        np.minimum(padded[start - shift : stop - shift], padded[start + shift : stop + shift], out=new)
        np.add(new, step, out=new)
        np.minimum(old, new, out=old)
    key &= (1 << bits) - 1
    return np.asarray(key.T.astype(np.int32, order="C"))


def _key_above(index: Index, bits: int, far: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the key of the last component pixel at or above every pixel, `far` if there is none."""
    rows = np.arange(1, len(index) + 1, dtype=dtype)[:, None]
    key = index | (rows << bits)
    key[index < 0] = 0
    for row, previous in zip(key[1:], key[:-1], strict=True):
        np.maximum(row, previous, out=row)  # the last one above is the largest
    is_none = key == 0
    gap = rows - (key >> bits)
    gap *= gap
    gap <<= bits
    key &= (1 << bits) - 1
    key |= gap
    key[is_none] = far
    return key

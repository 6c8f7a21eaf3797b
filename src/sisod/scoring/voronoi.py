"""Voronoi regions: every pixel belongs to the nearest component, exactly; ties go to the lower index."""

import math

import cv2
import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int32]
# float32 preserves integer squared distances up to 2^21: three roundings of 2^-24 stay below one half
_FLOAT32_REACH = math.isqrt(1 << 21)


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
    reach = math.ceil(float(_distance(index < 0).max()))
    if reach >= _FLOAT32_REACH:
        return _nearest_in_integers(index, len(boxes))
    nearest = np.zeros_like(index)
    least = np.full(index.shape, np.iinfo(np.int32).max, dtype=np.int32)
    for number, (y0, x0, y1, x1) in enumerate(boxes.tolist()):
        # no pixel is further than `reach` from its nearest component: outside this window it is another
        window = slice(max(y0 - reach, 0), y1 + reach), slice(max(x0 - reach, 0), x1 + reach)
        distance = _distance(index[window] != number)
        squared = np.asarray(cv2.multiply(distance, distance, dtype=cv2.CV_32S))
        closer = squared < least[window]
        least[window][closer] = squared[closer]
        nearest[window][closer] = number
    return nearest


def _distance(outside: NDArray[np.bool_]) -> NDArray[np.float32]:
    return np.asarray(cv2.distanceTransform(outside.view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE))


def _nearest_in_integers(index: Index, count: int) -> Index:
    """Do the same for distances beyond the precision of float32; slower.

    The key of a pixel is squared distance times a base, plus index, so the least key is the nearest
    component and, among ties, the lowest index. First along columns, where only the next component
    pixel above and below can be nearest, then along rows, one shift at a time.
    """
    base = count + 1
    height, width = index.shape
    far = np.int64((height + width) ** 2) * base
    column_key = np.minimum(_key_above(index, base, far), _key_above(index[::-1], base, far)[::-1])
    key = column_key.copy()
    shift = 1
    while shift < width and shift * shift * base <= key.max():
        step = shift * shift * base
        np.minimum(key[:, shift:], column_key[:, :-shift] + step, out=key[:, shift:])
        np.minimum(key[:, :-shift], column_key[:, shift:] + step, out=key[:, :-shift])
        shift += 1
    return (key % base).astype(np.int32)


def _key_above(index: Index, base: int, far: np.int64) -> NDArray[np.int64]:
    """Return the key of the last component pixel at or above every pixel, `far` if there is none."""
    rows = np.arange(len(index), dtype=np.int64)[:, None]
    last = np.maximum.accumulate(np.where(index >= 0, rows, -1), axis=0)
    component = np.take_along_axis(index, np.maximum(last, 0), axis=0)
    return np.where(last >= 0, (rows - last) ** 2 * base + component, far)

"""Thinning of a mask to lines of one pixel: Zhang and Suen (1984), as scikit-image does it.

Only pixels whose neighbourhood changed are looked at again, so the time grows with the area of the mask
and not with area times width.
"""

import functools

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.scoring.arrays import Mask

Places = NDArray[np.intp]  # flat indices

# the bit of each neighbour, clockwise from the upper left one
_BITS = np.array([[1, 2, 4], [128, 0, 8], [64, 32, 16]], dtype=np.uint8)
# neighbourhoods where scikit-image differs from the paper -> what removes the pixel
_DIFFERENT = {
    3: 1, 6: 1, 10: 3, 11: 1, 12: 1, 14: 1, 24: 2, 26: 2, 40: 3, 48: 0, 56: 2, 96: 2, 104: 2, 108: 2,
    129: 0, 130: 3, 131: 1, 134: 1, 160: 3, 161: 1, 176: 2, 192: 2, 194: 1, 198: 1, 224: 2,
}  # fmt: skip


@functools.cache
def _removing_passes() -> NDArray[np.uint8]:
    """Return, for each neighbourhood, what removes the pixel: 1 the first pass, 2 the second, 3 both."""
    table = np.zeros(256, dtype=np.uint8)
    for code in range(256):
        ring = [code >> bit & 1 for bit in range(8)]
        n_starts = sum(ring[bit - 1] < ring[bit] for bit in range(8))
        if 2 <= sum(ring) <= 6 and n_starts == 1:  # on the edge of an object, neither end nor bridge
            up, right, down, left = ring[1::2]
            first = not (right and down and (up or left))
            second = not (up and left and (right or down))
            table[code] = first + 2 * second
        table[code] = _DIFFERENT.get(code, table[code])
    return table


def skeleton(mask: Mask, *, within: Mask | None = None) -> Mask:
    """Return the lines in the middle of the objects of a mask, or only their pixels within another mask.

    The second is quicker: the work ends as soon as no pixel of the other mask is left.

    Example:
        >>> bar = np.zeros((4, 8), dtype=bool)
        >>> bar[:3, :7] = True
        >>> skeleton(bar).astype(int)
        array([[0, 0, 0, 0, 0, 1, 0, 0],
               [1, 1, 1, 1, 1, 0, 0, 0],
               [0, 0, 0, 0, 0, 0, 0, 0],
               [0, 0, 0, 0, 0, 0, 0, 0]])
    """
    within = mask if within is None else mask & within
    x, y, width, height = cv2.boundingRect(np.ascontiguousarray(mask).view(np.uint8))
    window = slice(y, y + height), slice(x, x + width)
    padded = np.zeros((height + 2, width + 2), dtype=np.uint8)
    wanted = padded.copy()
    padded[1:-1, 1:-1] = mask[window]
    wanted[1:-1, 1:-1] = within[window]
    left = _thin(padded, np.flatnonzero(wanted))
    rows, columns = np.divmod(left, width + 2)
    lines = np.zeros_like(mask)
    lines[rows + y - 1, columns + x - 1] = True
    return lines


def _thin(padded: NDArray[np.uint8], wanted: Places) -> Places:
    """Return those of the wanted pixels, by their flat index, that are left when only lines are left.

    Args:
        padded: the mask, with a row of zeros around it.
        wanted: salient pixels.
    """
    passes = _removing_passes()
    wide = padded.shape[1]
    # a neighbour in the direction of a step loses the bit of the opposite direction
    rows, columns = np.nonzero(_BITS)
    steps = ((rows - 1) * wide + columns - 1)[:, None]
    opposite = _BITS[::-1, ::-1][rows, columns]
    filtered = cv2.filter2D(padded, -1, _BITS, borderType=cv2.BORDER_CONSTANT)
    codes, salient = np.asarray(filtered, dtype=np.uint8).ravel(), padded.flatten()
    candidates = np.flatnonzero((passes.take(codes) > 0) & (salient > 0))
    order = np.empty(codes.size, dtype=np.int32)
    current = 1
    # a candidate is removed by this pass or by the next one, unless its neighbourhood changes
    while len(candidates) and len(wanted):
        is_removed = passes.take(codes.take(candidates)) & current > 0
        removed = candidates[is_removed]
        salient[removed] = 0
        changed = removed + steps
        for pixels, bit in zip(changed, opposite, strict=True):
            codes[pixels] -= bit
        candidates = np.concatenate([candidates[~is_removed], changed.ravel()])
        removable = (passes.take(codes.take(candidates)) > 0) & (salient.take(candidates) > 0)
        candidates = candidates[removable]
        index = np.arange(len(candidates), dtype=np.int32)
        order[candidates] = index  # of a pixel that is listed twice, one entry stays
        candidates = candidates[order.take(candidates) == index]
        wanted = wanted[salient.take(wanted) > 0]
        current = 3 - current
    return wanted

"""The nearest object of every pixel, and so the Voronoi cells of the objects, in images and volumes."""

import numpy as np
from numpy.typing import NDArray

from sisod.losses.components import Objects
from sisod.scoring.counting.components import nearest_component

Index = NDArray[np.int32]


def nearest_objects(objects: Objects) -> Index:
    """Return for every pixel of a batch the index of the nearest object of its plane; -1 without one.

    Distances are Euclidean, in pixels or voxels, and exact; ties go to the lower index. Images are
    done by the compiled kernel where it was built.
    """
    index = objects.index_map()
    count = np.bincount(objects.plane, minlength=len(index))
    stop = np.cumsum(count)
    for plane in np.flatnonzero(count):
        if count[plane] == 1:
            index[plane] = 0
        elif index.ndim == 3:
            of_plane = slice(stop[plane] - count[plane], stop[plane])
            boxes = np.concatenate([objects.low[of_plane], objects.high[of_plane]], axis=1)
            index[plane] = nearest_component(index[plane], boxes)
        else:
            index[plane] = nearest_in_volume(index[plane], int(count[plane]))
    return index


def nearest_in_volume(index: Index, count: int) -> Index:
    """Return the index of the nearest object for every voxel; ties go to the lower index.

    A key is the squared distance followed by the index, so that the least key is the answer. It is
    found along the last axis first and then, one shift at a time, along each of the others, as long as
    a voxel can still find a lower key.

    Example:
        >>> index = np.full((1, 2, 5), -1, dtype=np.int32)
        >>> index[0, 0, 0], index[0, 1, 4] = 0, 1
        >>> nearest_in_volume(index, 2).tolist()
        [[[0, 0, 0, 1, 1], [0, 0, 1, 1, 1]]]
    """
    bits = count.bit_length()
    far = (sum(side**2 for side in index.shape) + 1) << bits  # more than any key
    key = np.minimum(_key_before(index, bits, far), _key_before(index[..., ::-1], bits, far)[..., ::-1])
    for axis in reversed(range(index.ndim - 1)):
        before = np.ascontiguousarray(np.moveaxis(key, axis, 0))
        after = before.copy()
        for shift in range(1, len(before)):
            step = (shift * shift) << bits
            if after.max() < step:
                break
            np.minimum(after[shift:], before[:-shift] + step, out=after[shift:])
            np.minimum(after[:-shift], before[shift:] + step, out=after[:-shift])
        key = np.moveaxis(after, 0, axis)
    return np.ascontiguousarray(key & ((1 << bits) - 1)).astype(np.int32)


def _key_before(index: Index, bits: int, far: int) -> NDArray[np.int64]:
    """Return the key of the last object at or before every voxel of its line, `far` without one."""
    position = np.arange(index.shape[-1])
    last = np.maximum.accumulate(np.where(index >= 0, position, -1), axis=-1)
    key = ((position - last) ** 2 << bits) | np.take_along_axis(index, np.maximum(last, 0), axis=-1)
    return np.where(last < 0, far, key)

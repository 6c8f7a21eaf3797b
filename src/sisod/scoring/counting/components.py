"""Connected components of a mask or the instances of a label map, and the region nearest to each."""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.scoring import kernel
from sisod.scoring.arrays import Integers, Mask

Boxes = NDArray[np.int64]
Index = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Components:
    """The components of a mask or label map, before small ones are left out.

    Attributes:
        labels: component number of every pixel, from 1; 0 for pixels of none.
        boxes: bounding box of each component, half-open y0, x0, y1, x1.
        areas: pixels of each component.
        first: position of each component's first pixel, in raster order.
    """

    labels: Index
    boxes: Boxes
    areas: Integers
    first: Integers

    def __len__(self) -> int:
        return len(self.areas)

    def index_map(self, chosen: NDArray[np.intp], places: NDArray[np.intp] | None = None) -> Index:
        """Return which of the chosen components holds each pixel, -1 for none.

        With `places`, positions in raster order, only of those pixels.
        """
        number = np.full(len(self) + 1, -1, dtype=np.int32)
        number[chosen + 1] = np.arange(len(chosen))
        return number.take(self.labels if places is None else self.labels.take(places))

    def coordinate_sums(self) -> Integers:
        """Return the sum of rows and the sum of columns of each component's pixels."""
        coordinates = np.nonzero(self.labels)
        owner = self.labels[coordinates] - 1
        # integers below 2^53, exact in float64
        sums = [np.bincount(owner, weights=values, minlength=len(self)) for values in coordinates]
        return np.stack(sums, axis=1).astype(np.int64)


NO_COMPONENTS = Components(
    labels=np.zeros((0, 0), dtype=np.int32),
    boxes=np.empty((0, 4), dtype=np.int64),
    areas=np.empty(0, dtype=np.int64),
    first=np.empty(0, dtype=np.int64),
)


def label_mask(mask: Mask, connectivity: int) -> Components:
    """Return the connected components of a mask.

    Example:
        >>> components = label_mask(np.array([[True, False, True], [True, False, False]]), 8)
        >>> components.labels
        array([[1, 0, 2],
               [1, 0, 0]], dtype=int32)
        >>> components.boxes
        array([[0, 0, 2, 1],
               [0, 2, 1, 3]])
    """
    count, labels = cv2.connectedComponents(
        mask.view(np.uint8), connectivity=connectivity, ltype=cv2.CV_32S
    )
    return _measure(np.asarray(labels, dtype=np.int32), count - 1)


def label_instances(labels: NDArray[np.integer]) -> Components:
    """Return the instances of a label map, connected or not; 0 is background.

    Example:
        >>> label_instances(np.array([[7, 0, 7, 3]])).areas  # in the order of the labels
        array([1, 2])
    """
    inside = labels != 0
    values, number = np.unique(labels[inside], return_inverse=True)
    numbered = np.zeros(labels.shape, dtype=np.int32)
    numbered[inside] = number + 1
    return _measure(numbered, len(values))


def _measure(labels: Index, count: int) -> Components:
    """Return the components that are numbered from 1 to `count`."""
    width = labels.shape[1]
    owner, start, end = label_runs(labels)
    # in raster order, and of several values assigned to one index NumPy keeps the last
    first, last = np.empty((2, count), dtype=np.int64)
    last[owner] = start
    first[owner[::-1]] = start[::-1]
    left, right = np.full(count, width), np.zeros(count, dtype=np.int64)
    np.minimum.at(left, owner, start % width)
    np.maximum.at(right, owner, (end - 1) % width)
    boxes = np.stack([first // width, left, last // width + 1, right + 1], axis=1)
    areas = np.bincount(owner, weights=end - start, minlength=count).astype(np.int64)
    return Components(labels, boxes, areas, first)


def label_runs(labels: Index) -> tuple[Integers, Integers, Integers]:
    """Return the runs of pixels of one component along a row: far fewer than pixels.

    Returns:
        Component of each run, from 0; the positions, in raster order, of its first pixel and of the one
        after its last.

    Example:
        >>> label_runs(np.array([[0, 1, 1], [1, 2, 0]], dtype=np.int32))
        (array([0, 0, 1]), array([1, 3, 4]), array([3, 4, 5]))
    """
    flat = labels.ravel()
    ends = np.empty(flat.size, dtype=np.bool_)
    np.not_equal(flat[1:], flat[:-1], out=ends[:-1])
    ends[labels.shape[1] - 1 :: labels.shape[1]] = True
    end = np.flatnonzero(ends) + 1
    start = np.append(0, end[:-1])
    owner = flat[start].astype(np.int64) - 1
    inside = owner >= 0
    return owner[inside], start[inside], end[inside]


def in_order(components: Components, chosen: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the chosen components ordered by top, then left, then first pixel."""
    boxes = components.boxes[chosen]
    order = np.lexsort((components.first[chosen], boxes[:, 1], boxes[:, 0]))
    return np.asarray(chosen[order])


def nearest_component(index: Index, count: int) -> Index:
    """Return the index of the nearest component for every pixel or voxel; ties go to the lower index.

    The compiled kernel does the same for images. Here a key is the squared distance followed by the
    index, so that the least key is the answer. It is found along the last axis first and then, one shift
    at a time, along each of the others, as long as a pixel can still find a lower key.

    Args:
        index: component of every pixel, -1 for none, in two or three dimensions.
        count: number of components, at least one.

    Example:
        The pixel in the middle is equally near to both components:

        >>> nearest_component(np.array([[0, -1, -1, -1, 1]], dtype=np.int32), 2)
        array([[0, 0, 0, 1, 1]], dtype=int32)
    """
    if count == 1:
        return np.zeros_like(index)
    if index.ndim == 2 and kernel.is_usable(index):
        return kernel.fill_nearest(index)
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


def _key_before(index: Index, bits: int, far: int) -> Integers:
    """Return the key of the last component at or before every pixel of its line, `far` without one."""
    position = np.arange(index.shape[-1])
    last = np.maximum.accumulate(np.where(index >= 0, position, -1), axis=-1)
    key = ((position - last) ** 2 << bits) | np.take_along_axis(index, np.maximum(last, 0), axis=-1)
    return np.where(last < 0, far, key)

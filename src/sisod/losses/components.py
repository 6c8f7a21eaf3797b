"""Connected components of all images of a batch in one call: of any classes, in any dimension.

The pixels of a batch, in raster order, are *runs* of one class along the last axis. Runs that touch
are the edges of a graph, and its connected components are the objects. Runs are far fewer than pixels,
and every step is one operation on all of them.
"""

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sisod.scoring.partition import least_area

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Objects:
    """The objects of a batch of class maps (planes, *spatial), ordered by plane, then by first corner.

    Attributes:
        shape: of the class maps.
        plane: index of the class map of each object.
        label: class of each object.
        low: first corner of its bounding box, one column per axis.
        high: corner after the last one.
        start: first pixel of each run of a component, in the flattened batch.
        stop: pixel after its last one.
        owner: index of the object of each run; -1 for a component that is too small to be one.
    """

    shape: tuple[int, ...]
    plane: Integers
    label: Integers
    low: Integers
    high: Integers
    start: Integers
    stop: Integers
    owner: Integers

    def __len__(self) -> int:
        return len(self.plane)

    def index_map(self) -> NDArray[np.int32]:
        """Return the index of the object of every pixel among those of its plane; -1 for none."""
        index = np.arange(len(self)) - np.searchsorted(self.plane, self.plane)
        values = np.full(2 * len(self.start) + 1, -1, dtype=np.int32)  # between the runs: no object
        values[1::2] = np.append(index, -1)[self.owner]  # an owner of -1 takes the last one
        size = int(np.prod(self.shape))
        ends = np.stack([self.start, self.stop], axis=1).ravel()
        return np.repeat(values, np.diff(ends, prepend=0, append=size)).reshape(self.shape)


def find_objects(classes: NDArray[Any], *, connectivity: int, min_area: float) -> Objects:
    """Return the objects of class maps (planes, *spatial) by checked settings; class 0 is no object.

    Args:
        classes: integers or booleans.
        connectivity: 4 for pixels, or voxels, that share a face; 8 for those that share a corner too.
        min_area: smaller components are no objects, but if a plane has no larger one its largest is
            kept; a float is a share of the plane, an int is pixels.

    Example:
        >>> classes = np.array([[[1, 0, 2, 2], [0, 1, 0, 2]]])
        >>> find_objects(classes, connectivity=8, min_area=0).low.tolist()
        [[0, 0], [0, 2]]
        >>> len(find_objects(classes, connectivity=4, min_area=0))
        3
    """
    shape = classes.shape
    start, stop, of_run = _class_runs(classes)
    first, second = _touching(start, stop, shape, diagonal=connectivity == 8)
    is_same = of_run[first] == of_run[second]
    root = _connect(len(start), first[is_same], second[is_same])
    is_root = root == np.arange(len(root))
    owner = (np.cumsum(is_root) - 1)[root]  # components in the order of their first run
    begin, count = np.flatnonzero(is_root), int(is_root.sum())
    area = np.bincount(owner, weights=stop - start, minlength=count).astype(np.int64)
    plane = start[begin] // max(1, int(np.prod(shape[1:])))
    low, high = np.full((2, count, len(shape) - 1), -1)
    *corner, left = np.unravel_index(start, shape)
    for axis, (lower, upper) in enumerate(
        [*((c, c + 1) for c in corner[1:]), (left, left + stop - start)]
    ):
        low[:, axis] = shape[axis + 1]
        np.minimum.at(low[:, axis], owner, lower)
        np.maximum.at(high[:, axis], owner, upper)
    kept = _large_enough(area, plane, shape, least_area(min_area, int(np.prod(shape[1:]))))
    kept = kept[np.lexsort((begin[kept], *low[kept].T[::-1], plane[kept]))]
    number = np.full(count + 1, -1)
    number[kept] = np.arange(len(kept))
    return Objects(
        shape, plane[kept], of_run[begin[kept]], low[kept], high[kept], start, stop, number[owner]
    )


def _class_runs(classes: NDArray[Any]) -> tuple[Integers, Integers, Integers]:
    """Return first pixel, the pixel after the last one and class of every run that is not of class 0."""
    rows = classes.reshape(-1, classes.shape[-1])
    is_first = np.empty(rows.shape, dtype=bool)
    is_first[:, 0] = True
    np.not_equal(rows[:, 1:], rows[:, :-1], out=is_first[:, 1:])
    start = np.flatnonzero(is_first)
    stop = np.append(start[1:], rows.size)
    label = rows.ravel()[start].astype(np.int64)
    chosen = label != 0
    return start[chosen], stop[chosen], label[chosen]


def _touching(
    start: Integers, stop: Integers, shape: tuple[int, ...], *, diagonal: bool
) -> tuple[Integers, Integers]:
    """Return all pairs of runs of neighbouring rows that touch."""
    row, left = np.divmod(start, shape[-1])
    right = left + stop - start
    # one empty column between rows, so that the end of a row does not touch the start of the next
    wide = shape[-1] + 2
    begin, end = row * wide + left, row * wide + right
    position = np.unravel_index(row, shape[:-1])
    pairs = [(np.empty(0, dtype=np.int64),) * 2]
    for offset in product((-1, 0, 1), repeat=len(shape) - 2):
        if not any(offset) or offset > (0,) * len(offset):
            continue  # every pair once
        if not diagonal and sum(map(abs, offset)) > 1:
            continue
        inside = np.ones(len(row), dtype=bool)
        shift = 0
        for axis, step in enumerate(offset):
            moved = position[axis + 1] + step
            inside &= (moved >= 0) & (moved < shape[axis + 1])
            shift = shift * shape[axis + 1] + step
        run = np.flatnonzero(inside)
        reach = int(diagonal)
        lower = np.searchsorted(end, begin[run] + shift * wide - reach, side="right")
        upper = np.searchsorted(begin, end[run] + shift * wide + reach, side="left")
        pairs.append((np.repeat(run, upper - lower), ranges(lower, upper)))
    return np.concatenate([a for a, _ in pairs]), np.concatenate([b for _, b in pairs])


def ranges(start: Integers, stop: Integers) -> Integers:
    """Return the integers of all ranges, one after the other.

    Example:
        >>> ranges(np.array([3, 0]), np.array([5, 2]))
        array([3, 4, 0, 1])
    """
    length = stop - start
    return np.asarray(
        np.arange(int(length.sum())) + np.repeat(start - (np.cumsum(length) - length), length)
    )


def _connect(count: int, first: Integers, second: Integers) -> Integers:
    """Return for each of `count` nodes the least node of its connected component."""
    root = np.arange(count)
    while len(first):
        low, high = np.minimum(root[first], root[second]), np.maximum(root[first], root[second])
        apart = low < high
        first, second, low, high = first[apart], second[apart], low[apart], high[apart]
        np.minimum.at(root, high, low)
        while not np.array_equal(root, further := root[root]):
            root = further
    return root


def _large_enough(area: Integers, plane: Integers, shape: tuple[int, ...], least: int) -> Integers:
    """Return the components of at least this area, and the first largest one of planes without any."""
    is_large = area >= least
    has_large = np.zeros(shape[0], dtype=bool)
    has_large[plane[is_large]] = True
    order = np.lexsort((np.arange(len(area)), -area, plane))
    largest = order[np.flatnonzero(np.diff(plane[order], prepend=-1))]
    is_large[largest[~has_large[plane[largest]]]] = True
    return np.flatnonzero(is_large)

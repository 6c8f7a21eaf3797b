"""Connected components of a mask or the instances of a label map, and the region nearest to each."""

import math
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.scoring import kernel
from sisod.scoring.arrays import Integers, Mask, Window

Boxes = NDArray[np.int64]
Labels = NDArray[Any]  # int32, or uint16 in a small window
_SMALL_WINDOW = 2 * np.iinfo(np.uint16).max  # pixels; every other one at most is a component


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of pixels along the rows of a window, in raster order, from column `left` up to `right`."""

    row: Integers
    left: Integers
    right: Integers
    owner: Integers

    @property
    def lengths(self) -> Integers:
        """Pixels of each run."""
        return self.right - self.left


@dataclass(frozen=True, eq=False)
class Components:
    """The components of a mask or label map, before small ones are left out.

    Attributes:
        labels: component number of every pixel, from 1, inside the window that begins at y, x.
        y: first row of the window.
        x: first column of the window.
        boxes: bounding box of each component in the image.
        areas: pixels of each component.
        first: increases with the position, in raster order, of each component's first pixel.
        runs: the pixels as runs inside the window.
    """

    labels: Labels
    y: int
    x: int
    boxes: Boxes
    areas: Integers
    first: Integers
    runs: Runs

    def __len__(self) -> int:
        return len(self.areas)

    @property
    def window(self) -> Window:
        """The pair of slices that cuts the window out of the image."""
        height, width = self.labels.shape
        return slice(self.y, self.y + height), slice(self.x, self.x + width)

    def spans(self, width: int) -> tuple[Integers, Integers]:
        """Return the first pixel of each run and the one after it, in an image of this width."""
        start = (self.runs.row + self.y) * width + self.x
        return start + self.runs.left, start + self.runs.right

    def index_map(self, chosen: NDArray[np.intp], shape: tuple[int, ...]) -> NDArray[np.int32]:
        """Return for every pixel of the image which of the chosen components holds it, -1 for none."""
        number = np.full(len(self) + 1, -1, dtype=np.int32)
        number[chosen + 1] = np.arange(len(chosen))
        index = np.full(shape, -1, dtype=np.int32)
        index[self.window] = number[self.labels]
        return index

    def coordinate_sums(self) -> Integers:
        """Return the sum of rows and the sum of columns of each component's pixels in the image."""
        row, lengths, owner = self.runs.row, self.runs.lengths, self.runs.owner
        sums = row * lengths, (self.runs.left + self.runs.right - 1) * lengths // 2
        # integers below 2^53, exact in float64
        inside = [np.bincount(owner, weights=values, minlength=len(self)) for values in sums]
        return np.stack(inside, axis=1).astype(np.int64) + self.areas[:, None] * (self.y, self.x)


_NONE = np.empty((0, 4), dtype=np.int64)
NO_COMPONENTS = Components(
    labels=np.zeros((0, 0), dtype=np.int32),
    y=0,
    x=0,
    boxes=_NONE,
    areas=_NONE[:, 0],
    first=_NONE[:, 0],
    runs=Runs(_NONE[:, 0], _NONE[:, 0], _NONE[:, 0], _NONE[:, 0]),
)


def label_mask(mask: Mask, connectivity: int) -> Components:
    """Return the connected components of a mask."""
    pixels = mask.view(np.uint8)
    x, y, width, height = cv2.boundingRect(pixels)
    if width == 0:
        return NO_COMPONENTS
    window = pixels[y : y + height, x : x + width]
    # 16 bits are enough for a small window, and half as much to write and to read
    kind = cv2.CV_16U if window.size <= _SMALL_WINDOW else cv2.CV_32S
    count, output = cv2.connectedComponentsWithAlgorithm(window, connectivity, kind, cv2.CCL_GRANA)
    labels: Labels = np.asarray(output)
    runs = find_runs(window, labels)
    boxes, areas, first = _measure_runs(runs, count - 1)
    return Components(labels, y, x, boxes + np.array([y, x, y, x]), areas, first, runs)


def find_runs(window: NDArray[np.uint8], labels: Labels) -> Runs:
    """Return the runs of pixels along rows; there are far fewer of them than pixels."""
    height, width = window.shape
    wide = np.zeros(height * (width + 1) + 1, dtype=np.uint8)  # an empty column ends every run
    wide[:-1].reshape(height, width + 1)[:, 1:] = window
    edges = np.flatnonzero(wide[1:] != wide[:-1])
    row, left = np.divmod(edges[0::2], width + 1)
    right = edges[1::2] % (width + 1)
    return Runs(row, left, right, labels[row, left].astype(np.int64) - 1)


def _measure_runs(runs: Runs, count: int) -> tuple[Boxes, Integers, Integers]:
    """Return boxes, areas and order of the components: several times faster than OpenCV's statistics."""
    owner = runs.owner
    # runs are in raster order, and of several values assigned to one index NumPy keeps the last
    first, last = np.empty((2, count), dtype=np.int64)
    last[owner] = np.arange(len(owner))
    first[owner[::-1]] = np.arange(len(owner))[::-1]
    boxes = np.zeros((count, 4), dtype=np.int64)
    boxes[:, 0], boxes[:, 1], boxes[:, 2] = runs.row[first], runs.right.max(), runs.row[last] + 1
    np.minimum.at(boxes[:, 1], owner, runs.left)
    np.maximum.at(boxes[:, 3], owner, runs.right)
    areas = np.bincount(owner, weights=runs.lengths, minlength=count).astype(np.int64)
    return boxes, areas, first


def label_instances(labels: NDArray[np.integer]) -> Components:
    """Return the instances of a label map, connected or not; 0 is background."""
    height, width = labels.shape
    flat = labels.ravel()
    starts = flat[1:] != flat[:-1]
    starts[width - 1 :: width] = True  # every row begins a run
    begin = np.append(0, np.flatnonzero(starts) + 1)
    end = np.append(begin[1:], flat.size)
    values, number = np.unique(flat[begin], return_inverse=True)  # of runs, far fewer than pixels
    # number the labels from 1 with 0 for the background, whether or not the map has one
    number = number + int(values[0] != 0)
    numbers = np.repeat(number.astype(np.int32), end - begin).reshape(height, width)
    inside = number > 0
    row, left = np.divmod(begin[inside], width)
    runs = Runs(row, left, left + (end - begin)[inside], number[inside] - 1)
    if not len(row):
        return NO_COMPONENTS
    return Components(numbers, 0, 0, *_measure_runs(runs, int(number.max())), runs)


def in_order(components: Components, chosen: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the chosen components ordered by top, then left, then first pixel."""
    boxes = components.boxes[chosen]
    order = np.lexsort((components.first[chosen], boxes[:, 1], boxes[:, 0]))
    return np.asarray(chosen[order])


def shared_pixels(
    first: Components, second: Components, width: int
) -> tuple[Integers, Integers, Integers]:
    """Return the pairs of a first and a second component that share pixels, and how many.

    Pairs are ordered. `width` is that of the image. No pixel is looked at: runs are far fewer.
    """
    (start, stop), (second_start, second_stop) = first.spans(width), second.spans(width)
    # runs are in order and do not overlap, so the second ones that meet a first one are consecutive
    begin = np.searchsorted(second_stop, start, side="right")
    n_met = np.searchsorted(second_start, stop) - begin
    run = np.repeat(np.arange(len(start)), n_met)
    met = np.arange(len(run)) + np.repeat(begin - (np.cumsum(n_met) - n_met), n_met)
    lengths = np.minimum(stop[run], second_stop[met]) - np.maximum(start[run], second_start[met])
    cells = first.runs.owner[run] * len(second) + second.runs.owner[met]
    pairs, index = np.unique(cells, return_inverse=True)
    shared = np.bincount(index, weights=lengths, minlength=len(pairs)).astype(np.int64)
    return *np.divmod(pairs, max(len(second), 1)), shared


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
    if kernel.is_usable(index):
        return kernel.fill_nearest(index)
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

"""Connected components of a mask, or the instances of a label map: numbers, boxes, areas, order."""

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

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

"""Human correction effort: the number of clicks that make a binary map equal to the ground truth.

As PySODMetrics computes it. False and missed regions are first relaxed: what is
nearer than `_RELAX` pixels to the outline of the correct region needs no correction, unless it holds a
line of the ground truth's skeleton.
"""

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.scoring.arrays import Mask, Values
from sisod.scoring.families.boundaries import Bytes, common_box
from sisod.scoring.families.pixels import Pixels
from sisod.scoring.families.skeleton import skeleton
from sisod.scoring.partition import Frame

_RELAX = 5  # pixels
_EPSILON = 2.0  # largest distance in pixels of a polygon from the outline that it corrects
_CROSS = cv2.getStructuringElement(cv2.MORPH_CROSS, (3, 3))


def human_correction_effort(pixels: Pixels, frames: Sequence[Frame]) -> Values:  # noqa: ARG001
    """Human correction effort (Qin et al., ECCV 2022), the clicks that correct the map at p > 0.5."""
    box = common_box(pixels.binary, pixels.gt, margin=_RELAX)
    pred, gt = (np.ascontiguousarray(mask[box]).view(np.uint8) for mask in (pixels.binary, pixels.gt))
    correct, false, missed = pred & gt, pred & (1 - gt), gt & (1 - pred)
    inside = np.asarray(cv2.erode(pred | gt, _CROSS, iterations=_RELAX), dtype=np.uint8)
    false_regions = false & _grown(false & inside, 1 - gt)
    missed_regions = missed & _grown(missed & inside, 1 - pred)
    missed_regions |= skeleton(gt.view(np.bool_), within=missed.view(np.bool_)).view(np.uint8)
    kept = correct | missed_regions
    effort = _count_clicks(false_regions, kept)
    effort += _count_clicks(missed_regions, 1 - (kept | false_regions))
    return np.array([float(effort)])


def _grown(seeds: Bytes, within: Bytes) -> Bytes:
    """Return regions grown by `_RELAX` pixels, not beyond a mask."""
    for _ in range(_RELAX if seeds.any() else 0):
        seeds = np.asarray(cv2.dilate(seeds, _CROSS), dtype=np.uint8) & within
    return seeds


def _count_clicks(regions: Bytes, opposite: Bytes) -> int:
    """Count the corners of the outlines that touch the opposite side, and the regions without one.

    Args:
        regions: what has to be corrected.
        opposite: what a corrected region is to be joined with, or cut off from.
    """
    if not regions.any():
        return 0
    contours, _ = cv2.findContours(regions, cv2.RETR_TREE, cv2.CHAIN_APPROX_NONE)
    points = np.concatenate(contours).reshape(-1, 2).astype(np.int32, copy=False)
    owner = np.repeat(np.arange(len(contours)), [len(contour) for contour in contours])
    columns, rows = points.T
    touching = np.asarray(cv2.dilate(opposite, _CROSS))[rows, columns] > 0
    touching &= _is_first(rows * regions.shape[1] + columns, regions.size)
    n_labels, labels = cv2.connectedComponents(regions, connectivity=8)
    n_touching = len(np.unique(np.asarray(labels)[rows[touching], columns[touching]]))
    corners = 0
    for lines in _lines(points, owner, touching):
        corners += sum(len(cv2.approxPolyDP(line, _EPSILON, closed=False)) for line in lines)
    return corners + n_labels - 1 - n_touching


def _is_first(places: NDArray[np.intp], size: int) -> Mask:
    """Tell for each pixel of the contours whether it was not listed before."""
    index = np.arange(len(places))
    first = np.empty(size, dtype=np.intp)
    first[places[::-1]] = index[::-1]
    return np.asarray(first[places] == index)


def _lines(
    points: NDArray[np.int32], owner: NDArray[np.intp], touching: Mask
) -> list[list[NDArray[np.int32]]]:
    """Return the touching parts of each contour, pixel after pixel; those of one contour together."""
    index = np.flatnonzero(touching)
    cuts = np.flatnonzero((np.diff(index) > 1) | np.diff(owner[index]).astype(bool)) + 1
    parts = np.split(index, cuts) if len(index) else []
    contours: dict[int, list[NDArray[np.int32]]] = {}
    for part in parts:
        contours.setdefault(int(owner[part[0]]), []).append(points[part])
    for lines in contours.values():
        # a contour has no beginning: a line that was cut there is one line
        if len(lines) > 1 and np.abs(lines[0][0] - lines[-1][-1]).max() == 1:
            lines[-1] = np.concatenate([lines[-1], lines[0][::-1]])
            del lines[0]
    return list(contours.values())

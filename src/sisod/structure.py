"""The few metrics that need pixels and not only counts: S-measure, weighted F, multi-scale IoU.

Each takes p in [0, 1], the ground truth and the partition, and returns the image's value followed by one
value per frame (multi-scale IoU, which has no size-invariant form, the image's alone).
"""

import itertools

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.frames import Partition

Values = NDArray[np.float64]
Mask = NDArray[np.bool_]
_EPS = float(np.spacing(1))  # where PySODMetrics adds it, so that both agree


def s_measure(p: Values, gt: Mask, partition: Partition) -> Values:
    """Structure measure (Fan et al., ICCV 2017), object and region similarity in equal parts."""
    windows = [(slice(None), slice(None)), *(frame.window for frame in partition)]
    return np.array([_s_of(p[window], gt[window]) for window in windows])


def _s_of(p: Values, gt: Mask) -> float:
    n_salient = int(np.count_nonzero(gt))
    if n_salient == 0:
        return 1 - float(p.mean())
    if n_salient == gt.size:
        return float(p.mean())
    share = n_salient / gt.size
    inside, outside = p[gt], p[~gt]
    likeness = share * _object(float(inside.mean()), inside)
    likeness += (1 - share) * _object(1 - float(outside.mean()), outside)
    return max(0.0, 0.5 * likeness + 0.5 * _regions(p, gt, n_salient))


def _object(mean: float, values: Values) -> float:
    deviation = float(values.std(ddof=1)) if values.size > 1 else 0.0
    return 2 * mean / (mean * mean + 1 + deviation + _EPS)


def _regions(p: Values, gt: Mask, n_salient: int) -> float:
    """Similarity of the four quadrants around the centroid, weighted by area; an empty one adds 0."""
    height, width = gt.shape
    y = round(float(gt.sum(axis=1) @ np.arange(height)) / n_salient) + 1
    x = round(float(gt.sum(axis=0) @ np.arange(width)) / n_salient) + 1
    total = 0.0
    for rows in (slice(0, y), slice(y, height)):
        for columns in (slice(0, x), slice(x, width)):
            part = gt[rows, columns]
            if part.size:
                total += part.size / gt.size * _similarity(p[rows, columns], part)
    return total


def _similarity(p: Values, gt: Mask) -> float:
    """SSIM without its constants: 1 where both are flat and dark, 0 where only one has structure."""
    p_mean, g_mean = float(p.mean()), float(np.count_nonzero(gt)) / gt.size
    if p.min() == p.max():  # flat: rounding of the mean must not look like structure
        p_mean, p_spread, joint = float(p.flat[0]), 0.0, 0.0
    else:
        centred = p - p_mean
        joint = float(centred[gt].sum()) / (p.size - 1 + _EPS) if g_mean < 1 else 0.0
        p_spread = float(np.square(centred, out=centred).sum()) / (p.size - 1 + _EPS)
    g_spread = gt.size * g_mean * (1 - g_mean) / (gt.size - 1 + _EPS)
    above = 4 * p_mean * g_mean * joint
    below = (p_mean**2 + g_mean**2) * (p_spread + g_spread)
    if above != 0:
        return above / (below + _EPS)
    return 1.0 if below == 0 else 0.0


def weighted_f(p: Values, gt: Mask, partition: Partition) -> Values:
    """Weighted F (Margolin et al., CVPR 2014), beta 1, as PySODMetrics; undefined without an object.

    Errors and weights are those of the whole image; a frame only sums them over its pixels. On a crop
    the zero padding would reward missing a small object.
    """
    if not gt.any():
        return np.full(1 + len(partition), np.nan)
    error = _weighted_error(p, gt)
    windows = [(slice(None), slice(None)), *(frame.window for frame in partition)]
    return np.array([_weighted_f_of(error[window], gt[window]) for window in windows])


def _weighted_f_of(error: Values, gt: Mask) -> float:
    n_salient = int(np.count_nonzero(gt))
    if n_salient == 0:
        return float("nan")
    missed = float(error[gt].sum())
    found = n_salient - missed
    recall = 1 - missed / n_salient
    precision = found / (found + float(error[~gt].sum()) + _EPS)
    return 2 * recall * precision / (recall + precision + _EPS)


def _weighted_error(p: Values, gt: Mask) -> Values:
    error = np.abs(p - gt)
    pixels = gt.view(np.uint8)
    distance = cv2.distanceTransform(1 - pixels, cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
    # float32 roots of integers; the weight is flat long before rounding fails to give them back
    squared = np.minimum(np.rint(np.square(distance, dtype=np.float64)), len(_WEIGHTS) - 1)
    squared = squared.astype(np.int32)
    # errors inside the object are softened by those around them; nothing outside the window counts
    x, y, width, height = cv2.boundingRect(pixels)
    rows = slice(max(y - _REACH, 0), y + height + _REACH)
    window = rows, slice(max(x - _REACH, 0), x + width + _REACH)
    near = _extended(error[window], gt[window], squared[window])
    smooth = cv2.sepFilter2D(near, -1, _GAUSSIAN, _GAUSSIAN, borderType=cv2.BORDER_CONSTANT)
    softened = error[window]
    np.minimum(softened, smooth, out=softened, where=gt[window])
    # errors outside weigh up to twice as much, the further they are from the object
    error *= _WEIGHTS[squared]
    return error


_REACH = 3  # of the 7 x 7 Gaussian of sigma 5
_GAUSSIAN = np.exp(-(np.arange(-_REACH, _REACH + 1) ** 2) / 50.0)
_GAUSSIAN /= _GAUSSIAN.sum()
# weight of an error by its squared distance to the object: 2 - 2^(-d/5), and 1 inside
_WEIGHTS = 2 - 0.5 ** (np.sqrt(np.arange(301**2)) / 5)
# steps of each squared length, in the order in which SciPy's distance transform, and so PySODMetrics,
# breaks ties: left first, then up; the furthest pixel the filter sees is the corner of its square
_STEPS: dict[int, list[tuple[int, int]]] = {}
for _dx, _dy in itertools.product(range(-4, 5), repeat=2):
    if 0 < _dx * _dx + _dy * _dy <= 2 * _REACH**2:
        _STEPS.setdefault(_dx * _dx + _dy * _dy, []).append((_dx, _dy))


def _extended(error: Values, gt: Mask, squared: NDArray[np.int32]) -> Values:
    """Give pixels outside the object, where the filter sees them, the error of the nearest inside."""
    height, width = gt.shape
    margin = 4
    wide = width + 2 * margin
    inside = np.zeros((height + 2 * margin, wide), dtype=np.bool_)
    inside[margin:-margin, margin:-margin] = gt
    inside = inside.ravel()
    rows, columns = np.nonzero((squared > 0) & (squared <= 2 * _REACH**2))
    lengths = squared[rows, columns]
    start = (rows + margin) * wide + columns + margin
    nearest = np.empty_like(start)
    for length, steps in _STEPS.items():
        left = np.flatnonzero(lengths == length)
        for dx, dy in steps:
            there = start[left] + dy * wide + dx
            hit = inside[there]
            nearest[left[hit]] = there[hit]
            left = left[~hit]
    extended = error.copy()
    near_rows, near_columns = np.divmod(nearest, wide)
    extended[rows, columns] = error[near_rows - margin, near_columns - margin]
    return extended


def multiscale_iou(p: Values, gt: Mask, partition: Partition) -> Values:  # noqa: ARG001
    """Multi-scale IoU of edges at p > 0.5 (Ahmadzadeh et al., ICIP 2021), as PySODMetrics."""
    if not gt.any():
        return np.full(1, np.nan)
    found, wanted = _edges(p > 0.5), _edges(gt)
    ratios = []
    for _ in range(10):  # cells of 1, 2, 4 ... 512 pixels
        ratios.append((np.count_nonzero(found & wanted) + 1) / (np.count_nonzero(wanted) + 1))
        found, wanted = _halved(found), _halved(wanted)
    return np.array([np.trapezoid(ratios, dx=1 / 9)])


def _edges(mask: Mask) -> Mask:
    """Pixels with a change across them, or across a neighbour at right angles to the change.

    This is what SciPy's Sobel filter leaves of a boolean array, which PySODMetrics hands it: no
    cancelling of opposite signs. Outside the image is empty.
    """
    wide = np.pad(mask, 1)
    vertical = wide[2:, 1:-1] != wide[:-2, 1:-1]
    horizontal = wide[1:-1, 2:] != wide[1:-1, :-2]
    edges = vertical | horizontal
    edges[:, 1:] |= vertical[:, :-1]
    edges[:, :-1] |= vertical[:, 1:]
    edges[1:] |= horizontal[:-1]
    edges[:-1] |= horizontal[1:]
    return np.asarray(edges)


def _halved(cells: Mask) -> Mask:
    """Join cells two by two, counted from the lower right corner; a cell is set if any part is."""
    height, width = cells.shape
    even = np.pad(cells, ((height % 2, 0), (width % 2, 0)))
    rows = even[0::2] | even[1::2]
    return np.asarray(rows[:, 0::2] | rows[:, 1::2])

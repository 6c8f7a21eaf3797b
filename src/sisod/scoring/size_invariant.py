"""Per-frame values -> one value of an image: the paper's idea, on one page.

A *separable* metric is a mean over pixels; its size-invariant form weighs every frame alike and the
background by alpha, (sum_k m_k + alpha m_back) / (K + alpha)  (Eq. 7, and the SI-MAE that follows it).
A *composite* metric is anything else; its size-invariant form is the mean over frames, without the
background, where it is not defined (Eq. 8).
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sisod.common.arguments import check_flag, check_int
from sisod.scoring.arrays import Mask, Values, as_map, as_mask, check_same_shape, unit_values
from sisod.scoring.partition import (
    Alpha,
    Partition,
    alpha_terms,
    check_alpha,
    check_partition,
    partition,
)

Metric = Callable[[Values, Mask], float]  # takes p in [0, 1] and the ground truth


def separable(sums: Values, partition: Partition) -> Values:
    """Return the size-invariant form of a mean over pixels, from sums over pixels.

    Args:
        sums: rows are the image, its frames, and the union of the frames, as in `Histogram`; any further
            axes are kept.
        partition: the frames of the sums.

    With one frame and the default alpha this is exactly the plain mean: the two terms in brackets are
    equal.

    Example:
        A frame of 4 pixels with 2 wrong, and 1 wrong in the other 12: with one object SI equals plain.

        >>> gt = np.zeros((4, 4), dtype=bool)
        >>> gt[:2, :2] = True
        >>> from sisod import partition
        >>> float(separable(np.array([3.0, 2.0, 2.0]), partition(gt)))
        0.1875
    """
    numerator, denominator = partition.alpha_terms
    size = partition.size
    if len(partition) == 0:
        return np.asarray(sums[0] / size)
    background_area = partition.background_area
    background_weight = numerator / background_area if background_area else 0.0
    # the formula times the denominator of alpha; the background is the image minus the union of frames
    weights = (denominator / partition.frame_areas).reshape((-1,) + (1,) * (sums.ndim - 1))
    # one after the other: NumPy's sum of a single column has another order than that of several
    framed = np.cumsum(weights * sums[1:-1], axis=0)[-1]
    total = background_weight * sums[0] + (framed - background_weight * sums[-1])
    return np.asarray(total / (len(partition) * denominator + numerator))


def composite(values: Values) -> Values:
    """Return the mean over frames (axis 0), leaving out frames where the metric is undefined (NaN).

    Example:
        >>> float(composite(np.array([0.5, np.nan, 1.0])))
        0.75
    """
    defined = ~np.isnan(values)
    n_defined = np.asarray(defined.sum(axis=0))
    total = np.where(defined, values, 0.0).sum(axis=0)
    return np.where(n_defined > 0, total / np.maximum(n_defined, 1), np.nan)


def make_separable(metric: Metric) -> Callable[..., float]:
    """Return the size-invariant form (Eq. 7) of your own metric, a mean over pixels.

    `metric(p, gt)` is called with each frame and, flattened, with the background: p in [0, 1] whatever
    the type of the map, not stretched, and a boolean ground truth. The returned function takes `pred,
    gt` and, to replace the default frames, `partition=`.

    Example:
        >>> def mean_square(p, gt):
        ...     return float(np.mean((p - gt) ** 2))
        >>> gt = np.zeros((4, 4), dtype=bool)
        >>> gt[:2, :2] = True
        >>> make_separable(mean_square)(np.zeros((4, 4)), gt)  # one object: the plain value, 4 / 16
        0.25
    """

    def size_invariant(pred: ArrayLike, gt: ArrayLike, *, partition: Partition | None = None) -> float:
        p, mask, parts = _checked_inputs(pred, gt, partition)
        return separable_form(metric, frame_values(metric, p, mask, parts), p, mask, parts)

    return size_invariant


def make_composite(metric: Metric) -> Callable[..., float]:
    """Return the size-invariant form (Eq. 8) of your own metric: its mean over the frames.

    The metric is called as in `make_separable`. Frames where it is NaN are left out; NaN if it is NaN on
    all, or there are none.

    Example:
        >>> def peak(p, gt):
        ...     return float(p[gt].max())
        >>> gt = np.array([[True, False, True, True]])
        >>> make_composite(peak)(np.array([[0.2, 0.9, 0.4, 0.8]]), gt)
        0.5
        >>> make_composite(peak)(np.array([[51, 255, 102, 204]], dtype=np.uint8), gt)
        0.5
    """

    def size_invariant(pred: ArrayLike, gt: ArrayLike, *, partition: Partition | None = None) -> float:
        return float(composite(frame_values(metric, *_checked_inputs(pred, gt, partition))))

    return size_invariant


def frame_values(metric: Metric, p: Values, gt: Mask, parts: Partition) -> Values:
    """Return a metric of each frame; a Voronoi region is passed flattened."""
    if parts.regions is None:
        values = [metric(p[frame.window], gt[frame.window]) for frame in parts]
    else:
        inside = (parts.regions == index for index in range(len(parts)))
        values = [metric(p[region], gt[region]) for region in inside]
    return np.array(values, dtype=np.float64)


def separable_form(metric: Metric, of_frames: Values, p: Values, gt: Mask, parts: Partition) -> float:
    """Return the size-invariant form (Eq. 7) of a mean over pixels, from its values of the frames."""
    if len(parts) == 0:
        return metric(p, gt)
    total, weight = float(of_frames.sum()), float(len(parts))
    if parts.background.any() and parts.alpha > 0:
        total += parts.alpha * metric(p[parts.background], gt[parts.background])
        weight += parts.alpha
    return total / weight


def _checked_inputs(
    pred: ArrayLike, gt: ArrayLike, given: Partition | None
) -> tuple[Values, Mask, Partition]:
    """Return p, the ground truth and the frames, all of one shape."""
    array, mask = as_map(pred), as_mask(gt)
    parts = partition(mask) if given is None else given
    check_same_shape(array, mask)
    check_partition(parts, mask.shape)
    return unit_values(array, normalize="none"), mask, parts


def weight_map(
    boxes: ArrayLike, shape: Sequence[int], *, alpha: Alpha = "ratio", normalize: bool = True
) -> NDArray[np.float64]:
    """Return pixel weights: the weighted sum of a per-pixel loss is its size-invariant form.

    Every frame adds 1/S_k to each of its pixels, so frames that overlap add up; a pixel in no frame has
    alpha/S_back. For Keras, JAX, or your own loss; `sisod.losses.weight_map` is for PyTorch.

    Args:
        boxes: one row y0, x0, y1, x1 per frame, half-open, as in `Partition.boxes`.
        shape: height and width of the image.
        alpha: as for `sisod.partition`.
        normalize: divide by K + alpha, so that the weights sum to one; False is Eq. 16 as printed.

    Example:
        A frame of 4 pixels and one of 1 pixel on 2 x 4:

        >>> weight_map([[0, 0, 2, 2], [0, 3, 1, 4]], (2, 4), normalize=False)
        array([[0.25, 0.25, 0.2 , 1.  ],
               [0.25, 0.25, 0.2 , 0.2 ]])
        >>> weight_map([[0, 0, 2, 2], [0, 3, 1, 4]], (2, 4)).round(3)  # over K + alpha = 2 + 3/5
        array([[0.096, 0.096, 0.077, 0.385],
               [0.096, 0.096, 0.077, 0.077]])
    """
    check_flag("normalize", normalize)
    check_alpha(alpha)
    if len(shape) != 2:
        raise ValueError(f"shape is {tuple(shape)}; expected height and width")
    height, width = (check_int("every side of shape", side, least=1) for side in shape)
    rows = np.asarray(boxes)
    if rows.size == 0:
        rows = np.empty((0, 4), dtype=np.int64)
    if rows.ndim != 2 or rows.shape[1] != 4 or rows.dtype.kind not in "iu":
        raise ValueError(
            f"boxes has shape {rows.shape} and dtype {rows.dtype}; "
            "expected integer rows (y0, x0, y1, x1)"
        )
    rows = rows.astype(np.int64)
    y0, x0, y1, x1 = rows.T
    if not ((y0 >= 0) & (y0 < y1) & (y1 <= height) & (x0 >= 0) & (x0 < x1) & (x1 <= width)).all():
        raise ValueError(f"boxes must be rows 0 <= y0 < y1 <= {height}, 0 <= x0 < x1 <= {width}")
    areas = (y1 - y0) * (x1 - x0)
    weight = np.zeros((height, width))
    for (top, left, bottom, right), area in zip(rows.tolist(), areas.tolist(), strict=True):
        weight[top:bottom, left:right] += 1 / area
    background = weight == 0
    n_outside = int(np.count_nonzero(background))
    numerator, denominator = alpha_terms(alpha, n_outside, background.size, int(areas.sum()))
    weight[background] = numerator / denominator / max(n_outside, 1)
    return weight / (len(rows) + numerator / denominator) if normalize else weight

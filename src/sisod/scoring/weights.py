"""Boxes -> the weight of every pixel that makes a mean over pixels size-invariant."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sisod.common.arguments import check_flag, check_whole
from sisod.scoring.partition import Alpha, alpha_terms


def weight_map(
    boxes: ArrayLike, shape: Sequence[int], *, alpha: Alpha = "ratio", normalize: bool = True
) -> NDArray[np.float64]:
    """Return the weights whose sum with a per-pixel loss is the size-invariant loss of the image.

    Every frame adds 1/S_k to each of its pixels, so frames that overlap add up; a pixel in no frame has
    alpha/S_back. For Keras, JAX, or a loss of one's own; `sisod.losses.weight_map` is PyTorch's.

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
    if len(shape) != 2:
        raise ValueError(f"shape is {tuple(shape)}; expected height and width")
    height, width = (check_whole("every side of shape", side, least=1) for side in shape)
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
    numerator, denominator = alpha_terms(alpha, background, areas)
    weight[background] = numerator / denominator / max(int(np.count_nonzero(background)), 1)
    return weight / (len(rows) + numerator / denominator) if normalize else weight

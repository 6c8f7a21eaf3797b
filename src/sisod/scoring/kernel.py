"""The compiled kernel: the values of the Python engine, many times faster.

It is built from `src/native` where a C compiler is found. Without it, with `SISOD_NATIVE=0`, and in the
cases that it does not cover, the Python engine computes. That is the reference: the values are the same
to the last bit, those of weighted F to 1e-12.
"""

import contextlib
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sisod.common.exceptions import UsageError
from sisod.scoring.arrays import Integers, Mask, Values

try:
    from sisod.scoring import _native
except ImportError:  # no compiler at installation
    _native = None  # type: ignore[assignment]
if getattr(_native, "VERSION", None) != 3:  # built from other sources; see the end of module.c
    _native = None  # type: ignore[assignment]

Grey = NDArray[np.uint8]
Frames = tuple[Integers, Integers, Integers]  # boxes, areas of their components, areas of the boxes
_MOST_PIXELS = 2**31 - 2**20  # indices in the kernel have 32 bits
_LONGEST_SIDE = 2**20  # products of squared distances have 64 bits
_is_on = _native is not None and os.environ.get("SISOD_NATIVE") != "0"
# rows of the curves, and columns of the values of a frame, in the order of `curves.h`
CURVES = (
    *("f", "precision", "recall", "iou", "dice", "specificity", "fpr", "ber", "kappa", "e"),
    "accuracy",
)
FRAME_VALUES = ("f_mean", "f_max", "iou_binary", "recall_binary", "auc")
# all values of an image, in the order of `values.h`
VALUES = (
    *(
        f"{kind}{curve}_{form}"
        for kind in ("", "si_")
        for form in ("mean", "max", "adaptive", "binary")
        for curve in CURVES
    ),
    *("mae", "si_mae", "mse", "si_mse", "auc", "si_auc", "si_f_max_frame"),
    *("n_predicted", "n_false", "n_found", "bsi_iou_binary", "bsi_dice_binary", "bsi_f_binary"),
    *("object_recall", "object_precision", "object_f1"),
    *("object_recall_small", "object_precision_small", "object_f1_small"),
    *("false_objects", "false_area", "pq", "sq", "rq"),
)
_N_THRESHOLDS = 258  # 256 levels, p > 0.5, and the adaptive one
NO_OBJECTS = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0)


class ImageValues(NamedTuple):
    """What follows from the counts of an image.

    Attributes:
        values: of `VALUES`.
        plain: `CURVES` x thresholds, p > 0.5 and the adaptive threshold.
        si: the same, size-invariant.
        frames: image and frames x `FRAME_VALUES`.
    """

    values: Values
    plain: Values
    si: Values
    frames: Values


def engine() -> str:
    """Return the name of the engine that scores: `"native"` or `"python"`."""
    return "native" if _is_on else "python"


@contextlib.contextmanager
def use_engine(name: str) -> Iterator[None]:
    """Score with this engine inside a `with` block, to compare the two."""
    global _is_on
    if name == "native" and _native is None:
        raise UsageError("the compiled kernel was not built here; install sisod with a C compiler")
    before, _is_on = _is_on, name == "native"
    try:
        yield
    finally:
        _is_on = before


def is_usable(plane: NDArray[Any]) -> bool:
    """Tell whether the kernel is there and can take an image of this size."""
    return _is_on and plane.size < _MOST_PIXELS and max(plane.shape) <= _LONGEST_SIDE


def measure(
    grey: Grey, gt: Mask, *, least: int, connectivity: int, minmax: bool, objects: bool, histograms: bool
) -> tuple[Frames, Values, tuple[int, int], int, int, dict[str, NDArray[Any]] | None]:
    """Count an 8-bit map against its ground truth.

    Args:
        grey: the map.
        gt: the ground truth.
        least: pixels of a component with a frame, and of a predicted object.
        connectivity: of both.
        minmax: whether the map is stretched.
        objects: whether the predicted objects are counted as well.
        histograms: whether their grey values are, too.

    Returns:
        The frames; pixels of the image, its frames and their union x 2 x 256; the least and the largest
        grey value; pixels in no frame; components without one; and of the predicted objects the
        attributes of `PredictedObjects` that are counted here, and `histograms`, each x 256.
    """
    truth, counts, ends, background_area, n_left_out, predicted = _native.measure(
        np.ascontiguousarray(grey), gt, least, connectivity, minmax, objects, histograms
    )
    frames = _boxes_and_areas(truth)
    n, measured = len(frames[1]), None
    if predicted is not None:
        found, integers, iou, grey_counts = predicted
        boxes, areas, _ = _boxes_and_areas(found)
        columns, split = np.frombuffer(integers, np.int64), 4 * len(areas)
        salient, spilled, match, _ = columns[:split].reshape(4, len(areas))
        holder, missed = columns[split:].reshape(2, n)
        measured = {
            "boxes": boxes,
            "areas": areas,
            "salient": salient,
            "match": match,
            "iou": np.frombuffer(iou),
            "spilled_pixels": spilled,
            "holder": holder,
            "missed_pixels": missed,
            "histograms": np.frombuffer(grey_counts).reshape(-1, 256),
        }
    rows = np.frombuffer(counts).reshape(n + 2, 2, 256)
    return frames, rows, ends, background_area, n_left_out, measured


def _boxes_and_areas(data: bytes) -> Frames:
    values = np.frombuffer(data, np.int64)
    n = len(values) // 6
    return values[: 4 * n].reshape(n, 4), values[4 * n : 5 * n], values[5 * n :]


def count(codes: NDArray[Any], gt: Mask, boxes: Integers, n_codes: int) -> Values:
    """Return the number of pixels of the image, of boxes and of their union, per class and code."""
    data = _native.count(np.ascontiguousarray(codes), gt, np.ascontiguousarray(boxes), n_codes)
    return np.frombuffer(data).reshape(len(boxes) + 2, 2, n_codes)


def values(
    arrays: tuple[NDArray[Any], ...], first: int, background: int, alpha_terms: tuple[float, float]
) -> ImageValues:
    """Return values and curves of one image.

    Args:
        arrays: of a histogram counts, cuts, absolute and squared errors; areas of the objects and of
            their frames; areas, salient pixels and IoU of the predicted objects.
        first: the threshold at which size-invariant curves begin.
        background: pixels in no frame.
        alpha_terms: see `Partition`.
    """
    contiguous = tuple(map(np.ascontiguousarray, arrays))
    data = np.frombuffer(_native.values(contiguous, first, background, *alpha_terms))
    n, size = len(VALUES), len(CURVES) * _N_THRESHOLDS
    plain, si = data[n : n + 2 * size].reshape(2, len(CURVES), _N_THRESHOLDS)
    return ImageValues(data[:n], plain, si, data[n + 2 * size :].reshape(-1, len(FRAME_VALUES)))


def count_thresholds(steps: Grey, gt: Mask, n: int, *, connectivity: int, least: int) -> Integers:
    """Return predicted and precise objects above each of `n` thresholds, and both of small ones."""
    data = _native.thresholds(steps, gt, n, connectivity, least)
    return np.frombuffer(data, dtype=np.int64).reshape(4, n)


def fill_nearest(index: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the nearest object of every pixel; `index` is -1 where there is none."""
    nearest = index.copy(order="C")
    _native.nearest(nearest)
    return nearest


def thin(plane: Grey, passes: Grey) -> None:
    """Leave the lines in the middle of objects, in place; see `boundaries.skeleton`."""
    _native.thin(plane, passes)


def count_near(pixels: Grey, others: Grey, squared_tolerance: int) -> int:
    """Return the number of pixels of a mask whose distance to another mask is tolerated."""
    return _native.near(pixels, others, squared_tolerance)


def quadrant_moments(grey: Grey, gt: Mask, boxes: Integers, low: int) -> list[Any]:
    """Return number, sum and sum of squares of the levels: boxes x quadrants x classes x 3."""
    data = _native.moments(np.ascontiguousarray(grey), gt, np.ascontiguousarray(boxes), low)
    nested: list[Any] = np.frombuffer(data, dtype=np.int64).reshape(-1, 4, 2, 3).tolist()
    return nested


def weighted_errors(
    grey: Grey, gt: Mask, boxes: Integers, gaussian: Values, weights: Values, ends: tuple[int, int]
) -> Values:
    """Return the weighted errors of the salient pixels of each box and of its others, in grey levels."""
    grey, boxes = np.ascontiguousarray(grey), np.ascontiguousarray(boxes)
    data = _native.weighted_errors(grey, gt, boxes, gaussian, weights, *ends)
    return np.frombuffer(data).reshape(-1, 2)

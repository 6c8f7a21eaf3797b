"""Input validation: the arrays that are accepted as ground truth and as prediction.

`docs/metrics.md` states which.
"""

import math
import warnings
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

GREY = (16, 239)  # 8-bit values that are neither black nor white, whatever compression did to those
GREY_SIDE = 5  # pixels: an area of grey is at least so high and wide; the edge of an object is not
_ROUNDING = 1e-5  # by which interpolation in float32 may leave [0, 1]
_GREY_BLOCK = np.ones((GREY_SIDE, GREY_SIDE), dtype=np.uint8)

Map = NDArray[Any]  # uint8, uint16 or float, checked by `as_map`
Mask = NDArray[np.bool_]
Values = NDArray[np.float64]
Integers = NDArray[np.int64]
Window = tuple[slice, slice]  # of a frame
Normalize = Literal["minmax", "none"]


def as_mask(gt: ArrayLike, *, level: int = 128) -> Mask:
    """Return the ground truth as a C-contiguous boolean array.

    Boolean arrays are returned unchanged. An 8-bit pixel is salient if it is >= `level`, a 16-bit or
    float pixel at the same share of its range: one half by default.

    Example:
        >>> as_mask(np.array([[0, 127, 128, 255]], dtype=np.uint8))
        array([[False, False,  True,  True]])
    """
    array = _plane(gt, "gt")
    if array.dtype == np.bool_:
        return np.ascontiguousarray(array)
    if array.dtype in (np.uint8, np.uint16):
        if array.max() == 1:
            raise ValueError(
                "gt is an integer array whose maximum is 1: it looks like 0/1; "
                "pass bool or multiply by 255, or score it as a label map (--label-maps, labels=)"
            )
        # an integer threshold: a float would convert the whole array
        threshold = level if array.dtype == np.uint8 else math.ceil((level - 0.5) * 257)
        return np.ascontiguousarray(array >= threshold)
    if array.dtype.kind == "f":
        _check_unit_range(array, "gt")
        return np.ascontiguousarray(array >= (level - 0.5) / 255)
    raise TypeError(
        f"gt has dtype {array.dtype}; expected bool, uint8, uint16 or float in [0, 1]; "
        "convert it first, for example with gt > 0"
    )


def as_map(pred: ArrayLike) -> Map:
    """Return the prediction as a checked C-contiguous array: uint8, uint16, or float in [0, 1].

    Boolean maps become 0 and 255.

    Example:
        >>> as_map([[0.0, 0.25], [0.5, 1.0]]).dtype
        dtype('float64')
    """
    array = _plane(pred, "pred")
    if array.dtype == np.bool_:
        return array.astype(np.uint8) * np.uint8(255)
    if array.dtype in (np.uint8, np.uint16):
        return np.ascontiguousarray(array)
    if array.dtype.kind == "f":
        _check_unit_range(array, "pred")
        # OpenCV cannot resize half and extended precision
        dtype = array.dtype if array.dtype in (np.float32, np.float64) else np.float64
        return np.ascontiguousarray(array, dtype=dtype)
    raise TypeError(
        f"pred has dtype {array.dtype}; expected uint8, uint16, bool or float in [0, 1]; "
        "convert it first, for example with pred.astype(np.uint8)"
    )


def looks_binary(pred: NDArray[Any]) -> bool:
    """Return whether an integer prediction has maximum 1: most likely 0/1 saved without scaling."""
    return pred.dtype.kind == "u" and bool(pred.max() == 1)


def has_grey_area(array: NDArray[Any]) -> bool:
    """Return whether a map or mask is grey in more than the edges of its objects.

    Example:
        >>> soft_edge = np.full((20, 20), 255, dtype=np.uint8)
        >>> soft_edge[:, 8:12] = (50, 100, 150, 200)
        >>> has_grey_area(soft_edge), has_grey_area(np.full((20, 20), 100, dtype=np.uint8))
        (False, True)
    """
    if array.dtype == np.bool_:
        return False
    # every area of this side contains a pixel of the sample, which takes a few microseconds
    sample = array[::GREY_SIDE, ::GREY_SIDE]
    if not _grey_pixels(sample).any():
        return False
    inside = cv2.erode(
        _grey_pixels(array), _GREY_BLOCK, borderType=cv2.BORDER_CONSTANT, borderValue=(0,)
    )
    return cv2.countNonZero(inside) > 0


def _grey_pixels(array: NDArray[Any]) -> NDArray[Any]:
    """Return where a two-dimensional array is neither black nor white."""
    white = {np.dtype(np.uint8): 255, np.dtype(np.uint16): 65535}.get(array.dtype, 1)
    if white == 1:  # OpenCV does not take all types of float
        array = array.astype(np.float64)
    low, high = ((value * white / 255,) for value in GREY)
    return np.asarray(cv2.inRange(np.ascontiguousarray(array), low, high))


def warn_binary(name: str | None) -> None:
    """Warn that an integer prediction has maximum 1; it is scored unchanged."""
    subject = "pred" if name is None else f"pred of {name!r}"
    warnings.warn(
        f"{subject} is an integer map whose maximum is 1: it looks like 0/1 instead of 0/255; "
        "pass bool or multiply by 255 if so",
        UserWarning,
        stacklevel=4,
    )


def check_same_shape(pred: NDArray[Any], gt: NDArray[Any]) -> None:
    """Raise if the prediction does not have the shape of the ground truth."""
    if pred.shape != gt.shape:
        raise ValueError(
            f"pred has shape {pred.shape} but gt has shape {gt.shape}; "
            "resize the prediction to the ground truth"
        )


def unit_values(pred: Map, *, normalize: Normalize) -> Values:
    """Return p, the prediction in [0, 1] in float64, by the operations of PySODMetrics.

    `"minmax"` stretches the image's range to [0, 1]; a constant map is left unchanged.

    Example:
        >>> unit_values(np.array([[51, 102, 153]], dtype=np.uint8), normalize="minmax")
        array([[0. , 0.5, 1. ]])
    """
    if pred.dtype == np.uint8:
        table = grey_table(int(pred.min()), int(pred.max()), normalize=normalize)
        return np.asarray(cv2.LUT(pred, table))
    p = pred / 65535 if pred.dtype == np.uint16 else pred.astype(np.float64)
    low, high = float(p.min()), float(p.max())
    if normalize == "minmax" and low != high:
        p = (p - low) / (high - low)
    return np.asarray(p, dtype=np.float64)


def grey_table(low: int, high: int, *, normalize: Normalize) -> Values:
    """Return p of the 256 grey values, for a map with the minimum `low` and the maximum `high`."""
    p = np.arange(256) / 255
    if normalize == "minmax" and low != high:
        # values outside [low, high] do not occur; clipping keeps the table monotone and in range
        p = np.clip((p - p[low]) / (p[high] - p[low]), 0.0, 1.0)
    return p


def as_array(array: ArrayLike, name: str) -> NDArray[Any]:
    """Convert to an array; raise for masked pixels, since the conversion would uncover their values."""
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise ValueError(
            f"{name} is a masked array with masked pixels; expected a value for every pixel; "
            f"fill them first, for example with {name}.filled(0)"
        )
    try:
        return np.asarray(array)
    except (TypeError, ValueError, RuntimeError) as error:
        first = (str(error).splitlines() or [""])[0]
        raise TypeError(
            f"{name} cannot be converted to a NumPy array ({first}); expected numbers, (height, width); "
            f"convert it first, a tensor with {name}.detach().float().cpu().numpy()"
        ) from error


def _plane(array: ArrayLike, name: str) -> NDArray[Any]:
    """Convert to an array of two dimensions and native byte order."""
    plane = as_array(array, name)
    if not plane.dtype.isnative:
        plane = plane.astype(plane.dtype.newbyteorder("="))
    if plane.ndim != 2 or plane.size == 0:
        raise ValueError(
            f"{name} has shape {plane.shape}; expected two dimensions (height, width) with at least one "
            "pixel; pass one grey map at a time"
        )
    return plane


def _check_unit_range(array: NDArray[Any], name: str) -> None:
    low, high = float(np.min(array)), float(np.max(array))  # NaN if any pixel is NaN
    if not (low >= 0 and high <= 1):
        advice = "apply the sigmoid to logits, divide grey values by 255, replace NaN"
        if low > -_ROUNDING and high < 1 + _ROUNDING:
            advice = "clip it: rounding has moved values beyond these limits"
        raise ValueError(
            f"{name} is a float array with values from {low:.9g} to {high:.9g}; expected [0, 1]; "
            + advice
        )

"""Arrays that come in: what a ground truth and a prediction may be, and what is refused.

The rules are those of `docs/metrics.md`. Every refusal says what was expected, what came and what to do.
"""

import math
import warnings
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Map = NDArray[Any]  # of uint8, uint16 or floats: what `as_map` lets through
Normalize = Literal["minmax", "none"]


def as_mask(gt: ArrayLike, *, level: int = 128) -> NDArray[np.bool_]:
    """Return the ground truth as a C-contiguous boolean array.

    Boolean arrays pass as they are; 8-bit is salient from `level` on, 16-bit and float from the same
    share of their range, which for the default is one half.

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
                "pass bool or multiply by 255"
            )
        # whole numbers, which compare without a conversion of the array
        least = level if array.dtype == np.uint8 else math.ceil((level - 0.5) * 257)
        return np.ascontiguousarray(array >= least)
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
        # half and extended precision are not what OpenCV can resize
        kind = array.dtype if array.dtype in (np.float32, np.float64) else np.float64
        return np.ascontiguousarray(array, dtype=kind)
    raise TypeError(
        f"pred has dtype {array.dtype}; expected uint8, uint16, bool or float in [0, 1]; "
        "convert it first, for example with pred.astype(np.uint8)"
    )


def looks_binary(pred: NDArray[Any]) -> bool:
    """Say whether an integer prediction holds nothing above 1, most likely 0/1 saved without scaling."""
    return pred.dtype.kind == "u" and bool(pred.max() == 1)


def warn_binary(name: str | None) -> None:
    """Warn once per call that an integer prediction has maximum 1; it is still scored as it is."""
    what = "pred" if name is None else f"pred of {name!r}"
    warnings.warn(
        f"{what} is an integer map whose maximum is 1: it looks like 0/1 instead of 0/255; "
        "pass bool or multiply by 255 if so",
        UserWarning,
        stacklevel=4,
    )


def check_same_shape(pred: NDArray[Any], gt: NDArray[Any]) -> None:
    """Refuse a prediction whose shape is not the ground truth's."""
    if pred.shape != gt.shape:
        raise ValueError(
            f"pred has shape {pred.shape} but gt has shape {gt.shape}; "
            "resize the prediction to the ground truth"
        )


def unit_values(pred: Map, *, normalize: Normalize) -> NDArray[np.float64]:
    """Return p, the prediction in [0, 1] in float64, by the operations of PySODMetrics.

    `"minmax"` stretches once per image from its extremes; a constant map stays as it is.

    Example:
        >>> unit_values(np.array([[51, 102, 153]], dtype=np.uint8), normalize="minmax")
        array([[0. , 0.5, 1. ]])
    """
    if pred.dtype == np.uint8:
        low, high = int(pred.min()), int(pred.max())
        return grey_table(low, high, normalize=normalize).take(pred)
    p = pred / 65535 if pred.dtype == np.uint16 else pred.astype(np.float64)
    if normalize == "minmax":
        lowest, highest = p.min(), p.max()
        if lowest != highest:
            p -= lowest  # in place: of a large map every other copy counts
            p /= highest - lowest
    return np.asarray(p, dtype=np.float64)


def grey_table(low: int, high: int, *, normalize: Normalize) -> NDArray[np.float64]:
    """Return p for each of the 256 grey values of a map whose extremes are `low` and `high`."""
    p = np.arange(256) / 255
    if normalize == "minmax" and low != high:
        # values outside the extremes do not occur; clipping keeps the table monotone and in range
        p = np.clip((p - p[low]) / (p[high] - p[low]), 0.0, 1.0)
    return p


def as_array(array: ArrayLike, name: str) -> NDArray[Any]:
    """Return what can be an array as one; refuse masked pixels, which an array would show again."""
    rows = array if isinstance(array, list | tuple) else [array]
    if any(isinstance(row, np.ma.MaskedArray) and np.ma.is_masked(row) for row in rows):
        raise ValueError(
            f"{name} is a masked array with masked pixels; expected a value for every pixel; "
            f"fill them first, for example with {name}.filled(0)"
        )
    try:
        return np.asarray(array)
    except (TypeError, ValueError, RuntimeError) as error:
        first = (str(error).splitlines() or [""])[0]
        raise TypeError(
            f"{name} cannot be made a NumPy array ({first}); expected numbers, (height, width); convert "
            f"it first, a tensor with {name}.detach().float().cpu().numpy()"
        ) from error


def _plane(array: ArrayLike, name: str) -> NDArray[Any]:
    plane = as_array(array, name)
    if not plane.dtype.isnative:
        plane = plane.astype(plane.dtype.newbyteorder("="))
    if plane.ndim != 2:
        raise ValueError(
            f"{name} has shape {plane.shape}; expected two dimensions (height, width); "
            "pass one grey map at a time"
        )
    if plane.size == 0:
        raise ValueError(f"{name} has shape {plane.shape}; expected at least one pixel")
    return plane


def _check_unit_range(array: NDArray[Any], name: str) -> None:
    low, high = float(np.min(array)), float(np.max(array))  # NaN if any pixel is NaN
    if np.isnan(low):
        raise ValueError(f"{name} holds NaN pixels; expected values in [0, 1]; replace them first")
    if low < 0 or high > 1:
        raise ValueError(
            f"{name} is a float array with values from {low:g} to {high:g}; expected [0, 1]; "
            "apply the sigmoid to logits, or divide grey values by 255"
        )

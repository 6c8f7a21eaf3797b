"""Pairs of prediction and ground truth as PySODMetrics reads them, counted once for all metrics."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sisod.scoring.arrays import Mask, Values, Window, as_array, check_same_shape, grey_table
from sisod.scoring.counting.histograms import LEVELS, count_classes, histogram
from sisod.scoring.families.counts import confusion_counts, e_measure
from sisod.scoring.families.family import WHOLE, Pixels
from sisod.scoring.partition import Partition
from sisod.scoring.protocols import PROTOCOLS
from sisod.scoring.size_invariant import separable

Grey = NDArray[np.uint8]
Confusion = dict[str, Any]  # tp, fp, tn, fn: arguments of a handler
_LEAST_P = grey_table(0, 255, normalize="none")


@dataclass(frozen=True, eq=False)
class CheckedPair:
    """A prediction and a ground truth of the same shape.

    Attributes:
        codes: the grey values of an 8-bit map; of a float map, floor(255 p) in its own precision.
        table: p of every code of an 8-bit map; of a float map, the least p of every code.
        p: the values of a float map in [0, 1]; None for an 8-bit map.
        gt: True for salient pixels.
    """

    codes: Grey
    table: Values
    p: NDArray[Any] | None
    gt: Mask

    @cached_property
    def image(self) -> "WindowCounts":
        """Counts of the whole image."""
        return WindowCounts(self, WHOLE)

    @cached_property
    def partition(self) -> Partition:
        """Frames and background of PySODMetrics."""
        return PROTOCOLS["pysodmetrics"].partition(self.gt)

    @cached_property
    def targets(self) -> "list[WindowCounts]":
        """Counts of every target, in raster order of its first pixel; of the image without a target."""
        frames = self.partition.frames
        order = np.argsort(self.partition.components.first[self.partition.framed])
        return [WindowCounts(self, frames[index].window) for index in order] or [self.image]

    @cached_property
    def pixels(self) -> Pixels:
        """The pair as the metrics of the engine take it."""
        if self.p is None:
            return Pixels(self.codes, self.gt, "minmax")
        exact = self.p.dtype in (np.float32, np.float64)
        return Pixels(self.p if exact else self.p.astype(np.float64), self.gt, "none")

    @cached_property
    def levels(self) -> Grey:
        """floor(255 p) of every pixel."""
        return _levels(self.values) if self.p is None else self.codes

    @cached_property
    def values(self) -> NDArray[Any]:
        """The map in [0, 1]."""
        return np.take(self.table, self.codes) if self.p is None else self.p

    @cached_property
    def mae(self) -> float:
        """Mean of |p - gt|."""
        if self.p is not None:
            return float(np.mean(np.abs(self.p - self.gt)))
        negative, positive = count_classes(self.codes, self.gt, LEVELS)
        return float(negative @ self.table + positive @ (1 - self.table)) / self.gt.size

    @cached_property
    def si_mae(self) -> float:
        """Size-invariant MAE."""
        pixels = self.pixels
        counts = histogram(pixels.pred, pixels.gt, self.partition, normalize=pixels.normalize)
        return float(separable(counts.absolute, self.partition))

    @cached_property
    def e_measure(self) -> tuple[Values, float]:
        """E-measure at the thresholds 255, 254 ... 0, and at the adaptive threshold."""
        dynamic, adaptive = self.image.dynamic, self.image.adaptive
        above = np.array([np.append(dynamic[key], adaptive[key]) for key in ("fp", "tp")], dtype=float)
        totals = np.array([[self.image.n_negative, self.image.n_positive]], dtype=float)
        with np.errstate(invalid="ignore"):  # of a mask with one class, which has a rule of its own
            values = e_measure(confusion_counts(above[None], totals))[0]
        return values[:-1], float(values[-1])


class WindowCounts:
    """Confusion matrices of an image whose map is set to zero, and its mask to False, outside a window.

    The window of a target is its frame. Pixels outside count as background, as PySODMetrics counts them.
    """

    def __init__(self, pair: CheckedPair, window: Window) -> None:
        self._pair, self._window = pair, window
        self._gt = pair.gt[window]
        self._n_outside = pair.gt.size - self._gt.size

    @cached_property
    def n_positive(self) -> int:
        """Salient pixels."""
        return int(np.count_nonzero(self._gt))

    @property
    def n_negative(self) -> int:
        """All other pixels of the image."""
        return self._pair.gt.size - self.n_positive

    @cached_property
    def dynamic(self) -> Confusion:
        """Confusion matrices at the thresholds 255, 254 ... 0."""
        by_level = count_classes(self._pair.levels[self._window], self._gt, LEVELS).astype(np.int64)
        by_level[0, 0] += self._n_outside
        fp, tp = np.cumsum(by_level[:, ::-1], axis=1)
        return self._confusion(tp, fp)

    @cached_property
    def adaptive(self) -> Confusion:
        """Confusion matrix at p >= twice the mean of the map, at most 1."""
        return self._at(lambda p: p >= self.adaptive_threshold)

    @cached_property
    def binary(self) -> Confusion:
        """Confusion matrix at p > 0.5."""
        return self._at(lambda p: p > 0.5)

    @cached_property
    def adaptive_threshold(self) -> float:
        """Twice the mean of the map, at most 1."""
        # the order of the sum, which may decide about a grey value, is that of PySODMetrics
        p = self._pair.values
        masked = np.zeros_like(p)
        masked[self._window] = p[self._window]
        return float(min(2 * masked.mean(), 1))

    def _at(self, is_predicted: Callable[[NDArray[Any]], Mask]) -> Confusion:
        """Return the confusion matrix of the pixels with a predicted p; those outside have 0."""
        predicted = is_predicted(self._pair.values[self._window])
        tp = int(np.count_nonzero(predicted & self._gt))
        fp = int(np.count_nonzero(predicted)) - tp
        return self._confusion(tp, fp + self._n_outside * bool(is_predicted(np.zeros(1))[0]))

    def _confusion(self, tp: Any, fp: Any) -> Confusion:
        return {"tp": tp, "fp": fp, "tn": self.n_negative - fp, "fn": self.n_positive - tp}


def shared_pair(pred: ArrayLike, gt: ArrayLike, *, normalize: bool) -> CheckedPair:
    """Return the checked pair; the one of the last call if prediction and ground truth are the same.

    Example:
        >>> pred, gt = np.zeros((4, 4)), np.eye(4) > 0
        >>> first = shared_pair(pred, gt, normalize=False)
        >>> shared_pair(pred, gt, normalize=False) is first
        True
        >>> pred[3, 3] = 0.5
        >>> shared_pair(pred, gt, normalize=False) is first
        False
    """
    arrays = as_array(pred, "pred"), as_array(gt, "gt")
    for array, name in zip(arrays, ("pred", "gt"), strict=True):
        _check_plane(array, name)
    check_same_shape(*arrays)
    # all pixels, in a copy: a buffer that is filled again is another pair
    contents = [(array.dtype, array.tobytes()) for array in arrays]
    return _checked_pair(*contents, arrays[0].shape, bool(normalize))


@lru_cache(maxsize=1)
def _checked_pair(
    pred: tuple[np.dtype[Any], bytes],
    gt: tuple[np.dtype[Any], bytes],
    shape: tuple[int, int],
    normalize: bool,
) -> CheckedPair:
    """Return the pair of two arrays, each given as its type and its bytes."""
    create = _normalized if normalize else _unchanged
    return create(*(np.frombuffer(data, dtype).reshape(shape) for dtype, data in (pred, gt)))


def _check_plane(array: NDArray[Any], name: str) -> None:
    if array.dtype.kind not in "biuf" or array.ndim != 2 or array.size == 0:
        raise ValueError(
            f"{name} has dtype {array.dtype} and shape {array.shape}; expected numbers, usually uint8 "
            "from 0 to 255, (height, width) with at least one pixel; pass one grey map at a time"
        )


def _normalized(pred: NDArray[Any], gt: NDArray[Any]) -> CheckedPair:
    """Return a pair of grey values: the map stretched to [0, 1], pixels above 128 salient."""
    low, high = pred.min(), pred.max()
    if not np.isfinite([low, high]).all():
        raise ValueError("pred contains NaN or infinite pixels; expected finite values; replace them")
    mask = _salient(gt)
    if pred.dtype == np.bool_:
        pred = pred.view(np.uint8) * np.uint8(255)
    if pred.dtype.kind in "iu" and low >= 0 and high <= 255:
        grey = pred.astype(np.uint8, copy=False)
        table = grey_table(int(grey.min()), int(grey.max()), normalize="minmax")
        return CheckedPair(grey, table, None, mask)
    p = pred / 255  # in the precision of the map, as PySODMetrics
    low, high = p.min(), p.max()
    if low != high:
        p = (p - low) / (high - low)
    elif not 0 <= low <= 1:
        raise ValueError(f"pred is {pred.flat[0]:g} everywhere; expected grey values from 0 to 255")
    return CheckedPair(_levels(p), _LEAST_P, p, mask)


def _salient(gt: NDArray[Any]) -> Mask:
    if gt.dtype == np.bool_:
        return gt
    highest = gt.max()
    if np.isnan(highest) or 0 < highest <= 1:
        raise ValueError(
            f"gt has dtype {gt.dtype} and maximum {highest:g}, but only pixels above 128 are salient; "
            "pass gt > 0, or multiply by 255"
        )
    return np.asarray(gt > 128)


def _unchanged(pred: NDArray[Any], gt: NDArray[Any]) -> CheckedPair:
    """Return a pair that is ready: a map in [0, 1] and a boolean mask."""
    if pred.dtype not in (np.float32, np.float64) or gt.dtype != np.bool_:
        raise TypeError(
            f"pred has dtype {pred.dtype} and gt {gt.dtype}; with normalize=False expected float32 or "
            "float64 in [0, 1], and bool; leave normalize out for grey values"
        )
    low, high = float(pred.min()), float(pred.max())
    if not (low >= 0 and high <= 1):  # also for NaN
        raise ValueError(
            f"pred has values from {low:g} to {high:g}; with normalize=False expected [0, 1]; "
            "divide grey values by 255"
        )
    return CheckedPair(_levels(pred), _LEAST_P, pred, gt)


def _levels(p: NDArray[Any]) -> Grey:
    return (p * 255).astype(np.uint8)

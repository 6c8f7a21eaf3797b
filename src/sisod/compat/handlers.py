"""FmeasureV2 of PySODMetrics, its handlers, and its size-invariant form."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sisod.compat.pairs import CheckedPair, WindowCounts, shared_pair
from sisod.scoring.arrays import Values


class _RatioHandler:
    """Settings and results of a handler. One of your own needs the same attributes and the call."""

    _score: Callable[..., Values]  # of the counts

    def __init__(
        self,
        with_dynamic: bool,
        with_adaptive: bool,
        *,
        with_binary: bool = False,
        sample_based: bool = True,
    ) -> None:
        self.dynamic_results: list[Any] | None = [] if with_dynamic else None
        self.adaptive_results: list[Any] | None = [] if with_adaptive else None
        self.sample_based = sample_based
        self.binary_results: Any = None
        if with_binary:
            self.binary_results = [] if sample_based else {"tp": 0, "fp": 0, "tn": 0, "fn": 0}

    def __call__(self, tp: Any, fp: Any, tn: Any, fn: Any) -> Values:
        """Return the metric of one or several confusion matrices."""
        return self._score(tp, fp, tn, fn)


class IOUHandler(_RatioHandler):
    """Intersection over union: TP / (TP + FP + FN)."""

    _score = staticmethod(lambda tp, fp, _tn, fn: _ratio(tp, tp + fp + fn))


class SpecificityHandler(_RatioHandler):
    """Specificity, the true negative rate: TN / (TN + FP)."""

    _score = staticmethod(lambda _tp, fp, tn, _fn: _ratio(tn, tn + fp))


class DICEHandler(_RatioHandler):
    """Dice coefficient: 2 TP / (2 TP + FP + FN)."""

    _score = staticmethod(lambda tp, fp, _tn, fn: _ratio(2 * tp, 2 * tp + fp + fn))


class OverallAccuracyHandler(_RatioHandler):
    """Share of pixels that are classified correctly: (TP + TN) / all."""

    _score = staticmethod(lambda tp, fp, tn, fn: _ratio(tp + tn, tp + fp + tn + fn))


class KappaHandler(_RatioHandler):
    """Cohen's kappa; PySODMetrics 1.6.2 has a term of the expected agreement wrong."""

    def _score(self, tp: Any, fp: Any, tn: Any, fn: Any) -> Values:
        # products of the counts of a whole data set exceed 64 bits
        tp, fp, tn, fn = (np.asarray(count, dtype=np.float64) for count in (tp, fp, tn, fn))
        return _ratio(2 * (tp * tn - fp * fn), (tp + fp) * (fp + tn) + (tp + fn) * (fn + tn))


class PrecisionHandler(_RatioHandler):
    """Precision: TP / (TP + FP)."""

    _score = staticmethod(lambda tp, fp, _tn, _fn: _ratio(tp, tp + fp))


class RecallHandler(_RatioHandler):
    """Recall, the true positive rate or sensitivity: TP / (TP + FN)."""

    _score = staticmethod(lambda tp, _fp, _tn, fn: _ratio(tp, tp + fn))


class FPRHandler(_RatioHandler):
    """False positive rate: FP / (FP + TN)."""

    _score = staticmethod(lambda _tp, fp, tn, _fn: _ratio(fp, fp + tn))


class BERHandler(_RatioHandler):
    """Balanced error rate: 1 - (recall + specificity) / 2, where a rate without pixels is 0."""

    _score = staticmethod(lambda tp, fp, tn, fn: 1 - (_ratio(tp, tp + fn) + _ratio(tn, tn + fp)) / 2)


class FmeasureHandler(_RatioHandler):
    """F-measure, (1 + beta) P R / (beta P + R): `beta` is the square of the weight of recall."""

    def __init__(
        self,
        with_dynamic: bool,
        with_adaptive: bool,
        *,
        with_binary: bool = False,
        sample_based: bool = True,
        beta: float = 0.3,
    ) -> None:
        super().__init__(with_dynamic, with_adaptive, with_binary=with_binary, sample_based=sample_based)
        self.beta = beta

    def _score(self, tp: Any, fp: Any, tn: Any, fn: Any) -> Values:  # noqa: ARG002
        return f_measure(_ratio(tp, tp + fp), _ratio(tp, tp + fn), self.beta)


TNRHandler = SpecificityHandler
TPRHandler = SensitivityHandler = RecallHandler


class ImageMetric(ABC):
    """A metric of one value per image; `values` has another name in every class, as in PySODMetrics."""

    result = ""  # name of the mean

    def __init__(self) -> None:
        self.values: list[float] = []

    def step(self, pred: ArrayLike, gt: ArrayLike, normalize: bool = True) -> None:
        """Score one pair."""
        self.values.append(float(self._score(shared_pair(pred, gt, normalize=normalize))))

    def get_results(self) -> dict[str, np.float64]:
        """Return the mean over images."""
        return {self.result: mean_result(self.values)}

    @abstractmethod
    def _score(self, pair: CheckedPair) -> Any: ...


class FmeasureV2:
    """Several metrics of confusion matrices at once, one per handler.

    Example:
        >>> import sisod.compat.pysodmetrics as py_sod_metrics
        >>> handler = py_sod_metrics.IOUHandler(with_dynamic=False, with_adaptive=True)
        >>> metric = py_sod_metrics.FmeasureV2({"iou": handler})
        >>> metric.step(np.array([[0, 200, 90, 255]], np.uint8), np.array([[0, 0, 255, 255]], np.uint8))
        >>> round(float(metric.get_results()["iou"]["adaptive"]), 3)  # only 255 is above twice the mean
        0.5
    """

    def __init__(self, metric_handlers: dict[str, Any] | None = None) -> None:
        self._metric_handlers: dict[str, Any] = metric_handlers or {}

    def add_handler(self, handler_name: str, metric_handler: Any) -> None:
        """Add a handler; its results are returned under this name."""
        self._metric_handlers[handler_name] = metric_handler

    def step(self, pred: ArrayLike, gt: ArrayLike, normalize: bool = True) -> None:
        """Score one pair."""
        if not self._metric_handlers:
            raise ValueError(
                f"{type(self).__name__} has no handler; pass metric_handlers, or call add_handler "
                "before step"
            )
        windows = self._windows(shared_pair(pred, gt, normalize=normalize))
        for handler in self._metric_handlers.values():
            if handler.dynamic_results is not None:
                self._add_curves(handler, [handler(**window.dynamic) for window in windows])
            if handler.adaptive_results is not None:
                adaptive = [handler(**window.adaptive) for window in windows]
                handler.adaptive_results.append(mean_result(adaptive))
            if handler.binary_results is not None and handler.sample_based:
                binary = [handler(**window.binary) for window in windows]
                handler.binary_results.append(mean_result(binary))
            elif handler.binary_results is not None:
                for window in windows:
                    for key, count in window.binary.items():
                        handler.binary_results[key] += count

    def get_results(self) -> dict[str, dict[str, Any]]:
        """Return name -> `dynamic` (256 values, from threshold 255 down), `adaptive`, `binary`."""
        return {name: self._results(handler) for name, handler in self._metric_handlers.items()}

    def _windows(self, pair: CheckedPair) -> list[WindowCounts]:
        return [pair.image]

    def _add_curves(self, handler: Any, curves: list[Any]) -> None:
        handler.dynamic_results.extend(curves)

    def _curves(self, handler: Any) -> Any:
        return mean_result(handler.dynamic_results)

    def _results(self, handler: Any) -> dict[str, Any]:
        results: dict[str, Any] = {}
        if handler.dynamic_results is not None:
            results["dynamic"] = self._curves(handler)
        if handler.adaptive_results is not None:
            results["adaptive"] = mean_result(handler.adaptive_results)
        if handler.binary_results is not None and handler.sample_based:
            results["binary"] = mean_result(handler.binary_results)
        elif handler.binary_results is not None:
            results["binary"] = np.mean(handler(**handler.binary_results))
        return results


class SizeInvarianceFmeasureV2(FmeasureV2):
    """The same for every target, that is every connected component of at least 50 pixels.

    With `sample_based`, `dynamic` is a list with an array of targets x 256 per image. Without, it is the
    mean curve over all targets of all images.
    """

    def _windows(self, pair: CheckedPair) -> list[WindowCounts]:
        return pair.targets

    def _add_curves(self, handler: Any, curves: list[Any]) -> None:
        if handler.sample_based:
            handler.dynamic_results.append(np.array(curves, dtype=np.float64))
        else:
            handler.dynamic_results.extend(curves)

    def _curves(self, handler: Any) -> Any:
        return handler.dynamic_results if handler.sample_based else super()._curves(handler)


def f_measure(precision: Values, recall: Values, beta: float) -> Values:
    """Return the weighted harmonic mean of precision and recall; 0 where both are 0."""
    return _ratio((1 + beta) * precision * recall, beta * precision + recall)


def mean_result(per_image: Sequence[Any]) -> Any:
    """Return the mean over images of values or curves; NaN with a warning if there are none."""
    if len(per_image) == 0:
        warnings.warn(
            "get_results() was called before the first step(); the result is NaN",
            RuntimeWarning,
            stacklevel=4,
        )
        return np.float64("nan")
    return np.mean(np.array(per_image, dtype=np.float64), axis=0)


def _ratio(numerator: Any, denominator: Any) -> Values:
    """Divide; 0 where the denominator is 0."""
    divisor = np.asarray(denominator, dtype=np.float64)
    quotient: Values = np.zeros_like(divisor)
    np.divide(numerator, divisor, out=quotient, where=divisor != 0)
    return quotient

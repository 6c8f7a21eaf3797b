"""A drop-in for PySODMetrics 1.6.2: its classes, computed by the engine in one pass over the pixels.

Change the import line and nothing else: `import sisod.compat.pysodmetrics as py_sod_metrics`. Metrics
that get the same prediction and ground truth one after another share their counts. docs/compat.md lists
the few differences.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sisod.common.arguments import check_int, short_repr
from sisod.common.exceptions import UsageError
from sisod.compat.context import ContextMeasure
from sisod.compat.handlers import (
    BERHandler,
    DICEHandler,
    FmeasureHandler,
    FmeasureV2,
    FPRHandler,
    ImageMetric,
    IOUHandler,
    KappaHandler,
    OverallAccuracyHandler,
    PrecisionHandler,
    RecallHandler,
    SensitivityHandler,
    SizeInvarianceFmeasureV2,
    SpecificityHandler,
    TNRHandler,
    TPRHandler,
    f_measure,
    mean_result,
)
from sisod.compat.pairs import CheckedPair, shared_pair
from sisod.scoring.arrays import Mask, Values
from sisod.scoring.families.boundaries import human_correction_effort
from sisod.scoring.families.structure import compare_edges, edge_pyramid, s_measure
from sisod.scoring.families.weighted_f import weighted_f

__all__ = [
    "MAE", "BERHandler", "CamouflageContextMeasure", "ContextMeasure", "DICEHandler", "Emeasure",
    "FPRHandler", "Fmeasure", "FmeasureHandler", "FmeasureV2", "HumanCorrectionEffortMeasure",
    "IOUHandler", "KappaHandler", "MSIoU", "OverallAccuracyHandler", "PrecisionHandler", "RecallHandler",
    "SensitivityHandler", "SizeInvarianceFmeasureV2", "SizeInvarianceMAE", "Smeasure",
    "SpecificityHandler", "TNRHandler", "TPRHandler", "WeightedFmeasure",
]  # fmt: skip


class MAE(ImageMetric):
    """Mean absolute error.

    Example:
        >>> metric = MAE()
        >>> metric.step(np.array([[0, 51, 255]], np.uint8), np.array([[0, 0, 255]], np.uint8))
        >>> round(float(metric.get_results()["mae"]), 4)
        0.0667
    """

    result = "mae"

    def __init__(self) -> None:
        super().__init__()
        self.maes = self.values

    def _score(self, pair: CheckedPair) -> float:
        return pair.mae


class SizeInvarianceMAE(MAE):
    """Mean absolute error in which every target has the same weight."""

    result = "si_mae"

    def _score(self, pair: CheckedPair) -> float:
        return pair.si_mae


class Smeasure(ImageMetric):
    """Structure measure; `alpha` is the weight of the object similarity."""

    result = "sm"

    def __init__(self, alpha: float = 0.5) -> None:
        super().__init__()
        self.sms = self.values
        self.alpha = alpha

    def _score(self, pair: CheckedPair) -> Any:
        return s_measure(pair.pixels, (), alpha=self.alpha)[0]


class WeightedFmeasure(ImageMetric):
    """Weighted F-measure; 0 for an image without an object."""

    result = "wfm"

    def __init__(self, beta: float = 1) -> None:
        super().__init__()
        self.beta = beta
        self.weighted_fms = self.values

    def _score(self, pair: CheckedPair) -> Any:
        return weighted_f(pair.pixels, (), beta2=self.beta)[0] if pair.gt.any() else 0.0


class Emeasure:
    """Enhanced-alignment measure."""

    def __init__(self) -> None:
        self.adaptive_ems: list[float] = []
        self.changeable_ems: list[Values] = []

    def step(self, pred: ArrayLike, gt: ArrayLike, normalize: bool = True) -> None:
        """Score one pair."""
        curve, adaptive = shared_pair(pred, gt, normalize=normalize).e_measure
        self.changeable_ems.append(curve)
        self.adaptive_ems.append(adaptive)

    def get_results(self) -> dict[str, dict[str, Any]]:
        """Return `em`: `adp`, and `curve` of 256 values from threshold 255 down."""
        return {"em": {"adp": mean_result(self.adaptive_ems), "curve": mean_result(self.changeable_ems)}}


class Fmeasure:
    """F-measure; `beta` is the square of the weight of recall."""

    def __init__(self, beta: float = 0.3) -> None:
        self.beta = beta
        self.precisions: list[Values] = []
        self.recalls: list[Values] = []
        self.adaptive_fms: list[float] = []
        self.changeable_fms: list[Values] = []

    def step(self, pred: ArrayLike, gt: ArrayLike, normalize: bool = True) -> None:
        """Score one pair."""
        image = shared_pair(pred, gt, normalize=normalize).image
        precision, recall = _PRECISION(**image.dynamic), _RECALL(**image.dynamic)
        self.precisions.append(precision)
        self.recalls.append(recall)
        self.changeable_fms.append(f_measure(precision, recall, self.beta))
        adaptive = _PRECISION(**image.adaptive), _RECALL(**image.adaptive)
        self.adaptive_fms.append(float(f_measure(*adaptive, self.beta)))

    def get_results(self) -> dict[str, dict[str, Any]]:
        """Return `fm`: `adp` and `curve`; `pr`: curves `p` and `r`; all from threshold 255 down."""
        return {
            "fm": {"adp": mean_result(self.adaptive_fms), "curve": mean_result(self.changeable_fms)},
            "pr": {"p": mean_result(self.precisions), "r": mean_result(self.recalls)},
        }


_PRECISION = PrecisionHandler(with_dynamic=False, with_adaptive=False)
_RECALL = RecallHandler(with_dynamic=False, with_adaptive=False)


class MSIoU:
    """Multi-scale IoU of edges."""

    def __init__(
        self,
        with_dynamic: bool,
        with_adaptive: bool,
        *,
        with_binary: bool = False,
        num_levels: int = 10,
    ) -> None:
        check_int("num_levels", num_levels, least=2)
        self.dynamic_results: list[Values] | None = [] if with_dynamic else None
        self.adaptive_results: list[float] | None = [] if with_adaptive else None
        self.binary_results: list[float] | None = [] if with_binary else None
        self.cell_sizes = 2 ** np.linspace(0, 9, num=num_levels, dtype=int)

    def step(self, pred: ArrayLike, gt: ArrayLike, normalize: bool = True) -> None:
        """Score one pair."""
        pair = shared_pair(pred, gt, normalize=normalize)
        gt_edges = self._edges(pair.gt)
        if self.dynamic_results is not None:
            self.dynamic_results.append(self._curve(pair, gt_edges))
        if self.adaptive_results is not None:
            mask = pair.values >= pair.image.adaptive_threshold
            self.adaptive_results.append(compare_edges(self._edges(mask), gt_edges))
        if self.binary_results is not None:
            mask = pair.values > 0.5
            self.binary_results.append(compare_edges(self._edges(mask), gt_edges))

    def get_results(self) -> dict[str, Any]:
        """Return `dynamic` (257 values, from threshold 0 up to 256), `adaptive` and `binary`."""
        chosen = {
            "dynamic": self.dynamic_results,
            "adaptive": self.adaptive_results,
            "binary": self.binary_results,
        }
        return {key: mean_result(values) for key, values in chosen.items() if values is not None}

    def _edges(self, mask: Mask) -> list[Mask]:
        pyramid = edge_pyramid(mask)
        return [pyramid[int(size).bit_length() - 1] for size in self.cell_sizes]

    def _curve(self, pair: CheckedPair, gt_edges: list[Mask]) -> Values:
        """Return the value at every threshold; masks change only at levels that occur."""
        used = np.flatnonzero(np.bincount(pair.levels.ravel(), minlength=256))
        values = [compare_edges(self._edges(pair.levels >= level), gt_edges) for level in used]
        values.append(compare_edges(self._edges(np.zeros_like(pair.gt)), gt_edges))
        return np.array(values)[np.searchsorted(used, np.arange(257))]


class HumanCorrectionEffortMeasure(ImageMetric):
    """Number of clicks that correct the map."""

    result = "hce"

    def __init__(self, relax: int = 5, epsilon: float = 2.0) -> None:
        if (relax, epsilon) != (5, 2.0):
            raise ValueError(
                f"relax and epsilon are {short_repr(relax)} and {short_repr(epsilon)}; expected 5 and "
                "2.0, as in the paper; for others use py_sod_metrics.HumanCorrectionEffortMeasure"
            )
        super().__init__()
        self.hces = self.values
        self.relax = relax
        self.epsilon = epsilon

    def _score(self, pair: CheckedPair) -> Any:
        return human_correction_effort(pair.pixels, ())[0]


class CamouflageContextMeasure:
    """Refused: it compares colours of the photograph, and the metrics here read only map and mask."""

    def __init__(self, *_: object, **__: object) -> None:
        raise UsageError(
            "CamouflageContextMeasure needs the photograph, and sisod.compat.pysodmetrics has the "
            "metrics of a prediction and its ground truth alone; use the class of PySODMetrics beside "
            "them: from py_sod_metrics import CamouflageContextMeasure"
        )

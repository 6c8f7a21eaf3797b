"""PySODMetrics 1.6.2 as its documentation uses it: one object per metric, one `step` per map."""

import warnings
from typing import Any

import numpy as np
import py_sod_metrics as sod

from benchmarks.speed.synthetic_maps import Grey

_HANDLERS = {
    "f": sod.FmeasureHandler,
    "precision": sod.PrecisionHandler,
    "recall": sod.RecallHandler,
    "iou": sod.IOUHandler,
    "dice": sod.DICEHandler,
    "accuracy": sod.OverallAccuracyHandler,
    "specificity": sod.SpecificityHandler,
    "fpr": sod.FPRHandler,
    "ber": sod.BERHandler,
    "kappa": sod.KappaHandler,
}


def step_counts(pred: Grey, gt: Grey) -> dict[str, Any]:
    """Run what it has of the count metrics and their size-invariant forms."""
    return _stepped(_count_metrics(), pred, gt)


def step_all(pred: Grey, gt: Grey) -> dict[str, Any]:
    """Run the same, S-measure and weighted F."""
    structure = {"s": sod.Smeasure(), "wf": sod.WeightedFmeasure()}
    return _stepped(_count_metrics() | structure, pred, gt)


def values(stepped: dict[str, Any]) -> dict[str, float]:
    """Return some of the numbers, under our keys, to see that both do the same work."""
    curves = stepped["counts"].get_results()
    e_curve = stepped["e"].get_results()["em"]["curve"]
    return {
        "mae": float(stepped["mae"].get_results()["mae"]),
        "s": float(stepped["s"].get_results()["sm"]),
        "wf": float(stepped["wf"].get_results()["wfm"]),
        "e_mean": float(np.mean(e_curve)),
        **{f"{key}_mean": float(np.mean(curves[key]["dynamic"])) for key in ("f", "iou", "ber")},
        **{f"{key}_adaptive": float(curves[key]["adaptive"]) for key in ("f", "iou", "ber")},
        **{f"{key}_binary": float(curves[key]["binary"]) for key in ("f", "iou", "ber")},
    }


def _count_metrics() -> dict[str, Any]:
    return {
        "mae": sod.MAE(),
        "counts": sod.FmeasureV2(_handlers()),
        "e": sod.Emeasure(),
        "si_mae": sod.SizeInvarianceMAE(),
        "si_counts": sod.SizeInvarianceFmeasureV2(_handlers()),
    }


def _handlers() -> dict[str, Any]:
    return {
        key: handler(with_dynamic=True, with_adaptive=True, with_binary=True)
        for key, handler in _HANDLERS.items()
    }


def _stepped(metrics: dict[str, Any], pred: Grey, gt: Grey) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for metric in metrics.values():
            metric.step(pred, gt)
    return metrics

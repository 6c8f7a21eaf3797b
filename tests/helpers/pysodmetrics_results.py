"""Metrics of PySODMetrics and of its drop-in, fed with the same pairs."""

import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import py_sod_metrics

import sisod.compat.pysodmetrics as drop_in

Pairs = Iterable[tuple[Any, Any]]
HANDLERS = tuple(name for name in drop_in.__all__ if name.endswith("Handler") and name != "KappaHandler")
FORMS = {"with_dynamic": True, "with_adaptive": True, "with_binary": True}
# name -> class, arguments; kappa is left out: that of PySODMetrics is wrong
METRICS: dict[str, tuple[str, dict[str, Any]]] = {
    "fm": ("Fmeasure", {}),
    "f1": ("Fmeasure", {"beta": 1}),
    "wfm": ("WeightedFmeasure", {}),
    "wfm_beta": ("WeightedFmeasure", {"beta": 0.3}),
    "sm": ("Smeasure", {}),
    "sm_alpha": ("Smeasure", {"alpha": 0.7}),
    "em": ("Emeasure", {}),
    "mae": ("MAE", {}),
    "msiou": ("MSIoU", FORMS),
    "msiou_levels": ("MSIoU", {"with_dynamic": False, "with_adaptive": True, "num_levels": 5}),
    "cm": ("ContextMeasure", {}),
    "cm_settings": ("ContextMeasure", {"beta2": 0.5, "alpha": 3.0}),
    "hce": ("HumanCorrectionEffortMeasure", {}),
    "si_mae": ("SizeInvarianceMAE", {}),
    "v2": ("FmeasureV2", {"sample_based": True}),
    "v2_overall": ("FmeasureV2", {"sample_based": False}),
    "si_v2": ("SizeInvarianceFmeasureV2", {"sample_based": True}),
    "si_v2_overall": ("SizeInvarianceFmeasureV2", {"sample_based": False}),
}


def results(module: Any, name: str, pairs: Pairs, *, normalize: bool = True) -> dict[str, Any]:
    """Return the flattened results of a metric after these pairs."""
    with warnings.catch_warnings():
        if module is py_sod_metrics:  # it divides by zero and calls deprecated functions
            warnings.simplefilter("ignore")
        metric = _create(module, name)
        for pred, gt in pairs:
            metric.step(pred, gt, normalize)
        return dict(flatten(metric.get_results()))


def _create(module: Any, name: str) -> Any:
    kind, arguments = METRICS[name]
    if not kind.endswith("V2"):
        return getattr(module, kind)(**arguments)
    handlers = {key: getattr(module, key)(**FORMS, **arguments) for key in HANDLERS}
    handlers["f1"] = module.FmeasureHandler(**FORMS, **arguments, beta=1)
    return getattr(module, kind)(metric_handlers=handlers)


def flatten(content: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the arrays and numbers of nested dictionaries and lists with their paths."""
    if isinstance(content, dict):
        for key, value in content.items():
            yield from flatten(value, f"{path}/{key}")
    elif isinstance(content, list):
        for index, value in enumerate(content):
            yield from flatten(value, f"{path}/{index}")
    else:
        yield path, content


def assert_same(ours: dict[str, Any], theirs: dict[str, Any], *, tolerance: float = 1e-6) -> None:
    """Compare keys, types, shapes and numbers."""
    assert list(ours) == list(theirs)
    for path, expected in theirs.items():
        actual = ours[path]
        assert type(actual) is type(expected), path
        assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype), path
        np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance, err_msg=path)

"""Metrics of a user, at the top of a module that worker processes can import."""

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from sisod.scoring import custom, metrics
from sisod.scoring.custom import CustomMetric

Values = NDArray[np.float64]
Mask = NDArray[np.bool_]


@pytest.fixture(autouse=True)
def built_in_metrics() -> Iterator[None]:
    """Remove metrics that a test has registered; the table of metrics belongs to the whole process."""
    table, functions = dict(metrics._TABLE), dict(custom._REGISTERED)
    yield
    metrics._TABLE.clear()
    metrics._TABLE.update(table)
    custom._REGISTERED.clear()
    custom._REGISTERED.update(functions)


def pixel_error(p: Values, gt: Mask) -> float:
    """The mean absolute error, which `mae` is."""
    return float(np.abs(p - gt).mean())


def soft_recall(p: Values, gt: Mask) -> float:
    """Mean of p where gt is salient; undefined without a salient pixel."""
    return float(p[gt].mean()) if gt.any() else float("nan")


def overlap(p: Values, gt: Mask) -> float:
    """IoU at p > 0.5, which `iou_binary` is."""
    positive = p > 0.5
    return float((positive & gt).sum() / (positive | gt).sum()) if gt.any() else float("nan")


def fails_on_small(p: Values, gt: Mask) -> float:  # noqa: ARG001
    """Raise for images of fewer than 1000 pixels."""
    if p.size < 1000:
        raise ArithmeticError("too small")
    return 0.0


PIXEL_ERROR = CustomMetric(pixel_error, title="Pixel error", direction="down", si="separable")
OVERLAP = CustomMetric(overlap, title="Overlap", direction="up", si="composite")

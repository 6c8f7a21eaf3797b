"""`make_separable` and `make_composite`: the metric sees p in [0, 1], whatever the type of the map."""

import numpy as np
import pytest
from numpy.typing import NDArray

import sisod

GT = np.zeros((8, 8), dtype=bool)
GT[:2, :2] = True
GT[5:, 5:] = True
GREY = np.arange(64, dtype=np.uint8).reshape(8, 8) * 4
FORMS = (sisod.make_separable, sisod.make_composite)


def mean_error(p: NDArray[np.float64], gt: NDArray[np.bool_]) -> float:
    assert p.dtype == np.float64
    assert gt.dtype == np.bool_
    return float(np.abs(p - gt).mean())


@pytest.mark.parametrize("make", FORMS)
@pytest.mark.parametrize(
    "pred",
    [GREY, GREY.astype(np.uint16) * 257, (GREY / 255).astype(np.float64)],
    ids=["uint8", "uint16", "float64"],
)
def test_every_type_of_map_gives_the_same_value(make: object, pred: NDArray[np.generic]) -> None:
    assert callable(make)
    expected = make(mean_error)(GREY / 255, GT)
    assert make(mean_error)(pred, GT) == pytest.approx(expected, abs=1e-15)
    assert make(mean_error)(pred, GT.astype(np.uint8) * 255) == pytest.approx(expected, abs=1e-15)


def test_by_hand() -> None:
    """Two objects of one pixel, 51 / 255 and 255 / 255: the mean of 0.8 and 0."""
    gt = np.array([[True, False, True]])
    pred = np.array([[51, 0, 255]], dtype=np.uint8)
    assert sisod.make_composite(mean_error)(pred, gt) == pytest.approx(0.4, abs=1e-15)


def test_the_separable_form_of_the_error_is_si_mae() -> None:
    expected = sisod.score(GREY, GT, protocol="default+normalize=none", metrics=["si_mae"])["si_mae"]
    assert sisod.make_separable(mean_error)(GREY, GT) == pytest.approx(expected, abs=1e-12)

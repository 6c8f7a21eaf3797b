"""The counts behind the metrics, against masks of frames and single pixels."""

from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

import sisod
from sisod.scoring.counting.histograms import LEVELS, count_rows

pytestmark = pytest.mark.usefixtures("both_engines")

Mask = NDArray[np.bool_]


def blobs(seed: int, share: float, shape: tuple[int, int] = (40, 70)) -> Mask:
    """A random mask of squares of 5 x 5 pixels: few or many components, with overlapping boxes."""
    rng = np.random.default_rng(seed)
    coarse = rng.random((shape[0] // 5, shape[1] // 5)) < share
    return np.kron(coarse, np.ones((5, 5), dtype=bool)).astype(np.bool_)


def count(codes: NDArray[np.uint8], gt: Mask, inside: Mask) -> NDArray[np.intp]:
    return np.stack([np.bincount(codes[inside & (gt == c)], minlength=LEVELS) for c in (False, True)])


@pytest.mark.parametrize("connectivity", [4, 8])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 0.5, 1.0])  # none, few, many, overlapping, one
def test_rows_against_masks(share: float, connectivity: Literal[4, 8]) -> None:
    gt = blobs(1, share)
    codes = np.random.default_rng(2).integers(0, LEVELS, gt.shape).astype(np.uint8)
    parts = sisod.partition(gt, connectivity=connectivity, min_area=30)  # leaves some out
    rows = count_rows(codes, gt, parts, LEVELS)
    insides = np.zeros((len(parts) + 2, *gt.shape), dtype=bool)
    insides[0] = True
    for frame, inside in zip(parts, insides[1:-1], strict=True):
        inside[frame.window] = True
    insides[-1] = ~parts.background
    assert np.array_equal(rows, [count(codes, gt, inside) for inside in insides])
    assert np.array_equal(rows, count_rows(codes.astype(np.uint16), gt, parts, LEVELS))

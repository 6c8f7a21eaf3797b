"""The counts behind the metrics, against masks of frames and single pixels."""

from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

import sisod
from sisod.scoring.components import label_instances, label_mask, shared_pixels
from sisod.scoring.histograms import LEVELS, count_rows, quarter

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
@pytest.mark.parametrize("n_quartered", [0, 1, 3])
def test_rows_against_masks(share: float, connectivity: Literal[4, 8], n_quartered: int) -> None:
    gt = blobs(1, share)
    codes = np.random.default_rng(2).integers(0, LEVELS, gt.shape).astype(np.uint8)
    parts = sisod.partition(gt, connectivity=connectivity, min_area=30)  # leaves some out
    n_quartered = min(n_quartered, 1 + len(parts))
    quadrants = np.empty((n_quartered, 4, 2, LEVELS))
    rows = count_rows(codes, gt, parts, LEVELS, quadrants)
    insides = np.zeros((len(parts) + 2, *gt.shape), dtype=bool)
    insides[0] = True
    for frame, inside in zip(parts, insides[1:-1], strict=True):
        inside[frame.window] = True
    insides[-1] = ~parts.background
    for row, inside in zip(rows, insides, strict=True):
        assert np.array_equal(row, count(codes, gt, inside))
    windows = [(slice(None), slice(None)), *(frame.window for frame in parts)]
    for four, window in zip(quadrants, windows[:n_quartered], strict=True):
        for quadrant, place in zip(four, quarter(gt[window]), strict=True):
            every = np.ones(gt[window][place].shape, dtype=bool)
            assert np.array_equal(quadrant, count(codes[window][place], gt[window][place], every))


def test_frames_by_the_hundred_and_wide_codes_give_the_same_rows() -> None:
    gt = blobs(3, 0.12, (100, 150))
    codes = np.random.default_rng(4).integers(0, LEVELS, gt.shape).astype(np.uint8)
    parts = sisod.partition(gt, min_area=0)
    assert len(parts) > 31
    few = sisod.partition(gt, min_area=75)
    assert 2 <= len(few) <= 31
    for partition in (parts, few):
        rows = count_rows(codes, gt, partition, LEVELS)
        assert np.array_equal(rows, count_rows(codes.astype(np.uint16), gt, partition, LEVELS))


@pytest.mark.parametrize("shares", [(0.0, 0.5), (0.3, 0.0), (0.05, 0.5), (0.3, 0.3), (1.0, 1.0)])
def test_shared_pixels_against_pixels(shares: tuple[float, float]) -> None:
    first, second = blobs(5, shares[0]), np.roll(blobs(6, shares[1]), (2, 3), axis=(0, 1))
    instances = np.where(second, np.arange(second.size).reshape(second.shape) % 3, 0)
    ours = label_mask(first, 8)
    for others in (label_mask(second, 4), label_instances(instances)):
        maps = [c.index_map(np.arange(len(c)), first.shape) for c in (ours, others)]
        both = (maps[0] >= 0) & (maps[1] >= 0)
        pairs, counts = np.unique(np.stack([m[both] for m in maps]), axis=1, return_counts=True)
        *columns, shared = shared_pixels(ours, others, first.shape[1])
        assert np.array_equal(np.stack(columns), pairs)
        assert np.array_equal(shared, counts)

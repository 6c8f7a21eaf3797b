"""Masks and maps for the tests of the theory."""

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

import sisod

Mask = NDArray[np.bool_]


@st.composite
def pairs(draw: st.DrawFn) -> tuple[NDArray[np.float64], Mask]:
    """Draw a map of few values and a noisy mask with both classes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = draw(st.tuples(st.integers(2, 10), st.integers(2, 10)))
    gt = rng.random(shape) < draw(st.sampled_from([0.1, 0.3, 0.6]))
    gt.flat[0], gt.flat[-1] = True, False
    return rng.choice([0.0, 0.2, 0.4, 0.6, 1.0], shape), gt


@st.composite
def rows_of_objects(draw: st.DrawFn, least: int = 2, most: int = 4) -> Mask:
    """Draw L-shaped, partly filled objects side by side whose frames do not overlap."""
    sides = st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 5), st.integers(1, 5))
    blocks = draw(st.lists(sides, min_size=least, max_size=most))
    gt = np.zeros((7, 7 * len(blocks)), dtype=np.bool_)
    for index, (height, width, rows, columns) in enumerate(blocks):
        box = gt[1 : 1 + height, 7 * index : 7 * index + width]
        box[0] = box[:, 0] = box[:rows, :columns] = True
    return gt


@st.composite
def exchanges(draw: st.DrawFn, least: int = 2, most: int = 4) -> tuple[Mask, list[int], list[int]]:
    """Draw a mask, the pixels that B finds of each object, and the objects that A misses."""
    gt = draw(rows_of_objects(least, most))
    sizes = sisod.partition(gt, min_area=0).areas.tolist()
    missed = sorted(draw(st.sets(st.integers(0, len(sizes) - 1), min_size=1, max_size=len(sizes) - 1)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    owners = np.repeat(np.arange(len(sizes)), sizes)
    gone, kept = owners[np.isin(owners, missed)], owners[~np.isin(owners, missed)]
    moved = draw(st.integers(0, min(len(gone), len(kept))))
    found = np.bincount(kept, minlength=len(sizes))
    found -= np.bincount(rng.permutation(kept)[:moved], minlength=len(sizes))
    found += np.bincount(rng.permutation(gone)[:moved], minlength=len(sizes))
    return gt, found.tolist(), missed


def overlapping() -> Mask:
    """Return two objects whose frames, of 25 and 12 pixels, overlap where the larger object ends."""
    gt = np.zeros((8, 9), dtype=np.bool_)
    gt[:5, 0] = gt[4, :5] = True  # an L, 5 x 5
    gt[4:7, 6] = gt[6, 3:7] = True  # an L, 3 x 4, open towards the other
    return gt


def bars(first: int, second: int) -> Mask:
    gt = np.zeros((3, max(first, second)), dtype=np.bool_)
    gt[0, :first] = gt[2, :second] = True
    return gt

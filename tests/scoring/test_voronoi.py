"""Voronoi regions against a loop over pixels, ties included."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sisod.scoring.counting.components import nearest_component

pytestmark = pytest.mark.usefixtures("both_engines")

Index = NDArray[np.int32]


def slow(index: Index) -> Index:
    """Return the index of the least (squared distance, index) of every pixel, in integers."""
    ys, xs = np.nonzero(index >= 0)
    nearest = np.empty_like(index)
    for y, x in np.ndindex(index.shape):
        squared = (ys - y) ** 2 + (xs - x) ** 2
        nearest[y, x] = index[ys, xs][squared == squared.min()].min()
    return nearest


def test_near_ties_far_away() -> None:
    """Squared distances of 1201^2 + 700^2 and one less are distinguished."""
    index = np.full((1402, 1300), -1, dtype=np.int32)
    index[1401, 1201] = 0  # from (701, 0): 700^2 + 1201^2
    index[0, 1201] = 1  # from (701, 0): 701^2 + 1201^2
    regions = nearest_component(index, int(index.max()) + 1)
    assert regions[701, 0] == 0
    assert regions[700, 0] == 1


@given(st.integers(0, 2**32), st.integers(1, 90))
@settings(deadline=None, max_examples=25)
def test_objects_of_any_shape(seed: int, count: int) -> None:
    """Rings, crossed lines and ellipses, some inside the box of another, on up to 60 x 60 pixels."""
    rng = np.random.default_rng(seed)
    height, width = rng.integers(8, 60, 2).tolist()
    mask = np.zeros((height, width), dtype=np.uint8)
    for _ in range(count):
        centre = int(rng.integers(width)), int(rng.integers(height))
        axes = int(rng.integers(0, 9)), int(rng.integers(0, 9))
        cv2.ellipse(mask, centre, axes, float(rng.uniform(0, 180)), 0, 360, 1, int(rng.choice([-1, 1])))
    index = np.asarray(cv2.connectedComponents(mask, connectivity=8)[1]).astype(np.int32) - 1
    if index.max() >= 0:
        assert (nearest_component(index, int(index.max()) + 1) == slow(index)).all()


def test_hundreds_of_components() -> None:
    index = np.full((80, 120), -1, dtype=np.int32)
    index[::5, ::4] = np.arange(16 * 30).reshape(16, 30)
    assert (nearest_component(index, int(index.max()) + 1) == slow(index)).all()


def test_keys_that_need_64_bits() -> None:
    """Two far ends of a strip: 2000^2 times the base of 300 components."""
    index = np.full((3, 2000), -1, dtype=np.int32)
    index[0, :600:2] = np.arange(300)
    regions = nearest_component(index, int(index.max()) + 1)
    assert (regions[:, 598:] == 299).all()
    assert regions[0, :4].tolist() == [0, 0, 1, 1]

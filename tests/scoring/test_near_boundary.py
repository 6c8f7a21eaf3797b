"""Pixels near the boundary of a mask at large radii, against the morphology of OpenCV."""

import math

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import sisod
from sisod.scoring import boundaries
from sisod.scoring.boundaries import near_boundary, surface_dice


def gradient(gt: NDArray[np.uint8], radius: int) -> NDArray[np.uint8]:
    ellipse = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1))
    return np.asarray(cv2.morphologyEx(gt, cv2.MORPH_GRADIENT, ellipse), dtype=np.uint8)


@st.composite
def masks(draw: st.DrawFn) -> NDArray[np.uint8]:
    """Return masks of few or many pixels, or of smooth objects, of any shape."""
    height, width = draw(st.integers(1, 70)), draw(st.integers(1, 70))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    noise = rng.random((height, width))
    if draw(st.booleans()):
        noise = np.asarray(cv2.GaussianBlur(noise, (0, 0), 5.0))
    quantile = draw(st.sampled_from([0.0, 0.002, 0.5, 0.998]))
    return (noise > np.quantile(noise, quantile)).astype(np.uint8)


@settings(deadline=None, max_examples=60)
@given(masks(), st.sets(st.integers(1, 40), min_size=1, max_size=3))
def test_equals_opencv(gt: NDArray[np.uint8], radii: set[int]) -> None:
    for radius, near in near_boundary(gt, sorted(radii)):
        np.testing.assert_array_equal(near, gradient(gt, radius), err_msg=str(radius))


def test_a_single_pixel_shows_the_ellipse() -> None:
    """All radii up to 60; the strips are cut in the ellipse."""
    gt = np.zeros((130, 1000), dtype=np.uint8)
    gt[64, 500] = 1
    for radius, near in near_boundary(gt, range(1, 61)):
        ellipse = np.asarray(cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1,) * 2))
        window = near[64 - radius : 65 + radius, 500 - radius : 501 + radius]
        np.testing.assert_array_equal(window, ellipse)
        assert near.sum() == ellipse.sum()


@pytest.mark.parametrize("shape", [(1, 700), (700, 1), (2, 900)])
def test_a_radius_beyond_one_byte(shape: tuple[int, int]) -> None:
    """From a pixel in the corner, the longest rows and the middle column reach as far as the radius."""
    gt = np.zeros(shape, dtype=np.uint8)
    gt[0, 0] = 1
    for radius, near in near_boundary(gt, [7, 254, 255, 300]):
        np.testing.assert_array_equal(near, np.indices(shape).max(axis=0) <= radius)


def test_large_images_do_not_use_the_dilation_of_opencv(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time grows with the square of the radius; elements of one row or column are quick."""
    sizes: list[tuple[int, ...]] = []
    real = cv2.morphologyEx

    def recorded(mask: NDArray[np.uint8], operation: int, element: NDArray[np.uint8]) -> object:
        sizes.append(element.shape)
        return real(mask, operation, element)

    gt = np.zeros((5000, 5000), dtype=bool)
    gt[100:160, 100:160] = True
    pred = np.roll(gt, 5, axis=1)
    window = slice(60, 200), slice(60, 200)
    correct, grey = (gt == pred)[window], gt[window].astype(np.uint8)
    expected = [correct[gradient(grey, radius) > 0].mean() for radius in (1, 7, 13, 20, 26)]
    monkeypatch.setattr(cv2, "morphologyEx", recorded)
    assert sisod.score(pred, gt, metrics="mba")["mba"] == pytest.approx(np.mean(expected), abs=1e-15)
    assert [size for size in sizes if min(size) > 1] == [(3, 3)]


@settings(deadline=None, max_examples=60)
@given(masks(), st.integers(0, 2**32), st.integers(0, 900))
def test_the_distance_transform_counts_the_same(
    gt: NDArray[np.uint8], seed: int, squared_tolerance: int
) -> None:
    pred = np.random.default_rng(seed).random(gt.shape) < 0.3
    values = []
    with pytest.MonkeyPatch.context() as patch:
        for lookups in (0, 10**9):  # always, never
            patch.setattr(boundaries, "_LOOKUPS", lookups)
            values.append(surface_dice(pred, gt > 0, squared_tolerance))
    assert values[0] == pytest.approx(values[1], abs=0, nan_ok=True)


def test_a_large_map_of_noise_is_measured_by_distances(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the time grows with the number of pixels times the tolerance: minutes for 25 megapixels."""
    lookups: list[int] = []
    real = math.isqrt

    def recorded(number: int) -> int:
        lookups.append(number)
        return real(number)

    monkeypatch.setattr(math, "isqrt", recorded)
    pred = np.random.default_rng(0).random((900, 900)) < 0.5
    gt = np.zeros_like(pred)
    gt[200:230, 100:160] = True
    assert 0 < sisod.score(pred, gt, metrics="nsd")["nsd"] < 0.1
    # one per border, and one for the single column that the ground truth's border is looked up in;
    # without the distances, one for each of 26 columns
    assert len(lookups) == 3


@pytest.mark.parametrize("shape", [(-1, 2), (-1, 1, 2)])
def test_points_with_and_without_an_axis_of_length_one(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenCV 5 lists the pixels of a mask as (n, 2), OpenCV 4 as (n, 1, 2)."""
    real = cv2.findNonZero
    monkeypatch.setattr(cv2, "findNonZero", lambda mask: np.asarray(real(mask)).reshape(shape))
    gt = np.ones((3, 3), dtype=bool)
    pred = np.zeros((3, 3), dtype=bool)
    pred[0, :2] = True
    assert surface_dice(pred, gt, 1) == (2 + 4) / (2 + 8)

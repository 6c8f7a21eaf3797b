"""Where the drop-in deliberately differs from PySODMetrics 1.6.2: the list of docs/compat.md.

Each test shows both numbers. If one fails at their side, PySODMetrics was corrected: shorten the list.
"""

import math
from typing import Any

import numpy as np
import py_sod_metrics
import pytest
from helpers.pysodmetrics_results import results
from numpy.typing import NDArray
from sklearn.metrics import cohen_kappa_score

import sisod.compat.pysodmetrics as drop_in
from sisod import PROTOCOLS

MODULES = (drop_in, py_sod_metrics)
GT = np.zeros((20, 30), np.uint8)
GT[4:12, 5:20] = 255
PRED = np.clip(GT.astype(int) - 40 + np.arange(600).reshape(20, 30) % 37, 0, 255).astype(np.uint8)


def both(name: str, key: str, pred: NDArray[Any], gt: NDArray[Any]) -> tuple[Any, Any]:
    ours, theirs = (results(module, name, [(pred, gt)])[key] for module in MODULES)
    return ours, theirs


def test_kappa_is_cohens() -> None:
    counts = {"tp": 15, "fp": 5, "tn": 75, "fn": 5}
    right = cohen_kappa_score([1, 0, 0, 1], [1, 1, 0, 0], sample_weight=list(counts.values()))
    arrays = {key: np.array(count) for key, count in counts.items()}
    ours, theirs = (float(module.KappaHandler(False, False)(**arrays)) for module in MODULES)
    assert ours == pytest.approx(right, abs=1e-12)
    assert abs(theirs - right) > 0.05


def test_s_of_an_object_at_the_border_is_a_number() -> None:
    """The centroid is in the last row: two of the four parts have no pixels, theirs is NaN."""
    gt = np.zeros((6, 9), np.uint8)
    gt[5, 2:5] = 255
    pred = (np.arange(54).reshape(6, 9) * 4).astype(np.uint8)
    ours, theirs = both("sm", "/sm", pred, gt)
    assert math.isnan(theirs)
    assert 0 <= ours <= 1


def test_s_of_constant_parts_does_not_depend_on_rounding() -> None:
    """A constant map: a part without an object scores 1; theirs 1 or 0, by the rounding of its mean."""
    gt = np.zeros((9, 13), np.uint8)
    gt[:3, :3] = gt[-3:, -3:] = 255
    scores = [both("sm", "/sm", np.full_like(gt, grey), gt) for grey in (52, 53, 58, 59)]
    ours, theirs = zip(*scores, strict=True)
    assert np.ptp(ours) < 0.001
    assert np.ptp(theirs) > 0.2


def test_a_frame_that_covers_the_image() -> None:
    gt = np.full((20, 30), 255, np.uint8)
    gt[3:-3, 3:-3] = 0
    ours, theirs = both("si_mae", "/si_mae", PRED, gt)
    assert math.isnan(theirs)
    assert ours == pytest.approx(results(drop_in, "mae", [(PRED, gt)])["/mae"], abs=1e-12)


@pytest.mark.parametrize("name", ["si_mae", "si_v2", "si_v2_overall"])
def test_size_invariant_metrics_of_a_full_mask(name: str) -> None:
    full = np.full_like(GT, 255)
    with pytest.raises(AssertionError, match="connected_block_size"):
        results(py_sod_metrics, name, [(PRED, full)])
    assert all(np.isfinite(value).all() for value in results(drop_in, name, [(PRED, full)]).values())


def crowd(columns: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Rows of five targets of 64 pixels."""
    gt: NDArray[np.uint8] = np.tile(np.pad(np.full((8, 8), 255, np.uint8), 1), (5, columns))
    return np.where(gt > 0, np.arange(gt.shape[1]) % 97 + 150, 30).astype(np.uint8), gt


def test_from_64_targets_on() -> None:
    """Theirs keeps every target as a bit of an integer of 64 bits."""
    few = both("si_mae", "/si_mae", *crowd(12))
    assert few[0] == pytest.approx(few[1], abs=1e-12)
    with pytest.raises(OverflowError):
        results(py_sod_metrics, "si_mae", [crowd(13)])
    assert 0 < results(drop_in, "si_mae", [crowd(13)])["/si_mae"] < 1


def test_more_than_53_targets_whose_frames_overlap() -> None:
    """Theirs adds the bits in a double: where bits 1 and 55 meet, bit 1 is lost."""
    pred, gt = (np.pad(image, ((3, 1), (3, 1))) for image in crowd(11))
    gt[1, 1:-1] = gt[1:-1, 1] = 255  # the first target: its frame holds all others
    ours, theirs = both("si_mae", "/si_mae", pred, gt)
    frames = PROTOCOLS["pysodmetrics"].partition(gt > 128)
    error = np.abs((pred - pred.min()) / np.ptp(pred) - (gt > 128))
    total = sum(float(error[frame.window].mean()) for frame in frames)
    total += frames.alpha * float(error[frames.background].mean())
    assert len(frames) == 56
    assert ours == pytest.approx(total / (56 + frames.alpha), abs=1e-12)
    assert abs(ours - theirs) > 1e-5


def test_multiscale_iou_counts_more_than_2048_edge_pixels() -> None:
    """Theirs sums in half precision, which has no odd numbers above 2048 and ends at 65504."""
    gt = np.zeros((100, 100), np.uint8)
    gt[::4] = gt[50, 3] = 255
    gt[0, :5] = 0
    pred = np.where(np.arange(100) < 50, gt, 0).astype(np.uint8)
    ours, theirs = both("msiou_levels", "/adaptive", pred, gt)
    assert 1e-6 < abs(ours - theirs) < 1e-3


def test_e_measure_of_a_single_pixel() -> None:
    white = np.full((1, 1), 255, np.uint8)
    ours, theirs = both("em", "/em/adp", white, white)
    assert ours == 1
    assert theirs > 1e15


def test_boolean_masks_are_masks() -> None:
    """With normalize=True theirs compares True with 128: every boolean mask is empty."""
    ours, theirs = both("fm", "/fm/adp", PRED, GT > 128)
    assert ours == results(drop_in, "fm", [(PRED, GT)])["/fm/adp"] > 0.9
    assert theirs == 0


def test_a_boolean_map_that_is_true_everywhere_is_white() -> None:
    ours, theirs = both("mae", "/mae", np.ones(GT.shape, np.bool_), np.full_like(GT, 255))
    assert ours == 0
    assert theirs == pytest.approx(254 / 255)


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
def test_masks_of_0_and_1_are_refused(kind: type) -> None:
    ones: NDArray[Any] = (GT > 128).astype(kind)
    assert results(py_sod_metrics, "fm", [(PRED, ones)])["/fm/adp"] == 0  # every pixel is below 128
    with pytest.raises(ValueError, match=r"gt .* maximum 1.*pass gt > 0, or multiply by 255"):
        results(drop_in, "fm", [(PRED, ones)])


def test_nan_in_a_map_is_refused() -> None:
    pred = np.where(GT > 128, np.nan, 0.5)
    assert math.isnan(results(py_sod_metrics, "mae", [(pred, GT)])["/mae"])
    with pytest.raises(ValueError, match="pred contains NaN"):
        results(drop_in, "mae", [(pred, GT)])


def test_a_constant_map_out_of_range_is_refused() -> None:
    pred = np.full(GT.shape, 65535, np.uint16)
    assert results(py_sod_metrics, "mae", [(pred, GT)])["/mae"] > 200
    with pytest.raises(ValueError, match="pred is 65535 everywhere"):
        results(drop_in, "mae", [(pred, GT)])


def test_context_measure_of_a_sloping_line_is_refused() -> None:
    gt = np.eye(12, dtype=np.uint8) * np.uint8(255)
    pred = (np.arange(144).reshape(12, 12)).astype(np.uint8)
    with pytest.raises(np.linalg.LinAlgError):
        results(py_sod_metrics, "cm", [(pred, gt)])
    with pytest.raises(ValueError, match="on a sloping line"):
        results(drop_in, "cm", [(pred, gt)])

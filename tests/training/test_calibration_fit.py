"""The fit of temperature and shift: by hand, against SciPy on single pixels, against scikit-learn."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("lightning", reason="extra torch is not installed")

from helpers.calibration_pixels import pixels
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize

from sisod.analysis.reliability import reliability_curve
from sisod.common.exceptions import InputError, InputWarning, UsageError
from sisod.networks.specs import Calibration
from sisod.training.calibration import WeightedLogits, fit_calibration, fit_images
from sisod.training.calibration.fit import LogitHistogram

GOLDEN = json.loads(Path(__file__).with_name("calibration_golden.json").read_text())


def sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 / (1 + np.exp(-x))


def weighted(*rows: tuple[float, bool, float]) -> WeightedLogits:
    logits, salient, weights = (np.array(column) for column in zip(*rows, strict=True))
    return WeightedLogits(logits, salient, weights)


# -------------------------------------------------------------------------------------------- by hand


def test_calibrated_pixels_need_no_calibration() -> None:
    """At logit x, exactly the share sigmoid(x) is salient."""
    rows = [(x, y, p if y else 1 - p) for x in (-3.0, -1.0, 2.0) for p in [1 / (1 + np.exp(-x))]
            for y in (True, False)]  # fmt: skip
    assert fit_calibration(weighted(*rows)) == Calibration(1.0, 0.0)


def test_two_logits_by_hand() -> None:
    """Shares 3/4 at logit 2 and 1/4 at logit 0: the line through (2, log 3) and (0, -log 3)."""
    found = fit_calibration(weighted((2, True, 3), (2, False, 1), (0, True, 1), (0, False, 3)))
    assert found == Calibration(round(1 / np.log(3), 4), round(-np.log(3), 4))


def test_mae_wants_hard_maps_and_the_best_threshold() -> None:
    """Salient above logit 1 except for a tenth: the hardest map, with its middle at 1."""
    logits = np.arange(-20, 21) / 10 + 0.05
    rows = [(x, y, w) for x in logits for y, w in ((x > 1, 0.9), (x <= 1, 0.1))]
    found = fit_calibration(weighted(*rows), "mae")
    assert found.temperature == 0.1
    assert -found.shift * found.temperature == pytest.approx(1.0, abs=0.05)


def test_errors_of_pixels_by_hand() -> None:
    pixels = weighted((0.0, True, 1), (0.0, False, 1), (np.log(3), False, 2))  # p = .5, .5, .75
    assert pixels.mae() == pytest.approx((0.5 + 0.5 + 2 * 0.75) / 4)
    assert pixels.bce() == pytest.approx((2 * np.log(2) + 2 * np.log(4)) / 4)
    assert pixels.reliability().error == pytest.approx(0.5 * 0 + 0.5 * 0.75)


def test_expected_calibration_error_by_hand() -> None:
    """15 bins: 1.0 is in the last; 0.2 is the lower edge of the fourth."""
    curve = reliability_curve([1.0, 0.95, 0.2, 0.19], [True, False, False, True], [1, 1, 1, 1])
    assert np.flatnonzero(curve.weights).tolist() == [2, 3, 14]
    assert curve.error == pytest.approx(0.25 * 0.81 + 0.25 * 0.2 + 0.5 * (0.975 - 0.5))
    assert np.isnan(curve.probs[0])
    assert curve.to_json()["shares"][0] is None


def test_every_image_weighs_the_same_and_so_does_every_frame() -> None:
    """20 small black images without an object, 20 large ones with two objects of 1 and 9 pixels."""
    small, large = np.full((2, 2), -3.0), np.full((40, 40), -1.0)
    mask = np.zeros((40, 40), dtype=bool)
    mask[5, 5] = mask[20:23, 20:23] = True
    large[20:23, 20:23] = large[30, 30] = 0.0
    images = [(f"s{i}", small, np.zeros((2, 2), dtype=bool)) for i in range(20)]
    images += [(f"l{i}", large, mask) for i in range(20)]
    fitted = fit_images(images)
    p = {x: 1 / (1 + np.exp(-x)) for x in (-3.0, -1.0)}
    of_large = (1589 * p[-1.0] + 10 * 0.5 + (1 - p[-1.0])) / 1600
    assert fitted.before.mae == pytest.approx((p[-3.0] + of_large) / 2)
    assert fitted.before.objects.weights[[4, 7]].tolist() == pytest.approx([0.5, 0.5])
    assert fitted.before.objects.error == pytest.approx(0.5 * (1 - p[-1.0]) + 0.5 * 0.5)
    assert fitted.images == tuple(name for name, _, _ in images)


def image(slope: float, shift: float, n_wrong: int = 0) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """100 x 100 pixels of known probabilities, and of 1000 at logit -20 a few that are salient."""
    logits, salient, _ = pixels(10_000, slope=slope, shift=shift)
    logits[:1000], salient[:1000] = (
        (-20, np.arange(1000) < n_wrong) if n_wrong else (logits[0], salient[0])
    )
    return logits.reshape(100, 100), salient.reshape(100, 100)


@pytest.mark.parametrize(
    ("halves", "raised"),
    [
        pytest.param((image(1, 1.5), image(1, -1.5)), "BCE", id="what fits one half harms the other"),
        pytest.param((image(1, 0, 20), image(1, 0, 20)), "ECE", id="few errors that are very sure"),
    ],
)
def test_a_fit_that_raises_the_error_is_not_kept(halves: Any, raised: str) -> None:
    images = [(str(index), *halves[index % 2]) for index in range(20)]
    with pytest.warns(InputWarning, match=rf"raises .*{raised} from 0\.\d+ to 0\.\d+"):
        fitted = fit_images(images)
    assert fitted.calibration == Calibration()
    assert fitted.after.values() == fitted.before.values()


# ----------------------------------------------------------------------------------- outside witnesses


@pytest.mark.parametrize("name", GOLDEN["cases"])
def test_platt_scaling_of_scikit_learn(name: str) -> None:
    case = GOLDEN["cases"][name]
    arguments = {key: case[key] for key in ("count", "slope", "shift") if key in case}
    data = WeightedLogits(*pixels(**arguments))
    found = fit_calibration(data)
    assert found.temperature == pytest.approx(case["temperature"], abs=GOLDEN["tolerance"])
    assert found.shift == pytest.approx(case["fitted_shift"], abs=GOLDEN["tolerance"])
    assert data.calibrated(found).bce() == pytest.approx(case["bce"], abs=1e-7)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.2, 4), st.floats(-3, 3))
def test_histogram_fits_as_single_pixels_do(seed: int, slope: float, shift: float) -> None:
    """Against scipy.optimize on the raw pixels of images of different sizes."""
    rng = np.random.default_rng(seed)
    histogram, parts = LogitHistogram(), []
    for size in (50, 400, 150):
        x = rng.normal(0, 3, (size, 1))
        y = rng.random((size, 1)) < sigmoid(slope * x + shift)
        y[:2, 0], x[:2, 0] = (True, False), (-1, 1)  # never separable
        histogram.add(x, y)
        parts.append((x.ravel(), y.ravel(), np.full(size, 1 / size)))
    raw = WeightedLogits(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def bce(at: NDArray[np.float64]) -> float:
        z = at[0] * raw.logits + at[1]
        return float(raw.weights @ (np.logaddexp(0, z) - raw.salient * z)) / 3

    best = minimize(bce, np.array([1.0, 0.0]), method="BFGS", options={"gtol": 1e-9})
    found = fit_calibration(histogram.points())
    assert raw.calibrated(found).bce() == pytest.approx(best.fun, abs=2e-6)
    assert 1 / found.temperature == pytest.approx(best.x[0], rel=2e-3)
    binned = histogram.points().calibrated(found)
    assert binned.mae() == pytest.approx(raw.calibrated(found).mae(), abs=1e-5)


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 10_000))
def test_no_other_calibration_has_a_lower_mae(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 2, 300)
    y = rng.random(300) < sigmoid(1.5 * x - 1)
    data = WeightedLogits(x, y, np.ones(300))
    lowest = data.calibrated(fit_calibration(data, "mae")).mae()
    others = [Calibration(t, s) for t in np.geomspace(0.1, 20, 15) for s in np.linspace(-40, 40, 41)]
    assert lowest <= min(data.calibrated(other).mae() for other in others) + 1e-4


# -------------------------------------------------------------------------------------------- refusals

MASK = np.zeros((8, 8), dtype=bool)
MASK[2:5, 3:6] = True
NOISE = np.random.default_rng(0).normal(size=(8, 8))


@pytest.mark.parametrize(
    ("count", "logits", "mask", "message"),
    [
        (19, NOISE, MASK, "19 images are too few to calibrate on; expected at least 20; give more"),
        (20, NOISE, ~MASK & MASK, "no pixel of the masks is salient"),
        (20, NOISE, MASK | True, "every pixel of the masks is salient"),
        (20, NOISE * 0 + 0.3, MASK, "the maps are constant"),
        (20, NOISE - 5 * MASK, MASK, "map values do not correlate with the masks"),
        (20, 4.0 * MASK, MASK, "the maps separate objects and background without an error, so"),
    ],
)  # fmt: skip
def test_refused_input(
    count: int, logits: NDArray[np.float64], mask: NDArray[np.bool_], message: str
) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        fit_images([(str(index), logits, mask) for index in range(count)])


def test_refused_fits_of_mae() -> None:
    """Where no pixel is salient more often than not, a black map has the lowest MAE."""
    rows = [(x, y, 0.2 if y else 0.8) for x in (-1.0, 0.0, 1.0) for y in (True, False)]
    with pytest.raises(
        InputError, match=r"^no threshold gives a lower MAE than all-black maps; expected maps that"
    ):
        fit_calibration(weighted(*rows), "mae")
    with pytest.raises(UsageError, match="objective must be 'bce' or 'mae', got 'brier'"):
        fit_calibration(weighted(*rows), "brier")  # type: ignore[arg-type]

"""Logits and masks -> temperature, shift and their effect, each half calibrated by the other half.

Every image weighs the same, and so does every pixel of an image; errors over objects give every frame
of a mask the same weight. Pixels are not kept: logits fall into bins of 1/128, salient or not, of which
the mean logit and the weight are kept. What is fitted and measured are these weighted points.
"""

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sisod.analysis.reliability import ReliabilityCurve, reliability_curve
from sisod.common.arguments import check_choice
from sisod.common.exceptions import InputError, InputWarning
from sisod.common.grid import Grid
from sisod.networks.specs import LEAST_TEMPERATURE, MOST_TEMPERATURE, Calibration
from sisod.scoring.partition import cut_mask

Objective = Literal["bce", "mae"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
Values = NDArray[np.float64]
Named = tuple[str, NDArray[Any], NDArray[np.bool_]]  # name, logits, mask
LEAST_IMAGES = 20
_MUST_NOT_RISE: dict[Objective, tuple[str, ...]] = {"bce": ("bce", "ece"), "mae": ("mae",)}
REACH = 32.0  # logits beyond are taken as this; the sigmoid is 1e-14 there
_BINS_PER_UNIT = 128
_N_BINS = int(2 * REACH * _BINS_PER_UNIT) + 1
_DIGITS = 4  # decimals of the fitted numbers: the same on every machine
_SHARPEST = 0.1  # least temperature of the fit to MAE, which falls until maps are binary
_SOFTEST = 20.0
_NEWTON_STEPS = 100
_NEIGHBOURS = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
_SEPARATED = (
    "the maps separate objects and background without an error, so every harder map has a lower "
    "cross-entropy; there is nothing to calibrate"
)


@dataclass(frozen=True, eq=False)
class WeightedLogits:
    """Pixels, or means of similar pixels: logit, whether salient, weight.

    Example:
        Two pixels of probability 0.5, of which the first, three times as heavy, is salient:

        >>> pixels = WeightedLogits(np.zeros(2), np.array([True, False]), np.array([3.0, 1.0]))
        >>> pixels.mae(), round(pixels.bce(), 4)
        (0.5, 0.6931)
    """

    logits: Values
    salient: NDArray[np.bool_]
    weights: Values

    def calibrated(self, calibration: Calibration) -> "WeightedLogits":
        """Return the same pixels with calibrated logits."""
        return WeightedLogits(calibration.apply(self.logits), self.salient, self.weights)

    def mae(self) -> float:
        """Return the mean of the absolute difference of p and y."""
        return float(self.weights @ _sigmoid(-_signed(self))) / float(self.weights.sum())

    def bce(self) -> float:
        """Return the mean binary cross-entropy."""
        return float(self.weights @ np.logaddexp(0.0, -_signed(self))) / float(self.weights.sum())

    def reliability(self) -> ReliabilityCurve:
        """Return how often pixels of each probability are salient."""
        return reliability_curve(_sigmoid(self.logits), self.salient, self.weights)


def joined(parts: Sequence[WeightedLogits]) -> WeightedLogits:
    """Return the pixels of several parts together."""
    return WeightedLogits(
        np.concatenate([part.logits for part in parts]),
        np.concatenate([part.salient for part in parts]),
        np.concatenate([part.weights for part in parts]),
    )


class LogitHistogram:
    """Collects weighted pixels in bins of their logit.

    Example:
        >>> histogram = LogitHistogram()
        >>> histogram.add(np.array([[2.0, 2.001, -1.0, 0.5]]), np.array([[True, True, False, True]]))
        >>> histogram.points().logits.round(4).tolist(), histogram.points().weights.tolist()
        ([-1.0, 0.5, 2.0005], [0.25, 0.25, 0.5])
    """

    def __init__(self) -> None:
        # salient or not; weight, weight times logit; bins
        self._sums = np.zeros((2, 2, _N_BINS))

    def add(self, logits: NDArray[Any], mask: NDArray[np.bool_]) -> None:
        """Add the pixels of an image, or of a part of one, with a total weight of 1."""
        x = np.clip(logits.ravel().astype(np.float64), -REACH, REACH)
        bins = np.floor((x + REACH) * _BINS_PER_UNIT).astype(np.int64) + _N_BINS * mask.ravel()
        for row, values in enumerate((None, x)):
            counts = np.bincount(bins, weights=values, minlength=2 * _N_BINS)
            self._sums[:, row] += counts.reshape(2, _N_BINS) / x.size

    def points(self) -> WeightedLogits:
        """Return one weighted point for each bin that is not empty."""
        weights, sums = self._sums[:, 0], self._sums[:, 1]
        filled = weights > 0
        salient = np.repeat([[False], [True]], _N_BINS, axis=1)
        return WeightedLogits(sums[filled] / weights[filled], salient[filled], weights[filled])


def fit_calibration(pixels: WeightedLogits, objective: Objective = "bce") -> Calibration:
    """Return the temperature and the shift with the lowest cross-entropy or MAE.

    Both have four decimals, a temperature below 0.5 has more.

    The fit to cross-entropy is Platt scaling, a convex problem. MAE has no such guarantee and falls
    until maps are binary; its minimum is searched on a grid, with a temperature from 0.1 to 20.

    Args:
        pixels: logits and truth, weighted.
        objective: `"bce"` or `"mae"`.

    Example:
        Pixels at logit 2 of which 62 % are salient, and as many at -2 of which 27 % are. The logits of
        these shares are 0.49 and -0.99, so the fit is x / 2.7 - 0.25:

        >>> logits, salient = np.array([2.0, 2.0, -2.0, -2.0]), np.array([True, False, True, False])
        >>> print(fit_calibration(WeightedLogits(logits, salient, np.array([0.62, 0.38, 0.27, 0.73]))))
        temperature 2.6951, shift -0.2525
    """
    check_choice("objective", objective, OBJECTIVES)
    if pixels.salient.all() or not pixels.salient.any():
        which = "every" if pixels.salient.all() else "no"
        raise InputError(
            f"{which} pixel of the masks is salient; expected objects and background; calibrate on "
            "other images"
        )
    if np.ptp(pixels.logits) < 1e-6:
        raise InputError("the maps are constant; train the network first")
    temperature, shift = (_fit_bce if objective == "bce" else _fit_mae)(pixels)
    # the lower a temperature, the more its rounding moves the logits
    digits = _DIGITS + max(0, math.ceil(-2 * math.log10(2 * temperature)))
    return Calibration(round(temperature, digits), round(shift, _DIGITS))


def _fit_bce(pixels: WeightedLogits) -> tuple[float, float]:
    """Newton's method with halved steps for slope and shift: the loss is convex in these two.

    It begins with the constant map of the lowest loss: at confident logits the loss is nearly flat.
    """
    y, w = pixels.salient.astype(np.float64), pixels.weights / pixels.weights.sum()
    if pixels.logits[pixels.salient].min() >= pixels.logits[~pixels.salient].max():
        raise InputError(_SEPARATED)
    middle = float(w @ pixels.logits)
    scale = math.sqrt(float(w @ (pixels.logits - middle) ** 2))
    design = np.stack([(pixels.logits - middle) / scale, np.ones_like(y)])

    def loss(at: Values) -> float:
        z = at @ design
        return float(w @ (np.logaddexp(0.0, z) - y * z))

    share = float(w @ y)
    at = np.array([0.0, math.log(share / (1 - share))])
    for _ in range(_NEWTON_STEPS):
        p = _sigmoid(at @ design)
        gradient = design @ (w * (p - y))
        hessian = (design * (w * p * (1 - p))) @ design.T
        step = np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        now = loss(at)
        while np.abs(step).max() >= 1e-9 and not loss(at - step) <= now:
            step = step / 2
        if np.abs(step).max() < 1e-9:
            break
        at = at - step
    slope, at_middle = float(at[0]) / scale, float(at[1])
    if slope < 1 / MOST_TEMPERATURE:
        raise InputError(
            "map values do not correlate with the masks; expected maps that are bright on objects; give "
            "a network that is trained"
        )
    if slope > 1 / LEAST_TEMPERATURE:
        raise InputError(_SEPARATED)
    return 1 / slope, at_middle - slope * middle


def _fit_mae(pixels: WeightedLogits) -> tuple[float, float]:
    """Search a grid of temperatures and of logits where the calibrated map is 0.5, then refine."""
    # MAE is a constant plus the sum of `net` p
    net = np.where(pixels.salient, -pixels.weights, pixels.weights) / pixels.weights.sum()
    low, high = float(pixels.logits.min()), float(pixels.logits.max())
    temperatures = np.log(np.geomspace(_SHARPEST, _SOFTEST, 25))
    middles = np.linspace(low, high, 97)

    def loss(at: tuple[float, float]) -> float:
        return float(net @ _sigmoid((pixels.logits - at[1]) / np.exp(at[0])))

    best = min(((t, m) for t in temperatures for m in middles), key=loss)
    steps = temperatures[1] - temperatures[0], middles[1] - middles[0]
    while max(steps) > 1e-6:  # move to a better neighbour as long as there is one, then halve the steps
        around = [(best[0] + i * steps[0], best[1] + j * steps[1]) for i, j in _NEIGHBOURS]
        inside = [at for at in around if temperatures[0] <= at[0] <= temperatures[-1]]
        better = min((best, *inside), key=loss)
        steps = (steps[0] / 2, steps[1] / 2) if better == best else steps
        best = better
    temperature, middle = float(np.clip(np.exp(best[0]), _SHARPEST, _SOFTEST)), float(best[1])
    if not low < middle < high:
        colour = "black" if middle >= high else "white"
        raise InputError(
            f"no threshold gives a lower MAE than all-{colour} maps; expected maps that are bright on "
            "objects; give a trained network, or fit to bce"
        )
    return temperature, -middle / temperature


def _signed(pixels: WeightedLogits) -> Values:
    """Return logits whose sign is that of the truth, so that large ones are right."""
    return np.where(pixels.salient, pixels.logits, -pixels.logits)


def _sigmoid(logits: Values) -> Values:
    return np.asarray(0.5 * (1 + np.tanh(0.5 * logits)))


@dataclass(frozen=True, eq=False)
class CalibrationErrors:
    """Errors of maps, before or after calibration.

    Attributes:
        mae: mean absolute error, every image with the same weight.
        bce: mean binary cross-entropy, the same.
        pixels: reliability over pixels, every image with the same weight.
        objects: reliability inside the frames, every frame with the same weight.
    """

    mae: float
    bce: float
    pixels: ReliabilityCurve
    objects: ReliabilityCurve

    @classmethod
    def measure(cls, images: WeightedLogits, frames: WeightedLogits) -> "CalibrationErrors":
        """Return the errors of weighted pixels."""
        return cls(images.mae(), images.bce(), images.reliability(), frames.reliability())

    def values(self) -> dict[str, float]:
        """Return the four numbers: MAE, BCE, expected calibration error of pixels and of objects."""
        errors = {"ece": self.pixels.error, "si_ece": self.objects.error}
        return {"mae": self.mae, "bce": self.bce, **errors}


@dataclass(frozen=True, eq=False)
class FittedCalibration:
    """A calibration fitted on all images, and what it does to images it was not fitted on.

    Attributes:
        calibration: fitted on all images.
        objective: what was minimised.
        images: names of the images.
        before: errors without calibration.
        after: errors with calibration, where each half of the images is calibrated by the two numbers
            fitted on the other half.
    """

    calibration: Calibration
    objective: Objective
    images: tuple[str, ...]
    before: CalibrationErrors
    after: CalibrationErrors

    def grid(self) -> Grid:
        """Return the table of errors before and after."""
        before, after = self.before.values(), self.after.values()
        titles = {"mae": "MAE", "bce": "BCE", "ece": "ECE", "si_ece": "SI-ECE"}
        rows = tuple((titles[key], f"{before[key]:.4f}", f"{after[key]:.4f}") for key in titles)
        return Grid(("error", "before", "after"), rows, n_text=1)

    def panels(self) -> dict[str, dict[str, ReliabilityCurve]]:
        """Return the reliability curves over pixels and over objects, before and after."""
        return {
            "pixels, every image alike": {"before": self.before.pixels, "after": self.after.pixels},
            "objects, every frame alike": {"before": self.before.objects, "after": self.after.objects},
        }

    def to_json(self) -> dict[str, Any]:
        """Return the content of calibration.json."""
        curves = {
            when: {"pixels": error.pixels.to_json(), "objects": error.objects.to_json()}
            for when, error in (("before", self.before), ("after", self.after))
        }
        return self.calibration.to_json() | {
            "objective": self.objective,
            "before": self.before.values(),
            "after": self.after.values(),
            "reliability": curves,
            "images": list(self.images),
        }


def fit_images(images: Iterable[Named], objective: Objective = "bce") -> FittedCalibration:
    """Fit a calibration to the logits and masks of at least 20 images.

    A fit that raises its objective, or for `"bce"` the calibration error, on images that it was not
    fitted on is dropped with a warning: temperature 1 and shift 0 leave the maps as they are.

    Args:
        images: name, logits (height, width) before any calibration, and mask of each image.
        objective: `"bce"` or `"mae"`.

    Returns:
        The calibration, and the errors of the maps before and after it.

    Raises:
        InputError: there are fewer images; all pixels or none are salient; the maps are constant, do not
            correlate with the masks, or make no error.

    Example:
        Maps that are too bold: logits of 3 and -3, of which one in ten is wrong:

        >>> mask = np.arange(100).reshape(10, 10) < 50
        >>> logits = np.where(mask ^ (np.arange(100).reshape(10, 10) % 10 == 0), 3.0, -3.0)
        >>> fitted = fit_images([(str(number), logits, mask) for number in range(20)])
        >>> print(fitted.calibration)
        temperature 1.3654, shift +0
    """
    names: list[str] = []
    by_image, by_frame = (LogitHistogram(), LogitHistogram()), (LogitHistogram(), LogitHistogram())
    for index, (name, logits, mask) in enumerate(images):
        names.append(name)
        by_image[index % 2].add(logits, mask)
        for frame in cut_mask(mask):
            by_frame[index % 2].add(logits[frame.window], mask[frame.window])
    check_number_of_images(len(names))
    pixels, frames = ([half.points() for half in halves] for halves in (by_image, by_frame))
    calibration = fit_calibration(joined(pixels), objective)
    try:
        crossed = [fit_calibration(half, objective) for half in pixels][::-1]
    except InputError as error:
        raise InputError(
            f"each half of the images is calibrated by the other, and in one half {error}"
        ) from error
    before = CalibrationErrors.measure(joined(pixels), joined(frames))
    after = CalibrationErrors.measure(_calibrated(pixels, crossed), _calibrated(frames, crossed))
    old, new = before.values(), after.values()
    if raised := [key for key in _MUST_NOT_RISE[objective] if new[key] > old[key]]:
        changes = " and ".join(f"{key.upper()} from {old[key]:.4f} to {new[key]:.4f}" for key in raised)
        warnings.warn(
            f"the fitted calibration ({calibration}) raises {changes} on images that it was not fitted "
            "on, so it is not used: the maps stay as they are; give more images to fit on",
            InputWarning,
            stacklevel=2,
        )
        calibration, after = Calibration(), before
    return FittedCalibration(calibration, objective, tuple(names), before, after)


def check_number_of_images(count: int, advice: str = "give more images") -> None:
    """Raise if there is only a handful of images to fit to."""
    if count < LEAST_IMAGES:
        raise InputError(
            f"{count} images are too few to calibrate on; expected at least {LEAST_IMAGES}; {advice}"
        )


def _calibrated(halves: list[WeightedLogits], calibrations: list[Calibration]) -> WeightedLogits:
    pairs = zip(halves, calibrations, strict=True)
    return joined([half.calibrated(calibration) for half, calibration in pairs])

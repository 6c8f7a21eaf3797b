"""Images -> a fitted calibration and its effect; each half of the images is calibrated by the other.

The objective and the errors over pixels give every image the same weight; the errors over objects give
every frame of a mask the same weight, and every pixel of a frame 1 / its area.
"""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sisod.analysis.reliability import ReliabilityCurve
from sisod.common.exceptions import InputError, InputWarning
from sisod.common.grid import Grid
from sisod.networks.specs import Calibration
from sisod.scoring.partition import cut_mask
from sisod.training.calibration.fit import (
    LogitHistogram,
    Objective,
    WeightedLogits,
    fit_calibration,
    joined,
)

LEAST_IMAGES = 20
_MUST_NOT_RISE: dict[Objective, tuple[str, ...]] = {"bce": ("bce", "ece"), "mae": ("mae",)}
Named = tuple[str, NDArray[Any], NDArray[np.bool_]]  # name, logits, mask


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
        rows = tuple(
            (title, *(f"{values[key]:.4f}" for values in (before, after)))
            for key, title in titles.items()
        )
        return Grid(("error", "before", "after"), rows, n_text=1)

    def panels(self) -> dict[str, dict[str, ReliabilityCurve]]:
        """Return the reliability curves over pixels and over objects, before and after."""
        return {
            "pixels, every image alike": {"before": self.before.pixels, "after": self.after.pixels},
            "objects, every frame alike": {"before": self.before.objects, "after": self.after.objects},
        }

    def to_json(self) -> dict[str, Any]:
        """Return the content of calibration.json."""
        errors = {"before": self.before, "after": self.after}
        return {
            **self.calibration.to_json(),
            "objective": self.objective,
            **{when: error.values() for when, error in errors.items()},
            "reliability": {
                when: {"pixels": error.pixels.to_json(), "objects": error.objects.to_json()}
                for when, error in errors.items()
            },
            "images": list(self.images),
        }


def fit_images(images: Iterable[Named], objective: Objective = "bce") -> FittedCalibration:
    """Fit a calibration to the logits and masks of at least 20 images.

    A fit that raises its objective, or for `"bce"` the calibration error, on images that it was not
    fitted on is dropped with a warning: temperature 1 and shift 0 leave the maps as they are.

    Args:
        images: name, logits (height, width) before any calibration, and mask of each image.
        objective: `"bce"` or `"mae"`.
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
    crossed = [_fit_half(half, objective) for half in pixels][::-1]
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


def _fit_half(pixels: WeightedLogits, objective: Objective) -> Calibration:
    try:
        return fit_calibration(pixels, objective)
    except InputError as error:
        raise InputError(
            f"each half of the images is calibrated by the other, and in one half {error}"
        ) from error


def check_number_of_images(count: int, advice: str = "give more images") -> None:
    """Raise if there is only a handful of images to fit to."""
    if count < LEAST_IMAGES:
        raise InputError(
            f"{count} images are too few to calibrate on; expected at least {LEAST_IMAGES}; {advice}"
        )


def _calibrated(halves: list[WeightedLogits], calibrations: list[Calibration]) -> WeightedLogits:
    pairs = zip(halves, calibrations, strict=True)
    return joined([half.calibrated(calibration) for half, calibration in pairs])

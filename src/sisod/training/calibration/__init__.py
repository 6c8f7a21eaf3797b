"""Calibration of a run: two numbers fitted on images that were neither trained on nor tested on."""

from sisod.training.calibration.fit import (
    FittedCalibration,
    WeightedLogits,
    fit_calibration,
    fit_images,
)
from sisod.training.calibration.runs import calibrate_run, unseen_images

__all__ = [
    "FittedCalibration",
    "WeightedLogits",
    "calibrate_run",
    "fit_calibration",
    "fit_images",
    "unseen_images",
]

"""Calibration of maps: two numbers fitted on images that were neither trained on nor tested on."""

from sisod.training.calibration.fit import WeightedLogits, fit_calibration
from sisod.training.calibration.maps import apply_to_maps, calibrate_maps, read_calibration_file
from sisod.training.calibration.report import FittedCalibration, fit_images
from sisod.training.calibration.runs import calibrate_run, unseen_images

__all__ = [
    "FittedCalibration",
    "WeightedLogits",
    "apply_to_maps",
    "calibrate_maps",
    "calibrate_run",
    "fit_calibration",
    "fit_images",
    "read_calibration_file",
    "unseen_images",
]

"""Experiments with a calibrated copy of a trained network."""

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sisod.training.calibration.fit import Objective
    from sisod.training.experiment import Experiment


def calibrate(experiment: "Experiment", name: str, objective: "Objective" = "bce") -> "Experiment":
    """Return the experiment that scores a calibrated copy of the network, which is kept.

    Args:
        experiment: whose network is trained; it is not changed.
        name: of the new experiment; the copy is `calibrated/NAME` in the folder of both.
        objective: of the fit, on images that were neither trained on nor are in a test set.
    """
    from sisod.training.calibration import calibrate_run

    training, copy = experiment.training, experiment.out / "calibrated" / name
    if not copy.exists():
        calibrate_run(
            training.out,
            data=training.roots[0],
            masks=training.masks,
            objective=objective,
            tests=[test.image_dir for test in experiment.tests],
            factory=experiment.recipe.network.factory or None,
            out=copy,
        )
    return replace(experiment, name=name, training=replace(training, out=copy))

"""The interface of a way of scoring, and the scores that every way returns."""

import typing
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sisod.scoring.arrays import Integers, Map, Values
from sisod.scoring.counting.components import Boxes
from sisod.scoring.partition import Partition

Columns = dict[str, NDArray[np.generic]]  # of a table
Statistics = TypeVar("Statistics")
INVERTED_AUC = 0.3  # an image whose AUC is below: its map is darker on objects than beside them


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of a batch of images, column-wise.

    Attributes:
        keys: the metrics.
        values: images x metrics, NaN where undefined.
        curve_names: family keys, plain then `si_`.
        curves: images x names x 256, NaN where left out or undefined.
        objects: column of the object table -> one value per frame, image after image.
        predicted: column of the table of predicted objects -> one value each, image after image; empty
            if the scorer has none.
        object_counts: count of objects -> a value, or one for each threshold, per image; every count can
            be summed over images. Empty if the scorer has none.
        shapes: height and width of each image.
        n_objects: number of frames of each image.
        alphas: weight of the background of each image.
        looks_binary: True for an integer prediction whose maximum is 1.
        looks_inverted: True where the AUC is below `INVERTED_AUC`.
        n_tiny: number of frames below the protocol's least area: an image without a larger component
            keeps its largest.
        n_left_out: number of components without a frame, because they are below the least area.
    """

    keys: tuple[str, ...]
    values: Values
    curve_names: tuple[str, ...]
    curves: Values
    objects: Columns
    predicted: Columns
    object_counts: dict[str, Values]
    shapes: NDArray[np.int64]
    n_objects: NDArray[np.int64]
    alphas: Values
    looks_binary: NDArray[np.bool_]
    looks_inverted: NDArray[np.bool_]
    n_tiny: NDArray[np.int64]
    n_left_out: NDArray[np.int64]


def object_geometry(
    boxes: Boxes, areas: Integers, frame_areas: Integers, height: Integers | int, width: Integers | int
) -> Columns:
    """Return the columns of the object table that do not depend on the prediction.

    Args:
        boxes: one row y0, x0, y1, x1 per frame.
        areas: pixels of each frame's component.
        frame_areas: pixels of each frame.
        height: of the image of each frame.
        width: of the image of each frame.
    """
    y0, x0, y1, x1 = boxes.T
    return {
        "y0": y0,
        "x0": x0,
        "y1": y1,
        "x1": x1,
        "area": areas,
        "share": areas / (height * width),
        "fill": areas / frame_areas,
        "touches_border": (y0 == 0) | (x0 == 0) | (y1 == height) | (x1 == width),
    }


class Scorer(typing.Protocol[Statistics]):
    """A way of scoring in two stages: measure each image, then finish a batch of measured images.

    `engine.find_scorer` chooses one by the protocol. The statistics between the stages are the scorer's
    own: only the scorer that measured an image can finish it.
    """

    @property
    def keys(self) -> tuple[str, ...]:
        """The metrics to compute."""

    def ground_truth(self, gt: ArrayLike) -> NDArray[Any]:
        """Check a ground truth and return the array that `measure` takes."""

    def measure(
        self,
        pred: Map,
        gt: NDArray[Any],
        partition: Partition | None = None,
        *,
        labels: NDArray[np.integer] | None = None,
    ) -> Statistics:
        """Return the statistics of one checked pair; a prediction of another shape is resized.

        The objects are the components of the ground truth; with `labels`, 0 where the ground truth is
        not salient, they are the pixels of each label.
        """

    def finish(self, images: Sequence[Statistics]) -> Scores:
        """Return the scores of measured images: the same bits as one image at a time, but faster."""

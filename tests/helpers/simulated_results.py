"""Results filled with given numbers, for tests of the statistics computed from them."""

import math
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import sisod
from sisod.scoring.histograms import LEVELS

PEAK = 1 - np.abs(np.arange(LEVELS) - 90) / 200  # a mean curve with one clear maximum


def simulated(
    mae: NDArray[np.float64],
    *,
    n_objects: NDArray[np.int64] | None = None,
    recall: NDArray[np.float64] | None = None,
    level: NDArray[np.float64] | None = None,
    names: list[str] | None = None,
) -> sisod.Evaluation:
    """Return a result with given values for each image and object.

    Args:
        mae: MAE of each image.
        n_objects: number of objects in each image.
        recall: recall of each object.
        level: factor of each image's F curve.
        names: names of the images.
    """
    n_images = len(mae)
    numbers = np.zeros(n_images, dtype=np.int64) if n_objects is None else n_objects
    found = np.empty(0) if recall is None else recall
    heights = np.ones(n_images) if level is None else level
    curves = (heights[:, None] * PEAK).astype(np.float32)
    images = {
        "image": [f"{i:05d}" for i in range(n_images)] if names is None else names,
        "height": np.full(n_images, 10),
        "width": np.full(n_images, 10),
        "n_objects": numbers,
        "mae": mae,
        "f_max": curves.max(axis=1).astype(np.float64),
    }
    undefined = np.full(len(found), math.nan)
    objects: dict[str, Any] = dict.fromkeys(("mae", "f_mean", "f_max", "auc", "iou_binary"), undefined)
    summary = {"mae": mean_of(mae), "f_max": float(curves.mean(axis=0, dtype=np.float64).max())}
    return sisod.Evaluation(
        summary=summary,
        defined={"mae": int((~np.isnan(mae)).sum()), "f_max": n_images},
        images=pl.DataFrame(images),
        objects=pl.DataFrame(objects | {"recall_binary": found}),
        curves=pl.DataFrame(),
        image_curves=pl.DataFrame({"image": images["image"], "f": curves, "si_f": curves * np.nan}),
        protocol=sisod.PROTOCOLS["default"],
    )


def mean_of(values: NDArray[np.float64]) -> float:
    """Return the mean of the values that are not NaN; NaN if there are none."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else math.nan

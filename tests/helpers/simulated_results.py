"""Results filled with given numbers, for tests of the statistics computed from them."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl
import scipy.stats
from numpy.typing import NDArray

import sisod
from sisod.scoring.counting.histograms import LEVELS

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


def slow_interval(
    value: Callable[[Sequence[int]], float], images: Sequence[int], draws: Sequence[Sequence[int]]
) -> tuple[float, float]:
    """Return the symmetric studentised bootstrap interval, by a loop over images and resamples.

    Args:
        value: the score of a list of images.
        images: those that define the score.
        draws: the images of each resample; others than `images` add nothing to the score.
    """
    n, observed = len(images), value(images)
    influence = {i: observed - value([j for j in images if j != i]) for i in images}
    square = sum(x**2 for x in influence.values())
    ratios = []
    for drawn in draws:
        deviation = value(drawn) - observed
        variance = sum(influence.get(i, 0.0) ** 2 for i in drawn) - n * (deviation / (n - 1)) ** 2
        if variance > 1e-9 * square:
            ratios.append(abs(deviation) / math.sqrt(variance))
    student = scipy.stats.t.ppf(0.975, n - 1) * math.sqrt((n - 1) / n)
    width = max(float(np.quantile(ratios, 0.95)), student) * math.sqrt(square)
    return observed - width, observed + width

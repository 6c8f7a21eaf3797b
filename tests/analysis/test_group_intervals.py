"""Intervals of groups: equal to a plain loop over resamples, and absent where images are too few."""

import dataclasses

import numpy as np
import polars as pl
import pytest
from helpers.simulated_results import mean_of, simulated, slow_interval

import sisod
from sisod.analysis.bootstrap import LEAST_IMAGES, number_intervals, size_intervals

EDGES = (0.0, 0.01, 0.1, 1.0)
RESAMPLES = 40


def result() -> sisod.Evaluation:
    """Images of 0 to 6 objects; some of their scores are undefined."""
    n_images, rng = 60, np.random.default_rng(0)
    numbers = rng.integers(0, 7, n_images)
    n_objects = int(numbers.sum())
    mae = np.where(rng.random(n_images) < 0.1, np.nan, rng.random(n_images))
    evaluation = simulated(mae, n_objects=numbers, recall=rng.random(n_objects))
    scores = np.where(rng.random(n_objects) < 0.1, np.nan, rng.random(n_objects))
    shares = 10 ** rng.uniform(-3, 0, n_objects)
    objects = evaluation.objects.with_columns(mae=pl.Series(scores), share=pl.Series(shares))
    return dataclasses.replace(evaluation, objects=objects)


@pytest.mark.parametrize("key", ["object_mae", "found", "mae"])
def test_intervals_equal_a_loop_over_drawn_images(key: str) -> None:
    """Of scores of objects by size, and of a metric of images by number of objects."""
    evaluation = result()
    n_images, numbers = evaluation.images.height, evaluation.images["n_objects"].to_list()
    if key == "mae":
        ends = number_intervals(evaluation, key, resamples=RESAMPLES)
        values, groups = evaluation.images[key].to_numpy(), np.minimum(numbers, 5)
        images = np.arange(n_images)
    else:
        ends = size_intervals(evaluation, key, EDGES, resamples=RESAMPLES)
        recall, mae, shares = evaluation.objects["recall_binary", "mae", "share"].to_numpy().T
        values = recall >= 0.5 if key == "found" else mae
        groups, images = np.digitize(shares, EDGES) - 1, np.repeat(np.arange(n_images), numbers)
    draws = np.random.default_rng(0).integers(0, n_images, size=(RESAMPLES, n_images)).tolist()
    for group, interval in enumerate(ends):
        chosen = (groups == group) & ~np.isnan(values)
        scores = [values[chosen & (images == image)] for image in range(n_images)]
        expected = slow_interval(
            lambda drawn, scores=scores: mean_of(np.concatenate([scores[i] for i in drawn])),  # type: ignore[misc]
            [i for i in range(n_images) if len(scores[i])],
            draws,
        )
        np.testing.assert_allclose(interval, np.clip(expected, 0, 1), rtol=1e-3)
    assert len(ends) == (6 if key == "mae" else 3)  # 0, 1, 2, 3, 4, 5+


def test_few_images_have_no_interval() -> None:
    n_objects = np.array([3] * (LEAST_IMAGES - 1) + [1] * LEAST_IMAGES)
    recall = np.ones(int(n_objects.sum()))
    evaluation = simulated(np.linspace(0, 1, len(n_objects)), n_objects=n_objects, recall=recall)
    shares = np.where(np.repeat(n_objects, n_objects) == 3, 0.001, 0.5)
    objects = evaluation.objects.with_columns(share=pl.Series(shares))
    evaluation = dataclasses.replace(evaluation, objects=objects)
    ends = size_intervals(evaluation, "found", EDGES, resamples=20)
    assert np.isnan(ends[:2]).all()  # the first has twelve objects, but of four images
    assert ends[2].tolist() == [1, 1]
    numbers = number_intervals(evaluation, "mae", resamples=20)
    assert np.isnan(numbers).tolist() == [[False] * 2] + [[True] * 2] * 4

"""Intervals of groups: equal to a plain loop over resamples, and absent where images are too few."""

import dataclasses
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from helpers.simulated_results import mean_of, simulated, slow_interval

import sisod
from sisod.analysis.bootstrap import LEAST_IMAGES, number_intervals, size_intervals

EDGES = (0.0, 0.01, 0.1, 1.0)
RESAMPLES = 40


def result(n_images: int = 30, *, seed: int = 0) -> sisod.Evaluation:
    """Images of 0 to 6 objects; some of their scores are undefined."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, 7, n_images)
    n_objects = int(numbers.sum())
    mae = np.where(rng.random(n_images) < 0.1, np.nan, rng.random(n_images))
    evaluation = simulated(mae, n_objects=numbers, recall=rng.random(n_objects))
    scores = np.where(rng.random(n_objects) < 0.1, np.nan, rng.random(n_objects))
    shares = 10 ** rng.uniform(-3, 0, n_objects)
    objects = evaluation.objects.with_columns(mae=pl.Series(scores), share=pl.Series(shares))
    return dataclasses.replace(evaluation, objects=objects)


def draws(n_images: int) -> list[list[int]]:
    rng = np.random.default_rng(0)
    drawn: list[list[int]] = rng.integers(0, n_images, size=(RESAMPLES, n_images)).tolist()
    return drawn


@pytest.mark.parametrize("key", ["object_mae", "found"])
def test_size_intervals_equal_a_loop_over_drawn_images(key: str) -> None:
    evaluation = result()
    ends = size_intervals(evaluation, key, EDGES, resamples=RESAMPLES)
    starts = np.cumsum([0, *evaluation.images["n_objects"].to_list()])
    rows = evaluation.objects.rows(named=True)
    for group, (low, high) in enumerate(pairwise(EDGES)):
        scores: dict[int, list[float]] = {i: [] for i in range(30)}
        for image in range(30):
            for row in rows[starts[image] : starts[image + 1]]:
                score = float(row["recall_binary"] >= 0.5) if key == "found" else row["mae"]
                if low <= row["share"] < high and not np.isnan(score):
                    scores[image].append(score)
        expected = slow_interval(
            lambda chosen, scores=scores: mean_of(np.array([x for i in chosen for x in scores[i]])),  # type: ignore[misc]
            [i for i in range(30) if scores[i]],
            draws(30),
        )
        np.testing.assert_allclose(ends[group], np.clip(expected, 0, 1), rtol=1e-3)


def test_number_intervals_equal_a_loop_over_drawn_images() -> None:
    evaluation = result(60)
    ends = number_intervals(evaluation, "mae", resamples=RESAMPLES)
    numbers, values = evaluation.images["n_objects"].to_list(), evaluation.images["mae"].to_list()
    assert ends.shape == (6, 2)  # 0, 1, 2, 3, 4, 5+
    for group in range(6):
        own = [i for i in range(60) if min(numbers[i], 5) == group and not np.isnan(values[i])]
        expected = slow_interval(
            lambda chosen, own=own: mean_of(np.array([values[i] for i in chosen if i in own])),  # type: ignore[misc]
            own,
            draws(60),
        )
        np.testing.assert_allclose(ends[group], np.clip(expected, 0, 1), rtol=1e-3)


def test_few_images_have_no_interval() -> None:
    n_objects = np.array([3] * (LEAST_IMAGES - 1) + [1] * LEAST_IMAGES)
    recall = np.ones(int(n_objects.sum()))
    evaluation = simulated(np.linspace(0, 1, len(n_objects)), n_objects=n_objects, recall=recall)
    shares = np.where(np.repeat(n_objects, n_objects) == 3, 0.001, 0.5)
    objects = evaluation.objects.with_columns(share=pl.Series(shares))
    evaluation = dataclasses.replace(evaluation, objects=objects)
    few, none, enough = size_intervals(evaluation, "found", EDGES, resamples=20)
    assert np.isnan(few).all()  # twelve objects, but of four images
    assert np.isnan(none).all()
    np.testing.assert_array_equal(enough, [1, 1])
    numbers = number_intervals(evaluation, "mae", resamples=20)
    assert np.isfinite(numbers[0]).all()
    assert np.isnan(numbers[1:]).all()

"""The test of the size bias: whether one method prefers large objects more than another."""

import math

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sisod.evaluation.result import Evaluation

PERMUTATIONS = 1000


def size_bias_test(
    a: Evaluation, b: Evaluation, *, permutations: int = PERMUTATIONS, seed: int = 0
) -> float:
    """Return p of the permutation test of the difference of two size biases, without their signs.

    As in `compare`, the maps of an image are exchanged between the methods, here with the scores of all
    its objects.

    Args:
        a: the result of one method.
        b: that of another on the same images.
        permutations: number of random exchanges.
        seed: of the exchanges.

    Returns:
        p; NaN if fewer than two objects have both scores.

    Example:
        >>> import sisod
        >>> gt = np.zeros((20, 20), dtype=bool)
        >>> gt[2:6, 2:6] = gt[10:18, 10:18] = True
        >>> evaluator = sisod.Evaluator()
        >>> evaluator.update(gt & (np.arange(20) >= 8), gt, name="a")
        >>> size_bias_test(evaluator.result(), evaluator.result())
        1.0
    """
    keys = ["image", "index"]
    objects = a.objects.select(*keys, "area", "f_mean").join(
        b.objects.select(*keys, "f_mean"), on=keys, suffix="_b", maintain_order="left"
    )
    objects = objects.filter(pl.col("f_mean").is_not_nan() & pl.col("f_mean_b").is_not_nan())
    if objects.height < 2:
        return math.nan
    images = objects["image"].rank("dense").to_numpy() - 1
    areas = objects["area"].rank("average").to_numpy()
    first, second = objects["f_mean"].to_numpy(), objects["f_mean_b"].to_numpy()

    def difference(swapped: NDArray[np.bool_]) -> float:
        scores = np.where(swapped, second, first), np.where(swapped, first, second)
        ranks = [pl.Series(values).rank("average").to_numpy() for values in scores]
        with np.errstate(invalid="ignore", divide="ignore"):  # all scores are equal
            correlations = np.nan_to_num(np.corrcoef([areas, *ranks])[0, 1:])
        return float(abs(correlations[0]) - abs(correlations[1]))

    rng = np.random.default_rng(seed)
    observed = abs(difference(np.zeros(objects.height, dtype=bool)))
    drawn = rng.random((permutations, int(images.max()) + 1)) < 0.5
    as_large = [abs(difference(swap[images])) >= observed - 1e-12 for swap in drawn]
    return (1 + sum(as_large)) / (1 + permutations)

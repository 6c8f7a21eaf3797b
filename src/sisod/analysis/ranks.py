"""Ranks of methods by several metrics, and where two metrics disagree."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from sisod.analysis.scores import check_same_images
from sisod.common.exceptions import UsageError
from sisod.evaluation.result import Evaluation
from sisod.evaluation.results import require_metrics
from sisod.scoring.metrics import METRICS, check_metric, listed_keys

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False)
class RankChanges:
    """Ranks of methods by several metrics.

    Attributes:
        table: one row per method: `method`, and for each metric its value and `rank_` + metric: 1 for
            the best, the mean rank for ties, NaN where the metric is undefined.
        tau: Kendall's tau-b of each pair of metrics: 1 for the same order, -1 for the opposite order;
            NaN if all methods tie.
        swaps: for each pair of metrics, the pairs of methods in opposite order, the one that the first
            metric prefers first.
    """

    table: "pl.DataFrame"
    tau: dict[tuple[str, str], float]
    swaps: dict[tuple[str, str], tuple[tuple[str, str], ...]]


def rank_changes(
    evaluations: Mapping[str, Evaluation], keys: Sequence[str] = ("mae", "si_mae")
) -> RankChanges:
    """Rank methods by each of several metrics, and measure the agreement of the orders.

    Args:
        evaluations: method -> its result, all of the same images.
        keys: two or more metrics, each with a better direction.

    Example:
        Of two objects, A misses the large one but for a pixel, B the small one:

        >>> import sisod
        >>> gt = np.zeros((20, 20), dtype=bool)
        >>> gt[2, 2] = gt[10:18, 10:18] = True
        >>> small, large = gt.copy(), gt.copy()
        >>> small[10:, 10:17] = large[2, 2] = False
        >>> results = {}
        >>> for name, pred in (("A", small), ("B", large)):
        ...     evaluator = sisod.Evaluator(metrics=["mae", "si_mae"], protocol="paper")
        ...     evaluator.update(pred, gt, name="a")
        ...     results[name] = evaluator.result()
        >>> rank_changes(results).swaps
        {('mae', 'si_mae'): (('B', 'A'),)}
    """
    import polars as pl

    keys = tuple(dict.fromkeys(listed_keys(keys)))
    if len(keys) < 2:
        raise UsageError(f"expected two or more metrics to rank by, got {len(keys)}")
    for key in keys:
        check_metric(key, METRICS)
        if METRICS[key].better == "none":
            reason = METRICS[key].trivial or "neither more nor less is better"
            raise UsageError(f"methods cannot be ranked by {key}: {reason}; choose another metric")
    check_same_images(evaluations)
    require_metrics([("", name, one.summary) for name, one in evaluations.items()], keys)
    names = list(evaluations)
    columns: dict[str, Any] = {"method": names}
    for key in keys:
        columns[key] = np.array([evaluation.summary[key] for evaluation in evaluations.values()])
        values, descending = pl.Series(columns[key]).fill_nan(None), METRICS[key].direction == "up"
        ranks = values.rank("average", descending=descending).cast(pl.Float64)
        columns[f"rank_{key}"] = ranks.fill_null(math.nan).to_numpy()
    tau, swaps = {}, {}
    for pair in combinations(keys, 2):
        a, b = (columns[f"rank_{key}"] for key in pair)
        tau[pair] = kendall_tau(a, b)
        ordered = [(i, j) if a[i] < a[j] else (j, i) for i, j in combinations(range(len(names)), 2)]
        swaps[pair] = tuple((names[i], names[j]) for i, j in ordered if a[i] < a[j] and b[i] > b[j])
    return RankChanges(pl.DataFrame(columns), tau, swaps)


def kendall_tau(a: ArrayLike, b: ArrayLike) -> float:
    """Return Kendall's tau-b of two arrays of equal length, without positions where either is NaN.

    Example:
        >>> kendall_tau([1, 2, 3], [3, 2, 1])
        -1.0
    """
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape:
        raise UsageError(f"expected two rows of equal length, got shapes {x.shape} and {y.shape}")
    defined = ~(np.isnan(x) | np.isnan(y))
    x, y = x[defined], y[defined]
    dx, dy = np.sign(x[:, None] - x), np.sign(y[:, None] - y)
    untied = math.sqrt(float(np.abs(dx).sum()) * float(np.abs(dy).sum()))
    return float((dx * dy).sum()) / untied if untied else math.nan

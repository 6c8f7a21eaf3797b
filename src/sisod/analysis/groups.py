"""Scores by the size of objects and by their number in an image, from the saved tables alone."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sisod.analysis.object_counts import (
    counts_matrix,
    is_summed,
    needs_predicted,
    predicted_tables,
    sum_counts,
)
from sisod.common.arguments import check_known, short_repr
from sisod.common.exceptions import UsageError
from sisod.evaluation.result import Evaluation
from sisod.evaluation.rows import split_counts
from sisod.scoring.arrays import Values
from sisod.scoring.counting.objects import HALF
from sisod.scoring.metrics import METRICS, check_metric, listed_keys

if TYPE_CHECKING:
    import polars as pl

SizeKind = Literal["paper", "log", "quantile"]

OBJECT_METRICS = ("mae", "f_mean", "f_max", "auc", "iou_binary", "recall_binary")
FOUND = HALF  # least recall_binary of an object that counts as found
# almost 90 % of the objects of MSOD are in the paper's first group; these edges split it
_LOG_EDGES = (0, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1)
_N_GROUPS = 10  # of the paper, and by quantiles
_NUMBERS = ("0", "1", "2", "3", "4", "5+")


def size_edges(kind: SizeKind, shares: ArrayLike | None = None) -> Values:
    """Return the edges of size groups, as shares of the image; groups are [a, b), the last closed.

    Args:
        kind: `"paper"` is ten groups of equal width, `"log"` groups of about equal ratio, `"quantile"`
            ten groups with about the same number of objects, fewer where many objects have one size.
        shares: of the image that each object covers, only for `"quantile"`.

    Example:
        >>> size_edges("log")
        array([0.e+00, 3.e-04, 1.e-03, 3.e-03, 1.e-02, 3.e-02, 1.e-01, 3.e-01, 1.e+00])
    """
    if kind == "paper":
        return np.arange(_N_GROUPS + 1) / _N_GROUPS
    if kind == "log":
        return np.array(_LOG_EDGES, dtype=np.float64)
    check_known("size groups", kind, get_args(SizeKind))
    sizes = np.asarray(shares, dtype=np.float64)
    if sizes.ndim != 1 or not ((sizes >= 0) & (sizes <= 1)).all():  # NaN is neither
        raise UsageError(
            "quantiles need shares=, a one-dimensional array of the objects' shares of the image in "
            f"[0, 1]; got {short_repr(shares)}"
        )
    inner = np.quantile(sizes, np.arange(1, _N_GROUPS) / _N_GROUPS) if len(sizes) else np.empty(0)
    return np.unique(np.concatenate([[0.0], inner, [1.0]]))


def by_size(evaluation: Evaluation, *, groups: SizeKind | ArrayLike = "paper") -> "pl.DataFrame":
    """Return the scores of objects by their size, one row per group.

    Columns: `group` (its label), `low` and `high` (shares of the image), `objects` (their number),
    `found` (the share of objects with recall_binary >= 0.5), the mean of each metric of the object table
    over the objects where it is defined (NaN if there is none), and `n_` + metric, the number of these
    objects. `biou` is among them if `si_biou` was evaluated, and metrics of your own with a
    size-invariant form. The background belongs to no group.

    Args:
        evaluation: the result; only its object table is read.
        groups: a kind of `size_edges`, or a list of edges.

    Example:
        The smaller of two objects, 4 % of the image, is missed:

        >>> import sisod
        >>> evaluator = sisod.Evaluator()
        >>> gt = np.zeros((20, 20), dtype=bool)
        >>> gt[2:6, 2:6] = gt[10:18, 10:18] = True
        >>> evaluator.update(gt & (np.arange(20) >= 8), gt, name="a")
        >>> by_size(evaluator.result(), groups=[0, 0.1, 1]).select("group", "objects", "found").rows()
        [('0-10 %', 1, 0.0), ('10-100 %', 1, 1.0)]
    """
    import polars as pl

    objects = evaluation.objects
    shares = objects["share"].to_numpy()
    edges = group_edges(groups, shares)
    members = group_of(shares, edges)
    count = len(edges) - 1
    found = is_found(objects["recall_binary"].to_numpy())
    columns: dict[str, Any] = size_columns(edges) | {
        "objects": np.bincount(members[members >= 0], minlength=count),
        "found": _group_means(found, members, count)[0],
    }
    si_keys = [key for key in evaluation.summary if key.startswith("si_")]
    more = [key.removeprefix("si_") for key in si_keys if METRICS[key].family.per_object]
    keys = (*OBJECT_METRICS, *(key for key in more if key in objects.columns))
    columns |= _mean_columns({key: objects[key].to_numpy() for key in keys}, members, count)
    return pl.DataFrame(columns)


def predicted_by_size(
    evaluation: Evaluation, *, groups: SizeKind | ArrayLike = "paper"
) -> "pl.DataFrame":
    """Return predicted objects by their own size, one row per group.

    Columns: `group` (its label), `low` and `high` (shares of the image), `predicted` (the number of
    predicted objects), `false` (the number of those without a salient pixel) and `object_precision` (the
    share of predicted objects that are salient in at least half of their pixels; NaN if there are none).

    Args:
        evaluation: the result; only its table of predicted objects is read.
        groups: a kind of `size_edges`, or a list of edges. `"quantile"` takes the quantiles of predicted
            objects, so its groups differ from those of `by_size`.

    Example:
        >>> import sisod
        >>> evaluator = sisod.Evaluator()
        >>> gt = np.zeros((20, 20), dtype=bool)
        >>> gt[2:6, 2:6] = gt[10:18, 10:18] = True
        >>> evaluator.update(gt & (np.arange(20) >= 8), gt, name="a")
        >>> table = predicted_by_size(evaluator.result(), groups=[0, 0.1, 1])
        >>> table.select("predicted", "false", "object_precision").rows()
        [(0, 0, nan), (1, 0, 1.0)]
    """
    import polars as pl

    _, predicted = predicted_tables(evaluation, "predicted objects")
    shares = predicted["share"].to_numpy()
    edges = group_edges(groups, shares)
    members = group_of(shares, edges)
    count = len(edges) - 1
    precise = (predicted["precision"].to_numpy() >= HALF).astype(np.float64)
    precision, n_predicted = _group_means(precise, members, count)
    false = members[predicted["false"].to_numpy() & (members >= 0)]
    columns = size_columns(edges) | {
        "predicted": n_predicted,
        "false": np.bincount(false, minlength=count),
        "object_precision": precision,
    }
    return pl.DataFrame(columns)


def by_number(evaluation: Evaluation, *, metrics: Sequence[str] | None = None) -> "pl.DataFrame":
    """Return the scores of images by their number of objects: 1, 2, 3, 4, 5+, and 0 if there are any.

    Columns: `group`, `images`, `objects`, the mean of each image-level metric over the images where it
    is defined (NaN if there is none), and `n_` + metric, the number of these images. Metrics of objects
    (`object_f1`, `pq` ...) are no means: they are computed from the counts of objects of the group's
    images. `*_max` is the maximum of a mean curve, not a mean over images, and has no column.

    Args:
        evaluation: the result.
        metrics: keys; None for all image-level metrics of the result.

    Example:
        >>> import sisod
        >>> evaluator = sisod.Evaluator()
        >>> gt = np.zeros((20, 20), dtype=bool)
        >>> gt[2:6, 2:6] = gt[10:18, 10:18] = True
        >>> evaluator.update(gt & (np.arange(20) >= 8), gt, name="a")
        >>> table = by_number(evaluator.result(), metrics=["object_recall"])
        >>> table.select("group", "images", "object_recall").rows()[:2]
        [('1', 0, nan), ('2', 1, 0.5)]
    """
    import polars as pl

    images = evaluation.images
    present = [key for key in images.columns if key in METRICS and METRICS[key].form != "max"]
    if evaluation.counts is None:
        present = [key for key in present if not is_summed(key)]
    keys = tuple(present) if metrics is None else listed_keys(metrics)
    for key in keys:
        if needs_predicted(key):
            predicted_tables(evaluation, key)
        check_metric(key, present, what="image-level metric")
    numbers = images["n_objects"].to_numpy()
    names, members = number_groups(numbers)
    count = len(names)
    columns: dict[str, Any] = {
        "group": list(names),
        "images": np.bincount(members, minlength=count),
        "objects": np.bincount(members, weights=numbers, minlength=count).astype(np.int64),
    }
    columns |= _mean_columns({key: images[key].to_numpy() for key in keys}, members, count)
    if summed := [key for key in keys if is_summed(key)]:
        curves = any(METRICS[key].family.on_request for key in summed)
        widths, counts = counts_matrix(evaluation, curves=curves)
        sums = np.stack([sum_counts(counts[members == group]) for group in range(count)])
        by_name = split_counts(sums, widths)
        columns |= {key: METRICS[key].family.function(by_name) for key in summed}
    return pl.DataFrame(columns)


def number_groups(n_objects: NDArray[np.int64]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Return the names of the groups by number of objects, and the group of each image.

    Example:
        >>> number_groups(np.array([1, 7, 2]))
        (('1', '2', '3', '4', '5+'), array([0, 4, 1]))
    """
    first = 0 if (n_objects == 0).any() else 1
    return _NUMBERS[first:], np.minimum(n_objects, 5) - first


def found_curve(evaluation: Evaluation) -> "pl.DataFrame":
    """Return the share of objects that are found to at least a given share of their pixels.

    Args:
        evaluation: the result; only its object table is read.

    Returns:
        Columns `coverage` 0, 0.01 ... 1, and `found`, the share of objects whose recall_binary is at
        least the coverage; NaN without objects.

    Example:
        >>> import sisod
        >>> evaluator = sisod.Evaluator()
        >>> gt = np.zeros((20, 20), dtype=bool)
        >>> gt[2:6, 2:6] = gt[10:18, 10:18] = True
        >>> evaluator.update(gt & (np.arange(20) >= 8), gt, name="a")
        >>> found_curve(evaluator.result())["found"].unique().to_list()
        [0.5, 1.0]
    """
    import polars as pl

    coverage = np.arange(101) / 100
    recall = np.sort(evaluation.objects["recall_binary"].to_numpy())
    recall = recall[~np.isnan(recall)]
    n_found = len(recall) - np.searchsorted(recall, coverage)
    return pl.DataFrame({"coverage": coverage, "found": n_found / (len(recall) or math.nan)})


def size_bias(evaluation: Evaluation) -> float:
    """Return Spearman's rank correlation of the f_mean of objects with their log area.

    Near 0 for a model that handles all sizes equally well, positive for one that prefers large objects;
    NaN if all sizes or all scores are equal. Ties have the mean of their ranks.

    Args:
        evaluation: the result; only its object table is read.

    Example:
        >>> import sisod
        >>> evaluator = sisod.Evaluator()
        >>> gt = np.zeros((20, 20), dtype=bool)
        >>> gt[2:6, 2:6] = gt[10:18, 10:18] = True
        >>> evaluator.update(gt & (np.arange(20) >= 8), gt, name="a")
        >>> size_bias(evaluator.result())  # the larger one of two scores more
        1.0
    """
    objects = evaluation.objects.filter(evaluation.objects["f_mean"].is_not_nan())
    if objects.is_empty():
        return math.nan
    ranks = (objects[name].rank("average").to_numpy() for name in ("area", "f_mean"))
    x, y = (values - values.mean() for values in ranks)
    scale = math.sqrt(float((x * x).sum()) * float((y * y).sum()))
    return float((x * y).sum()) / scale if scale else math.nan


def is_found(recall: Values) -> Values:
    """Return 1 for an object that counts as found, 0 for one that does not, NaN where undefined."""
    return np.where(np.isnan(recall), np.nan, (recall >= FOUND).astype(np.float64))


def group_of(shares: Values, edges: Values) -> NDArray[np.int64]:
    """Return the group of each object; -1 below the first or above the last edge."""
    members = np.searchsorted(edges, shares, side="right") - 1
    members[shares == edges[-1]] = len(edges) - 2
    members[shares > edges[-1]] = -1
    return np.asarray(members, dtype=np.int64)


def group_edges(groups: SizeKind | ArrayLike, shares: Values) -> Values:
    """Return the edges of size groups: a list of edges, checked, or those of a kind."""
    if isinstance(groups, str):
        return size_edges(cast(SizeKind, groups), shares)  # which raises for other names
    edges = np.asarray(groups, dtype=np.float64)
    if edges.ndim != 1 or len(edges) < 2 or not (np.diff(edges) > 0).all():
        raise UsageError(
            "groups must be two or more increasing edges, as shares of the image, or one of "
            f"{', '.join(get_args(SizeKind))}; got {short_repr(groups)}"
        )
    return edges


def size_columns(edges: Values) -> dict[str, Any]:
    """Return the columns that name size groups.

    Example:
        >>> size_columns(np.array([0.001, 0.003, 1]))["group"]
        ['0.1-0.3 %', '0.3-100 %']
    """
    return {
        "group": [f"{100 * low:.3g}-{100 * high:.3g} %" for low, high in pairwise(edges.tolist())],
        "low": edges[:-1],
        "high": edges[1:],
    }


def _group_means(
    values: Values, members: NDArray[np.int64], count: int
) -> tuple[Values, NDArray[np.int64]]:
    """Mean of the defined values of each group, and their number."""
    defined = ~np.isnan(values) & (members >= 0)
    groups = members[defined]
    n_defined = np.bincount(groups, minlength=count)
    sums = np.bincount(groups, weights=values[defined], minlength=count)
    return np.where(n_defined > 0, sums / np.maximum(n_defined, 1), np.nan), n_defined


def _mean_columns(
    values: dict[str, Values], members: NDArray[np.int64], count: int
) -> dict[str, NDArray[Any]]:
    columns = {key: _group_means(column, members, count) for key, column in values.items()}
    means: dict[str, NDArray[Any]] = {key: mean for key, (mean, _) in columns.items()}
    return means | {f"n_{key}": n_defined for key, (_, n_defined) in columns.items()}

"""Where a model fails: its scores by object size and number, from the saved tables alone."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sisod.common.arguments import check_known, shown
from sisod.common.errors import UsageError
from sisod.scoring.metrics import METRICS, listed_keys

if TYPE_CHECKING:
    import polars as pl

    from sisod.evaluation.result import Evaluation

Values = NDArray[np.float64]
SizeKind = Literal["paper", "log", "quantile"]

OBJECT_METRICS = ("mae", "f_mean", "f_max", "auc", "iou_binary", "recall_binary")
FOUND = 0.5  # an object is found where recall_binary is at least this
# almost nine objects in ten of MSOD fall into the paper's first group; these split it
_LOG_EDGES = (0, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1)
_GROUPS = 10  # of the paper, and by quantiles
_NUMBERS = ("0", "1", "2", "3", "4", "5+")


def size_edges(kind: SizeKind, shares: ArrayLike | None = None) -> Values:
    """Return the edges of size groups, as shares of the image; groups are [a, b), the last closed.

    Args:
        kind: `"paper"` is ten groups of equal width, `"log"` groups of about equal ratio, `"quantile"`
            ten groups of about equally many objects, fewer where many objects have one size.
        shares: of the objects, only for `"quantile"`.

    Example:
        >>> size_edges("log")
        array([0.e+00, 3.e-04, 1.e-03, 3.e-03, 1.e-02, 3.e-02, 1.e-01, 3.e-01, 1.e+00])
    """
    if kind == "paper":
        return np.arange(_GROUPS + 1) / _GROUPS
    if kind == "log":
        return np.array(_LOG_EDGES, dtype=np.float64)
    check_known("size groups", kind, get_args(SizeKind))
    if shares is None:
        raise UsageError("quantiles need the objects' shares of the image; pass shares=")
    sizes = _shares_of("shares", shares)
    inner = np.quantile(sizes, np.arange(1, _GROUPS) / _GROUPS) if len(sizes) else np.empty(0)
    return np.unique(np.concatenate([[0.0], inner, [1.0]]))


def by_size(evaluation: "Evaluation", *, groups: SizeKind | ArrayLike = "paper") -> "pl.DataFrame":
    """Return the scores of frames by the size of their object, one row per group.

    Columns: `group` (in words), `low` and `high` (shares of the image), `objects`, `found` (the share
    with recall_binary >= 0.5), the mean of each metric of the object table over the objects where it is
    defined, NaN for none, and `n_` + metric, how many those are. Frames are of objects only, the
    background is in none.

    Args:
        evaluation: the result; only its object table is read.
        groups: a kind of `size_edges`, or edges of your own.
    """
    import polars as pl

    objects = evaluation.objects
    shares = objects["share"].to_numpy()
    edges = _edges(groups, shares)
    members = group_of(shares, edges)
    count = len(edges) - 1
    found = is_found(objects["recall_binary"].to_numpy())
    columns: dict[str, Any] = {
        "group": [size_label(low, high) for low, high in pairwise(edges.tolist())],
        "low": edges[:-1],
        "high": edges[1:],
        "objects": np.bincount(members[members >= 0], minlength=count),
        "found": _group_means(found, members, count)[0],
    }
    columns |= _mean_columns({key: objects[key].to_numpy() for key in OBJECT_METRICS}, members, count)
    return pl.DataFrame(columns)


def by_number(evaluation: "Evaluation", *, metrics: Sequence[str] | None = None) -> "pl.DataFrame":
    """Return the scores of images by their number of objects: 1, 2, 3, 4, 5+, and 0 if there are such.

    Columns: `group`, `images`, `objects`, the mean of each image-level metric over the images where it
    is defined, NaN for none, and `n_` + metric, how many those are. `*_max`, the maximum of a mean
    curve, is no mean over images and has no column.
    """
    import polars as pl

    images = evaluation.images
    present = [key for key in images.columns if key in METRICS and METRICS[key].form != "max"]
    keys = tuple(present) if metrics is None else listed_keys(metrics)
    for key in keys:
        check_known("image-level metric", key, present)
    numbers = images["n_objects"].to_numpy()
    first = 0 if (numbers == 0).any() else 1
    members = np.minimum(numbers, 5) - first
    count = len(_NUMBERS) - first
    columns: dict[str, Any] = {
        "group": list(_NUMBERS[first:]),
        "images": np.bincount(members, minlength=count),
        "objects": np.bincount(members, weights=numbers, minlength=count).astype(np.int64),
    }
    columns |= _mean_columns({key: images[key].to_numpy() for key in keys}, members, count)
    return pl.DataFrame(columns)


def found_curve(evaluation: "Evaluation") -> "pl.DataFrame":
    """Return the share of objects of which at least a given share of pixels was found.

    Columns: `coverage` 0, 0.01 ... 1, and `found`, the share of objects with recall_binary at or above
    it; NaN without objects.
    """
    import polars as pl

    coverage = np.arange(101) / 100
    recall = np.sort(evaluation.objects["recall_binary"].to_numpy())
    recall = recall[~np.isnan(recall)]
    found = np.full(len(coverage), math.nan)
    if len(recall):
        found = (len(recall) - np.searchsorted(recall, coverage, side="left")) / len(recall)
    return pl.DataFrame({"coverage": coverage, "found": found})


def size_bias(evaluation: "Evaluation") -> float:
    """Return Spearman's rank correlation of a frame's f_mean with its component's log area.

    Near 0 for a model that serves all sizes alike, positive for one that prefers large objects; NaN
    where fewer than two sizes or scores differ. Ties have the mean of their ranks.
    """
    areas = np.log(evaluation.objects["area"].to_numpy())
    scores = evaluation.objects["f_mean"].to_numpy()
    defined = ~np.isnan(scores)
    return correlation(average_ranks(areas[defined]), average_ranks(scores[defined]))


def is_found(recall: Values) -> Values:
    """Return 1 for an object that counts as found, 0 for one that does not, NaN where undefined."""
    return np.where(np.isnan(recall), np.nan, (recall >= FOUND).astype(np.float64))


def group_of(shares: Values, edges: Values) -> NDArray[np.int64]:
    """Return the group of each object, -1 for one below the first or above the last edge."""
    members = np.searchsorted(edges, shares, side="right") - 1
    members[shares == edges[-1]] = len(edges) - 2
    members[shares > edges[-1]] = -1
    return np.asarray(members, dtype=np.int64)


def size_label(low: float, high: float) -> str:
    """Return a group of sizes in words.

    Example:
        >>> size_label(0.001, 0.003)
        '0.1-0.3 %'
    """
    return f"{100 * low:.3g}-{100 * high:.3g} %"


def _edges(groups: SizeKind | ArrayLike, shares: Values) -> Values:
    if isinstance(groups, str):
        return size_edges(cast(SizeKind, groups), shares)  # which refuses other words
    try:
        edges = np.asarray(groups, dtype=np.float64)
    except (TypeError, ValueError):
        edges = np.empty(0)
    if edges.ndim != 1 or len(edges) < 2 or not (np.diff(edges) > 0).all():
        raise UsageError(
            "groups must be edges that rise, two or more shares of the image, or one of "
            f"{', '.join(get_args(SizeKind))}; got {shown(groups)}"
        )
    return edges


def _shares_of(name: str, values: ArrayLike) -> Values:
    shares = np.asarray(values, dtype=np.float64)
    if shares.ndim != 1 or not ((shares >= 0) & (shares <= 1)).all():  # NaN is neither
        raise UsageError(f"{name} must be a row of shares of the image in [0, 1], got {shown(values)}")
    return shares


def _group_means(
    values: Values, members: NDArray[np.int64], count: int
) -> tuple[Values, NDArray[np.int64]]:
    """Mean of each group over what is defined, and how many that is."""
    defined = ~np.isnan(values) & (members >= 0)
    places = members[defined]
    n_defined = np.bincount(places, minlength=count)
    sums = np.bincount(places, weights=values[defined], minlength=count)
    return np.where(n_defined > 0, sums / np.maximum(n_defined, 1), np.nan), n_defined


def _mean_columns(
    values: dict[str, Values], members: NDArray[np.int64], count: int
) -> dict[str, NDArray[Any]]:
    found = {key: _group_means(column, members, count) for key, column in values.items()}
    means: dict[str, NDArray[Any]] = {key: mean for key, (mean, _) in found.items()}
    return means | {f"n_{key}": n_defined for key, (_, n_defined) in found.items()}


def average_ranks(values: ArrayLike) -> Values:
    """Return ranks from 1 on, the least value first, ties with the mean of their ranks.

    Example:
        >>> average_ranks([10, 30, 10])
        array([1.5, 3. , 1.5])
    """
    _, inverse, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    return np.asarray((counts.cumsum() - (counts - 1) / 2)[inverse], dtype=np.float64)


def correlation(a: Values, b: Values) -> float:
    """Return Pearson's correlation; NaN where either does not vary."""
    if len(a) == 0:
        return math.nan
    x, y = a - a.mean(), b - b.mean()
    scale = math.sqrt(float((x * x).sum()) * float((y * y).sum()))
    return float((x * y).sum()) / scale if scale else math.nan

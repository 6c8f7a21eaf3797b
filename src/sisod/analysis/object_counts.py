"""Counts of objects that a result keeps of every image: read, summed, and drawn as a curve.

Metrics of objects are functions of these counts summed over images, so they exist for every set of
images: the whole data set, a group, a bootstrap resample. They are not means of the images' own values.
"""

from typing import TYPE_CHECKING

import numpy as np

from sisod.common.exceptions import InputError
from sisod.evaluation.result import Evaluation
from sisod.evaluation.rows import Sums, join_counts, split_counts
from sisod.scoring.arrays import Values
from sisod.scoring.counting.object_counts import ERROR_COUNTS
from sisod.scoring.counting.objects import THRESHOLDS
from sisod.scoring.families.objects import curve, harmonic_mean
from sisod.scoring.metrics import METRICS

if TYPE_CHECKING:
    import polars as pl


def is_summed(key: str) -> bool:
    """Tell whether a metric is computed from counts summed over images."""
    return METRICS[key].family.kind == "objects"


def needs_predicted(key: str) -> bool:
    """Tell whether a metric needs predicted objects, which some results do not have."""
    return key in METRICS and METRICS[key].family.kind in ("objects", "balanced")


def no_predicted_objects(evaluation: Evaluation, what: str) -> InputError:
    """Return the error of a result without predicted objects."""
    return InputError(
        f"the protocol {evaluation.protocol.name!r} has no predicted objects, so the result has no "
        f"{what}; evaluate again under another protocol"
    )


def predicted_tables(evaluation: Evaluation, what: str) -> "tuple[pl.DataFrame, pl.DataFrame]":
    """Return the counts of objects and the table of predicted objects, which `what` needs."""
    if evaluation.counts is None or evaluation.predicted is None:
        raise no_predicted_objects(evaluation, what)
    return evaluation.counts, evaluation.predicted


def counts_matrix(evaluation: Evaluation, *, curves: bool) -> tuple[dict[str, int], Values]:
    """Return the number of columns of every count, and the counts, images x columns.

    `curves` includes the counts at every threshold, which are many more columns. Counts of the error
    breakdown are left out: no metric needs them.
    """
    counts, _ = predicted_tables(evaluation, "counts of objects")
    left_out = ("image", *ERROR_COUNTS)
    names = sorted(name for name in counts.columns if name not in left_out)  # alike for every result
    kept = [name for name in names if curves or not name.startswith("curve_")]
    return join_counts({name: counts[name].to_numpy() for name in kept}, counts.height)


def sum_counts(rows: Values) -> Values:
    """Return the sums over images as the summary has them; 0 without images."""
    return Sums.from_values(rows).high if len(rows) else np.zeros(rows.shape[1])


def object_curve(evaluation: Evaluation) -> "pl.DataFrame":
    """Return recall and precision of objects at every threshold, one row each.

    Columns: `threshold`, 1 / (1 + exp(-l)) for l = -12, -11.5, ..., 12 (objects are components of
    p > threshold), `recall`, `precision`, their harmonic mean `f1`, and the same with `_small` for
    objects, and predicted ones, below 1 % of the image. NaN where nothing is predicted, or there are no
    objects.

    Args:
        evaluation: the result, with `object_ap` or `object_f1_max` among its metrics.

    Example:
        >>> import sisod
        >>> evaluator = sisod.Evaluator(metrics=["object_ap"])
        >>> gt = np.zeros((20, 20), dtype=bool)
        >>> gt[2:6, 2:6] = True
        >>> evaluator.update(gt, gt, name="a")
        >>> object_curve(evaluator.result()).select("recall", "precision").unique().rows()
        [(1.0, 1.0)]
    """
    import polars as pl

    if "curve_found" not in predicted_tables(evaluation, "curve of objects")[0].columns:
        raise InputError(
            "the result has no curve of objects; evaluate again with object_ap or object_f1_max"
        )
    widths, matrix = counts_matrix(evaluation, curves=True)
    sums = split_counts(sum_counts(matrix), widths)
    columns = {"threshold": THRESHOLDS}
    for suffix in ("", "_small"):
        recall, precision = curve(sums, suffix)
        columns[f"recall{suffix}"], columns[f"precision{suffix}"] = recall, precision
        columns[f"f1{suffix}"] = harmonic_mean(precision, recall)
    return pl.DataFrame(columns)

"""Objects found and false objects, at every threshold and by size, for figures and the page."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sisod.analysis.groups import predicted_by_size, size_edges
from sisod.analysis.object_counts import no_predicted_objects, object_curve
from sisod.evaluation.result import Evaluation
from sisod.evaluation.results import Result
from sisod.scoring.counting.objects import N_THRESHOLDS
from sisod.scoring.families.objects import precision, recall

Values = NDArray[np.float64]
HALF_INDEX = N_THRESHOLDS // 2  # p > 0.5, the threshold of every other metric of objects


def has_curve(evaluation: Evaluation) -> bool:
    """Say whether objects were counted at every threshold."""
    return evaluation.counts is not None and "curve_found" in evaluation.counts.columns


def object_points(evaluation: Evaluation, suffix: str = "") -> tuple[Values, Values]:
    """Return object recall and object precision at every threshold.

    Without a saved curve they are NaN at all but one half; without predicted objects at this one too.

    Args:
        evaluation: the result.
        suffix: "" for all objects, "_small" for those below 1 % of the image.
    """
    if has_curve(evaluation):
        curve = object_curve(evaluation)
        return curve[f"recall{suffix}"].to_numpy(), curve[f"precision{suffix}"].to_numpy()
    points = np.full((2, N_THRESHOLDS), np.nan)
    if evaluation.counts is not None:
        names = [f"{name}{suffix}" for name in ("found", "objects", "precise", "predicted")]
        sums = {name: np.asarray(evaluation.counts[name].sum()) for name in names}
        points[:, HALF_INDEX] = recall(sums, suffix), precision(sums, suffix)
    return points[0], points[1]


def false_by_size(evaluation: Evaluation) -> Values:
    """Return false objects per image in each logarithmic size group; NaN without predicted objects."""
    if evaluation.predicted is None:
        return np.full(len(size_edges("log")) - 1, np.nan)
    return predicted_by_size(evaluation, groups="log")["false"].to_numpy() / evaluation.images.height


def require_counts(results: Sequence[Result], what: str) -> None:
    """Raise if none of the results has predicted objects."""
    if all(result.evaluation.counts is None for result in results):
        raise no_predicted_objects(results[0].evaluation, what)

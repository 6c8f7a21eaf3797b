"""The section on objects: how many each method finds, predicts and invents."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sisod.analysis.scores import direction
from sisod.common.grid import Better
from sisod.evaluation.result import Evaluation
from sisod.evaluation.results import Result
from sisod.report.missing import missing_objects
from sisod.report.page.differences import Differences
from sisod.report.page.scores import (
    Column,
    ColumnGroup,
    Intervals,
    Row,
    ScoreCell,
    rows_of_columns,
)
from sisod.scoring.counting.object_counts import COUNTS
from sisod.scoring.metrics import METRICS

# heading of a group -> its columns: a count or a metric, and the heading
_GROUPS = {
    "Found objects": {"found": "count", "object_recall": "recall", "object_recall_small": "small"},
    "Predicted objects": {
        "predicted": "count",
        "object_precision": "precision",
        "object_precision_small": "small",
    },
    "False objects": {"false": "count", "false_objects": "per image", "false_area": "area"},
    "Both": {
        "object_f1": "F1",
        "object_f1_small": "F1 small",
        "pq": "PQ",
        "bsi_f_binary": "BSI-F binary",
    },
}
_BETTER_COUNTS: dict[str, Better] = {"found": "up", "predicted": "none", "false": "down"}
_COUNT_TIPS = {
    "found": "of {objects:,} objects in the ground truth",
    "predicted": "{precise:,} of them are salient in at least half of their pixels",
    "false": "of {predicted:,} predicted objects",
}


@dataclass(frozen=True, eq=False)
class ObjectTable:
    """The objects of one data set; no rows if no method has predicted objects."""

    dataset: str
    images: int
    groups: tuple[ColumnGroup, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]


def object_table(
    dataset: str,
    results: Sequence[Result],
    intervals: Mapping[str, Intervals],
    differences: Differences,
    *,
    ranked: bool,
) -> ObjectTable:
    """Return the objects of one data set.

    Args:
        dataset: its name.
        results: those of this data set.
        intervals: method -> the intervals of its metrics.
        differences: those of the methods.
        ranked: whether the methods can be compared.
    """
    evaluations = {result.method: result.evaluation for result in results}
    sums = {
        name: {count: float(evaluation.counts[count].sum()) for count in COUNTS}
        for name, evaluation in evaluations.items()
        if evaluation.counts is not None
    }
    groups = tuple(
        ColumnGroup(
            name,
            tuple(
                Column(key, text, _BETTER_COUNTS[key] if key in _BETTER_COUNTS else direction(key))
                for key, text in columns.items()
            ),
        )
        for name, columns in _GROUPS.items()
    )
    rows = rows_of_columns(
        groups,
        sums,
        lambda method, key: _cell(evaluations[method], sums[method], key, intervals[method]),
        {key: one for key, one in differences.items() if key[0] not in _BETTER_COUNTS},
        ranked=ranked,
    )
    images = max(result.evaluation.images.height for result in results)
    return ObjectTable(dataset, images, groups, rows, tuple(missing_objects(results, curves=False)))


def _cell(
    evaluation: Evaluation, sums: Mapping[str, float], key: str, intervals: Intervals
) -> ScoreCell:
    if key in _BETTER_COUNTS:
        tip = _COUNT_TIPS[key].format(**{name: int(value) for name, value in sums.items()})
        return ScoreCell(sums[key], digits=0, tip=tip)
    _, low, high = intervals.get(key, (math.nan, math.nan, math.nan))
    if METRICS[key].family.kind != "objects":  # a mean over images, which the counts do not hold
        if key not in evaluation.summary:
            return ScoreCell(math.nan, undefined="not evaluated")
        return ScoreCell(evaluation.summary[key], low, high)
    arrays = {name: np.asarray(value) for name, value in sums.items()}
    value = float(METRICS[key].family.function(arrays))
    return ScoreCell(value, low, high, undefined="undefined: there are no such objects")

"""Scores by size and by number of objects, as figures show them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sisod.analysis.bootstrap import OBJECT_SCORES
from sisod.analysis.group_intervals import number_intervals, size_intervals
from sisod.analysis.groups import SizeKind, by_number, by_size
from sisod.common.errors import InputError
from sisod.evaluation.result import Evaluation
from sisod.evaluation.results import Result
from sisod.scoring.metrics import METRICS


def object_score(key: str) -> str | None:
    """Return the score of objects that a key means, None if there is none.

    A size-invariant metric is a mean over frames, so that its values by size are those of objects.

    Example:
        >>> object_score("object_mae"), object_score("si_mae"), object_score("e_mean")
        ('object_mae', 'object_mae', None)
    """
    if key in OBJECT_SCORES:
        return key
    score = f"object_{key.removeprefix('si_')}"
    return score if score in OBJECT_SCORES else None


def check_object_score(results: Sequence[Result], score: str) -> None:
    """Refuse a score of objects, such as that of the user's own metric, that a result does not have."""
    for result in results:
        if OBJECT_SCORES[score] not in result.evaluation.objects.columns:
            raise InputError(
                f"the result of {result.method!r} has no {score}; evaluate it again with this metric"
            )


def has_groups(key: str) -> bool:
    """Say whether a metric has a value for a group of images."""
    return key in METRICS and METRICS[key].form != "max"


@dataclass(frozen=True, eq=False)
class GroupScores:
    """A score by groups, one point for each.

    Attributes:
        values: NaN where a group is empty.
        intervals: 95 % interval of each value, groups x 2; NaN where too few images have one.
        counts: number of objects or images of each group.
        ticks: positions on the axis; group i extends from i to i + 1.
        names: labels of the ticks.
    """

    values: NDArray[np.float64]
    intervals: NDArray[np.float64]
    counts: NDArray[np.int64]
    ticks: NDArray[np.float64]
    names: tuple[str, ...]

    @classmethod
    def by_size(cls, evaluation: Evaluation, groups: SizeKind, score: str) -> "GroupScores":
        """Ticks are the edges of the groups."""
        table = by_size(evaluation, groups=groups)
        edges = [*table["low"].to_list(), table["high"].to_list()[-1]]
        return cls(
            table["found" if score == "found" else OBJECT_SCORES[score]].to_numpy(),
            size_intervals(evaluation, score, edges),
            table["objects"].to_numpy(),
            np.arange(len(edges), dtype=np.float64),
            percent_labels(edges),
        )

    @classmethod
    def by_number(cls, evaluation: Evaluation, key: str) -> "GroupScores":
        """Ticks are in the middle of the groups."""
        table = by_number(evaluation, metrics=[key])
        names = tuple(table["group"].to_list())
        return cls(
            table[key].to_numpy(),
            number_intervals(evaluation, key),
            table["images"].to_numpy(),
            np.arange(len(names), dtype=np.float64) + 0.5,
            names,
        )


def percent_labels(edges: Sequence[float]) -> tuple[str, ...]:
    """Return shares as percentages of two digits, of three where two would not tell them apart.

    Example:
        >>> percent_labels([0, 0.00316, 0.1]), percent_labels([0.331, 0.333])
        (('0', '0.32', '10'), ('33.1', '33.3'))
    """
    short, long = ([f"{100 * edge:.{digits}g}" for edge in edges] for digits in (2, 3))
    # two digits of 100 are 1e+02
    short = [a if "e" not in a else b for a, b in zip(short, long, strict=True)]
    return tuple(short if len(set(short)) == len(short) else long)


def short_count(count: int) -> str:
    """Return a count in at most four characters.

    Example:
        >>> short_count(950), short_count(1234), short_count(98765)
        ('950', '1.2k', '99k')
    """
    if count < 1000:
        return str(count)
    if count < 9950:
        return f"{count / 1000:.1f}k"
    return f"{count / 1000:.0f}k" if count < 999_500 else f"{count / 1e6:.0f}M"

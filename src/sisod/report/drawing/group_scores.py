"""Scores by size and by number of objects, as figures show them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sisod.analysis.bootstrap import OBJECT_SCORES
from sisod.analysis.group_intervals import number_intervals, size_intervals
from sisod.analysis.groups import SizeKind, by_number, by_size
from sisod.common.errors import InputError, UsageError
from sisod.evaluation.result import Evaluation
from sisod.evaluation.results import Result
from sisod.scoring.metrics import METRICS, canonical_key, check_metric
from sisod.scoring.spellings import squeeze


def score_key(name: str) -> str:
    """Return the key of a metric or of a score of objects that is called otherwise.

    A score of objects has the key of its metric, with or without `object_`. An unknown name is returned
    as it is.

    Example:
        >>> [score_key(name) for name in ("SI-MAE", "Object F mean", "Found", "unheard")]
        ['si_mae', 'object_f_mean', 'found', 'unheard']
    """
    if squeeze(name) == "found":  # elsewhere another name of object_recall
        return "found"
    key = canonical_key(name)
    if key in METRICS:
        return key
    score = f"object_{canonical_key(re.sub(r'(?i)^objects?[ _-]+', '', name))}"
    return score if score in OBJECT_SCORES else name


def object_score(name: str) -> str | None:
    """Return the score of objects that a name means, None if there is none.

    Example:
        >>> object_score("object_mae"), object_score("MAE"), object_score("si_mae")
        ('object_mae', 'object_mae', None)
    """
    key = score_key(name)
    return next((score for score in (key, f"object_{key}") if score in OBJECT_SCORES), None)


def find_object_score(name: str, *, by: str = "", without: str = "") -> str:
    """Return the score of objects that a name means; refuse one that is none.

    Args:
        name: of a score.
        by: what objects are grouped by, for the message.
        without: a score that is not possible here.
    """
    score, key = object_score(name), score_key(name)
    if score is not None and score != without:
        return score
    # the names that people type; `object_` before them is allowed
    names = [score.removeprefix("object_") for score in OBJECT_SCORES if score != without]
    if score is None:
        check_metric(key, METRICS)
    plain = key.removeprefix("si_")
    if plain in names:
        raise UsageError(
            f"{by and f'by {by} '}the score of an object is its {METRICS[plain].title}; "
            f"use --metric {plain}"
        )
    raise UsageError(f"an object has no {key}; choose one of {', '.join(names)}")


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

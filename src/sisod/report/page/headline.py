"""The headline of the page: where an ordinary metric and its size-invariant form disagree."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from sisod.analysis.bootstrap import direction
from sisod.analysis.comparison import Comparison
from sisod.analysis.significance import TOLERANCE
from sisod.analysis.verdict import listed
from sisod.common.grid import number
from sisod.report.page.differences import Difference, Differences, best_method
from sisod.scoring.metrics import METRICS


@dataclass(frozen=True)
class Disagreement:
    """Two methods that an ordinary metric and its size-invariant form rank in opposite order.

    Attributes:
        ordinary, size_invariant: keys of the two metrics.
        first, second: the method that the ordinary metric prefers, and the one that the other prefers.
        winners: whether they are the best of all methods by the two metrics.
        differences: first minus second, by the two metrics.
    """

    ordinary: str
    size_invariant: str
    first: str
    second: str
    winners: bool
    differences: tuple[Difference, Difference]

    @property
    def decided(self) -> list[str]:
        """The metrics by which the interval of the difference excludes zero."""
        keys = (self.ordinary, self.size_invariant)
        pairs = zip(keys, self.differences, strict=True)
        return [key for key, one in pairs if one.verdict in ("better", "worse")]

    @property
    def importance(self) -> tuple[int, bool, float]:
        """Decided differences first, then those between the winners, then the clearer ones."""
        clear = min(abs(one.value) / max(one.high - one.low, TOLERANCE) for one in self.differences)
        return len(self.decided), self.winners, clear


def headline(
    dataset: str,
    pairs: Sequence[tuple[str, str]],
    comparison: Comparison | None,
    differences: Differences,
) -> str:
    """Say in a sentence or two which methods change places; "" if nothing is known.

    Args:
        dataset: its name.
        pairs: ordinary metrics and their size-invariant forms.
        comparison: that of the methods of the data set.
        differences: those of the comparison.
    """
    compared = set() if comparison is None else set(comparison.table["metric"].to_list())
    pairs = [pair for pair in pairs if set(pair) <= compared and direction(pair[0]) != "none"]
    if comparison is None or not pairs:
        return ""
    by_pair = {pair: _disagreements(*pair, comparison.methods, differences) for pair in pairs}
    every = [one for found in by_pair.values() for one in found]
    if not every:
        return _agreement(dataset, pairs, differences)
    chief = max(every, key=lambda one: one.importance)
    if not chief.decided:  # then no other is
        return (
            f"On {dataset}, no disagreement of a metric with its size-invariant form is decided: "
            f"{_preferences(chief, comparison)}; both 95 % intervals of the difference contain zero."
        )
    others = [
        METRICS[ordinary].title
        for (ordinary, _), found in by_pair.items()
        if found and ordinary != chief.ordinary
    ]
    return f"On {dataset}, {_preferences(chief, comparison)}. {_decided(chief)}{_others(others)}"


def _agreement(dataset: str, pairs: Sequence[tuple[str, str]], differences: Differences) -> str:
    """Say that the orders agree by every pair of metrics that is defined for all methods."""
    undefined = {key for (key, _, _), one in differences.items() if math.isnan(one.value)}
    names = [METRICS[pair[0]].title for pair in pairs if not undefined & set(pair)]
    if not names:
        return ""
    forms = "its size-invariant form" if len(names) == 1 else "their size-invariant forms"
    rank = "ranks" if len(names) == 1 else "rank"
    return f"On {dataset}, {listed(names)} {rank} the methods in the same order as {forms}."


def _disagreements(
    ordinary: str, size_invariant: str, methods: Sequence[str], differences: Differences
) -> list[Disagreement]:
    sign = 1 if direction(ordinary) == "up" else -1
    winners = {best_method(key, methods, differences) for key in (ordinary, size_invariant)}
    disagreements = []
    for a, b in combinations(methods, 2):
        plain, si = (differences[key, a, b] for key in (ordinary, size_invariant))
        if not (abs(plain.value) > TOLERANCE and abs(si.value) > TOLERANCE):  # NaN is not
            continue
        if (plain.value > 0) != (si.value > 0):
            first, second = (a, b) if sign * plain.value > 0 else (b, a)
            both = differences[ordinary, first, second], differences[size_invariant, first, second]
            disagreements.append(
                Disagreement(ordinary, size_invariant, first, second, winners == {a, b}, both)
            )
    return disagreements


def _preferences(one: Disagreement, comparison: Comparison) -> str:
    values = {
        (row["method"], row["metric"]): number(row["value"])
        for row in comparison.intervals.iter_rows(named=True)
    }
    plain, si = METRICS[one.ordinary].title, METRICS[one.size_invariant].title
    first, second = (
        [values[method, key] for method in (one.first, one.second)]
        for key in (one.ordinary, one.size_invariant)
    )
    return (
        f"{plain} prefers {one.first} to {one.second} ({first[0]} against {first[1]}), but {si} prefers "
        f"{one.second} ({second[1]} against {second[0]})"
    )


def _decided(one: Disagreement) -> str:
    if len(one.decided) == 2:
        return "Both differences are decided: their 95 % intervals exclude zero."
    name = METRICS[one.decided[0]].title
    return f"Only the difference in {name} is decided; the other 95 % interval contains zero."


def _others(names: Sequence[str]) -> str:
    if not names:
        return ""
    forms = "its size-invariant form" if len(names) == 1 else "their size-invariant forms"
    verb = "ranks" if len(names) == 1 else "rank"
    return f" {listed(names)} also {verb} some methods differently from {forms}."

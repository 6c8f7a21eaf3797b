"""The headline of the page: where a plain metric and its size-invariant form disagree."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from sisod.analysis.comparison import Comparison
from sisod.analysis.scores import direction
from sisod.analysis.significance import TOLERANCE
from sisod.analysis.verdict import listed
from sisod.common.grid import number
from sisod.report.page.differences import Difference, Differences, best_method
from sisod.scoring.metrics import METRICS


@dataclass(frozen=True)
class Disagreement:
    """Two methods that a plain metric and its size-invariant form rank in opposite order.

    Attributes:
        plain, size_invariant: keys of the two metrics.
        first, second: the method that the plain metric prefers, and the one that the other prefers.
        winners: whether they are the best of all methods by the two metrics.
        differences: first minus second, by the two metrics.
    """

    plain: str
    size_invariant: str
    first: str
    second: str
    winners: bool
    differences: tuple[Difference, Difference]

    @property
    def decided(self) -> list[str]:
        """The metrics by which the permutation test decides."""
        keys = (self.plain, self.size_invariant)
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
        pairs: plain metrics and their size-invariant forms.
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
            f"{_preferences(chief, comparison)}; neither difference is significant."
        )
    others = [
        METRICS[plain].title for (plain, _), found in by_pair.items() if found and plain != chief.plain
    ]
    which = "Both differences are"
    if len(chief.decided) == 1:
        which = f"Only the difference in {METRICS[chief.decided[0]].title} is"
    verdict = f"{which} decided (permutation test, p ≤ 0.05)."
    also = f" {_rank(others, 'also ')} some methods differently from {_forms(others)}." if others else ""
    return f"On {dataset}, {_preferences(chief, comparison)}. {verdict}{also}"


def _agreement(dataset: str, pairs: Sequence[tuple[str, str]], differences: Differences) -> str:
    """Say that the orders agree by every pair of metrics that is defined for all methods."""
    undefined = {key for (key, _, _), one in differences.items() if math.isnan(one.value)}
    names = [METRICS[pair[0]].title for pair in pairs if not undefined & set(pair)]
    if not names:
        return ""
    return f"On {dataset}, {_rank(names)} the methods in the same order as {_forms(names)}."


def _rank(names: Sequence[str], also: str = "") -> str:
    return f"{listed(names)} {also}{'ranks' if len(names) == 1 else 'rank'}"


def _forms(names: Sequence[str]) -> str:
    return "its size-invariant form" if len(names) == 1 else "their size-invariant forms"


def _disagreements(
    plain: str, size_invariant: str, methods: Sequence[str], differences: Differences
) -> list[Disagreement]:
    sign = 1 if direction(plain) == "up" else -1
    winners = {best_method(key, methods, differences) for key in (plain, size_invariant)}
    disagreements = []
    for a, b in combinations(methods, 2):
        by_plain, by_si = (differences[key, a, b].value for key in (plain, size_invariant))
        if not (abs(by_plain) > TOLERANCE and abs(by_si) > TOLERANCE):  # NaN is not
            continue
        if (by_plain > 0) != (by_si > 0):
            first, second = (a, b) if sign * by_plain > 0 else (b, a)
            both = differences[plain, first, second], differences[size_invariant, first, second]
            disagreements.append(
                Disagreement(plain, size_invariant, first, second, winners == {a, b}, both)
            )
    return disagreements


def _preferences(one: Disagreement, comparison: Comparison) -> str:
    values = {
        (row["method"], row["metric"]): number(row["value"])
        for row in comparison.intervals.iter_rows(named=True)
    }
    plain, si = METRICS[one.plain].title, METRICS[one.size_invariant].title
    first, second = (
        [values[method, key] for method in (one.first, one.second)]
        for key in (one.plain, one.size_invariant)
    )
    return (
        f"{plain} prefers {one.first} to {one.second} ({first[0]} against {first[1]}), but {si} prefers "
        f"{one.second} ({second[1]} against {second[0]})"
    )

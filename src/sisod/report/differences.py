"""Differences of methods: whether one can be told from the best, forest plot, headline of the page."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from sisod.analysis.comparison import Comparison
from sisod.analysis.scores import SAME_VALUE, direction, heading
from sisod.analysis.significance import TOLERANCE, Verdict, find_verdict, listed, verdict_lines
from sisod.common.grid import interval_text, number
from sisod.scoring.metrics import METRICS

_TICKS = 3  # at most, on an axis
_MARGIN = 0.04  # free share of an axis on both sides


@dataclass(frozen=True)
class Difference:
    """A method minus another by one metric.

    Attributes:
        metric: its key.
        value: the difference.
        low, high: ends of its 95 % interval, NaN if there is none.
        verdict: on the method, by the permutation test.
    """

    metric: str
    value: float
    low: float
    high: float
    verdict: Verdict

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "Difference":
        """Read a row of `Comparison.table`: method a minus method b."""
        return cls(row["metric"], row["difference"], row["low"], row["high"], row["verdict"])

    def swapped(self, p: float) -> "Difference":
        """Return the other method minus this one, from p of the permutation test."""
        verdict = find_verdict(self.metric, -self.value, p)
        return Difference(self.metric, -self.value, -self.high, -self.low, verdict)

    @property
    def advantage(self) -> tuple[float, float, float]:
        """The difference and the ends of its interval, positive where the method is better."""
        if direction(self.metric) == "down":
            return -self.value, -self.high, -self.low
        return self.value, self.low, self.high

    @property
    def interval(self) -> str:
        """The interval as printed."""
        return interval_text(self.low, self.high, sign=True)

    @property
    def signed(self) -> str:
        """The difference as printed, with more digits if it would be zero; zero has no sign.

        Example:
            >>> [Difference("mae", d, d, d, "").signed for d in (-0.25, -0.000031, 1e-9)]
            ['-0.2500', '-0.00003', '0.0000']
        """
        digits = next((n for n in (4, 5, 6) if round(self.value, n)), None)
        return number(0.0) if digits is None else number(self.value, digits=digits, sign=True)


Differences = Mapping[tuple[str, str, str], Difference]  # metric, method, other


def read_differences(comparison: Comparison | None) -> Differences:
    """Return the differences of every two methods, in both orders."""
    differences = {}
    for row in comparison.table.iter_rows(named=True) if comparison is not None else ():
        one = Difference.from_row(row)
        for key in {one.metric, SAME_VALUE.get(one.metric, one.metric)}:
            differences[key, row["a"], row["b"]] = one
            differences[key, row["b"], row["a"]] = one.swapped(row["p_mean"])
    return differences


def best_method(key: str, methods: Sequence[str], differences: Differences) -> str:
    """Return the best of methods by a metric, the first if several are; "" if that is unknown."""
    for method in methods:
        others = [differences.get((key, method, other)) for other in methods if other != method]
        leads = [one.advantage[0] for one in others if one is not None and not math.isnan(one.value)]
        if leads and direction(key) != "none" and min(leads) >= 0:
            return method
    return ""


def pair_verdicts(comparison: Comparison) -> list[tuple[str, list[str]]]:
    """Return the verdict of every pair of methods, each with the lines on where its tests disagree."""
    verdicts: list[tuple[str, list[str]]] = []
    for line in verdict_lines(comparison.table.iter_rows(named=True)):
        if line.startswith(" "):
            verdicts[-1][1].append(line.strip())
        else:
            verdicts.append((line, []))
    return verdicts


@dataclass(frozen=True)
class ForestPanel:
    """Differences of methods to the best one by one metric, on an axis with worse on the left.

    Attributes:
        heading: title of the metric, with the arrow of its better direction.
        sign: 1, or -1 if lower is better.
        best: name of the best method.
        rows: method -> its difference to the best, where defined; None for the best itself.
        low, high: ends of the axis.
    """

    heading: str
    sign: int
    best: str
    rows: Mapping[str, Difference | None]
    low: float
    high: float

    def position(self, x: float) -> float:
        """Return where an advantage is on the axis, in percent of its width."""
        share = (x - self.low) / (self.high - self.low or 1.0)
        return round(100 * (_MARGIN + (1 - 2 * _MARGIN) * share), 2)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Positions and labels on the axis: multiples of 1, 2 or 5 times a power of ten."""
        span = self.high - self.low
        if not span:
            return [(self.position(0.0), "0")]
        unit = 10.0 ** math.floor(math.log10(span / _TICKS))
        enough = span / _TICKS - 1e-9 * unit  # rounding does not make a step too small
        step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= enough)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        values = [float(f"{index * step:.12g}") for index in range(first, last + 1)]
        return [(self.position(x), f"{self.sign * x + 0.0:+g}" if x else "0") for x in values]


def forest_panels(
    keys: Sequence[str], methods: Sequence[str], differences: Differences
) -> list[ForestPanel]:
    """Return the panels of the metrics that have a best method."""
    panels = []
    for key in keys:
        best = best_method(key, methods, differences)
        if best:
            rows = {m: None if m == best else differences[key, m, best] for m in methods}
            defined = {m: one for m, one in rows.items() if one is None or not math.isnan(one.low)}
            ends = [0.0, *(x for one in defined.values() if one is not None for x in one.advantage)]
            sign = 1 if direction(key) == "up" else -1
            panels.append(ForestPanel(heading(key), sign, best, defined, min(ends), max(ends)))
    return panels


@dataclass(frozen=True)
class Disagreement:
    """Two methods that a plain metric and its size-invariant form rank in opposite order.

    Attributes:
        first, second: the method that the plain metric prefers, and the one that the other prefers.
        differences: first minus second, by the two metrics.
        winners: whether they are the best of all methods by the two metrics.
    """

    first: str
    second: str
    differences: tuple[Difference, Difference]
    winners: bool

    @property
    def decided(self) -> list[str]:
        """The metrics by which the permutation test decides."""
        return [one.metric for one in self.differences if one.verdict in ("better", "worse")]

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
    by_pair = {pair: _disagreements(pair, comparison.methods, differences) for pair in pairs}
    every = [one for found in by_pair.values() for one in found]
    if not every:
        return _agreement(dataset, pairs, differences)
    chief = max(every, key=lambda one: one.importance)
    if not chief.decided:  # then no other is
        return (
            f"On {dataset}, no disagreement of a metric with its size-invariant form is decided: "
            f"{_preferences(chief, comparison)}; neither difference is significant."
        )
    others = [METRICS[pair[0]].title for pair, found in by_pair.items() if found and chief not in found]
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
    keys: tuple[str, str], methods: Sequence[str], differences: Differences
) -> list[Disagreement]:
    winners = {best_method(key, methods, differences) for key in keys}
    disagreements = []
    for pair in combinations(methods, 2):
        for first, second in (pair, pair[::-1]):
            plain, si = (differences[key, first, second] for key in keys)
            if plain.advantage[0] > TOLERANCE and si.advantage[0] < -TOLERANCE:  # NaN is not
                disagreements.append(Disagreement(first, second, (plain, si), winners == {*pair}))
    return disagreements


def _preferences(one: Disagreement, comparison: Comparison) -> str:
    values = {
        (row["method"], row["metric"]): number(row["value"])
        for row in comparison.intervals.iter_rows(named=True)
    }
    plain, si = (difference.metric for difference in one.differences)
    return (
        f"{METRICS[plain].title} prefers {one.first} to {one.second} ({values[one.first, plain]} "
        f"against {values[one.second, plain]}), but {METRICS[si].title} prefers {one.second} "
        f"({values[one.second, si]} against {values[one.first, si]})"
    )

"""Differences of methods: whether one can be told from the best, forest plot, headline of the page."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sisod.analysis.comparison import Comparison
from sisod.analysis.scores import SAME_VALUE, direction, heading, title
from sisod.analysis.significance import TOLERANCE, Verdict, listed
from sisod.common.grid import interval_text, number

_TICKS = 3  # at most, on an axis
_MARGIN = 0.04  # free share of an axis on both sides


@dataclass(frozen=True)
class Difference:
    """A method minus another by one metric.

    Attributes:
        metric: its key.
        value: the difference.
        low, high: ends of its 95 % interval, NaN if there is none.
        p: of the permutation test.
        verdict: on the method, by this test.
    """

    metric: str
    value: float
    low: float
    high: float
    p: float
    verdict: Verdict

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "Difference":
        """Read a row of `Comparison.table`: method a minus method b."""
        return cls(
            row["metric"], row["difference"], row["low"], row["high"], row["p_mean"], row["verdict"]
        )

    def swapped(self) -> "Difference":
        """Return the other method minus this one."""
        opposite: dict[Verdict, Verdict] = {"better": "worse", "worse": "better"}
        verdict = opposite.get(self.verdict, self.verdict)
        return Difference(self.metric, -self.value, -self.high, -self.low, self.p, verdict)

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
            >>> [Difference("mae", d, d, d, 1.0, "").signed for d in (-0.25, -0.000031, 1e-9)]
            ['-0.2500', '-0.00003', '0.0000']
        """
        digits = next((n for n in (4, 5, 6) if round(self.value, n)), None)
        return number(0.0) if digits is None else number(self.value, digits=digits, sign=True)


Differences = Mapping[tuple[str, str, str], Difference]  # metric, method, other


def read_differences(comparison: Comparison | None) -> Differences:
    """Return the differences of every two methods, in both orders.

    Args:
        comparison: of the methods; None if they cannot be compared.
    """
    differences = {}
    for row in comparison.table.iter_rows(named=True) if comparison is not None else ():
        one = Difference.from_row(row)
        for key in {one.metric, SAME_VALUE.get(one.metric, one.metric)}:
            differences[key, row["a"], row["b"]] = one
            differences[key, row["b"], row["a"]] = one.swapped()
    return differences


def best_method(key: str, methods: Sequence[str], differences: Differences) -> str:
    """Return the best of methods by a metric, the first if several are; "" if that is unknown.

    Args:
        key: of the metric.
        methods: their names.
        differences: from `read_differences`.
    """
    for method in methods:
        others = [differences.get((key, method, other)) for other in methods if other != method]
        leads = [one.advantage[0] for one in others if one is not None and not math.isnan(one.value)]
        if leads and direction(key) != "none" and min(leads) >= 0:
            return method
    return ""


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
    """Return the panels of the metrics that have a best method.

    Args:
        keys: of the metrics.
        methods: their names.
        differences: from `read_differences`.
    """
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


def headline(dataset: str, keys: Sequence[str], methods: Sequence[str], differences: Differences) -> str:
    """Say which method is best by most metrics, whether its lead is real, and what prefers another.

    A metric decides if the method is better than every other by the permutation test.

    Args:
        dataset: its name.
        keys: of the metrics to look at.
        methods: their names.
        differences: from `read_differences`; without any the headline is empty.
    """
    preferred: dict[str, dict[str, list[str]]] = {}  # method -> decided or not -> titles of metrics
    n_known = 0
    for key in keys:
        best = best_method(key, methods, differences)
        n_known += bool(best)
        leads = [differences[key, best, other] for other in methods if best and other != best]
        if leads and all(lead.advantage[0] > TOLERANCE for lead in leads):
            decided = all(lead.verdict == "better" for lead in leads)
            verdict = "decided" if decided else "undecided"
            preferred.setdefault(best, {}).setdefault(verdict, []).append(title(key))
    if not preferred:
        return f"On {dataset}, no metric prefers one of the methods." if n_known else ""
    n_wins = {method: sum(map(len, lists.values())) for method, lists in preferred.items()}
    first = max(methods, key=lambda method: n_wins.get(method, 0))
    rivals = [method for method in methods if method != first]
    rank = f"better than {rivals[0]}" if len(rivals) == 1 else f"the best of {len(methods)} methods"
    parts = [f"{first} is {rank} by {n_wins[first]} of {n_known} metrics"]
    for method in sorted(preferred, key=lambda name: (name != first, -n_wins[name])):
        lists = (f"{listed(names)} ({verdict})" for verdict, names in preferred[method].items())
        parts.append(f"{method} is preferred by {' and by '.join(lists)}")
    return f"On {dataset}, {parts[0]}. {'; '.join(parts[1:])}."

"""Differences of methods on the page: whether one can be told from the best, and the forest plot."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sisod.analysis.comparison import Comparison
from sisod.analysis.scores import SAME_VALUE, direction, heading
from sisod.analysis.verdict import Verdict, find_verdict, verdict_lines
from sisod.common.grid import Grid, interval_text, number
from sisod.report.style import shorten

_TICKS = 3  # at most, on an axis
_LONGEST_NAME = 14  # characters beside a panel
_MARGIN = 0.04  # free share of an axis on both sides


@dataclass(frozen=True)
class Difference:
    """A method minus another by one metric, its 95 % interval, and the verdict on the method."""

    value: float
    low: float
    high: float
    verdict: Verdict

    @property
    def text(self) -> str:
        """The difference with its interval, as printed."""
        return f"{signed(self.value)} ({interval_text(self.low, self.high, sign=True)})"


def signed(difference: float) -> str:
    """Return a difference as printed, with more digits than usual if it would be zero; zero has no sign.

    Example:
        >>> signed(-0.25), signed(-0.000031), signed(1e-9)
        ('-0.2500', '-0.00003', '0.0000')
    """
    digits = next((n for n in (4, 5, 6) if round(difference, n)), None)
    return number(0.0) if digits is None else number(difference, digits=digits, sign=True)


Differences = Mapping[tuple[str, str, str], Difference]  # metric, method, other


def read_differences(comparison: Comparison | None) -> Differences:
    """Return the differences of every two methods, in both orders."""
    differences = {}
    for row in comparison.table.iter_rows(named=True) if comparison is not None else ():
        key, a, b, value, low, high, p = (
            row[name] for name in ("metric", "a", "b", "difference", "low", "high", "p_mean")
        )
        for name in {key, SAME_VALUE.get(key, key)}:
            differences[name, a, b] = Difference(value, low, high, row["verdict"])
            differences[name, b, a] = Difference(-value, -high, -low, find_verdict(key, -value, p))
    return differences


def pair_verdicts(comparison: Comparison) -> list[tuple[str, list[str]]]:
    """Return the verdict of every pair of methods, each with the lines on where its tests disagree."""
    by_pair: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in comparison.table.iter_rows(named=True):
        by_pair.setdefault((row["a"], row["b"]), []).append(row)
    lines = (verdict_lines(rows) for rows in by_pair.values())
    return [(verdict, [line.strip() for line in notes]) for verdict, *notes in lines]


def pairs_grid(comparison: Comparison) -> Grid:
    """Return the table of `sisod compare` with a column of verdicts behind that of the intervals."""
    grid = comparison.grid()
    at = grid.n_text + 4  # behind two values, the difference and its interval
    verdicts = [verdict or "-" for verdict in comparison.table["verdict"]]
    rows = zip(grid.rows, verdicts, strict=True)
    return replace(
        grid,
        headings=(*grid.headings[:at], "verdict", *grid.headings[at:]),
        rows=tuple((*row[:at], verdict, *row[at:]) for row, verdict in rows),
    )


def best_method(key: str, methods: Sequence[str], differences: Differences) -> str:
    """Return the best of methods by a metric, the first if several are; "" if that is unknown."""
    for method in methods:
        others = [differences.get((key, method, other)) for other in methods if other != method]
        known = [other.value for other in others if other is not None and not math.isnan(other.value)]
        sign = {"up": 1, "down": -1, "none": math.nan}[direction(key)] if known else math.nan
        if known and all(sign * value >= 0 for value in known):
            return method
    return ""


@dataclass(frozen=True)
class ForestRow:
    """One method of a panel.

    Attributes:
        method: its name.
        text: its difference to the best as printed; empty for the best itself.
        interval: the 95 % interval as printed.
        verdict: "best", "worse" or "undecided".
        x, left, right: positions of the difference and its interval, in percent of the width.
    """

    method: str
    text: str
    interval: str
    verdict: str
    x: float
    left: float
    right: float

    @property
    def short(self) -> str:
        """The name, shortened to one line."""
        return shorten(self.method, _LONGEST_NAME)


@dataclass(frozen=True)
class ForestPanel:
    """Differences of methods to the best one by one metric; worse is on the left.

    Attributes:
        heading: title of the metric, with the arrow of its better direction.
        best: name of the best method.
        zero: position of the zero line, in percent of the width.
        ticks: positions and labels on the axis.
        rows: the methods for which the metric is defined.
    """

    heading: str
    best: str
    zero: float
    ticks: tuple[tuple[float, str], ...]
    rows: tuple[ForestRow, ...]


def forest_panels(
    keys: Sequence[str], methods: Sequence[str], differences: Differences
) -> list[ForestPanel]:
    """Return the panels of the metrics that have a best method."""
    panels = []
    for key in keys:
        best = best_method(key, methods, differences)
        if best:
            panels.append(_panel(key, best, methods, differences))
    return panels


def _panel(key: str, best: str, methods: Sequence[str], differences: Differences) -> ForestPanel:
    to_best = {method: differences[key, method, best] for method in methods if method != best}
    defined = {method: one for method, one in to_best.items() if not math.isnan(one.low)}
    sign = 1 if direction(key) == "up" else -1
    ends = [sign * x for one in defined.values() for x in (one.value, one.low, one.high)]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    span = high - low or 1.0

    def position(x: float) -> float:
        return round(100 * (_MARGIN + (1 - 2 * _MARGIN) * (x - low) / span), 2)

    zero = position(0.0)
    rows = []
    for method in methods:
        if method == best:
            rows.append(ForestRow(method, "", "", "best", zero, zero, zero))
        elif method in defined:
            one = defined[method]
            left, right = sorted((position(sign * one.low), position(sign * one.high)))
            interval = interval_text(one.low, one.high, sign=True)
            text = signed(one.value)
            rows.append(
                ForestRow(method, text, interval, one.verdict, position(sign * one.value), left, right)
            )
    ticks = tuple((position(x), f"{sign * x + 0.0:+g}" if x else "0") for x in _tick_values(low, high))
    return ForestPanel(heading(key), best, zero, ticks, tuple(rows))


def _tick_values(low: float, high: float) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten between two numbers around zero."""
    if high == low:
        return [0.0]
    unit = 10.0 ** math.floor(math.log10((high - low) / _TICKS))
    enough = (high - low) / _TICKS - 1e-9 * unit  # rounding does not make a step too small
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= enough)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{index * step:.12g}") for index in range(first, last + 1)]

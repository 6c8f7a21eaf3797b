"""The forest plot: every difference of a comparison with its interval, coloured by the verdict."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sisod.analysis.bootstrap import OBJECT_SCORES, direction, title
from sisod.common.grid import interval_text, number
from sisod.report.drawing.layout import shorten_names, text_width
from sisod.report.style import COLOURS, TICK_FONT, WIDTH, new_figure, plain_text, style
from sisod.scoring.metrics import METRICS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sisod.analysis.comparison import Comparison

UNDECIDED = "#888888"
_COLOURS = {"better": COLOURS[0], "worse": COLOURS[1], "undecided": UNDECIDED, "": UNDECIDED}
_ALL_PAIRS = 5  # methods up to which every pair is drawn; of more, each against the first
_COLUMNS = 4  # panels side by side
_SIDES = ("the first", "the other")  # of several pairs
_LINE, _AXIS = 0.17, 0.3  # inches of a metric's line, and of an axis
_SIDE = 1.6  # inches, about: metrics on the left; the numbers of a single pair are wider
_LONGEST_LABEL = "-0.00250"  # of a tick; its minus sign is wider
_COUNTS = ("n_predicted", "n_false", "n_found", "false_objects")  # not shares: they may exceed 1


@dataclass(frozen=True)
class Advantage:
    """The difference of a pair of methods by one metric, positive if the first is better."""

    metric: str
    value: float
    low: float
    high: float
    verdict: str

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "Advantage":
        """Read a row of `Comparison.table`."""
        value, low, high = row["difference"], row["low"], row["high"]
        if direction(row["metric"]) == "down":
            value, low, high = -value, -high, -low
        return cls(row["metric"], value, low, high, row["verdict"])


def comparison_figure(comparison: "Comparison") -> "Figure":
    """Draw every difference with its 95 % interval; right of zero the first method is better.

    With more than five methods, only the pairs with the first method are drawn.
    """
    from matplotlib.ticker import MaxNLocator

    by_pair: dict[tuple[str, str], list[Advantage]] = {}
    for row in comparison.table.iter_rows(named=True):
        by_pair.setdefault((row["a"], row["b"]), []).append(Advantage.from_row(row))
    if len(comparison.methods) > _ALL_PAIRS:
        by_pair = {pair: rows for pair, rows in by_pair.items() if pair[0] == comparison.methods[0]}
    groups = _groups(list(dict.fromkeys(comparison.table["metric"].to_list())))
    n_columns = min(_COLUMNS, len(by_pair))
    n_blocks = math.ceil(len(by_pair) / n_columns)
    room = (WIDTH - _SIDE) / max(2, n_columns)  # of a panel; the numbers of a single pair take a half
    n_ticks = max(1, int(room / (text_width(_LONGEST_LABEL, TICK_FONT) + 0.1)))
    heights = [_AXIS + _LINE * len(group) for group in groups]
    with style():
        figure = new_figure(n_blocks * (sum(heights) + 0.35) + 0.4)
        panels = figure.subplots(
            n_blocks * len(groups),
            n_columns,
            squeeze=False,
            sharey="row",
            height_ratios=heights * n_blocks,
        )
        for axes in panels.flat:
            axes.set_axis_off()
        for i, group in enumerate(groups):
            limits = _limits([one for rows in by_pair.values() for one in rows if one.metric in group])
            for index, advantages in enumerate(by_pair.values()):
                axes = panels[index // n_columns * len(groups) + i, index % n_columns]
                members = [one for one in advantages if one.metric in group]
                _draw_panel(axes, group, members, limits, numbers=len(by_pair) == 1)
                axes.xaxis.set_major_locator(MaxNLocator(n_ticks, steps=[1, 2, 5, 10]))
                axes.tick_params("y", left=False, labelleft=index % n_columns == 0)
        short = shorten_names(comparison.methods, lambda name: len(name) <= 80 // n_columns - 8)
        for index, pair in enumerate(by_pair if len(by_pair) > 1 else ()):
            top = panels[index // n_columns * len(groups), index % n_columns]
            top.set_title(_pair_title(*pair, short=short, most=80 // n_columns))
        _describe(figure, list(by_pair))
    return figure


def _groups(metrics: Sequence[str]) -> list[list[str]]:
    """Metrics of pixels, of objects, and counts of objects, each with an axis of their own.

    Differences of the later ones are much larger, and on one axis would hide the others.
    """
    groups: dict[str, list[str]] = {"pixels": [], "objects": [], "counts": []}
    for key in metrics:
        of_objects = key in OBJECT_SCORES or METRICS[key].family.kind in ("objects", "balanced")
        groups["counts" if key in _COUNTS else "objects" if of_objects else "pixels"].append(key)
    return [group for group in groups.values() if group]


def _draw_panel(
    axes: "Axes",
    metrics: Sequence[str],
    advantages: Sequence[Advantage],
    limits: tuple[float, float],
    *,
    numbers: bool,
) -> None:
    """A line for each metric; its numbers on the right if there is room."""
    axes.set_axis_on()
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    axes.set_yticks(range(len(metrics)), [plain_text(title(key)) for key in metrics])
    axes.set(xlim=limits, ylim=(len(metrics) - 0.4, -0.6))
    axes.axvline(0, color="#444444", linewidth=0.8)
    for one in advantages:
        if math.isnan(one.value):
            continue
        y, colour = metrics.index(one.metric), _COLOURS[one.verdict]
        axes.plot([one.low, one.high], [y, y], color=colour)
        axes.plot(
            one.value, y, "o", color="white" if colour == UNDECIDED else colour, markeredgecolor=colour
        )
        if numbers:
            text = f"{number(one.value, sign=True)}  ({interval_text(one.low, one.high, sign=True)})"
            axes.annotate(
                text, (1.02, y), xycoords=axes.get_yaxis_transform(), va="center", fontsize=7,
                color="#555555" if colour == UNDECIDED else colour, annotation_clip=False,
            )  # fmt: skip


def _limits(advantages: Sequence[Advantage]) -> tuple[float, float]:
    """Ends of an axis that contain zero and every interval, with a margin."""
    ends = [x for one in advantages for x in (one.value, one.low, one.high) if not math.isnan(x)]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    margin = 0.06 * (high - low) or 0.01
    return low - margin, high + margin


def _describe(figure: "Figure", pairs: Sequence[tuple[str, str]]) -> None:
    from matplotlib.lines import Line2D

    methods = list(dict.fromkeys(name for pair in pairs for name in pair))
    short = shorten_names(methods, lambda name: len(name) <= 30)
    first, second = (
        plain_text(short[names.pop()]) if len(names) == 1 else description
        for names, description in zip(map(set, zip(*pairs, strict=True)), _SIDES, strict=True)
    )
    names = {"better": f"{first} is better", "undecided": "undecided", "worse": f"{second} is better"}
    handles = [
        Line2D(
            [], [], color=_COLOURS[verdict], marker="o", markeredgecolor=_COLOURS[verdict], label=name,
            markerfacecolor="white" if verdict == "undecided" else _COLOURS[verdict],
        )
        for verdict, name in names.items()
    ]  # fmt: skip
    figure.supxlabel(f"advantage of {first} (difference with 95 % interval)", fontsize=8)
    figure.legend(handles=handles, loc="outside upper center", ncols=3)


def _pair_title(a: str, b: str, *, short: Mapping[str, str], most: int) -> str:
    text = f"{a} against {b}"
    if len(text) > most:
        text = f"{short[a]}\nagainst {short[b]}"
    return "\n".join(map(plain_text, text.split("\n")))

"""The forest plot: every difference of a comparison with its interval, coloured by the verdict."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sisod.analysis.scores import COUNTS, object_scores, title
from sisod.common.grid import interval_text, number
from sisod.report import style
from sisod.report.differences import Difference
from sisod.scoring.metrics import METRICS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sisod.analysis.comparison import Comparison

UNDECIDED = "#888888"
_COLOURS = {"better": style.COLOURS[0], "worse": style.COLOURS[1], "undecided": UNDECIDED, "": UNDECIDED}
_ALL_PAIRS = 5  # methods up to which every pair is drawn; of more, each against the first
_COLUMNS = 4  # panels side by side
_LINE = 0.17  # inches of a metric's line
_SIDE = 1.6  # inches, about, of the metrics on the left


def comparison_figure(comparison: "Comparison") -> "Figure":
    """Draw every difference with its 95 % interval; right of zero the first method is better.

    With more than five methods, only the pairs with the first method are drawn.

    Args:
        comparison: from `compare` or `compare_many`.
    """
    by_pair: dict[tuple[str, str], list[Difference]] = {}
    for row in comparison.table.iter_rows(named=True):
        if len(comparison.methods) <= _ALL_PAIRS or row["a"] == comparison.methods[0]:
            by_pair.setdefault((row["a"], row["b"]), []).append(Difference.from_row(row))
    groups = metric_groups(list(dict.fromkeys(comparison.table["metric"].to_list())))
    columns = min(_COLUMNS, len(by_pair))
    room = (style.inches("double") - _SIDE) / columns
    heights = [_LINE * len(group) for group in groups] * math.ceil(len(by_pair) / columns)
    with style.new_panels(heights, columns, sharey="row") as (figure, panels):
        for axes in panels.flat:
            axes.set_axis_off()
        for i, group in enumerate(groups):
            shown = {pair: [d for d in rows if d.metric in group] for pair, rows in by_pair.items()}
            limits = _limits([one for members in shown.values() for one in members])
            for index, ((a, b), members) in enumerate(shown.items()):
                axes = panels[index // columns * len(groups) + i, index % columns]
                _draw_panel(axes, group, members, numbers=len(by_pair) == 1)
                axes.set_xlim(limits)
                axes.locator_params("x", nbins=2 if columns > 1 else 4, steps=[1, 2, 5, 10])
                axes.tick_params("y", left=False, labelleft=index % columns == 0)
                if i == 0 and len(by_pair) > 1:
                    names = (style.wrapped(name, room, most=2) for name in (a, f"against {b}"))
                    axes.set_title("\n".join(names))
        _describe(figure, list(by_pair))
    return figure


def metric_groups(metrics: Sequence[str]) -> list[list[str]]:
    """Return metrics of pixels, of objects, and counts of objects, which have axes of their own.

    Differences of the later ones are much larger, and on one axis would hide the others.

    Example:
        >>> metric_groups(["mae", "found", "false_objects", "si_f_mean"])
        [['mae', 'si_f_mean'], ['found'], ['false_objects']]
    """
    groups: dict[str, list[str]] = {"pixels": [], "objects": [], "counts": []}
    for key in metrics:
        of_objects = key in object_scores() or METRICS[key].family.kind in ("objects", "balanced")
        groups["counts" if key in COUNTS else "objects" if of_objects else "pixels"].append(key)
    return [group for group in groups.values() if group]


def _draw_panel(
    axes: "Axes", metrics: Sequence[str], differences: Sequence[Difference], *, numbers: bool
) -> None:
    """A line for each metric; its numbers on the right if there is room."""
    axes.set_axis_on()
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    axes.set_yticks(range(len(metrics)), [style.plain_text(title(key)) for key in metrics])
    axes.set_ylim(len(metrics) - 0.4, -0.6)
    axes.axvline(0, color="#444444", linewidth=0.8)
    for one in differences:
        if math.isnan(one.value):
            continue
        y, colour = metrics.index(one.metric), _COLOURS[one.verdict]
        value, low, high = one.advantage
        axes.plot([low, high], [y, y], color=colour)
        fill = "white" if colour == UNDECIDED else colour
        axes.plot(value, y, "o", color=fill, markeredgecolor=colour)
        if numbers:
            text = f"{number(value, sign=True)}  ({interval_text(low, high, sign=True)})"
            axes.annotate(
                text, (1.02, y), xycoords=axes.get_yaxis_transform(), va="center",
                color=colour if fill == colour else "#555555", annotation_clip=False,
                fontsize=style.TICK_FONT,
            )  # fmt: skip


def _limits(differences: Sequence[Difference]) -> tuple[float, float]:
    """Ends of an axis that contain zero and every interval, with a margin."""
    ends = [x for one in differences for x in one.advantage if not math.isnan(x)]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    margin = 0.06 * (high - low) or 0.01
    return low - margin, high + margin


def _describe(figure: "Figure", pairs: Sequence[tuple[str, str]]) -> None:
    """Add the legend above the panels, and the name of the axis below them."""
    from matplotlib.lines import Line2D

    firsts, seconds = map(set, zip(*pairs, strict=True))
    first = firsts.pop() if len(firsts) == 1 else "the first"
    second = seconds.pop() if len(seconds) == 1 else "the other"
    names = {
        "better": f"{first} is better",
        "undecided": "undecided (p > 0.05)",
        "worse": f"{second} is better",
    }
    handles = [
        Line2D([], [], color=_COLOURS[verdict], marker="o", label=" " + style.wrapped(name, 1.5))
        for verdict, name in names.items()
    ]
    handles[1].set_markerfacecolor("white")
    label = f"advantage of {first} (difference with 95 % interval)"
    figure.supxlabel(style.wrapped(label, figure.get_figwidth() - 0.5))
    figure.legend(handles=handles, loc="outside upper center", ncols=3)

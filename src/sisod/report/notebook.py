"""Results in a notebook: a table and a figure of an evaluation, a figure of a comparison."""

import math
from typing import TYPE_CHECKING

import numpy as np

from sisod.analysis.bootstrap import direction, heading, title
from sisod.analysis.groups import by_number, by_size
from sisod.common.grid import Grid, number
from sisod.report.figures import CURVES, curve_points, why_no_curve
from sisod.report.style import COLOURS, WIDTH, annotate_empty_axes, new_figure, plain_text, style
from sisod.scoring.metrics import METRICS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sisod.analysis.comparison import Comparison
    from sisod.evaluation.result import Evaluation

_FORMS = (("", "ordinary", COLOURS[0], "-"), ("si_", "size-invariant", COLOURS[1], "--"))


def summary_grid(evaluation: "Evaluation") -> Grid:
    """Return the summary as text: a row for each metric, the ordinary and the size-invariant form."""
    rows: dict[str, dict[bool, str]] = {}
    for key in evaluation.summary:
        metric = METRICS[key]
        name = heading(key).removeprefix("SI-")
        rows.setdefault(name, {})[metric.size_invariant] = _with_count(evaluation, key)
    cells = tuple((name, row.get(False, ""), row.get(True, "")) for name, row in rows.items())
    return Grid(("metric", "ordinary", "size-invariant"), cells, n_text=1)


def summary_caption(evaluation: "Evaluation") -> str:
    """Return the numbers of images and objects and the protocol, in one line."""
    images, objects = evaluation.images.height, evaluation.objects.height
    return f"{images} images, {objects} objects, protocol {evaluation.protocol.name}"


def _with_count(evaluation: "Evaluation", key: str) -> str:
    """The value, and the number of images on which it is defined if not all."""
    defined = evaluation.defined[key]
    value = number(evaluation.summary[key])
    if defined == evaluation.images.height:
        return value
    return f"{value} ({defined} image{'' if defined == 1 else 's'})"


def evaluation_figure(evaluation: "Evaluation") -> "Figure":
    """Draw F and PR curves, ordinary and size-invariant, MAE of objects by size, SI-MAE by number."""
    with style():
        figure = new_figure(4.6)
        panels = figure.subplots(2, 2)
        for axes, kind in ((panels[0, 0], "f"), (panels[0, 1], "pr")):
            _draw_both_forms(axes, evaluation, kind)
        sizes = by_size(evaluation, groups="log")
        _draw_bars(
            panels[1, 0],
            sizes["mae"].to_list(),
            [group.removesuffix(" %") for group in sizes["group"]],
            sizes["objects"].to_list(),
        )
        panels[1, 0].set(xlabel="size of an object (% of the image)", ylabel="MAE of objects")
        panels[1, 0].tick_params("x", rotation=30)
        if "si_mae" in evaluation.images.columns:
            numbers = by_number(evaluation, metrics=["si_mae"])
            groups, counts = numbers["group"].to_list(), numbers["images"].to_list()
            _draw_bars(panels[1, 1], numbers["si_mae"].to_list(), groups, counts)
        else:
            annotate_empty_axes(panels[1, 1], "si_mae was not evaluated")
        panels[1, 1].set(xlabel="objects in an image", ylabel="SI-MAE")
    return figure


def _draw_both_forms(axes: "Axes", evaluation: "Evaluation", kind: str) -> None:
    x_key, y_key, x_name, y_name = CURVES[kind]
    drawn = False
    for prefix, label, colour, dash in _FORMS:
        x, y = curve_points(evaluation.curves, x_key, y_key, prefix)
        drawn |= bool(np.isfinite(x + y).any())
        axes.plot(x, y, color=colour, linestyle=dash, label=label)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel=x_name, ylabel=y_name)
    if drawn:
        axes.legend()
    else:
        annotate_empty_axes(axes, why_no_curve([evaluation.curves], kind))


def _draw_bars(axes: "Axes", values: list[float], names: list[str], counts: list[int]) -> None:
    """A bar for each group, its number of objects or images above."""
    heights = [0.0 if math.isnan(value) else value for value in values]
    bars = axes.bar(range(len(names)), heights, color=COLOURS[1], width=0.8)
    axes.bar_label(bars, [f"{count}" for count in counts], fontsize=6, color="#555555")
    axes.set_xticks(range(len(names)), names)


def comparison_figure(comparison: "Comparison") -> "Figure":
    """Draw the difference of each pair of methods with its interval; positive if the first is better."""
    table = comparison.table
    pairs = list(dict.fromkeys(zip(table["a"].to_list(), table["b"].to_list(), strict=True)))
    metrics = list(dict.fromkeys(table["metric"].to_list()))
    columns = min(4, len(pairs))
    rows = math.ceil(len(pairs) / columns)
    with style():
        width = WIDTH if columns > 1 else 0.6 * WIDTH
        figure = new_figure(rows * (0.19 * len(metrics) + 0.75), width=width)
        panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
        for axes, (a, b) in zip(panels.flat, pairs, strict=False):
            for row in comparison.table.iter_rows(named=True):
                if (row["a"], row["b"]) == (a, b) and not math.isnan(row["difference"]):
                    better = direction(row["metric"])
                    sign = -1 if better == "down" else 1
                    ends = sorted((sign * row["low"], sign * row["high"]))
                    excludes_zero = better != "none" and (ends[0] > 0 or ends[1] < 0)
                    y = metrics.index(row["metric"])
                    colour = COLOURS[0] if excludes_zero else "#888888"
                    axes.plot(ends, [y, y], color=colour)
                    axes.plot(
                        sign * row["difference"], y, "o", color=colour if excludes_zero else "white",
                        markeredgecolor=colour,
                    )  # fmt: skip
            axes.axvline(0, color="#444444", linewidth=0.8)
            axes.set_title(f"{plain_text(a)} against {plain_text(b)}")
        for axes in panels.flat[len(pairs) :]:
            axes.set_axis_off()
        panels[0, 0].set_yticks(range(len(metrics)), [title(key) for key in metrics])
        panels[0, 0].set_ylim(len(metrics) - 0.5, -0.5)
        figure.supxlabel(
            "advantage of the first method, 95 % interval; filled if it excludes zero", fontsize=8
        )
    return figure

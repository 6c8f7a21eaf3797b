"""Figures of the error breakdown: stacked bars of classes, by method, and by the size of objects."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sisod.analysis.error_breakdown import CLASS_TITLES, ERROR_CLASSES, error_breakdown
from sisod.evaluation.results import Result, datasets_of
from sisod.report import style
from sisod.report.drawing.request import FigureRequest
from sisod.report.error_breakdown import CLASS_STYLES, PIXEL_CLASSES, used_groups, with_errors
from sisod.report.missing import missing_errors

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BAR = 0.16  # inches of a bar with its gap
_NAMED_BAR = 0.28  # the same beside a name, which has two lines at most
_LABELLED = 0.17  # inches from which a part of a bar has its number inside


def error_figure(request: FigureRequest) -> "Figure":
    """Draw the classes of all methods as stacked bars: of objects, and beside or below of wrong pixels.

    Args:
        request: the results and options; results without predicted objects are named in a note.
    """
    results, width = request.chosen, request.width
    chosen = with_errors(results)
    columns = 2 if width == "double" else 1
    side = style.inches(width) / (5 if columns == 2 else 3)  # inches of the names
    length = (style.inches(width) - side) / columns - 0.2
    by_dataset = {
        name: [result for result in chosen if result.dataset == name] for name in datasets_of(chosen)
    }
    heights = [_NAMED_BAR * len(group) for group in by_dataset.values() for _ in range(2 // columns)]
    with style.context():
        figure = style.new_figure(sum(heights) + len(heights) + 2, width=width)
        panels = figure.subplots(len(heights), columns, squeeze=False, height_ratios=heights)
        for pair, (name, group) in zip(panels.reshape(-1, 2), by_dataset.items(), strict=True):
            labels = [style.wrapped(result.method, side, most=2) for result in group]
            tables = [error_breakdown(result.evaluation) for result in group]
            _draw_bars(pair[0], labels, tables, "object_share", length)
            _draw_bars(pair[1], labels, tables, "image_share", length)
            pair[0].set_title(style.wrapped(f"{name}, objects", length))
            pair[1].set_title(style.wrapped(f"{name}, wrong pixels", length))
            pair[1].tick_params("y", labelleft=columns == 1)
        pair[0].set_xlabel(style.wrapped("share of objects and false objects (%)", length))
        pair[1].set_xlabel("share of all pixels (%)")
        _add_legend(figure, results, ERROR_CLASSES)
        style.fit_height(figure, panels[:, 0], sum(heights))
    return figure


def error_size_figure(request: FigureRequest) -> "Figure":
    """Draw the classes of objects by size: a panel for each method, a bar for each size group.

    Args:
        request: the results and options; results without predicted objects are named in a note.
    """
    results, width = request.chosen, request.width
    chosen = with_errors(results)
    by_dataset = {
        name: [(r, error_breakdown(r.evaluation, by="size")) for r in chosen if r.dataset == name]
        for name in datasets_of(chosen)
    }
    most = max(map(len, by_dataset.values()))
    columns = math.ceil(most / math.ceil(most / (2 if width == "single" else 3 if most < 4 else 6)))
    rows = [
        (members[start : start + columns], used_groups([table for _, table in members]))
        for members in by_dataset.values()
        for start in range(0, len(members), columns)
    ]
    heights = [_BAR * max(1, len(groups)) for _, groups in rows]
    length = (style.inches(width) - 0.7) / columns - 0.3
    with style.context():
        figure = style.new_figure(sum(heights) + len(rows) + 2, width=width)
        panels = figure.subplots(len(rows), columns, squeeze=False, height_ratios=heights)
        for panel_row, (members, groups) in zip(panels, rows, strict=True):
            for axes in panel_row[len(members) :]:
                axes.set_axis_off()
            for axes, (result, table) in zip(panel_row, members, strict=False):
                parts = [table.filter(table["group"] == group) for group in groups]
                _draw_bars(axes, groups, parts, "object_share", length)
                for index, part in enumerate(parts):  # the number of objects on the right
                    text = f"{int(part['objects'].sum()):,}"
                    place, transform = (1.01, index), axes.get_yaxis_transform()
                    axes.annotate(text, place, xycoords=transform, va="center", size=style.SMALL_FONT)
                axes.set_title(style.wrapped(f"{result.method}, {result.dataset}", length + 0.15))
                axes.set_xticks((0, 50, 100))
                axes.set_xlabel("objects (%)")
                axes.tick_params("y", labelleft=axes is panel_row[0])
        _add_legend(figure, results, [name for name in ERROR_CLASSES if name not in PIXEL_CLASSES])
        style.fit_height(figure, panels[:, 0], sum(heights))
    return figure


def _draw_bars(
    axes: "Axes", names: Sequence[str], tables: "Sequence[pl.DataFrame]", column: str, length: float
) -> None:
    """Draw a stacked bar for each name, downwards; parts that are wide enough have their number inside.

    Args:
        axes: the panel.
        names: of the bars.
        tables: of the error breakdown, one for each bar.
        column: the share to draw; objects add up to 100 %, for pixels the axis ends at the longest bar.
        length: of the axis in inches, about.
    """
    shares = np.zeros((len(names), len(ERROR_CLASSES)))
    for row, table in enumerate(tables):  # 0 where a class has none by definition
        shares[row, : table.height] = table[column].fill_null(0.0).fill_nan(0.0)
    longest = max(float(shares.sum(axis=1).max(initial=0)), 1e-9)
    end = 1.0 if column == "object_share" else 1.02 * longest
    digits = 0 if end > 0.2 else 1 if end > 0.02 else 2
    left = np.zeros(len(names))
    for values, fill in zip(shares.T, CLASS_STYLES.values(), strict=True):
        axes.barh(np.arange(len(names)), 100 * values, 0.78, 100 * left, **fill.options())
        for row in np.flatnonzero(values >= _LABELLED / length * end).tolist():
            axes.text(
                100 * (left[row] + values[row] / 2), row, f"{100 * values[row]:.{digits}f}",
                ha="center", va="center_baseline", fontsize=style.SMALL_FONT, color=fill.text,
                bbox={"facecolor": fill.colour, "edgecolor": "none", "pad": 0.6}, in_layout=False,
            )  # fmt: skip
        left += values
    axes.set_yticks(np.arange(len(names)), names)
    axes.set(ylim=(len(names) - 0.45, -0.55), xlim=(0, 100 * end))
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    if not left.any():
        style.annotate_empty_axes(axes, "nothing to show")


def _add_legend(figure: "Figure", results: Sequence[Result], classes: Sequence[str]) -> None:
    """Add the notes above the panels, and the legend of classes below them."""
    from matplotlib.patches import Patch

    style.add_notes(figure, missing_errors(results))
    keys = [Patch(**CLASS_STYLES[name].options(), label=CLASS_TITLES[name]) for name in classes]
    columns = 5 if figure.get_figwidth() > style.inches("single") else 2
    figure.legend(handles=keys, loc="outside lower center", ncols=columns, handlelength=1.5)

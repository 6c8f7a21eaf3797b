"""Figures of the error breakdown: stacked bars of classes, by method, and by the size of objects."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sisod.analysis.error_breakdown import CLASS_TITLES, ERROR_CLASSES, error_breakdown
from sisod.evaluation.results import Result, datasets_of
from sisod.report import style
from sisod.report.error_breakdown import CLASS_STYLES, PIXEL_CLASSES, used_groups, with_errors
from sisod.report.missing import missing_errors

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Values = NDArray[np.float64]
_BAR = 0.16  # style.inches of a bar with its gap
_LINE = 0.12  # style.inches of a line of a name beside it
_LABELLED = 0.17  # style.inches from which a part of a bar has its number inside


def error_figure(results: Sequence[Result], *, width: style.Width = "double") -> "Figure":
    """Draw the classes of all methods as stacked bars: of objects, and beside or below of wrong pixels.

    Args:
        results: saved results.
        width: of the figure.
    """
    chosen = with_errors(results)
    columns = 2 if width == "double" else 1
    side = style.inches(width) / (5 if columns == 2 else 3)  # style.inches of the names
    length = (style.inches(width) - side) / columns - 0.2
    datasets, heights = datasets_of(chosen), _heights(chosen, side, columns)
    with style.context():
        figure = style.new_figure(sum(heights) + len(heights) + 2, width=width)
        panels = figure.subplots(len(heights), columns, squeeze=False, height_ratios=heights).reshape(
            -1, 2
        )
        for pair, name in zip(panels, datasets, strict=True):
            group = [result for result in chosen if result.dataset == name]
            labels = [style.wrapped(result.method, side, style.TICK_FONT, most=2) for result in group]
            tables = [error_breakdown(result.evaluation) for result in group]
            for axes, column, what in zip(
                pair, ("object_share", "image_share"), ("objects", "wrong pixels"), strict=True
            ):
                shares = [_shares(table, column) for table in tables]
                _draw_bars(axes, labels, shares, length, whole=what == "objects")
                axes.set_title(style.wrapped(f"{name}, {what}", length))
            if columns == 2:
                pair[1].set_yticklabels([])
        panels[-1][0].set_xlabel(style.wrapped("share of objects and invented objects (%)", length))
        panels[-1][1].set_xlabel("share of all pixels (%)")
        _finish(figure, results, ERROR_CLASSES)
        style.fit_height(figure, panels.reshape(len(heights), -1)[:, 0], heights)
    return figure


def _heights(results: Sequence[Result], side: float, columns: int) -> list[float]:
    """Inches of each row of panels: a bar has at least the height of its name."""
    heights = []
    for dataset in datasets_of(results):
        names = [
            style.wrapped(r.method, side, style.TICK_FONT, most=2)
            for r in results
            if r.dataset == dataset
        ]
        n_lines = max(name.count("\n") + 1 for name in names)
        heights += [len(names) * max(_BAR, _LINE * n_lines + 0.04)] * (2 // columns)
    return heights


def error_size_figure(results: Sequence[Result], *, width: style.Width = "double") -> "Figure":
    """Draw the classes of objects by size: a panel for each method, a bar for each size group.

    Args:
        results: saved results.
        width: of the figure.
    """
    chosen = with_errors(results)
    classes = [name for name in ERROR_CLASSES if name not in PIXEL_CLASSES]
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
                _draw_sizes(axes, table, groups, length)
                axes.set_title(style.wrapped(f"{result.method}, {result.dataset}", length + 0.15))
                axes.set_xticks((0, 50, 100))
                axes.set_xlabel("objects (%)")
                axes.tick_params("y", labelleft=axes is panel_row[0])
        _finish(figure, results, classes)
        style.fit_height(figure, panels[:, 0], heights)
    return figure


def _draw_sizes(axes: "Axes", table: "pl.DataFrame", groups: Sequence[str], length: float) -> None:
    """A bar for each size group, its number of objects on the right."""
    parts = [table.filter(table["group"] == group) for group in groups]
    # the last class has no size
    shares = [np.append(_shares(part, "object_share"), 0.0) for part in parts]
    _draw_bars(axes, groups, shares, length)
    for index, part in enumerate(parts):
        axes.annotate(
            f"{int(part['objects'].sum()):,}", (1.01, index), va="center", fontsize=style.SMALL_FONT,
            xycoords=axes.get_yaxis_transform(),
        )  # fmt: skip


def _shares(table: "pl.DataFrame", column: str) -> Values:
    """Return the shares of all classes; 0 where a class has none by definition."""
    return table[column].fill_null(0.0).fill_nan(0.0).to_numpy()


def _draw_bars(
    axes: "Axes", names: Sequence[str], shares: Sequence[Values], length: float, *, whole: bool = True
) -> None:
    """Draw a stacked bar for each name, downwards; parts that are wide enough have their number inside.

    Args:
        axes: the panel.
        names: of the bars.
        shares: of each class, for every bar.
        length: of the axis in style.inches, about.
        whole: whether the axis ends at 100 %; if not, at the longest bar.
    """
    matrix = np.array(shares).reshape(len(names), len(ERROR_CLASSES))
    end = 1.0 if whole else max(float(matrix.sum(axis=1).max(initial=0)), 1e-9) * 1.02
    digits = 0 if end > 0.2 else 1 if end > 0.02 else 2
    left = np.zeros(len(names))
    for column, fill in enumerate(CLASS_STYLES.values()):
        values = matrix[:, column]
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


def _finish(figure: "Figure", results: Sequence[Result], classes: Sequence[str]) -> None:
    """Add the notes above the panels, and the legend of classes below them."""
    from matplotlib.patches import Patch

    style.add_notes(figure, missing_errors(results))
    keys = [Patch(**CLASS_STYLES[name].options(), label=CLASS_TITLES[name]) for name in classes]
    columns = 5 if figure.get_figwidth() > style.inches("single") else 2
    figure.legend(handles=keys, loc="outside lower center", ncols=columns, handlelength=1.5)

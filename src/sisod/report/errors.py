"""Figures and tables of the error breakdown: methods compared by class, and by the size of objects."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from sisod.analysis.errors import (
    CLASS_TITLES,
    ERROR_CLASSES,
    error_breakdown,
    has_errors,
    why_no_errors,
)
from sisod.common.errors import InputError, shorten_list
from sisod.common.grid import Format, Grid, json_rows, percent, render
from sisod.evaluation.results import Result, datasets_of, methods_of
from sisod.report.drawing.layout import add_notes, drawn_lines, shorten_names, text_width, wrap_text
from sisod.report.style import (
    PAGE_HEIGHT,
    Width,
    annotate_empty_axes,
    inches,
    new_figure,
    plain_text,
    style,
)

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Values = NDArray[np.float64]
PIXEL_CLASSES = ("in_frame", "below_min_area")  # which no object is in
_ROW, _LONG_ROW = 0.2, 0.26  # inches of a bar with its gap; where a name takes two lines
_MARGIN = 0.62  # inches of a panel's title and axis
_NAME_WIDTH = {"single": 0.85, "double": 1.15}  # inches of a name beside a bar
_TEXT, _NAME_TEXT, _TITLE_TEXT = 6, 7, 8  # points: in a bar, beside it, above a panel
_LABELLED = 0.15  # inches, about, from which a part of a bar has its number inside
_PANELS = {"single": 1, "double": 3}  # beside each other, by size
_MOST_PANELS = {"single": 2, "double": 6}  # if the figure would be longer than a page
_THIN_ROWS = (0.18, 0.16, 0.14, 0.12)  # then


@dataclass(frozen=True)
class BarStyle:
    """The fill of a class; colour and hatch each identify it."""

    colour: str
    hatch: str
    text: str = "black"

    def options(self) -> dict[str, Any]:
        """Return keyword arguments of matplotlib's bar and patch."""
        edge = "white" if self.text == "white" else "#555555"
        return {"facecolor": self.colour, "hatch": self.hatch, "edgecolor": edge, "linewidth": 0.4}


# after Okabe and Ito; what is not an error is pale, and every number can be read on its colour
CLASS_STYLES = {
    "correct": BarStyle("#e4e4e4", ""),
    "in_frame": BarStyle("#bfe0f5", ""),
    "partly_found": BarStyle("#56b4e9", ""),
    "spilled": BarStyle("#f0e442", "////"),
    "merged": BarStyle("#cc79a7", "xxx"),
    "split": BarStyle("#009e73", "|||"),
    "missed": BarStyle("#b94f00", "", "white"),
    "invented": BarStyle("#222222", "", "white"),
    "below_min_area": BarStyle("#ffffff", "...."),
}


def missing_errors(results: Sequence[Result]) -> list[str]:
    """Say which results have no error breakdown, and why."""
    notes: dict[str, list[str]] = {}
    several = len(datasets_of(results)) > 1
    for result in results:
        if not has_errors(result.evaluation):
            name = f"{result.method} on {result.dataset}" if several else result.method
            notes.setdefault(why_no_errors(result.evaluation), []).append(name)
    return [f"{shorten_list(names)}: {note}" for note, names in notes.items()]


def error_grid(results: Sequence[Result]) -> Grid:
    """Return a table with classes as rows: objects and wrong pixels of each method, and their sums.

    Objects are a number and its share of the objects and invented ones together, pixels a share of all
    pixels. Each data set has a section.
    """
    chosen = _with_errors(results)
    methods, rows = methods_of(chosen), []
    labels = [*CLASS_TITLES.values(), "sum"]
    empty = ["-"] * len(labels)
    for name in datasets_of(chosen):
        cells = {r.method: _cells(error_breakdown(r.evaluation)) for r in chosen if r.dataset == name}
        columns = [column for method in methods for column in cells.get(method, (empty, empty))]
        rows += [(name, *row) for row in zip(labels, *columns, strict=True)]
    headings = [f"{method} {what}" for method in methods for what in ("objects", "pixels")]
    sections = frozenset(range(len(labels), len(rows), len(labels)))
    return Grid(("data set", "class", *headings), tuple(rows), 2, sections=sections)


def _cells(table: "pl.DataFrame") -> tuple[list[str], list[str]]:
    """The cells of one method: objects with their share, wrong pixels, and both sums."""
    objects = [
        "-" if count is None else f"{count:,} ({percent(share)})"
        for count, share in table.select("objects", "object_share").iter_rows()
    ]
    pixels = ["-" if share is None else f"{100 * share:.2f} %" for share in table["image_share"]]
    n_objects, wrong = int(table["objects"].sum()), float(table["image_share"].sum())
    return [*objects, f"{n_objects:,}"], [*pixels, f"{100 * wrong:.2f} %"]


def error_size_grid(results: Sequence[Result]) -> Grid:
    """Return a table with methods in size groups as rows: objects, and the share of each class."""
    chosen = _with_errors(results)
    classes = [name for name in ERROR_CLASSES if name not in PIXEL_CLASSES]
    rows: list[tuple[str, ...]] = []
    sections = []
    for name in datasets_of(chosen):
        members = [result for result in chosen if result.dataset == name]
        tables = {r.method: error_breakdown(r.evaluation, by="size") for r in members}
        for group in used_groups(list(tables.values())):
            sections.append(len(rows))
            for method, table in tables.items():
                part = table.filter((table["group"] == group) & table["class"].is_in(classes))
                shares = map(percent, part["object_share"])
                rows.append((name, group, method, f"{int(part['objects'].sum()):,}", *shares))
    headings = ("data set", "size", "method", "objects", *(CLASS_TITLES[name] for name in classes))
    return Grid(headings, tuple(rows), 3, sections=frozenset(sections[1:]))


def render_errors(results: Sequence[Result], kind: Format, *, by_size: bool = False) -> str:
    """Return the table in a format for documents, or every column of `error_breakdown` for programs."""
    by: Literal["size"] | None = "size" if by_size else None
    records = [
        {"dataset": result.dataset, "method": result.method} | row
        for result in _with_errors(results)
        for row in json_rows(error_breakdown(result.evaluation, by=by))
    ]
    grid = error_size_grid(results) if by_size else error_grid(results)
    return render(grid, records, records, kind)


def error_figure(results: Sequence[Result], *, width: Width = "double") -> "Figure":
    """Draw the classes of all methods as stacked bars: of objects, and beside or below of wrong pixels.

    Args:
        results: saved results.
        width: of the figure.
    """
    chosen = _with_errors(results)
    names = datasets_of(chosen)
    groups = {name: [result for result in chosen if result.dataset == name] for name in names}
    methods = {result.method: _bar_name(result.method, width) for result in chosen}
    row = _LONG_ROW if any("\n" in name for name in methods.values()) else _ROW
    n_rows = 1 if width == "double" else 2  # of panels, for each data set
    heights = [row * len(group) + _MARGIN for group in groups.values() for _ in range(n_rows)]
    with style():
        figure = new_figure(sum(heights) + 0.5 * n_rows, width=inches(width))
        panels = figure.subplots(
            len(heights), 2 // n_rows, squeeze=False, gridspec_kw={"height_ratios": heights}
        ).reshape(-1, 2)
        for (left, right), (name, group) in zip(panels, groups.items(), strict=True):
            tables = [error_breakdown(result.evaluation) for result in group]
            labels = [methods[result.method] for result in group]
            objects, pixels = (
                [_shares(table, column) for table in tables]
                for column in ("object_share", "image_share")
            )
            length = 2.7 if width == "double" else 2.0
            draw_bars(left, labels, objects, length=length)
            draw_bars(right, labels, pixels, whole=None, length=length)
            left.set_title(f"{plain_text(name)}, objects")
            right.set_title(f"{plain_text(name)}, wrong pixels")
            if width == "double":
                right.set_yticklabels([])
        panels[-1][0].set_xlabel("share of objects and invented objects (%)")
        panels[-1][1].set_xlabel("share of all pixels (%)")
        add_notes(figure, missing_errors(results))
        _add_class_legend(figure)
    return figure


def error_size_figure(results: Sequence[Result], *, width: Width = "double") -> "Figure":
    """Draw the classes of objects by size: a panel for each method, a bar for each size group.

    Args:
        results: saved results.
        width: of the figure.
    """
    chosen = _with_errors(results)
    by_dataset = {name: [r for r in chosen if r.dataset == name] for name in datasets_of(chosen)}
    tables = {id(r): error_breakdown(r.evaluation, by="size") for r in chosen}
    used = {name: used_groups([tables[id(r)] for r in rs]) for name, rs in by_dataset.items()}
    n_panels, bar = _fit_page({n: (len(rs), len(used[n])) for n, rs in by_dataset.items()}, width)
    rows = [
        (name, group[start : start + n_panels])
        for name, group in by_dataset.items()
        for start in range(0, len(group), n_panels)
    ]
    room = inches(width) / n_panels - (0.7 if n_panels <= _PANELS[width] else 0.3)
    titles = _panel_titles(chosen, room)
    heights = [_panel_height(len(used[name]), bar) for name, _ in rows]
    with style():
        figure = new_figure(sum(heights) + 0.5, width=inches(width))
        panels = figure.subplots(
            len(rows), n_panels, squeeze=False, gridspec_kw={"height_ratios": heights}
        )
        for row, (name, group) in zip(panels, rows, strict=True):
            for axes, result in zip(row, group, strict=False):
                _draw_sizes(axes, tables[id(result)], used[name], room=room)
                axes.set_title(titles[id(result)])
                if n_panels <= _PANELS[width]:
                    axes.set_xlabel("share of the objects (%)")
                else:
                    axes.set_xlabel("objects (%)")
                    axes.set_xticks((0, 50, 100))
            for axes in row[1 : len(group)]:
                axes.set_yticklabels([])
            for axes in row[len(group) :]:
                axes.set_axis_off()
        add_notes(figure, missing_errors(results))
        _add_class_legend(figure, objects_only=True)
    return figure


def _fit_page(counts: Mapping[str, tuple[int, int]], width: Width) -> tuple[int, float]:
    """Number of panels side by side, and inches of a bar, with which a figure fits on a page.

    The fewest panels that fit; with the most panels, the thickest bars. `counts` has the number of
    methods and of bars of each data set.
    """
    most = max(n_methods for n_methods, _ in counts.values())

    def height(n_panels: int, bar: float) -> float:
        rows = (math.ceil(n / n_panels) * _panel_height(bars, bar) for n, bars in counts.values())
        return sum(rows) + 0.5

    choices = [(min(n, most), _ROW) for n in range(_PANELS[width], _MOST_PANELS[width] + 1)]
    choices += [(choices[-1][0], bar) for bar in _THIN_ROWS]
    return next((choice for choice in choices if height(*choice) <= PAGE_HEIGHT), choices[-1])


def _panel_height(n_bars: int, bar: float) -> float:
    return bar * max(1, n_bars) + _MARGIN + 0.13  # a second line of the title


def _panel_titles(results: Sequence[Result], room: float) -> dict[int, str]:
    """Titles by the id of a result; only the name of the method is shortened."""

    def fits(text: str) -> bool:
        return text_width(text, _TITLE_TEXT) <= room

    short = shorten_names(methods_of(results), fits)
    titles = {}
    for result in results:
        line = f"{result.method}, {result.dataset}"
        broken = [short[result.method], *wrap_text(result.dataset, room, _TITLE_TEXT)]
        titles[id(result)] = drawn_lines([line] if fits(line) else broken)
    return titles


def _with_errors(results: Sequence[Result]) -> list[Result]:
    chosen = [result for result in results if has_errors(result.evaluation)]
    if not chosen:
        raise InputError(why_no_errors(results[0].evaluation))
    return chosen


def _shares(table: "pl.DataFrame", column: str) -> Values:
    """Return the shares of all classes; 0 where a class has none by definition."""
    return table[column].fill_null(0.0).fill_nan(0.0).to_numpy()


def used_groups(tables: "Sequence[pl.DataFrame]") -> list[str]:
    """Return the size groups in which some method has objects."""
    counts = [
        {group: part["objects"].sum() for (group,), part in table.group_by("group", maintain_order=True)}
        for table in tables
    ]
    return [group for group in counts[0] if any(count[group] for count in counts)]


def _draw_sizes(axes: "Axes", table: "pl.DataFrame", groups: Sequence[str], *, room: float) -> None:
    parts = [table.filter(table["group"] == group) for group in groups]
    labels = [f"{group}  " for group in groups]
    # the last class has no size
    shares = [np.append(_shares(part, "object_share"), 0.0) for part in parts]
    draw_bars(axes, labels, shares, length=room)
    for index, part in enumerate(parts):
        count = int(part["objects"].sum())
        axes.text(
            1.01, index, f"{count:,}", transform=axes.get_yaxis_transform(), va="center", fontsize=6
        )


def draw_bars(
    axes: "Axes",
    names: Sequence[str],
    shares: Sequence[Values],
    *,
    whole: float | None = 1.0,
    length: float = 2.7,
) -> None:
    """Draw a stacked bar for each name, downwards; parts that are wide enough have their number inside.

    Args:
        axes: the panel.
        names: of the bars.
        shares: of each class, for every bar.
        whole: the right end of the axis; None for the longest bar.
        length: of the axis in inches, about.
    """
    matrix = np.array(shares).reshape(len(names), len(ERROR_CLASSES))
    end = whole or max(float(matrix.sum(axis=1).max(initial=0)), 1e-9) * 1.02
    least = _LABELLED / length * end
    left = np.zeros(len(names))
    for column, fill in enumerate(CLASS_STYLES.values()):
        values = matrix[:, column]
        axes.barh(np.arange(len(names)), 100 * values, 0.78, 100 * left, **fill.options())
        for row in np.flatnonzero(values >= least).tolist():
            axes.text(
                100 * (left[row] + values[row] / 2), row, _percent_text(values[row], end),
                ha="center", va="center_baseline", fontsize=_TEXT, color=fill.text,
                bbox={"facecolor": fill.colour, "edgecolor": "none", "pad": 0.6},
            )  # fmt: skip
        left += values
    axes.set_yticks(np.arange(len(names)), names)
    axes.set(ylim=(len(names) - 0.45, -0.55), xlim=(0, 100 * end))
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    if not left.any():
        annotate_empty_axes(axes, "nothing to show")


def _percent_text(share: float, end: float) -> str:
    return (
        f"{100 * share:.0f}"
        if end > 0.2
        else f"{100 * share:.1f}"
        if end > 0.02
        else f"{100 * share:.2f}"
    )


def _bar_name(name: str, width: Width) -> str:
    return shortened(name, _NAME_WIDTH[width], _NAME_TEXT)


def shortened(name: str, width: float, size: float) -> str:
    """Return a name in at most two lines of a width in inches, at a size in points.

    Example:
        >>> print(shortened("a method with a long name, the backbone and the loss", 1.1, 7))
        a method with a long
        name, the backbone...
    """
    lines = wrap_text(name, width, size)
    if len(lines) > 2:
        lines = [lines[0], f"{wrap_text(lines[1], width - size / 72, size)[0].rstrip()}..."]
    return drawn_lines(lines)


def _add_class_legend(figure: "Figure", *, objects_only: bool = False) -> None:
    from matplotlib.patches import Patch

    left_out = PIXEL_CLASSES if objects_only else ()
    names = [name for name in ERROR_CLASSES if name not in left_out]
    keys = [Patch(**CLASS_STYLES[name].options()) for name in names]
    columns = len(names) if figure.get_figwidth() > inches("single") else 3
    figure.legend(
        keys, [CLASS_TITLES[name] for name in names], loc="outside lower center", ncols=columns,
        fontsize=6.8, handlelength=1.5, columnspacing=0.8, handletextpad=0.35,
    )  # fmt: skip

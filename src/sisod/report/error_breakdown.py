"""The error breakdown in tables, figures and bars of the page: by class, and by the size of objects."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from sisod.analysis.error_breakdown import (
    CLASS_TITLES,
    ERROR_CLASSES,
    error_breakdown,
)
from sisod.common.grid import Format, Grid, json_rows, percent, render
from sisod.evaluation.result import Evaluation
from sisod.evaluation.results import Result, datasets_of, methods_of
from sisod.report import style
from sisod.report.missing import missing_errors, require_counts
from sisod.report.style import FigureRequest

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BAR = 0.28  # inches of a bar with its gap, beside a name of up to two lines
_LABELLED = 0.17  # inches from which a part of a bar has its number inside
# without the two classes of pixels that no object is in
OBJECT_CLASSES = tuple(name for name in ERROR_CLASSES if name not in ("in_frame", "below_min_area"))


@dataclass(frozen=True)
class BarStyle:
    """The fill of a class; colour and hatch each identify it."""

    colour: str
    hatch: str
    text: str = "black"

    def bar_options(self) -> dict[str, Any]:
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
    "false": BarStyle("#222222", "", "white"),
    "below_min_area": BarStyle("#ffffff", "...."),
}


def error_grid(results: Sequence[Result]) -> Grid:
    """Return a table with classes as rows: objects and wrong pixels of each method, and their sums.

    Objects are a number and its share of the objects and false ones together, pixels a share of all
    pixels. Each data set has a section.

    Args:
        results: saved results; those without predicted objects are left out.
    """
    chosen = with_errors(results)
    methods, rows = methods_of(chosen), []
    labels = [*CLASS_TITLES.values(), "sum"]
    for name in datasets_of(chosen):
        columns = dict.fromkeys(product(methods, ("objects", "pixels")), ["-"] * len(labels))
        for result in (result for result in chosen if result.dataset == name):
            table = error_breakdown(result.evaluation)
            objects = [
                "-" if count is None else f"{count:,} ({percent(share)})"
                for count, share in table.select("objects", "object_share").iter_rows()
            ]
            shares = [*table["image_share"], table["image_share"].sum()]
            pixels = ["-" if share is None else f"{100 * share:.2f} %" for share in shares]
            columns[result.method, "objects"] = [*objects, f"{int(table['objects'].sum()):,}"]
            columns[result.method, "pixels"] = pixels
        rows += [(name, *row) for row in zip(labels, *columns.values(), strict=True)]
    sections = frozenset(range(len(labels), len(rows), len(labels)))
    return Grid(("data set", "class", *map(" ".join, columns)), tuple(rows), 2, sections=sections)


def error_size_grid(results: Sequence[Result]) -> Grid:
    """Return a table with methods in size groups as rows: objects, and the share of each class.

    Args:
        results: saved results; those without predicted objects are left out.
    """
    chosen = with_errors(results)
    rows: list[tuple[str, ...]] = []
    sections = []
    for name in datasets_of(chosen):
        members = [result for result in chosen if result.dataset == name]
        tables = {r.method: error_breakdown(r.evaluation, by="size") for r in members}
        for group in used_groups(list(tables.values())):
            sections.append(len(rows))
            for method, table in tables.items():
                part = table.filter((table["group"] == group) & table["class"].is_in(OBJECT_CLASSES))
                shares = map(percent, part["object_share"])
                rows.append((name, group, method, f"{int(part['objects'].sum()):,}", *shares))
    classes = (CLASS_TITLES[name] for name in OBJECT_CLASSES)
    headings = ("data set", "size", "method", "objects", *classes)
    return Grid(headings, tuple(rows), 3, sections=frozenset(sections[1:]))


def render_errors(results: Sequence[Result], kind: Format, *, by_size: bool = False) -> str:
    """Return the table in a format for documents, or every column of `error_breakdown` for programs.

    Args:
        results: saved results.
        kind: the format.
        by_size: whether objects are in groups of their size.
    """
    by: Literal["size"] | None = "size" if by_size else None
    records = [
        {"dataset": result.dataset, "method": result.method} | row
        for result in with_errors(results)
        for row in json_rows(error_breakdown(result.evaluation, by=by))
    ]
    grid = error_size_grid(results) if by_size else error_grid(results)
    return render(grid, records, records, kind)


def with_errors(results: Sequence[Result]) -> list[Result]:
    """Return the results that have the error breakdown; raise if none has."""
    require_counts(results, "error breakdown")
    return [result for result in results if result.evaluation.counts is not None]


def used_groups(tables: "Sequence[pl.DataFrame]") -> list[str]:
    """Return the size groups in which some method has objects."""
    import polars as pl

    counts = pl.concat(table.select("group", "objects") for table in tables)
    sums = counts.group_by("group", maintain_order=True).sum()
    return [str(name) for name in sums.filter(sums["objects"] > 0)["group"]]


def error_figure(request: FigureRequest) -> "Figure":
    """Draw the classes of all methods as stacked bars: of objects, and beside or below of wrong pixels.

    Args:
        request: the results and options; results without predicted objects are named in a note.
    """
    by_dataset = _with_errors(request)
    columns = 2 if request.width == "double" else 1
    side = style.inches(request.width) / (5 if columns == 2 else 3)  # inches of the names
    length = (style.inches(request.width) - side) / columns - 0.2
    heights = [_BAR * len(runs) for runs in by_dataset.values() for _ in range(2 // columns)]
    notes = missing_errors(request.chosen)
    with style.new_panels(heights, columns, request.width, notes=notes) as (figure, panels):
        for (left, right), (name, runs) in zip(panels.reshape(-1, 2), by_dataset.items(), strict=True):
            labels = [style.wrapped(method, side, most=2) for method in runs]
            tables = [pooled_errors(seeds) for seeds in runs.values()]
            _draw_bars(left, labels, tables, "object_share", length)
            _draw_bars(right, labels, tables, "image_share", length)
            left.set_title(style.wrapped(f"{name}, objects", length))
            right.set_title(style.wrapped(f"{name}, wrong pixels", length))
            right.tick_params("y", labelleft=columns == 1)
        left.set_xlabel(style.wrapped("share of objects and false objects (%)", length))
        right.set_xlabel("share of all pixels (%)")
        style.add_legend(figure, {CLASS_TITLES[n]: fill for n, fill in CLASS_STYLES.items()}, bars=True)
    return figure


def _with_errors(request: FigureRequest) -> dict[str, dict[str, list[Evaluation]]]:
    """The chosen results of each data set and method that have the error breakdown."""
    return replace(request, results=with_errors(request.chosen), methods=()).by_dataset


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
    end = 1.0 if column == "object_share" else 1.02 * max(shares.sum(axis=1).max(initial=0), 1e-9)
    digits = 0 if end > 0.2 else 1 if end > 0.02 else 2
    left = np.zeros(len(names))
    for values, fill in zip(shares.T, CLASS_STYLES.values(), strict=True):
        bars = axes.barh(np.arange(len(names)), 100 * values, 0.78, 100 * left, **fill.bar_options())
        wide = values >= _LABELLED / length * end
        labels = [f"{100 * v:.{digits}f}" if w else "" for v, w in zip(values, wide, strict=True)]
        box = {"facecolor": fill.colour, "edgecolor": "none", "pad": 0.6}
        look: dict[str, Any] = {"fontsize": style.SMALL_FONT, "color": fill.text, "bbox": box}
        axes.bar_label(bars, labels, label_type="center", in_layout=False, **look)
        left += values
    axes.set_yticks(np.arange(len(names)), names)
    axes.set(ylim=(len(names) - 0.45, -0.55), xlim=(0, 100 * end))
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    if not left.any():
        style.annotate_empty_axes(axes, "nothing to show")


class ErrorSection(NamedTuple):
    """The errors on one data set, as the page shows them.

    Attributes:
        dataset: its name.
        notes: sentences on results without an error breakdown.
        bars: method -> rows of its error breakdown; empty if no method has one.
        sizes: size group -> the same of the objects of this size.
        table: of objects and wrong pixels.
    """

    dataset: str
    notes: list[str]
    bars: dict[str, list[dict[str, Any]]]
    sizes: dict[str, dict[str, list[dict[str, Any]]]]
    table: Grid | None

    @property
    def longest(self) -> float:
        """The largest share of wrong pixels of a method."""
        return max(sum(row["image_share"] or 0 for row in rows) for rows in self.bars.values())


def error_section(dataset: str, results: Sequence[Result]) -> ErrorSection:
    """Return the errors on one data set for the page.

    Args:
        dataset: its name.
        results: those of this data set.
    """
    notes = missing_errors(results)
    if all(result.evaluation.counts is None for result in results):
        return ErrorSection(dataset, notes, {}, {}, None)
    runs = _with_errors(FigureRequest(results))[dataset]
    by_size = {method: pooled_errors(seeds, by="size") for method, seeds in runs.items()}
    sizes = {
        group: {m: table.filter(table["group"] == group).to_dicts() for m, table in by_size.items()}
        for group in used_groups(list(by_size.values()))
    }
    bars = {method: pooled_errors(seeds).to_dicts() for method, seeds in runs.items()}
    grid = error_grid(results)  # without the column of the data set
    table = Grid(grid.headings[1:], tuple(row[1:] for row in grid.rows), grid.n_text - 1)
    return ErrorSection(dataset, notes, bars, sizes, table)


def pooled_errors(runs: Sequence[Evaluation], *, by: Literal["size"] | None = None) -> "pl.DataFrame":
    """Return the error breakdown of all seeds: objects together, the mean share of wrong pixels.

    Args:
        runs: the results of a method.
        by: as for `error_breakdown`.
    """
    import polars as pl

    tables = [error_breakdown(run, by=by) for run in runs]
    if len(tables) == 1:
        return tables[0]
    group = ["group"] if by else []
    pooled = pl.concat(tables).group_by([*group, "class"], maintain_order=True)
    sums = pooled.agg(pl.col("objects").sum(), pl.col("image_share").mean())
    total = pl.col("objects").sum()
    return sums.with_columns(object_share=pl.col("objects") / (total.over(group) if group else total))

"""The error breakdown in tables, and in bars of the page: by class, and by the size of objects."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from sisod.analysis.error_breakdown import (
    CLASS_TITLES,
    ERROR_CLASSES,
    error_breakdown,
    has_errors,
    why_no_errors,
)
from sisod.common.exceptions import InputError
from sisod.common.grid import Format, Grid, json_rows, percent, render
from sisod.evaluation.results import Result, datasets_of, methods_of
from sisod.report.missing import missing_errors

if TYPE_CHECKING:
    import polars as pl

_MIN_LABELLED = 6.5  # percent of the axis from which a part has its number inside
PIXEL_CLASSES = ("in_frame", "below_min_area")  # which no object is in


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
    "false": BarStyle("#222222", "", "white"),
    "below_min_area": BarStyle("#ffffff", "...."),
}


def error_grid(results: Sequence[Result]) -> Grid:
    """Return a table with classes as rows: objects and wrong pixels of each method, and their sums.

    Objects are a number and its share of the objects and false ones together, pixels a share of all
    pixels. Each data set has a section.
    """
    chosen = with_errors(results)
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
    chosen = with_errors(results)
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
        for result in with_errors(results)
        for row in json_rows(error_breakdown(result.evaluation, by=by))
    ]
    grid = error_size_grid(results) if by_size else error_grid(results)
    return render(grid, records, records, kind)


def with_errors(results: Sequence[Result]) -> list[Result]:
    """Return the results that have the error breakdown; raise if none has."""
    chosen = [result for result in results if has_errors(result.evaluation)]
    if not chosen:
        raise InputError(why_no_errors(results[0].evaluation))
    return chosen


def used_groups(tables: "Sequence[pl.DataFrame]") -> list[str]:
    """Return the size groups in which some method has objects."""
    counts = [
        {group: part["objects"].sum() for (group,), part in table.group_by("group", maintain_order=True)}
        for table in tables
    ]
    return [group for group in counts[0] if any(count[group] for count in counts)]


class ErrorBar(NamedTuple):
    """The bar of a method on the page.

    Attributes:
        method: its name.
        parts: class, width in percent of the axis, number inside if there is room, and tip of each.
        total: the sum, which stands beside the bar.
    """

    method: str
    parts: tuple[tuple[str, float, str, str], ...]
    total: str


class ErrorSection(NamedTuple):
    """The errors on one data set: notes, bars of objects, of pixels and by size, and their table.

    Without an error breakdown of any method there are only notes.
    """

    dataset: str
    notes: list[str]
    objects: list[ErrorBar]
    pixels: list[ErrorBar]
    sizes: dict[str, list[ErrorBar]]
    table: Grid | None


def error_section(dataset: str, results: Sequence[Result]) -> ErrorSection:
    """Return the errors on one data set for the page."""
    notes = missing_errors(results)
    chosen = [result for result in results if has_errors(result.evaluation)]
    if not chosen:
        return ErrorSection(dataset, notes, [], [], {}, None)
    tables = {r.method: error_breakdown(r.evaluation) for r in chosen}
    by_size = {r.method: error_breakdown(r.evaluation, by="size") for r in chosen}
    longest = max(float(table["image_share"].sum()) for table in tables.values())
    sizes = {
        group: [_object_bar(m, table.filter(table["group"] == group)) for m, table in by_size.items()]
        for group in used_groups(list(by_size.values()))
    }
    grid = error_grid(results)  # without the column of the data set
    return ErrorSection(
        dataset,
        notes,
        objects=[_object_bar(method, table) for method, table in tables.items()],
        pixels=[_pixel_bar(method, table, longest) for method, table in tables.items()],
        sizes=sizes,
        table=Grid(grid.headings[1:], tuple(row[1:] for row in grid.rows), grid.n_text - 1),
    )


def _object_bar(method: str, table: "pl.DataFrame") -> ErrorBar:
    parts = [
        _part(name, 100 * share, f"{100 * share:.0f}", f"{count:,} ({100 * share:.1f} %)")
        for name, count, share in table.select("class", "objects", "object_share").iter_rows()
        if count
    ]
    return ErrorBar(method, tuple(parts), f"{int(table['objects'].sum()):,}")


def _pixel_bar(method: str, table: "pl.DataFrame", longest: float) -> ErrorBar:
    parts = [
        _part(name, 100 * share / longest, f"{100 * share:.1f}", f"{100 * share:.2f} % of all pixels")
        for name, share in table.select("class", "image_share").iter_rows()
        if share
    ]
    return ErrorBar(method, tuple(parts), f"{100 * float(table['image_share'].sum()):.1f} %")


def _part(name: str, width: float, label: str, text: str) -> tuple[str, float, str, str]:
    label = label if width >= _MIN_LABELLED else ""
    return name, round(width, 3), label, f"{CLASS_TITLES[name]}: {text}"


def error_css() -> str:
    """Return the style rules of the classes; the palest and the darkest change places in the dark."""
    styles = {name: (fill.colour, fill.text) for name, fill in CLASS_STYLES.items()}
    dark = styles | {"correct": ("#3d444d", "white"), "false": ("#f4f4f4", "black")}
    return "\n".join(
        f".error-{name} {{ background-color: light-dark({colour}, {dark[name][0]}); "
        f"color: light-dark({text}, {dark[name][1]}); }}"
        for name, (colour, text) in styles.items()
    )

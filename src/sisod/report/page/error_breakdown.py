"""The section on errors: stacked bars that compare methods by class, and by the size of objects."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sisod.analysis.error_breakdown import CLASS_TITLES, error_breakdown, has_errors
from sisod.common.grid import Grid
from sisod.evaluation.results import Result
from sisod.report.error_breakdown import CLASS_STYLES, error_grid, used_groups
from sisod.report.missing import missing_errors

if TYPE_CHECKING:
    import polars as pl

_MIN_LABELLED = 6.5  # percent of the axis from which a part has its number inside


@dataclass(frozen=True)
class BarPart:
    """A part of a bar: its class, its width in percent of the axis, and what it says."""

    name: str
    width: float
    label: str
    tip: str


@dataclass(frozen=True)
class ErrorBar:
    """The bar of a method; `total` stands beside it, `text` says everything to a screen reader."""

    method: str
    parts: tuple[BarPart, ...]
    total: str
    text: str


@dataclass(frozen=True)
class ErrorSection:
    """The errors on one data set: notes, bars of objects, of pixels and by size, and their table.

    Without an error breakdown of any method there are only notes.
    """

    dataset: str
    notes: tuple[str, ...]
    objects: tuple[ErrorBar, ...] = ()
    pixels: tuple[ErrorBar, ...] = ()
    sizes: tuple[tuple[str, tuple[ErrorBar, ...]], ...] = ()
    table: Grid | None = None


def error_section(dataset: str, results: Sequence[Result]) -> ErrorSection:
    """Return the errors on one data set."""
    notes = tuple(missing_errors(results))
    chosen = {r.method: r.evaluation for r in results if has_errors(r.evaluation)}
    if not chosen:
        return ErrorSection(dataset, notes)
    tables = {method: error_breakdown(evaluation) for method, evaluation in chosen.items()}
    by_size = {method: error_breakdown(e, by="size") for method, e in chosen.items()}
    wrong = max(float(table["image_share"].sum()) for table in tables.values())
    grid = error_grid(results)
    return ErrorSection(
        dataset,
        notes,
        objects=tuple(_object_bar(method, table) for method, table in tables.items()),
        pixels=tuple(_pixel_bar(method, table, wrong) for method, table in tables.items()),
        sizes=tuple(
            (group, tuple(_object_bar(m, t.filter(t["group"] == group)) for m, t in by_size.items()))
            for group in used_groups(list(by_size.values()))
        ),
        # without the column of the data set
        table=Grid(grid.headings[1:], tuple(row[1:] for row in grid.rows), grid.n_text - 1),
    )


def error_css() -> str:
    """Return the style rules of the classes; the palest and the darkest change places in the dark."""
    styles = {name: (fill.colour, fill.text) for name, fill in CLASS_STYLES.items()}
    dark = styles | {"correct": ("#3d444d", "white"), "invented": ("#f4f4f4", "black")}
    return "\n".join(
        f".error-{name} {{ background-color: light-dark({colour}, {dark[name][0]}); "
        f"color: light-dark({text}, {dark[name][1]}); }}"
        for name, (colour, text) in styles.items()
    )


def _object_bar(method: str, table: "pl.DataFrame") -> ErrorBar:
    parts = [
        _part(name, 100 * share, f"{100 * share:.0f}", f"{count:,} ({100 * share:.1f} %)")
        for name, count, share in table.select("class", "objects", "object_share").iter_rows()
        if count
    ]
    return _bar(method, parts, f"{int(table['objects'].sum()):,}")


def _pixel_bar(method: str, table: "pl.DataFrame", longest: float) -> ErrorBar:
    parts = [
        _part(name, 100 * share / longest, f"{100 * share:.1f}", f"{100 * share:.2f} % of all pixels")
        for name, count, share in table.select("class", "pixels", "image_share").iter_rows()
        if count
    ]
    return _bar(method, parts, f"{100 * float(table['image_share'].sum()):.1f} %")


def _part(name: str, width: float, label: str, text: str) -> BarPart:
    tip = f"{CLASS_TITLES[name]}: {text}"
    return BarPart(name, round(width, 3), label if width >= _MIN_LABELLED else "", tip)


def _bar(method: str, parts: Sequence[BarPart], total: str) -> ErrorBar:
    text = f"{method}: {', '.join(part.tip for part in parts) or 'none'}"
    return ErrorBar(method, tuple(parts), total, text)

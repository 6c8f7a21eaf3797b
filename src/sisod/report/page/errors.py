"""The section on errors: stacked bars that compare methods by class, and by the size of objects."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sisod.analysis.errors import CLASS_TITLES, error_breakdown, has_errors
from sisod.common.grid import Grid
from sisod.evaluation.results import Result
from sisod.report.errors import CLASS_STYLES, error_grid, missing_errors, used_groups

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
    """The errors on one data set.

    Attributes:
        dataset: its name.
        notes: sentences on what is missing.
        objects: bars of objects; none if no method has the breakdown.
        pixels: bars of wrong pixels.
        sizes: size groups, each with its bars of objects.
        table: the numbers.
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
    return ErrorSection(
        dataset,
        notes,
        objects=tuple(_object_bar(method, table) for method, table in tables.items()),
        pixels=tuple(_pixel_bar(method, table, wrong) for method, table in tables.items()),
        sizes=tuple(
            (group, tuple(_object_bar(m, t.filter(t["group"] == group)) for m, t in by_size.items()))
            for group in used_groups(list(by_size.values()))
        ),
        table=_without_dataset(error_grid(results)),
    )


def _without_dataset(grid: Grid) -> Grid:
    rows = tuple(row[1:] for row in grid.rows)
    return replace(grid, headings=grid.headings[1:], rows=rows, n_text=grid.n_text - 1)


def error_classes() -> dict[str, str]:
    """Return the names of the classes, for the legend."""
    return CLASS_TITLES


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
    parts, texts = [], []
    for name, count, share in table.select("class", "objects", "object_share").iter_rows():
        if count:
            texts.append(f"{CLASS_TITLES[name]}: {count:,} ({100 * share:.1f} %)")
            parts.append(_part(name, 100 * share, f"{100 * share:.0f}", texts[-1]))
    return ErrorBar(method, tuple(parts), f"{int(table['objects'].sum()):,}", _sentence(method, texts))


def _pixel_bar(method: str, table: "pl.DataFrame", longest: float) -> ErrorBar:
    parts, texts = [], []
    for name, count, share in table.select("class", "pixels", "image_share").iter_rows():
        if count:
            texts.append(f"{CLASS_TITLES[name]}: {100 * share:.2f} % of all pixels")
            parts.append(_part(name, 100 * share / longest, f"{100 * share:.1f}", texts[-1]))
    total = f"{100 * float(table['image_share'].sum()):.1f} %"
    return ErrorBar(method, tuple(parts), total, _sentence(method, texts))


def _part(name: str, width: float, label: str, tip: str) -> BarPart:
    return BarPart(name, round(width, 3), label if width >= _MIN_LABELLED else "", tip)


def _sentence(method: str, texts: Sequence[str]) -> str:
    return f"{method}: {', '.join(texts) or 'none'}"

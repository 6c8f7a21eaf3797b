"""Summaries as tables for people and programs: terminal, Markdown, LaTeX, CSV, JSON."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sisod.analysis.bootstrap import heading
from sisod.common.grid import Format, Grid, best_rows, is_nan, number
from sisod.common.grid import render as render_grid
from sisod.scoring.metrics import METRICS, PAPER_KEYS

if TYPE_CHECKING:
    from rich.table import Table

# the columns of the second table; the last four exist only under the protocol `infrared`
OBJECT_KEYS = (
    *("object_recall", "object_precision", "object_f1", "false_objects", "pq", "bsi_f_binary"),
    *("pd", "fa", "niou", "iou_total"),
)


@dataclass(frozen=True)
class Line:
    """The scores of one method on one data set.

    Attributes:
        dataset, method: their names.
        summary: metric -> value over all images.
        defined: metric -> number of images on which it is defined.
    """

    dataset: str
    method: str
    summary: dict[str, float]
    defined: dict[str, int]


def shown_keys(keys: Sequence[str], *, chosen: bool) -> list[tuple[str, ...]]:
    """Return the columns of each table to show.

    They are all keys, in one table, if the user chose them; else those of the paper, and in a second
    table those of objects, as far as they were evaluated.

    Example:
        >>> shown_keys(["mae", "mse", "pq", "sq"], chosen=False)
        [('mae',), ('pq',)]
    """
    if chosen:
        return [tuple(keys)]
    tables = (tuple(key for key in table if key in keys) for table in (PAPER_KEYS, OBJECT_KEYS))
    return [table for table in tables if table]


def render(lines: Sequence[Line], keys: Sequence[str], kind: Format) -> str:
    """Return the table as text in one of the formats for documents and programs."""
    records = [
        {"dataset": line.dataset, "method": line.method}
        | {key: line.summary.get(key, math.nan) for key in keys}
        for line in lines
    ]
    content = [
        {"dataset": line.dataset, "method": line.method, "metrics": _metrics_json(line, keys)}
        for line in lines
    ]
    return render_grid(_grid(lines, keys), records, content, kind)


def terminal_tables(lines: Sequence[Line], keys: Sequence[str], *, width: int) -> "list[Table]":
    """Return the table for a terminal, best values in bold; several if one would be too wide."""
    return _grid(lines, keys).terminal(width)


def _grid(lines: Sequence[Line], keys: Sequence[str]) -> Grid:
    """A section for each data set, its best values in bold."""
    headings = ("data set", "method", *map(heading, keys))
    rows = [
        (line.dataset, line.method, *(number(line.summary.get(key, math.nan)) for key in keys))
        for line in lines
    ]
    sections = [row for row in range(1, len(rows)) if rows[row][0] != rows[row - 1][0]]
    bold = set()
    for dataset in dict.fromkeys(line.dataset for line in lines):
        members = [row for row, line in enumerate(lines) if line.dataset == dataset]
        for column, key in enumerate(keys, start=2):
            best = best_rows([rows[row][column] for row in members], METRICS[key].better)
            bold |= {(members[index], column) for index in best}
    return Grid(headings, tuple(rows), 2, frozenset(bold), frozenset(sections))


def _metrics_json(line: Line, keys: Sequence[str]) -> dict[str, dict[str, float | None]]:
    return {
        key: {
            "value": None if is_nan(line.summary[key]) else line.summary[key],
            "images": line.defined[key],
        }
        for key in keys
        if key in line.summary
    }

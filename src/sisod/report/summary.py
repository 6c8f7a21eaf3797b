"""Summaries -> tables that people read and paste: terminal, Markdown, LaTeX, CSV, JSON."""

import csv
import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sisod.common.errors import printable
from sisod.common.grid import Format, latex_text, markdown_text
from sisod.scoring.metrics import METRICS, PAPER_KEYS, arrow

if TYPE_CHECKING:
    from rich.table import Table

_CELL = 6  # characters of a value, and of the longest word in a heading of the paper's table


@dataclass(frozen=True)
class Line:
    """One method on one data set."""

    dataset: str
    method: str
    summary: dict[str, float]
    defined: dict[str, int]


def shown_keys(keys: Sequence[str], *, chosen: bool) -> tuple[str, ...]:
    """Return the columns to show: those asked for, or the paper's if nothing was."""
    return tuple(keys) if chosen else tuple(key for key in PAPER_KEYS if key in keys)


def render(lines: Sequence[Line], keys: Sequence[str], kind: Format) -> str:
    """Return the table as text in one of the formats for documents and programs."""
    makers = {"md": _markdown, "latex": _latex, "csv": _csv, "json": _json}
    return makers[kind](lines, keys)


def terminal_tables(lines: Sequence[Line], keys: Sequence[str], *, width: int) -> "list[Table]":
    """Return the table for a terminal, best values bold; several if one would be too wide."""
    from rich.markup import escape
    from rich.table import Table

    best = _best(lines, keys)
    names = max([len("data set"), *(len(line.dataset) for line in lines)])
    names += max([len("method"), *(len(line.method) for line in lines)]) + 7  # and their borders
    columns = max(1, (width - names) // (_CELL + 3))
    tables = []
    for start in range(0, len(keys), columns):
        shown = keys[start : start + columns]
        table = Table()
        for title in ("data set", "method"):
            table.add_column(title, overflow="fold")
        for key in shown:
            table.add_column(_heading(key), justify="right", min_width=_CELL)
        for place, line in enumerate(lines):
            if place > 0 and lines[place - 1].dataset != line.dataset:
                table.add_section()
            cells = _cells(line, place, shown, best, "[bold]{}[/bold]")
            table.add_row(escape(printable(line.dataset)), escape(printable(line.method)), *cells)
        tables.append(table)
    return tables


def _heading(key: str) -> str:
    return f"{METRICS[key].title} {arrow(key)}"


def _cell(line: Line, key: str) -> str:
    value = line.summary.get(key, math.nan)
    return "-" if math.isnan(value) else f"{round(value, 4) + 0.0:.4f}"  # no -0.0000


def _cells(
    line: Line, place: int, keys: Sequence[str], best: set[tuple[int, str]], mark: str
) -> list[str]:
    texts = {key: _cell(line, key) for key in keys}
    return [mark.format(text) if (place, key) in best else text for key, text in texts.items()]


def _best(lines: Sequence[Line], keys: Sequence[str]) -> set[tuple[int, str]]:
    """Places of the best values of each data set, as printed, where there is more than one method."""
    best = set()
    for key in keys:
        choose = max if METRICS[key].direction == "up" else min
        for dataset in dict.fromkeys(line.dataset for line in lines):
            cells = {
                place: _cell(line, key)
                for place, line in enumerate(lines)
                if line.dataset == dataset and _cell(line, key) != "-"
            }
            if len(cells) > 1:
                winner = choose(cells.values(), key=float)
                best |= {(place, key) for place, cell in cells.items() if cell == winner}
    return best


def _markdown(lines: Sequence[Line], keys: Sequence[str]) -> str:
    best = _best(lines, keys)
    rows = [
        ["data set", "method", *(_heading(key) for key in keys)],
        ["---", "---", *("---:" for _ in keys)],
    ]
    for place, line in enumerate(lines):
        names = [markdown_text(text) for text in (line.dataset, line.method)]
        rows.append([*names, *_cells(line, place, keys, best, "**{}**")])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _latex(lines: Sequence[Line], keys: Sequence[str]) -> str:
    """A tabular that needs no package."""
    best = _best(lines, keys)
    arrows = {"up": r"$\uparrow$", "down": r"$\downarrow$"}
    titles = [f"{latex_text(METRICS[key].title)} {arrows[METRICS[key].direction]}" for key in keys]
    out = [rf"\begin{{tabular}}{{ll{'r' * len(keys)}}}", r"\hline"]
    out += [" & ".join(["data set", "method", *titles]) + r" \\", r"\hline"]
    for place, line in enumerate(lines):
        if place > 0 and lines[place - 1].dataset != line.dataset:
            out.append(r"\hline")
        cells = [
            rf"\textbf{{{_cell(line, key)}}}" if (place, key) in best else _cell(line, key)
            for key in keys
        ]
        names = [latex_text(text) for text in (line.dataset, line.method)]
        # \\ takes a [ or * that follows for an argument of its own
        guard = "{}" if names[0].startswith(("[", "*")) else ""
        out.append(guard + " & ".join([*names, *cells]) + r" \\")
    return "\n".join([*out, r"\hline", r"\end{tabular}"])


def _csv(lines: Sequence[Line], keys: Sequence[str]) -> str:
    """Full precision, empty where undefined."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["dataset", "method", *keys])
    for line in lines:
        values = [line.summary.get(key, math.nan) for key in keys]
        writer.writerow([line.dataset, line.method, *("" if math.isnan(v) else repr(v) for v in values)])
    return file.getvalue().rstrip("\n")


def _json(lines: Sequence[Line], keys: Sequence[str]) -> str:
    content = [
        {
            "dataset": line.dataset,
            "method": line.method,
            "metrics": {
                key: {
                    "value": None if math.isnan(line.summary[key]) else line.summary[key],
                    "images": line.defined[key],
                }
                for key in keys
                if key in line.summary
            },
        }
        for line in lines
    ]
    return json.dumps(content, indent=2, ensure_ascii=False)

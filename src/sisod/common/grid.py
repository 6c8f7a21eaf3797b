"""Tables of text cells: for the terminal, Markdown, LaTeX, CSV, notebooks."""

import csv
import html
import io
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sisod.common.errors import printable

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table

Format = Literal["md", "latex", "csv", "json"]


@dataclass(frozen=True)
class Grid:
    """A table as text.

    Attributes:
        headings: one for each column.
        rows: cells as they are printed.
        n_text: so many columns from the left hold words, the others numbers.
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    n_text: int

    def terminal(self, width: int) -> "list[Table]":
        """Return a table for a terminal; several, each with the words, if one would be too wide."""
        words = list(range(self.n_text))
        room = width - 1 - sum(self._cell_width(place) + 3 for place in words)
        chunks: list[list[int]] = [[]]
        for place in range(self.n_text, len(self.headings)):
            taken = sum(self._cell_width(other) + 3 for other in [*chunks[-1], place])
            if chunks[-1] and taken > room:
                chunks.append([])
            chunks[-1].append(place)
        return [self._terminal([*words, *chunk]) for chunk in chunks]

    def _terminal(self, places: list[int]) -> "Table":
        from rich.markup import escape
        from rich.table import Table

        table = Table()
        for place in places:
            justify: Any = "left" if place < self.n_text else "right"
            heading = escape(printable(self.headings[place]))
            table.add_column(heading, justify=justify, overflow="fold")
        for row in self.rows:
            table.add_row(*(escape(printable(row[place])) for place in places))
        return table

    def _cell_width(self, place: int) -> int:
        return max(len(printable(text)) for text in (self.headings[place], *self._column(place)))

    def _column(self, place: int) -> list[str]:
        return [row[place] for row in self.rows]

    def markdown(self) -> str:
        """Return a Markdown table."""
        lines = [
            [markdown_text(heading) for heading in self.headings],
            ["---" if place < self.n_text else "---:" for place in range(len(self.headings))],
            *([markdown_text(cell) for cell in row] for row in self.rows),
        ]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    def latex(self) -> str:
        """Return a tabular that needs no package."""
        columns = "l" * self.n_text + "r" * (len(self.headings) - self.n_text)
        out = [rf"\begin{{tabular}}{{{columns}}}", r"\hline", self._latex_line(self.headings), r"\hline"]
        out += [self._latex_line(row) for row in self.rows]
        return "\n".join([*out, r"\hline", r"\end{tabular}"])

    def html(self, caption: str = "") -> str:
        """Return an HTML table for notebooks; every text is escaped."""
        said = f"<caption>{html.escape(caption)}</caption>" if caption else ""
        head = "".join(f'<th scope="col">{html.escape(heading)}</th>' for heading in self.headings)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self.rows
        )
        return f"<table>{said}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _latex_line(self, cells: tuple[str, ...]) -> str:
        # \\ takes a [ or * that follows for an argument of its own
        guard = "{}" if cells[0].startswith(("[", "*")) else ""
        return guard + " & ".join(_with_arrows(latex_text(cell)) for cell in cells) + r" \\"


def _with_arrows(text: str) -> str:
    return text.replace("↑", r"$\uparrow$").replace("↓", r"$\downarrow$")


def number(value: float, *, digits: int = 4, sign: bool = False) -> str:
    """Return a number as tables print it: - where undefined, never -0.0000.

    Example:
        >>> number(-0.00001), number(float("nan")), number(0.25, sign=True)
        ('0.0000', '-', '+0.2500')
    """
    if math.isnan(value):
        return "-"
    return f"{round(value, digits) + 0.0:{'+' if sign else ''}.{digits}f}"


def render(grid: Grid, table: "pl.DataFrame", content: Mapping[str, Any], kind: Format) -> str:
    """Return a table for a document (the grid) or a program (CSV of the table, JSON of the content)."""
    if kind == "csv":
        return csv_text(list(table.iter_rows(named=True)))
    if kind == "json":
        return json.dumps(content, indent=2, ensure_ascii=False)
    return grid.markdown() if kind == "md" else grid.latex()


def csv_text(rows: list[Mapping[str, Any]]) -> str:
    """Return records as CSV in full precision, empty where undefined."""
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: "" if is_nan(value) else value for key, value in row.items()} for row in rows)
    return file.getvalue().rstrip("\n")


def plain(table: "pl.DataFrame") -> list[dict[str, Any]]:
    """Return the rows of a table for JSON, which has no NaN: None where undefined."""
    rows = table.iter_rows(named=True)
    return [{key: None if is_nan(value) else value for key, value in row.items()} for row in rows]


def is_nan(value: Any) -> bool:
    """Say whether a value is the float NaN."""
    return isinstance(value, float) and math.isnan(value)


_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
    }
)


def markdown_text(text: str) -> str:
    """Return a text that Markdown shows as it is, on one line."""
    return re.sub(r"([\\`*_\[\]|~<&])", r"\\\1", " ".join(text.split()))


def latex_text(text: str) -> str:
    """Return a text that LaTeX shows as it is, on one line."""
    return " ".join(text.split()).translate(_LATEX)

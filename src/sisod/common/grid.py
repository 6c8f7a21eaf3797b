"""Tables of text cells: for the terminal, Markdown, LaTeX, CSV, notebooks."""

import csv
import html
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sisod.common.errors import printable

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table

Format = Literal["md", "latex", "csv", "json"]
# the direction of better values, or towards zero; "none" for a value that is neither better nor worse
Better = Literal["up", "down", "zero", "none"]


@dataclass(frozen=True)
class Grid:
    """A table of text cells.

    Attributes:
        headings: one for each column.
        rows: cells as they are printed.
        n_text: number of text columns on the left; the others hold numbers.
        bold: (row, column) of the cells in bold.
        sections: rows that start a new section, with a rule above them.
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    n_text: int
    bold: frozenset[tuple[int, int]] = frozenset()
    sections: frozenset[int] = frozenset()

    def terminal(self, width: int) -> "list[Table]":
        """Return a table for a terminal; several, each with the text columns, if one is too wide."""
        widths = [self._min_width(column) for column in range(len(self.headings))]
        text = list(range(self.n_text))
        chunks: list[list[int]] = [[]]
        for column in range(self.n_text, len(self.headings)):
            if chunks[-1] and _room([widths[c] for c in [*text, *chunks[-1], column]], width) < 0:
                chunks.append([])
            chunks[-1].append(column)
        return [self._terminal([*text, *chunk], width) for chunk in chunks]

    def _terminal(self, columns: list[int], width: int) -> "Table":
        from rich.markup import escape
        from rich.table import Table

        table = Table()
        for column, cell_width in zip(columns, self._widths(columns, width), strict=True):
            table.add_column(
                escape(printable(self.headings[column])),
                justify="left" if column < self.n_text else "right",
                width=cell_width,
                overflow="fold",
            )
        for index, row in enumerate(self.rows):
            if index in self.sections:
                table.add_section()
            cells = {column: escape(printable(row[column])) for column in columns}
            table.add_row(
                *(
                    f"[bold]{cell}[/bold]" if (index, c) in self.bold else cell
                    for c, cell in cells.items()
                )
            )
        return table

    def _widths(self, columns: list[int], width: int) -> "list[int] | list[None]":
        """Widths of columns in a terminal, the longest headings broken; None if cells must be folded."""
        least = [self._min_width(column) for column in columns]
        widths = [
            max(w, _text_width(self.headings[column])) for w, column in zip(least, columns, strict=True)
        ]
        while _room(widths, width) < 0:
            breakable = [i for i in range(len(columns)) if widths[i] > least[i]]
            if not breakable:
                return [None] * len(columns)
            widths[max(breakable, key=widths.__getitem__)] -= 1
        return widths

    def _min_width(self, column: int) -> int:
        """Width of the longest cell; the heading of numbers may break between words."""
        heading = self.headings[column]
        words = [heading] if column < self.n_text else heading.split()
        return max(map(_text_width, ["", *words, *(row[column] for row in self.rows)]))

    def markdown(self) -> str:
        """Return a Markdown table."""
        lines = [
            [markdown_text(heading) for heading in self.headings],
            ["---" if column < self.n_text else "---:" for column in range(len(self.headings))],
            *self._marked(markdown_text, "**{}**"),
        ]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    def latex(self) -> str:
        """Return a tabular that needs no package."""
        columns = "l" * self.n_text + "r" * (len(self.headings) - self.n_text)
        lines = [rf"\begin{{tabular}}{{{columns}}}", r"\hline"]
        lines += [_latex_line([_latex_cell(heading) for heading in self.headings]), r"\hline"]
        for index, cells in enumerate(self._marked(_latex_cell, r"\textbf{{{}}}")):
            lines += [r"\hline"] * (index in self.sections) + [_latex_line(cells)]
        return "\n".join([*lines, r"\hline", r"\end{tabular}"])

    def html(self, caption: str = "") -> str:
        """Return an HTML table for notebooks; every text is escaped."""
        title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
        head = "".join(f'<th scope="col">{html.escape(heading)}</th>' for heading in self.headings)
        body = "".join(
            "<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>"
            for row in self._marked(html.escape, "<b>{}</b>")
        )
        return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _marked(self, escape: Callable[[str], str], bold: str) -> list[list[str]]:
        """Escaped cells, those in bold inside the format's mark."""
        return [
            [
                bold.format(escape(cell)) if (index, column) in self.bold else escape(cell)
                for column, cell in enumerate(row)
            ]
            for index, row in enumerate(self.rows)
        ]


def _text_width(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(printable(text))


def _room(widths: Sequence[int], width: int) -> int:
    """Characters that columns with their borders leave free in a terminal; negative if too wide."""
    return width - 1 - sum(widths) - 3 * len(widths)


def _latex_cell(text: str) -> str:
    return latex_text(text).replace("↑", r"$\uparrow$").replace("↓", r"$\downarrow$")


def _latex_line(cells: Sequence[str]) -> str:
    # without the guard, the \\ of the line above would take a [ or * for its own argument
    guard = "{}" if cells[0].startswith(("[", "*")) else ""
    return guard + " & ".join(cells) + r" \\"


def best_rows(cells: Sequence[str], better: Better) -> set[int]:
    """Return the rows with the best number of a column, as printed; none if there is only one number.

    Example:
        >>> best_rows(["0.25", "0.75", "-", "0.75"], "up")
        {1, 3}
    """
    if better == "none":
        return set()
    values = {row: float(cell) for row, cell in enumerate(cells) if cell != "-"}
    if len(values) < 2:
        return set()
    rank = {"up": lambda value: -value, "down": lambda value: value, "zero": abs}[better]
    best = min(values.values(), key=rank)
    return {row for row, value in values.items() if value == best}


def number(value: float, *, digits: int = 4, sign: bool = False) -> str:
    """Return a number as tables print it: - where undefined, never -0.0000.

    Example:
        >>> number(-0.00001), number(float("nan")), number(0.25, sign=True)
        ('0.0000', '-', '+0.2500')
    """
    if math.isnan(value):
        return "-"
    return f"{round(value, digits) + 0.0:{'+' if sign else ''}.{digits}f}"


def interval_text(low: float, high: float, *, sign: bool = False) -> str:
    """Return an interval as tables print it: - where undefined."""
    return "-" if math.isnan(low) else f"{number(low, sign=sign)} to {number(high, sign=sign)}"


def percent(share: float) -> str:
    """Return a share in percent as tables print it: - where undefined."""
    return "-" if math.isnan(share) else f"{100 * share:.1f} %"


def render(grid: Grid, records: Iterable[Mapping[str, Any]], content: Any, kind: Format) -> str:
    """Return a table for a document (the grid) or a program (CSV of records, JSON of content)."""
    if kind == "csv":
        return csv_text(list(records))
    if kind == "json":
        return json.dumps(content, indent=2, ensure_ascii=False)
    return grid.markdown() if kind == "md" else grid.latex()


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return records as CSV in full precision, empty where undefined."""
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: "" if is_nan(value) else value for key, value in row.items()} for row in rows)
    return file.getvalue().rstrip("\n")


def json_rows(table: "pl.DataFrame") -> list[dict[str, Any]]:
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

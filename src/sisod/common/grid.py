"""Tables of text cells: for the terminal, Markdown, LaTeX, CSV, notebooks."""

import csv
import html
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Literal

from sisod.common.exceptions import printable

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table

Format = Literal["md", "latex", "csv", "json"]
UNLIMITED = 10_000  # width of a terminal's table that is printed elsewhere
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how a cell begins that a spreadsheet computes
_BORDER = 3  # characters of a terminal's table beside each cell; the table has one more
# the direction of better values; "none" for a value that is neither better nor worse
Better = Literal["up", "down", "none"]


@dataclass(frozen=True)
class Grid:
    """A table of text cells.

    Attributes:
        headings: one for each column.
        rows: cells as they are printed.
        n_text: number of text columns on the left; the others hold numbers.
        bold: (row, column) of the cells in bold.
        sections: rows that start a new section, with a rule above them.
        underlined: (row, column) of the underlined cells.
        groups: headings above the columns of numbers, each with the number of its columns; where a
            format has no such headings, they stand before the heading of every column.
        symbols: heading or text cell -> what LaTeX prints for it.
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    n_text: int
    bold: frozenset[tuple[int, int]] = frozenset()
    sections: frozenset[int] = frozenset()
    underlined: frozenset[tuple[int, int]] = frozenset()
    groups: tuple[tuple[str, int], ...] = ()
    symbols: Mapping[str, str] = field(default_factory=dict, hash=False)

    @cached_property
    def flat_headings(self) -> tuple[str, ...]:
        """The headings on one line, after those of their groups."""
        groups = [group for group, n_columns in self.groups for _ in range(n_columns)]
        numbers = self.headings[self.n_text :]
        if not groups:
            return self.headings
        named = (f"{group} {heading}" for group, heading in zip(groups, numbers, strict=True))
        return (*self.headings[: self.n_text], *named)

    def _least_widths(self) -> list[int]:
        """Widths of the longest cells; the heading of numbers may break between words."""
        from rich.cells import cell_len

        widths = []
        for column, heading in enumerate(self.flat_headings):
            words = [heading] if column < self.n_text else heading.split()
            texts = ["", *words, *(row[column] for row in self.rows)]
            widths.append(max(cell_len(printable(text)) for text in texts))
        return widths

    def fits(self, width: int) -> bool:
        """Tell whether no cell has to be folded and no column moved below in a terminal."""
        return sum(least + _BORDER for least in self._least_widths()) < width

    def terminal(self, width: int) -> "list[Table]":
        """Return a table for a terminal; several, each with the text columns, if one is too wide."""
        from rich.markup import escape
        from rich.table import Table

        least = self._least_widths()
        text = list(range(self.n_text))
        chunks: list[list[int]] = [[]]
        for column in range(self.n_text, len(self.headings)):
            taken = sum(least[other] + _BORDER for other in (*text, *chunks[-1], column))
            if chunks[-1] and taken >= width:
                chunks.append([])
            chunks[-1].append(column)
        tables = []
        for chunk in chunks:
            table, columns = Table(), (*text, *chunk)
            fits = sum(least[column] + _BORDER for column in columns) < width
            for column in columns:
                is_text = column < self.n_text
                table.add_column(
                    escape(printable(self.flat_headings[column])),
                    justify="left" if is_text else "right",
                    width=least[column] if is_text and fits else None,  # rich breaks the other headings
                    overflow="fold",
                )
            for index, row in enumerate(self.rows):
                if index in self.sections:
                    table.add_section()
                cells = ((column, escape(printable(row[column]))) for column in columns)
                table.add_row(*(self._mark(index, *cell, _TERMINAL) for cell in cells))
            tables.append(table)
        return tables

    def markdown(self) -> str:
        """Return a Markdown table."""
        lines = [
            [markdown_text(heading) for heading in self.flat_headings],
            ["---" if column < self.n_text else "---:" for column in range(len(self.headings))],
            *self._marked(markdown_text, _MARKDOWN),
        ]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    def latex(self) -> str:
        """Return a tabular with the rules of the package booktabs."""
        columns = "l" * self.n_text + "r" * (len(self.headings) - self.n_text)
        lines = [rf"\begin{{tabular}}{{{columns}}}  % \usepackage{{booktabs}}", r"\toprule"]
        lines += self._latex_groups()
        lines += [_latex_line([self._latex_cell(heading) for heading in self.headings]), r"\midrule"]
        for index, cells in enumerate(self._marked(self._latex_cell, _LATEX_MARKS)):
            lines += [r"\midrule"] * (index in self.sections) + [_latex_line(cells)]
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])

    def _latex_groups(self) -> list[str]:
        """The line of headings above those of the columns, and a rule below each of them."""
        if not self.groups:
            return []
        cells = [rf"\multicolumn{{{n}}}{{c}}{{{self._latex_cell(group)}}}" for group, n in self.groups]
        ends = accumulate((n for _, n in self.groups), initial=self.n_text)
        rules = [rf"\cmidrule(lr){{{first + 1}-{last}}}" for first, last in pairwise(ends)]
        return [_latex_line([""] * self.n_text + cells), " ".join(rules)]

    def _latex_cell(self, text: str) -> str:
        minus = re.sub(r"(?<!\S)-(?=\d)", "$-$", latex_text(text))  # of negative numbers
        shown = self.symbols.get(text) or minus
        return shown.replace("↑", r"$\uparrow$").replace("↓", r"$\downarrow$")

    def html(self, caption: str = "") -> str:
        """Return an HTML table for notebooks; every text is escaped."""
        title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
        head = "".join(f'<th scope="col">{html.escape(heading)}</th>' for heading in self.flat_headings)
        body = "".join(
            "<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>"
            for row in self._marked(html.escape, _HTML)
        )
        return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _marked(self, escape: Callable[[str], str], marks: "_Marks") -> list[list[str]]:
        """Escaped cells, those in bold or underlined inside the marks of the format."""
        return [
            [self._mark(index, column, escape(cell), marks) for column, cell in enumerate(row)]
            for index, row in enumerate(self.rows)
        ]

    def _mark(self, row: int, column: int, text: str, marks: "_Marks") -> str:
        bold, underlined = marks
        if (row, column) in self.underlined:
            text = underlined.format(text)
        return bold.format(text) if (row, column) in self.bold else text


# of a bold cell, and of an underlined one
_Marks = tuple[str, str]
_TERMINAL: _Marks = ("[bold]{}[/bold]", "[underline]{}[/underline]")
_MARKDOWN: _Marks = ("**{}**", "<ins>{}</ins>")  # GitHub removes <u>
_LATEX_MARKS: _Marks = (r"\textbf{{{}}}", r"\underline{{{}}}")
_HTML: _Marks = ("<b>{}</b>", "<u>{}</u>")


def _latex_line(cells: Sequence[str]) -> str:
    # without the guard, the \\ or the rule of the line above would take a [ or * for its own argument
    guard = "{}" if cells[0].startswith(("[", "*")) else ""
    return guard + " & ".join(cells) + r" \\"


def ranked_rows(cells: Sequence[str], better: Better, *, most: int = 1) -> list[set[int]]:
    """Return the rows of rank 1, 2, ..., `most` in a column, by its numbers as printed.

    Equal numbers share a rank: after two best there is no second. Of two numbers only the best has a
    rank, and a single number has none, for otherwise everything would be marked.

    Example:
        >>> ranked_rows(["0.25", "0.75", "-", "0.50"], "up", most=2)
        [{1}, {3}]
    """
    if better == "none":
        return [set() for _ in range(most)]
    sign = -1 if better == "up" else 1
    losses = {row: sign * float(cell) for row, cell in enumerate(cells) if cell != "-"}
    n_better = {row: sum(other < own for other in losses.values()) for row, own in losses.items()}
    return [
        {row for row, n in n_better.items() if n == rank - 1 and len(losses) > rank}
        for rank in range(1, most + 1)
    ]


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
    """Return an interval as tables print it: - where undefined.

    Example:
        >>> interval_text(-0.1, 0.2, sign=True)
        '-0.1000 to +0.2000'
    """
    return "-" if math.isnan(low) else f"{number(low, sign=sign)} to {number(high, sign=sign)}"


def percent(share: float) -> str:
    """Return a share in percent as tables print it: - where undefined.

    Example:
        >>> percent(0.125)
        '12.5 %'
    """
    return "-" if math.isnan(share) else f"{100 * share:.1f} %"


def render(grid: Grid, records: Iterable[Mapping[str, Any]], content: Any, kind: Format) -> str:
    """Return a table for a document (the grid) or a program (CSV of records, JSON of content)."""
    if kind == "csv":
        return csv_text(list(records))
    if kind == "json":
        return json_text(content)
    return grid.markdown() if kind == "md" else grid.latex()


def json_text(content: Any) -> str:
    """Return data as indented JSON."""
    return json.dumps(content, indent=2, ensure_ascii=False)


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return records as CSV in full precision, empty where undefined.

    Text that a spreadsheet would take for a formula begins with an apostrophe.

    Example:
        >>> print(csv_text([{"method": "=A1", "mae": -0.5, "auc": float("nan")}]))
        method,mae,auc
        '=A1,-0.5,
    """
    keys = list(rows[0]) if rows else []
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for cells in [keys, *([row.get(key, "") for key in keys] for row in rows)]:
        writer.writerow(map(_csv_cell, cells))
    return text.getvalue().removesuffix("\n")


def _csv_cell(cell: Any) -> Any:
    if isinstance(cell, str):
        text = f"'{cell}" if cell.startswith(_FORMULA) else cell
        return "\n".join(text.splitlines()) if "\r" in text else text  # which csv does not quote
    return "" if is_nan(cell) else cell


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
        "±": r"$\pm$",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
    }
)


def markdown_text(text: str) -> str:
    """Return a text that Markdown shows as it is, on one line."""
    return re.sub(r"([\\`*_\[\]|~<&])", r"\\\1", printable(" ".join(text.split())))


def latex_text(text: str) -> str:
    """Return a text that LaTeX shows as it is, on one line."""
    return printable(" ".join(text.split())).translate(_LATEX)

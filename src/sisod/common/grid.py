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

    def fits(self, width: int) -> bool:
        """Tell whether no cell has to be folded and no column moved below in a terminal."""
        widths = [self._min_width(column) for column in range(len(self.headings))]
        return _room(widths, width) >= 0

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
                escape(printable(self.flat_headings[column])),
                justify="left" if column < self.n_text else "right",
                width=cell_width,
                overflow="fold",
            )
        for index, row in enumerate(self.rows):
            if index in self.sections:
                table.add_section()
            cells = [(column, escape(printable(row[column]))) for column in columns]
            table.add_row(*(self._mark(index, *cell, _TERMINAL) for cell in cells))
        return table

    def _widths(self, columns: list[int], width: int) -> "list[int] | list[None]":
        """Widths of columns in a terminal, the longest headings broken; None if cells must be folded."""
        least = [self._min_width(column) for column in columns]
        widths = [
            max(w, _text_width(self.flat_headings[column]))
            for w, column in zip(least, columns, strict=True)
        ]
        while _room(widths, width) < 0:
            breakable = [i for i in range(len(columns)) if widths[i] > least[i]]
            if not breakable:
                return [None] * len(columns)
            widths[max(breakable, key=widths.__getitem__)] -= 1
        return widths

    def _min_width(self, column: int) -> int:
        """Width of the longest cell; the heading of numbers may break between words."""
        heading = self.flat_headings[column]
        words = [heading] if column < self.n_text else heading.split()
        return max(map(_text_width, ["", *words, *(row[column] for row in self.rows)]))

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
        return _latex_arrows(self.symbols.get(text) or _latex_minus(latex_text(text)))

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


def _text_width(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(printable(text))


def _room(widths: Sequence[int], width: int) -> int:
    """Characters that columns with their borders leave free in a terminal; negative if too wide."""
    return width - 1 - sum(widths) - 3 * len(widths)


def _latex_arrows(text: str) -> str:
    return text.replace("↑", r"$\uparrow$").replace("↓", r"$\downarrow$")


def _latex_minus(text: str) -> str:
    """A text in which the hyphens of negative numbers are minus signs."""
    return re.sub(r"(?<!\S)-(?=\d)", "$-$", text)


def _latex_line(cells: Sequence[str]) -> str:
    # without the guard, the \\ or the rule of the line above would take a [ or * for its own argument
    guard = "{}" if cells[0].startswith(("[", "*")) else ""
    return guard + " & ".join(cells) + r" \\"


def best_rows(cells: Sequence[str], better: Better) -> set[int]:
    """Return the rows with the best number of a column, as printed; none if there is only one number.

    Example:
        >>> best_rows(["0.25", "0.75", "-", "0.75"], "up")
        {1, 3}
    """
    return ranked_rows(cells, better, most=1)[0]


def ranked_rows(cells: Sequence[str], better: Better, *, most: int) -> list[set[int]]:
    """Return the rows of rank 1, 2, ..., `most` in a column, by its numbers as printed.

    Equal numbers share a rank: after two best there is no second. Of two numbers only the best has a
    rank, and a single number has none, for otherwise everything would be marked.

    Example:
        >>> ranked_rows(["0.25", "0.75", "-", "0.50"], "up", most=2)
        [{1}, {3}]
    """
    if better == "none":
        return [set() for _ in range(most)]
    loss = {"up": lambda value: -value, "down": lambda value: value, "zero": abs}[better]
    losses = {row: loss(float(cell)) for row, cell in enumerate(cells) if cell != "-"}
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
    return "\n".join(
        _csv_line(cells) for cells in [keys, *([row.get(key, "") for key in keys] for row in rows)]
    )


def _csv_line(cells: Iterable[Any]) -> str:
    line = io.StringIO()
    # with this end of a line, carriage returns and line feeds in cells are quoted
    writer = csv.writer(line, lineterminator="\r\n")
    writer.writerow("" if is_nan(cell) else _harmless(cell) for cell in cells)
    return line.getvalue().removesuffix("\r\n")


def _harmless(cell: Any) -> Any:
    is_formula = isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{cell}" if is_formula else cell


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
    return re.sub(r"([\\`*_\[\]|~<&])", r"\\\1", printable(" ".join(text.split())))


def latex_text(text: str) -> str:
    """Return a text that LaTeX shows as it is, on one line."""
    return printable(" ".join(text.split())).translate(_LATEX)

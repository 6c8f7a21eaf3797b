"""Tables of text cells in every format."""

import io
import math

import pytest
from rich.console import Console

from sisod.common.grid import (
    Better,
    Grid,
    csv_text,
    interval_text,
    number,
    percent,
    ranked_rows,
)

GRID = Grid(("name", "one", "two", "three"), (("a[b]", "1.0000", "2.0000", "3.0000"),), n_text=1)


def printed(width: int) -> list[str]:
    file = io.StringIO()
    console = Console(file=file, width=width)
    for table in GRID.terminal(width):
        console.print(table)
    return file.getvalue().splitlines()


def test_a_wide_table_is_split_and_its_words_repeated() -> None:
    assert sum("a[b]" in line for line in printed(80)) == 1
    narrow = printed(26)
    assert sum("a[b]" in line for line in narrow) == 2
    assert max(map(len, narrow)) <= 26
    assert sum("3.0000" in line for line in narrow) == 1
    cells = [line.strip("│").split("│") for line in printed(12) if line.startswith("│")]
    assert [[cell.strip() for cell in row] for row in cells] == [
        ["a[", "1.0"], ["b]", "000"], ["a[", "2.0"], ["b]", "000"], ["a[", "3.0"], ["b]", "000"],
    ]  # fmt: skip
    assert max(map(len, printed(12))) <= 12


def test_texts_are_shown_as_they_are() -> None:
    odd = Grid(("m ↑", "50 %"), (("[*] a|b", "-1"),), n_text=1)
    assert odd.markdown() == "| m ↑ | 50 % |\n| --- | ---: |\n| \\[\\*\\] a\\|b | -1 |"
    assert odd.latex().splitlines() == [
        r"\begin{tabular}{lr}  % \usepackage{booktabs}",
        r"\toprule",
        r"m $\uparrow$ & 50 \% \\",
        r"\midrule",
        r"{}[*] a\textbar{}b & $-$1 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    assert odd.html("<b>") == (
        '<table><caption>&lt;b&gt;</caption><thead><tr><th scope="col">m ↑</th><th scope="col">50 %</th>'
        "</tr></thead><tbody><tr><td>[*] a|b</td><td>-1</td></tr></tbody></table>"
    )


@pytest.mark.parametrize(("value", "text"), [(-0.00004, "+0.0000"), (0.5, "+0.5000"), (-0.5, "-0.5000")])
def test_signed_numbers(value: float, text: str) -> None:
    assert number(value, sign=True) == text


def test_csv() -> None:
    assert csv_text([{"a": "x,y", "b": float("nan")}, {"a": "z", "b": 0.1}]) == 'a,b\n"x,y",\nz,0.1'
    assert csv_text([]) == ""
    cells = ["=1+1", "+A", "-x", "@f", "-", "two\r\nlines", "cut\rhere", "a-b", -0.5, -3]
    assert csv_text([{"a": cell} for cell in cells]).split("\n", 1)[1] == (
        "'=1+1\n'+A\n'-x\n'@f\n'-\n\"two\nlines\"\n\"cut\nhere\"\na-b\n-0.5\n-3"
    )


def test_names_cannot_control_the_terminal() -> None:
    grid = Grid(("name\x1b]0;x\x07", "n"), (("m\x1b[31m\x9b1m", "1"),), n_text=1)
    assert grid.markdown().replace("\n", "").isprintable()
    assert "m\\\\x1b\\[31m" in grid.markdown()
    assert r"m\textbackslash{}x1b[31m" in grid.latex()


def test_undefined_intervals_and_shares() -> None:
    assert interval_text(0.1, 0.25) == "0.1000 to 0.2500"
    assert interval_text(math.nan, math.nan) == "-"
    assert (percent(0.125), percent(math.nan)) == ("12.5 %", "-")


def test_bold_and_underlined_cells_and_sections() -> None:
    bold, underlined = frozenset({(1, 1)}), frozenset({(0, 1)})
    grid = Grid(("m", "x"), (("a", "1"), ("b_", "2")), 1, bold, frozenset({1}), underlined)
    assert grid.markdown().splitlines()[2:] == ["| a | <ins>1</ins> |", "| b\\_ | **2** |"]
    assert grid.latex().splitlines()[4:7] == [
        r"a & \underline{1} \\",
        r"\midrule",
        r"b\_ & \textbf{2} \\",
    ]
    assert "<td>a</td><td><u>1</u></td>" in grid.html()
    assert grid.html().endswith("<tr><td>b_</td><td><b>2</b></td></tr></tbody></table>")
    file = io.StringIO()
    (table,) = grid.terminal(80)
    Console(file=file, width=80, force_terminal=True).print(table)
    assert "\x1b[4m1" in file.getvalue()


def test_groups_of_columns_are_named_in_every_format() -> None:
    grid = Grid(
        ("m", "x ↑", "y", "x ↑", "y"), (("a", "1", "2", "3", "4"),), 1, groups=(("P&Q", 2), ("R", 2)),
        symbols={"x ↑": r"$\xi$ ↑"},
    )  # fmt: skip
    assert grid.markdown().splitlines()[0] == r"| m | P\&Q x ↑ | P\&Q y | R x ↑ | R y |"
    assert '<th scope="col">R x ↑</th>' in grid.html()
    assert [column.header for column in grid.terminal(80)[0].columns] == [
        "m", "P&Q x ↑", "P&Q y", "R x ↑", "R y",
    ]  # fmt: skip
    assert grid.latex().splitlines()[2:5] == [
        r" & \multicolumn{2}{c}{P\&Q} & \multicolumn{2}{c}{R} \\",
        r"\cmidrule(lr){2-3} \cmidrule(lr){4-5}",
        r"m & $\xi$ $\uparrow$ & y & $\xi$ $\uparrow$ & y \\",
    ]


@pytest.mark.parametrize(
    ("cells", "better", "ranks"),
    [
        (["0.1", "0.3", "0.2", "-"], "up", [{1}, {2}]),
        (["0.1", "0.3", "0.2", "-"], "down", [{0}, {2}]),
        (["0.3", "0.3", "0.2"], "up", [{0, 1}, set()]),  # after two best there is no second
        (["0.3", "0.2", "0.2"], "up", [{0}, {1, 2}]),
        (["0.3", "0.2"], "up", [{0}, set()]),  # of two, the second is the worst
        (["0.3"], "up", [set(), set()]),
        (["0.1", "-"], "up", [set(), set()]),  # nothing to compare with
        (["0.1", "0.3", "-0.2", "-"], "down", [{2}, {0}]),
        ([], "down", [set(), set()]),
        (["0.1", "0.2", "0.3"], "none", [set(), set()]),
    ],
)
def test_ranks(cells: list[str], better: Better, ranks: list[set[int]]) -> None:
    assert ranked_rows(cells, better, most=2) == ranks
    assert ranked_rows(cells, better, most=0) == []
    assert ranked_rows(cells, better) == ranks[:1]


def test_fits_is_the_width_at_which_a_table_is_not_split() -> None:
    for width in range(10, 60):
        whole = len(GRID.terminal(width)) == 1
        assert GRID.fits(width) == whole, width

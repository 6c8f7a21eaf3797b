"""Tables of text cells in every format."""

import io

import pytest
from rich.console import Console

from sisod.common.grid import Grid, csv_text, number

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
        r"\begin{tabular}{lr}",
        r"\hline",
        r"m $\uparrow$ & 50 \% \\",
        r"\hline",
        r"{}[*] a\textbar{}b & -1 \\",
        r"\hline",
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

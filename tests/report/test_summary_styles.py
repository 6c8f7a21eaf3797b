"""Tables of summaries in every layout: groups, ranks, digits, wide tables, well-formed LaTeX."""

import csv
import io
import json
import math
import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from sisod.common.grid import UNLIMITED, Format
from sisod.report.summary import (
    OBJECT_KEYS,
    SummaryRow,
    TableStyle,
    make_grids,
    render,
    terminal_tables,
)
from sisod.scoring.metrics import METRICS, PAPER_KEYS, find_metrics

VALUES = {
    ("D1", "A"): {"mae": 0.1, "f_max": 0.5},
    ("D1", "B"): {"mae": 0.2, "f_max": 0.7},
    ("D1", "C"): {"mae": 0.3, "f_max": 0.6},
    ("D2", "A"): {"mae": 0.3, "f_max": 0.3},
    ("D2", "B"): {"mae": 0.3, "f_max": 0.2},
    ("D2", "C"): {"mae": 0.4, "f_max": 0.1},
}
LINES = [SummaryRow(*names, values, dict.fromkeys(values, 1)) for names, values in VALUES.items()]
TABLES = [("mae", "f_max")]


def markdown(**style: object) -> str:
    return render(LINES, TABLES, "md", TableStyle(**style))  # type: ignore[arg-type]


def test_best_is_bold_and_second_best_underlined() -> None:
    assert markdown(digits=1) == (
        "| data set | method | MAE ↓ | F max ↑ |\n"
        "| --- | --- | ---: | ---: |\n"
        "| D1 | A | **0.1** | 0.5 |\n"
        "| D1 | B | <ins>0.2</ins> | **0.7** |\n"
        "| D1 | C | 0.3 | <ins>0.6</ins> |\n"
        "| D2 | A | **0.3** | **0.3** |\n"
        "| D2 | B | **0.3** | <ins>0.2</ins> |\n"
        "| D2 | C | 0.4 | 0.1 |"
    )
    assert "<ins>" not in markdown(rank=1)
    assert markdown(rank=1).count("**") == markdown().count("**") == 10
    assert "**" not in markdown(rank=0)


def test_of_two_methods_the_worse_one_is_not_underlined() -> None:
    assert "<ins>" not in render(LINES[:2], TABLES, "md")


@pytest.mark.parametrize("group", ["dataset", "method"])
@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_every_layout_marks_the_same_numbers(group: str, layout: str) -> None:
    style = TableStyle(group, layout)  # type: ignore[arg-type]
    marks: dict[Format, str] = {"md": r"\*\*(.*?)\*\*", "latex": r"\\textbf\{(.*?)\}"}
    for kind, mark in marks.items():
        text = render(LINES, TABLES, kind, style)
        assert sorted(re.findall(mark, text)) == ["0.1000", "0.3000", "0.3000", "0.3000", "0.7000"]
        numbers = re.findall(r"\d\.\d{4}", text)
        assert sorted(numbers) == sorted(f"{v:.4f}" for row in VALUES.values() for v in row.values())


def test_metrics_as_rows() -> None:
    assert markdown(layout="rows", digits=1) == (
        "| data set | metric | A | B | C |\n"
        "| --- | --- | ---: | ---: | ---: |\n"
        "| D1 | MAE ↓ | **0.1** | <ins>0.2</ins> | 0.3 |\n"
        "|  | F max ↑ | 0.5 | **0.7** | <ins>0.6</ins> |\n"
        "| D2 | MAE ↓ | **0.3** | **0.3** | 0.4 |\n"
        "|  | F max ↑ | **0.3** | <ins>0.2</ins> | 0.1 |"
    )
    (grid,) = make_grids(LINES, TABLES, TableStyle(layout="rows"))
    assert grid.sections == {2}


def test_methods_as_groups() -> None:
    text = markdown(group="method", digits=1, rank=0)
    assert text.splitlines()[0] == "| method | data set | MAE ↓ | F max ↑ |"
    assert text.splitlines()[2:4] == ["| A | D1 | 0.1 | 0.5 |", "| A | D2 | 0.3 | 0.3 |"]
    turned = markdown(group="method", layout="rows", digits=1, rank=0)
    assert turned.splitlines()[0] == "| method | metric | D1 | D2 |"
    assert turned.splitlines()[2] == "| A | MAE ↓ | 0.1 | 0.3 |"
    latex = render(LINES, TABLES, "latex", TableStyle(group="method", digits=1)).splitlines()
    assert latex[2] == r" & \multicolumn{2}{c}{A} & \multicolumn{2}{c}{B} & \multicolumn{2}{c}{C} \\"
    assert latex[6] == (
        r"D1 & \textbf{0.1} & 0.5 & \underline{0.2} & \textbf{0.7} & 0.3 & \underline{0.6} \\"
    )


def test_latex_prints_the_symbols_of_papers() -> None:
    for layout in ("rows", "columns"):
        text = render(LINES, TABLES, "latex", TableStyle(layout=layout))
        assert r"$F_\beta^{\max}$ $\uparrow$" in text
        assert r"MAE $\downarrow$" in text


def test_digits_also_round_what_programs_read() -> None:
    lines = [SummaryRow("D", "A", {"mae": 1 / 3, "kappa_mean": -1e-9}, {"mae": 1, "kappa_mean": 1})]
    tables = [("mae",), ("kappa_mean",)]
    rows = list(csv.DictReader(io.StringIO(render(lines, tables, "csv"))))
    assert rows == [{"dataset": "D", "method": "A", "mae": repr(1 / 3), "kappa_mean": "-1e-09"}]
    assert render(lines, tables, "csv", TableStyle(digits=3)).splitlines()[1] == "D,A,0.333,0.0"
    (record,) = json.loads(render(lines, tables, "json", TableStyle(digits=2)))
    assert [metric["value"] for metric in record["metrics"].values()] == [0.33, 0.0]


@pytest.mark.parametrize("kind", ["csv", "json"])
@pytest.mark.parametrize("option", ["group", "layout", "rank"])
def test_records_have_no_layout(kind: str, option: str) -> None:
    value = {"group": "dataset", "layout": "rows", "rank": 1}[option]
    with pytest.raises(ValueError, match=f"--{option} is for tables that people read; {kind} has one"):
        render(LINES, TABLES, kind, TableStyle(**{option: value}))  # type: ignore[arg-type]


# wide tables


def scored(methods: list[str], keys: tuple[str, ...]) -> list[SummaryRow]:
    return [
        SummaryRow("MSOD", name, dict.fromkeys(keys, 0.5), dict.fromkeys(keys, 1)) for name in methods
    ]


def printed(lines: list[SummaryRow], keys: tuple[str, ...], width: int) -> list[str]:
    file = io.StringIO()
    for table in terminal_tables(lines, [keys], width=width):
        Console(file=file, width=width).print(table)
    return file.getvalue().splitlines()


@pytest.mark.parametrize("width", [50, 60, 80, 100])
def test_a_narrow_terminal_turns_the_table(width: int) -> None:
    rows = printed(scored(["EDN", "ICON"], PAPER_KEYS), PAPER_KEYS, width)
    assert max(map(cell_len, rows)) <= width
    assert sum("EDN" in row and "ICON" in row for row in rows) == 1  # one table
    assert [row.count("0.5000") for row in rows if "0.5000" in row] == [2] * len(PAPER_KEYS)


def test_a_terminal_that_is_wide_enough_does_not() -> None:
    rows = printed(scored(["EDN", "ICON"], PAPER_KEYS), PAPER_KEYS, 150)
    assert [row.count("0.5000") for row in rows if "0.5000" in row] == [len(PAPER_KEYS)] * 2


def test_a_table_is_not_turned_if_methods_would_be_torn_apart() -> None:
    methods = [f"method-{i}" for i in range(7)]
    rows = printed(scored(methods, PAPER_KEYS), PAPER_KEYS, 60)
    assert max(map(cell_len, rows)) <= 60
    starts = [row for row in rows if "method-0" in row]
    assert len(starts) > 1  # several tables, each with all methods
    assert all(sum(name in row for row in rows) == len(starts) for name in methods)


@pytest.mark.parametrize("n_methods", [1, 3, 20])
def test_documents_turn_what_has_many_metrics_and_fewer_methods(n_methods: int) -> None:
    keys = find_metrics(None)[:20]
    lines = scored([f"m{i}" for i in range(n_methods)], keys)
    first = render(lines, [keys], "md").splitlines()[0]
    assert first.startswith(
        "| data set | metric |" if n_methods < len(keys) else "| data set | method |"
    )
    (piped, *_) = (row for row in printed(lines, keys, UNLIMITED) if "data set" in row)
    assert ("metric" in piped) == (n_methods < len(keys))
    assert render(lines, [keys[:12]], "md").startswith("| data set | method |")


def test_all_tables_have_one_layout() -> None:
    keys = find_metrics(None)
    first, second = render(scored(["A", "B"], keys), [keys, ("mae",)], "md").split("\n\n")
    assert "| data set | metric |" in first
    assert "| data set | metric |" in second


@pytest.mark.parametrize("width", [58, 62, 66])
def test_every_table_of_a_terminal_is_turned_on_its_own(width: int) -> None:
    keys = find_metrics(None)
    lines = scored(["EDN", "a method with a long name"], keys)
    long, short = OBJECT_KEYS[:6], ("mae", "auc", "s")
    grids = make_grids(lines, [PAPER_KEYS, long, short[:1]], width=width)
    assert [grid.headings[1] for grid in grids[:1]] == ["metric"]
    assert grids[2].headings[1] == "method"
    for grid in grids[:2]:
        assert (grid.headings[1] == "metric") == grid.fits(width)


# LaTeX


def cells_of(row: str) -> int:
    r"""Columns that a row fills: separators that are not escaped, and those of \multicolumn."""
    spans = [int(n) for n in re.findall(r"\\multicolumn\{(\d+)\}", row)]
    return len(re.findall(r"(?<!\\)&", row)) + 1 + sum(spans) - len(spans)


def check_tabular(text: str) -> None:
    """Check what TeX would check: braces, environments, math mode, columns of every row."""
    lines = text.splitlines()
    columns = re.fullmatch(r"\\begin\{tabular\}\{([lr]+)\}  % \\usepackage\{booktabs\}", lines[0])
    assert columns is not None
    assert lines[1] == r"\toprule"
    assert lines[-2:] == [r"\bottomrule", r"\end{tabular}"]
    for row in lines[2:-2]:
        if row == r"\midrule" or row.startswith(r"\cmidrule"):
            assert all(int(n) <= len(columns[1]) for n in re.findall(r"\d+", row))
            continue
        assert row.endswith(r" \\")
        assert cells_of(row) == len(columns[1]), row
        plain = re.sub(r"\\[\\&%$#_{}]", "", row)  # escaped characters, and the end of the row
        assert plain.count("{") == plain.count("}")
        assert plain.count("$") % 2 == 0
        for cell in plain.split("&"):
            outside = re.sub(r"\$[^$]*\$", "", cell)  # without math
            assert not re.search(r"[#%~^_$]", outside), cell
            assert set(re.findall(r"\\[a-z]+", outside)) <= {
                r"\textbf", r"\underline", r"\multicolumn", r"\textbackslash", r"\textasciitilde",
                r"\textasciicircum", r"\textless", r"\textgreater", r"\textbar",
            }  # fmt: skip


NAMES = st.lists(
    st.text(
        st.sampled_from("ab _&%#${}~^\\<>|[*]↑é") | st.characters(codec="utf-8"), min_size=1, max_size=8
    ),
    min_size=1,
    max_size=3,
    unique=True,
)


@given(
    datasets=NAMES,
    methods=NAMES,
    keys=st.lists(st.sampled_from([*METRICS]), min_size=1, max_size=4, unique=True),
    layout=st.sampled_from(["rows", "columns"]),
    group=st.sampled_from(["dataset", "method"]),
    random=st.randoms(),
)
def test_latex_is_well_formed(
    datasets: list[str],
    methods: list[str],
    keys: list[str],
    layout: str,
    group: str,
    random: Random,
) -> None:
    values = (-0.5, 0.0, 0.25, 0.75, math.nan)
    lines = [
        SummaryRow(dataset, method, {key: random.choice(values) for key in keys}, dict.fromkeys(keys, 1))
        for dataset in datasets
        for method in methods
    ]
    text = render(lines, [tuple(keys)], "latex", TableStyle(group, layout))  # type: ignore[arg-type]
    check_tabular(text)


@pytest.mark.parametrize(
    "wrong",
    [r"a & b & c \\", r"a_b & c \\", r"{a & b \\", r"a & b", r"$a & b \\", r"\undefined{a} & b \\"],
)
def test_the_check_of_latex_can_fail(wrong: str) -> None:
    check_tabular(TABULAR.format(r"a\_b & $\uparrow$ \\"))
    with pytest.raises(AssertionError):
        check_tabular(TABULAR.format(wrong))


TABULAR = "\n".join(
    [
        *(r"\begin{{tabular}}{{lr}}  % \usepackage{{booktabs}}", r"\toprule", "{}"),
        *(r"\bottomrule", r"\end{{tabular}}"),
    ]
)

"""Tables of summaries: best values, layouts, digits, undefined cells, escaped names, wide tables."""

import csv
import html
import io
import json
import math
import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.cells import cell_len
from rich.console import Console

from sisod.common.grid import UNLIMITED, Format
from sisod.report.summary import (
    DEFAULT,
    SummaryRow,
    TableStyle,
    make_grids,
    render,
    shown_keys,
)
from sisod.scoring.engine import find_scorer
from sisod.scoring.metrics import METRICS, PAPER_KEYS, find_metrics
from sisod.scoring.protocols import find_protocol

KEYS = ("mae", "si_f_mean")
NASTY = r"""a|b <i>x</i> _c_ d&e 5% $x$ #1 {y} ~ ^ \z *s* `t` "q" 'r' [u] ümläut"""


def line(dataset: str, method: str, *values: float) -> SummaryRow:
    summary = dict(zip(KEYS, values, strict=True))
    return SummaryRow(
        dataset, method, summary, {key: 0 if math.isnan(v) else 7 for key, v in summary.items()}
    )


LINES = [
    line("D1", "A", 0.25, 0.5),
    line("D1", "B", 0.125, 0.75),
    line("D1", "C", 0.12500001, math.nan),  # the same as printed: a tie
    line("D2", "A", 0.5, math.nan),
    line("D2", "B", 0.75, math.nan),
    line("D3", "A", 0.5, 0.5),  # a single method: nothing is best
]


def test_markdown() -> None:
    assert render(LINES, [KEYS], "md") == (
        "| data set | method | MAE ↓ | SI-F mean ↑ |\n"
        "| --- | --- | ---: | ---: |\n"
        "| D1 | A | 0.2500 | 0.5000 |\n"
        "| D1 | B | **0.1250** | **0.7500** |\n"
        "| D1 | C | **0.1250** | - |\n"
        "| D2 | A | **0.5000** | - |\n"
        "| D2 | B | 0.7500 | - |\n"
        "| D3 | A | 0.5000 | 0.5000 |"
    )


def test_latex() -> None:
    assert render(LINES, [KEYS], "latex") == "\n".join(
        [
            r"\begin{tabular}{lrrrrrr}  % \usepackage{booktabs}",
            r"\toprule",
            r" & \multicolumn{2}{c}{D1} & \multicolumn{2}{c}{D2} & \multicolumn{2}{c}{D3} \\",
            r"\cmidrule(lr){2-3} \cmidrule(lr){4-5} \cmidrule(lr){6-7}",
            "method" + 3 * r" & MAE $\downarrow$ & SI-$F_\beta^{\mathrm{mean}}$ $\uparrow$" + r" \\",
            r"\midrule",
            r"A & 0.2500 & 0.5000 & \textbf{0.5000} & - & 0.5000 & 0.5000 \\",
            r"B & \textbf{0.1250} & \textbf{0.7500} & 0.7500 & - & - & - \\",
            r"C & \textbf{0.1250} & - & - & - & - & - \\",
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


def test_csv_and_json_are_exact() -> None:
    lines = [line("D1", NASTY, 1 / 3, math.nan), line('x,"y"\nz', "B", 1e-17, 0.1)]
    rows = list(csv.reader(io.StringIO(render(lines, [KEYS], "csv"))))
    assert rows == [
        ["dataset", "method", "mae", "si_f_mean"],
        ["D1", NASTY, repr(1 / 3), ""],
        ['x,"y"\nz', "B", "1e-17", "0.1"],
    ]
    metrics = {"mae": {"value": 1 / 3, "images": 7}, "si_f_mean": {"value": None, "images": 0}}
    first = {"dataset": "D1", "method": NASTY, "metrics": metrics}
    assert json.loads(render(lines, [KEYS], "json"))[0] == first


def test_best_follows_the_direction_of_every_metric() -> None:
    for key, metric in METRICS.items():
        lines = [
            SummaryRow("D", name, {key: value}, {key: 1}) for name, value in (("A", 0.1), ("B", 0.2))
        ]
        text = render(lines, [(key,)], "md")
        if metric.direction == "none" or metric.trivial:
            assert f"| {metric.title} |" in text
            assert "**" not in text
            continue
        arrow, winner = ("↑", "0.2000") if metric.direction == "up" else ("↓", "0.1000")
        assert f"{metric.title} {arrow} |" in text
        assert f"**{winner}**" in text
        assert text.count("**") == 2


@pytest.mark.parametrize(
    "name",
    ["a\\|b", "<!--", "a\nb", "~~b~~", "[b](c)", "a&lt;b", NASTY],
)
def test_names_in_markdown_are_shown_as_they_are(name: str) -> None:
    text = render([line(name, name, 0.5, 0.5)], [KEYS], "md")
    shown = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text)
    cell = html.escape(" ".join(name.split()), quote=True).replace("&#x27;", "'")
    row = shown.partition("<tbody>")[2].split("</td>")
    assert [part.strip() for part in row[:2]] == [f"<tr>\n<td>{cell}", f"<td>{cell}"]


def printed(
    lines: list[SummaryRow],
    keys: tuple[str, ...] = KEYS,
    *,
    width: int = 200,
    style: TableStyle = DEFAULT,
) -> str:
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=True)
    for grid in make_grids(lines, [keys], style, width=width):
        for table in grid.terminal(width):
            console.print(table)
    return file.getvalue()


def test_terminal_table() -> None:
    text = printed(LINES)
    bold = text.split("┩")[1]  # below the heading
    assert bold.count("\x1b[1m0.1250") == 2
    assert bold.count("\x1b[1m") == 4
    assert "MAE ↓" in text
    assert " - │" in text


@pytest.mark.parametrize("name", ["ours with a longer name", "方法 全部"])
@pytest.mark.parametrize("width", [50, 90, 150])
def test_no_cell_is_cut_or_folded_in_a_terminal(name: str, width: int) -> None:
    (keys,) = shown_keys(find_metrics("paper"), chosen=False)
    lines = [SummaryRow("MSOD", name, dict.fromkeys(keys, 0.5), dict.fromkeys(keys, 1))]
    text = printed(lines, keys, width=width, style=TableStyle(layout="columns"))
    rows = re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()
    assert max(map(cell_len, rows)) <= width
    assert sum(row.count(" 0.5000 │") for row in rows) == len(keys)
    cells = [row for row in rows if "0.5000" in row]
    assert [row.split("│")[2].strip() for row in cells] == [name] * len(cells)


def test_columns() -> None:
    assert shown_keys(("mae", "s", "auc", "pq"), chosen=True) == [("mae", "s", "auc", "pq")]
    objects = ("object_recall", "object_precision", "object_f1", "false_objects", "pq", "bsi_f_binary")
    assert shown_keys(find_metrics(None), chosen=False) == [find_metrics("paper"), objects]
    infrared = shown_keys(find_metrics(None, detections=True), chosen=False)[1]
    assert infrared == (*objects, "pd", "fa", "niou", "iou_total")
    official = find_scorer(find_protocol("official"), None).keys
    assert shown_keys(official, chosen=False) == [find_metrics("paper")]  # it has no predicted objects


# ranks, layouts and wide tables

VALUES = {
    ("D1", "A"): {"mae": 0.1, "f_max": 0.5},
    ("D1", "B"): {"mae": 0.2, "f_max": 0.7},
    ("D1", "C"): {"mae": 0.3, "f_max": 0.6},
    ("D2", "A"): {"mae": 0.3, "f_max": 0.3},
    ("D2", "B"): {"mae": 0.3, "f_max": 0.2},
    ("D2", "C"): {"mae": 0.4, "f_max": 0.1},
}
RANKED = [SummaryRow(*names, values, dict.fromkeys(values, 1)) for names, values in VALUES.items()]
TABLES = [("mae", "f_max")]


def markdown(**style: object) -> str:
    return render(RANKED, TABLES, "md", TableStyle(**style))  # type: ignore[arg-type]


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


@pytest.mark.parametrize("group", ["dataset", "method"])
@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_every_layout_marks_the_same_numbers(group: str, layout: str) -> None:
    style = TableStyle(group, layout)  # type: ignore[arg-type]
    marks: dict[Format, str] = {"md": r"\*\*(.*?)\*\*", "latex": r"\\textbf\{(.*?)\}"}
    for kind, mark in marks.items():
        text = render(RANKED, TABLES, kind, style)
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
    (grid,) = make_grids(RANKED, TABLES, TableStyle(layout="rows"))
    assert grid.sections == {2}


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
        render(RANKED, TABLES, kind, TableStyle(**{option: value}))  # type: ignore[arg-type]


# wide tables


def scored(methods: list[str], keys: tuple[str, ...]) -> list[SummaryRow]:
    return [
        SummaryRow("MSOD", name, dict.fromkeys(keys, 0.5), dict.fromkeys(keys, 1)) for name in methods
    ]


def rows_of(lines: list[SummaryRow], keys: tuple[str, ...], width: int) -> list[str]:
    text = printed(lines, keys, width=width, style=DEFAULT)
    return re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()


@pytest.mark.parametrize("width", [50, 80])
def test_a_narrow_terminal_turns_the_table(width: int) -> None:
    rows = rows_of(scored(["EDN", "ICON"], PAPER_KEYS), PAPER_KEYS, width)
    assert max(map(cell_len, rows)) <= width
    assert sum("EDN" in row and "ICON" in row for row in rows) == 1  # one table
    assert [row.count("0.5000") for row in rows if "0.5000" in row] == [2] * len(PAPER_KEYS)


@pytest.mark.parametrize("n_methods", [1, 3, 20])
def test_documents_turn_what_has_many_metrics_and_fewer_methods(n_methods: int) -> None:
    keys = find_metrics(None)[:20]
    lines = scored([f"m{i}" for i in range(n_methods)], keys)
    first = render(lines, [keys], "md").splitlines()[0]
    assert first.startswith(
        "| data set | metric |" if n_methods < len(keys) else "| data set | method |"
    )
    (piped, *_) = (row for row in rows_of(lines, keys, UNLIMITED) if "data set" in row)
    assert ("metric" in piped) == (n_methods < len(keys))
    assert render(lines, [keys[:12]], "md").startswith("| data set | method |")


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
        assert not row.startswith(("[", "*"))  # an argument of the line above
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

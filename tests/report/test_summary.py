"""Tables of summaries: best values in bold, arrows, undefined cells, escaped names."""

import csv
import html
import io
import json
import math
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from helpers.command_line import run
from markdown_it import MarkdownIt
from rich.cells import cell_len
from rich.console import Console

import sisod
from sisod.report.summary import DEFAULT, SummaryRow, TableStyle, render, shown_keys, terminal_tables
from sisod.scoring.engine import find_scorer
from sisod.scoring.metrics import METRICS, find_metrics
from sisod.scoring.protocols import find_protocol

KEYS = ("mae", "si_f_mean")
NASTY = r"""a|b <i>x</i> _c_ d&e 5% $x$ #1 {y} ~ ^ \z *s* `t` "q" 'r' [u] ümläut"""
PDFLATEX = shutil.which("pdflatex")
STYLES = [
    TableStyle(group=group, layout=layout)
    for group in ("dataset", "method")
    for layout in ("rows", "columns")
]


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


def test_csv_is_exact() -> None:
    lines = [line("D1", "A", 1 / 3, math.nan), line('x,"y"\nz', "B", 1e-17, 0.1)]
    rows = list(csv.reader(io.StringIO(render(lines, [KEYS], "csv"))))
    assert rows == [
        ["dataset", "method", "mae", "si_f_mean"],
        ["D1", "A", repr(1 / 3), ""],
        ['x,"y"\nz', "B", "1e-17", "0.1"],
    ]


def test_json_is_exact() -> None:
    lines = [line("D1", NASTY, 1 / 3, math.nan)]
    assert json.loads(render(lines, [KEYS], "json")) == [
        {
            "dataset": "D1",
            "method": NASTY,
            "metrics": {
                "mae": {"value": 1 / 3, "images": 7},
                "si_f_mean": {"value": None, "images": 0},
            },
        }
    ]


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


def test_no_negative_zero() -> None:
    key = "kappa_mean"
    lines = [
        SummaryRow("D", name, {key: value}, {key: 1}) for name, value in (("A", -1e-9), ("B", 1e-9))
    ]
    assert render(lines, [(key,)], "md").splitlines()[2:] == [
        "| D | A | **0.0000** |",
        "| D | B | **0.0000** |",
    ]


@pytest.mark.parametrize(
    "name",
    [
        "a|b",
        "<i>x</i>",
        "<!--",
        "a\\b",
        "a\\|b",
        "a\nb",
        "a_b",
        "_b_",
        "*b*",
        "`b`",
        "~~b~~",
        "[b](c)",
        "a&lt;b",
        NASTY,
    ],
)
def test_names_in_markdown_are_shown_as_they_are(name: str) -> None:
    text = render([line(name, name, 0.5, 0.5)], [KEYS], "md")
    shown = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text)
    cell = html.escape(" ".join(name.split()), quote=True).replace("&#x27;", "'")
    row = shown.partition("<tbody>")[2].split("</td>")
    assert [part.strip() for part in row[:2]] == [f"<tr>\n<td>{cell}", f"<td>{cell}"]


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("a_b & 5%", r"a\_b \& 5\%"),
        ("$x$ #1 {y}", r"\$x\$ \#1 \{y\}"),
        ("~^", r"\textasciitilde{}\textasciicircum{}"),
        ("a\\b", r"a\textbackslash{}b"),
        ("a\nb", "a b"),
        ("a<b>c", r"a\textless{}b\textgreater{}c"),  # plain, pdflatex prints other characters for these
        ("a|b", r"a\textbar{}b"),
    ],
)
def test_names_in_latex(name: str, escaped: str) -> None:
    rows = render([line(name, name, 0.5, 0.5)], [KEYS], "latex").splitlines()
    assert rows[2] == rf" & \multicolumn{{2}}{{c}}{{{escaped}}} \\"
    assert rows[6] == rf"{escaped} & 0.5000 & 0.5000 \\"
    turned = render(
        [line(name, name, 0.5, 0.5)], [KEYS], "latex", TableStyle(layout="rows")
    ).splitlines()
    assert turned[2] == rf"data set & metric & {escaped} \\"
    assert turned[4].startswith(rf"{escaped} & MAE")


@pytest.mark.parametrize("name", ["[x]", "*x"])
def test_latex_guards_names_that_look_like_arguments(name: str) -> None:
    lines = [line(data, method, 0.5, 0.5) for data in (name, "D") for method in ("A", name)]
    for style in STYLES:
        for row in render(lines, [KEYS], "latex", style).splitlines():
            assert not row.startswith(("[", "*"))


@pytest.mark.skipif(PDFLATEX is None, reason="pdflatex is not installed")
def test_latex_compiles(tmp_path: Path) -> None:
    lines = [line(data, method, 0.5, 0.25) for data in (NASTY, "[1]", "*") for method in (NASTY, "[2]")]
    table = "\n\n".join(render(lines, [KEYS, tuple(METRICS)[:9]], "latex", style) for style in STYLES)
    (tmp_path / "t.tex").write_text(
        "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\n"
        + table
        + "\n\\end{document}\n"
    )
    command = [str(PDFLATEX), "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60, check=False)  # noqa: S603
    assert ended.returncode == 0, ended.stdout[-2000:]
    assert (tmp_path / "t.pdf").exists()


def printed(
    lines: list[SummaryRow],
    keys: tuple[str, ...] = KEYS,
    *,
    width: int = 200,
    style: TableStyle = DEFAULT,
) -> str:
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=True)
    for table in terminal_tables(lines, [keys], width=width, style=style):
        console.print(table)
    return file.getvalue()


def test_terminal_table() -> None:
    text = printed(LINES)
    bold = text.split("┩")[1]  # below the heading
    assert bold.count("\x1b[1m0.1250") == 2
    assert bold.count("\x1b[1m") == 4
    assert "MAE ↓" in text
    assert " - │" in text


def test_names_in_the_terminal_are_not_markup() -> None:
    assert "[bold]x[/bold]" in printed([line("[bold]x[/bold]", "[red]", 0.5, 0.5)])


@pytest.mark.parametrize("width", [40, 80, 100])
def test_names_stay_readable_in_a_narrow_terminal(width: int) -> None:
    (keys,) = shown_keys(find_metrics("paper"), chosen=False)
    lines = [
        SummaryRow("MSOD", method, dict.fromkeys(keys, 0.5), dict.fromkeys(keys, 1))
        for method in ("EDN", "ICON")
    ]
    text = printed(lines, keys, width=width, style=TableStyle(layout="columns"))
    rows = [row for row in text.splitlines() if "0.5000" in row]
    assert sum(row.count("0.5000") for row in rows) == 2 * len(keys)
    assert len([row for row in rows if "MSOD" in row and "EDN" in row]) == len(rows) // 2
    assert len([row for row in rows if "MSOD" in row and "ICON" in row]) == len(rows) // 2
    assert max(len(row) for row in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()) <= width


@pytest.mark.parametrize("name", ["ours with a longer name", "方法 全部"])
@pytest.mark.parametrize("width", range(50, 180, 10))
def test_no_cell_is_cut_or_folded_in_a_terminal(name: str, width: int) -> None:
    (keys,) = shown_keys(find_metrics("paper"), chosen=False)
    lines = [SummaryRow("MSOD", name, dict.fromkeys(keys, 0.5), dict.fromkeys(keys, 1))]
    text = printed(lines, keys, width=width, style=TableStyle(layout="columns"))
    rows = re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()
    assert max(map(cell_len, rows)) <= width
    assert sum(row.count(" 0.5000 │") for row in rows) == len(keys)
    cells = [row for row in rows if "0.5000" in row]
    assert [row.split("│")[2].strip() for row in cells] == [name] * len(cells)


@pytest.mark.parametrize("kind", ["terminal", "md", "latex", "csv", "json"])
def test_command_prints_the_objects_too(benchmark_root: Path, tmp_path: Path, kind: str) -> None:
    maps, masks = (benchmark_root / name / "crowded" for name in ("maps", "data"))
    options = [] if kind == "terminal" else ["--format", kind]
    result = run(
        "evaluate", maps / "Net", maps / "coarse", masks / "mask", "--out", tmp_path / "r", *options,
        "--jobs", "1",
    )  # fmt: skip
    assert result.exit_code == 0, (result.stderr, result.exception)
    summary = sisod.Evaluation.load(tmp_path / "r" / "crowded" / "coarse").summary
    if kind == "csv":
        rows = list(csv.DictReader(io.StringIO(result.stdout)))
        assert [float(row["pq"]) for row in rows][1] == summary["pq"]
    elif kind == "json":
        assert json.loads(result.stdout)[1]["metrics"]["pq"]["value"] == summary["pq"]
    else:
        paper, objects = result.stdout.split({"md": "\n\n", "latex": "\n\n"}.get(kind, "┘\n┏"))
        for text, key in ((paper, "si_mae"), (objects, "pq"), (objects, "false_objects")):
            assert METRICS[key].title in text
            assert f"{summary[key]:.4f}" in text
        assert METRICS["pq"].title not in paper


def test_columns() -> None:
    assert shown_keys(("mae", "s", "auc", "pq"), chosen=True) == [("mae", "s", "auc", "pq")]
    objects = ("object_recall", "object_precision", "object_f1", "false_objects", "pq", "bsi_f_binary")
    assert shown_keys(find_metrics(None), chosen=False) == [find_metrics("paper"), objects]
    infrared = shown_keys(find_metrics(None, detections=True), chosen=False)[1]
    assert infrared == (*objects, "pd", "fa", "niou", "iou_total")
    official = find_scorer(find_protocol("official"), None).keys
    assert shown_keys(official, chosen=False) == [find_metrics("paper")]  # it has no predicted objects

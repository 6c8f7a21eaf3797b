"""The page's table of pairs of methods, cell by cell; pages hold only text, and are reproducible."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.report_runs import Tables, ablation_rows
from numpy.typing import NDArray

import sisod
from sisod.analysis.comparison import compare_many
from sisod.analysis.scores import heading
from sisod.evaluation.results import Result as Saved
from sisod.report import write_report

pytest.importorskip("jinja2", reason="extra report is not installed")
TITLES = {key: heading(key) for key in (*sisod.METRICS, "found")}
KEYS = {title: key for key, title in TITLES.items()}


def with_mae(values: NDArray[np.float64]) -> sisod.Evaluation:
    """A result with the given MAE of each image."""
    evaluator = sisod.Evaluator(metrics=["mae"])
    for index, value in enumerate(values):
        evaluator.update(np.full((4, 4), value), np.zeros((4, 4), dtype=bool), name=f"{index:03d}")
    return evaluator.result()


def test_pairs_of_methods_are_those_of_the_comparison(saved: list[Saved], tmp_path: Path) -> None:
    write_report(saved, tmp_path / "r.html", resamples=50)
    page = (tmp_path / "r.html").read_text()
    clear = set()
    for dataset in ("mixed", "crowded"):
        found = {r.method: r.evaluation for r in saved if r.dataset == dataset}
        head, *rows = Tables(page).tables[f"Pairs of methods on {dataset}"]
        titles = list(dict.fromkeys(row[0][0] for row in rows))
        keys = [KEYS[title] for title in titles]
        assert {"mae", "si_mae", "f_mean", "si_f_mean", "found", "si_auc", "object_f1"} < set(keys)
        compared = compare_many(found, metrics=keys, resamples=50)
        headings = (
            "metric|method|other|value|other's value|difference|95 % interval|verdict|method leads|"
            "method wins|other wins|p, images|p, mean|p, images, Holm"
        )
        assert [cell[0] for cell in head] == headings.split("|")
        assert [[cell[0] for cell in row] for row in rows] == [
            [
                TITLES[row["metric"]],
                row["a"],
                row["b"],
                printed("{:.4f}", row["value_a"]),
                printed("{:.4f}", row["value_b"]),
                printed("{:+.4f}", row["difference"]),
                printed("{:+.4f} to {:+.4f}", row["low"], row["high"]),
                "undecided" if row["p_mean"] > 0.05 else row["verdict"] or "-",
                printed("{:.1f} %", 100 * row["a_leads"]),
                f"{row['a_wins']}",
                f"{row['b_wins']}",
                *(
                    "< 0.0001" if row[key] < 0.0001 else printed("{:.4f}", row[key])
                    for key in ("p", "p_mean", "p_holm")
                ),
            ]
            for row in compared.table.iter_rows(named=True)
        ]
        clear |= {row[7][0] for row in rows}
    assert clear == {"better", "worse", "undecided", "-"}


def printed(template: str, *values: float) -> str:
    """Numbers as tables print them: - for NaN, and no -0.0000."""
    return "-" if np.isnan(values).any() else template.format(*(round(v, 4) + 0.0 for v in values))


def test_table_has_every_metric_of_the_verdicts(saved: list[Saved], tmp_path: Path) -> None:
    """So that a reader can check the sentences above it."""
    write_report(saved, tmp_path / "r.html", resamples=50)
    page = (tmp_path / "r.html").read_text()
    names = [name for name in re.split(r"; |, | and ", listed_metrics(page)) if name]
    assert len(names) > 10
    for dataset in ("mixed", "crowded"):
        rows = Tables(page).tables[f"Pairs of methods on {dataset}"][1:]
        assert set(names) <= {row[0][0].removesuffix(" ↑").removesuffix(" ↓") for row in rows}


def listed_metrics(page: str) -> str:
    """The metrics of the first verdict that names them, not only their number."""
    verdicts = re.findall(r"<li>[^<]* against [^<]*?: ([^<]*)", page)
    named = next(verdict for verdict in verdicts if " on all " not in verdict)
    return re.sub(r"(better|worse|undecided) on ", "", named).strip()


def test_disagreement_of_tests_stands_under_its_pair(tmp_path: Path) -> None:
    """B is a little better on 30 of 40 images and much worse on the others."""
    base = np.full(40, 0.3)
    results = {"A": base, "B": np.where(np.arange(40) < 30, 0.29, 0.5), "C": base + 0.1}
    saved = [Saved("D", name, with_mae(values)) for name, values in results.items()]
    write_report(saved, tmp_path / "r.html", resamples=50)
    page = (tmp_path / "r.html").read_text()
    lists = page.split('<ul class="verdicts">')[1].split("</details>")[0]
    before, found, _ = lists.partition("<ul><li>MAE: B is better on 75 % of the images")
    assert found
    assert before.rpartition("<li>")[2].startswith("A against B: ")
    assert lists.count("<ul>") == lists.count("B is better on 75 %") == 1


def test_p_of_two_methods_is_that_of_compare(tmp_path: Path) -> None:
    """Two methods are their own columns, and a tiny p is not printed as a power of ten."""
    saved = [Saved("D", name, with_mae(np.full(40, mae))) for name, mae in (("A", 0.3), ("B", 0.4))]
    write_report(saved, tmp_path / "r.html", resamples=50)
    head, *rows = Tables((tmp_path / "r.html").read_text()).tables["Pairs of methods on D"]
    row = next(row for row in rows if row[0][0] == "MAE ↓")
    cells = dict(zip((cell[0] for cell in head), (cell[0] for cell in row), strict=True))
    assert list(cells)[:4] == ["metric", "A", "B", "difference"]
    assert (cells["p, images"], cells["verdict"], cells["A wins"]) == ("< 0.0001", "better", "40")
    assert "p, images, Holm" not in cells
    assert str(row[1][1]["class"]) == "number best"


def test_verdicts_name_object_recall_once(saved: list[Saved], tmp_path: Path) -> None:
    """The page has it in two tables, and its difference to the best in both."""
    write_report(saved, tmp_path / "r.html", resamples=50)
    page = (tmp_path / "r.html").read_text()
    verdicts = re.findall(r"<li>([^<]* against [^<]*)", page)
    assert verdicts
    assert all(line.count("Object recall") - line.count("Object recall small") <= 1 for line in verdicts)
    assert any("Object recall" in line.replace("Object recall small", "") for line in verdicts)
    assert "objects found" not in " ".join(verdicts)


def test_undefined_differences_have_dashes(tmp_path: Path) -> None:
    evaluator = sisod.Evaluator()
    for name in "ab":
        evaluator.update(np.zeros((9, 9)), np.zeros((9, 9), dtype=bool), name=name)
    saved = [Saved("D", method, evaluator.result()) for method in ("m", "n")]
    write_report(saved, tmp_path / "r.html", resamples=20)
    rows = Tables((tmp_path / "r.html").read_text()).tables["Pairs of methods on D"]
    assert [[cell[0] for cell in row] for row in rows if row[0][0] in ("MAE ↓", "F mean ↑")] == [
        ["MAE ↓", "0.0000", "0.0000", "+0.0000", "+0.0000 to +0.0000", "undecided", "0.0 %", "0", "0",
         "1.0000", "1.0000"],
        ["F mean ↑", *["-"] * 6, "0", "0", "-", "-"],
    ]  # fmt: skip


_WRITE = """
import sys
from pathlib import Path
from sisod.report import write_report
from sisod.evaluation.results import load_results

folder, ablation, out = map(Path, sys.argv[1:])
saved = load_results([folder / "results" / "crowded"])
images = {"crowded": folder / "data" / "crowded" / "image"}
write_report(saved, out, image_roots=images, ablation=ablation, against_paper=True, resamples=20)
"""


def test_same_results_give_the_same_bytes(benchmark_root: Path, tmp_path: Path) -> None:
    """In processes with different hash seeds and addresses."""
    (tmp_path / "a.json").write_text(json.dumps(ablation_rows({"plain": (0.3,), "ratio": (0.2, 0.4)})))
    pages = [tmp_path / "1.html", tmp_path / "2.html"]
    started = [
        subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", _WRITE, benchmark_root, tmp_path / "a.json", page],
            env=os.environ | {"PYTHONHASHSEED": page.stem},
        )
        for page in pages
    ]
    assert [process.wait() for process in started] == [0, 0]
    one, two = (page.read_bytes() for page in pages)
    assert one == two
    assert b"Pairs of methods" in one
    assert b" at 0x" not in one

"""The page's table of pairs of methods, cell by cell; pages hold only text, and are reproducible."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.report_runs import Tables, ablation_rows

import sisod
from sisod.analysis.comparison import compare_many
from sisod.evaluation.results import Result as Saved
from sisod.report import write_report
from sisod.report.page import render as render_module

pytest.importorskip("jinja2", reason="extra report is not installed")


def test_pairs_of_methods_are_those_of_the_comparison(saved: list[Saved], tmp_path: Path) -> None:
    write_report(saved, tmp_path / "r.html", resamples=50)
    page = (tmp_path / "r.html").read_text()
    titles = {key: metric.title for key, metric in sisod.METRICS.items()} | {"found": "objects found"}
    keys = ["mae", "si_mae", "f_mean", "si_f_mean", "found"]
    clear = set()
    for dataset in ("mixed", "crowded"):
        found = {r.method: r.evaluation for r in saved if r.dataset == dataset}
        compared = compare_many(found, metrics=keys, resamples=50)
        head, *rows = Tables(page).tables[f"Pairs of methods on {dataset}"]
        headings = "metric|method|other|difference|95 % interval|verdict|method leads|p, images|p, mean"
        assert [cell[0] for cell in head] == headings.split("|")
        assert [[cell[0] for cell in row] for row in rows] == [
            [
                titles[row["metric"]],
                row["a"],
                row["b"],
                f"{row['difference']:+.4f}",
                f"{row['low']:+.4f} to {row['high']:+.4f}",
                "undecided" if row["low"] <= 0 <= row["high"] else row["verdict"],
                f"{100 * row['a_leads']:.1f} %",
                f"{row['p_holm']:.2g}",
                f"{row['p_mean']:.2g}",
            ]
            for row in compared.table.iter_rows(named=True)
        ]
        clear |= {row[5][0] for row in rows}
    assert clear == {"better", "worse", "undecided"}


def test_undefined_differences_have_dashes(tmp_path: Path) -> None:
    evaluator = sisod.Evaluator()
    for name in "ab":
        evaluator.update(np.zeros((9, 9)), np.zeros((9, 9), dtype=bool), name=name)
    saved = [Saved("D", method, evaluator.result()) for method in ("m", "n")]
    write_report(saved, tmp_path / "r.html", resamples=20)
    rows = Tables((tmp_path / "r.html").read_text()).tables["Pairs of methods on D"]
    assert [[cell[0] for cell in row][2:] for row in rows if row[0][0] in ("MAE", "F mean")] == [
        ["n", "+0.0000", "+0.0000 to +0.0000", "undecided", "0.0 %", "1", "1"],
        ["n", "-", "-", "-", "-", "-", "-"],
    ]


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


def test_page_prints_text_and_numbers_only(
    saved: list[Saved], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A template that prints a method instead of a value is an error."""
    read = render_module._read_asset
    wrong = read("page.html").replace("{{ cell }}", "{{ pairs.clear }}")
    monkeypatch.setattr(
        render_module, "_read_asset", lambda name: wrong if name == "page.html" else read(name)
    )
    with pytest.raises(TypeError, match=r"page\.html prints <built-in method clear of dict"):
        write_report(saved, tmp_path / "r.html", resamples=20)

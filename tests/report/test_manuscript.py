"""`sisod paper`: the files, and a paragraph whose numbers are those of the comparison."""

import re
from pathlib import Path

import pytest
from helpers.command_line import run

import sisod
from sisod.analysis.comparison import compare_many
from sisod.common.grid import number
from sisod.evaluation.results import load_results
from sisod.report.manuscript import write_manuscript

pytest.importorskip("matplotlib", reason="extra report is not installed")


def test_files_and_numbers(benchmark_root: Path, tmp_path: Path) -> None:
    names = ("Net", "coarse")
    folders = [benchmark_root / "results" / "crowded" / name for name in names]
    written, notes = write_manuscript(load_results(folders), tmp_path / "paper", resamples=100)
    assert notes == []
    assert {path.name for path in written} == {
        *("table.tex", "references.bib", "forest.pdf", "size.pdf", "examples.pdf", "paragraph.tex"),
    }
    text = (tmp_path / "paper" / "paragraph.tex").read_text()
    results = {name: sisod.Evaluation.load(folder) for name, folder in zip(names, folders, strict=True)}
    row = compare_many(results, metrics="si_mae", resamples=100).table.row(0, named=True)
    best, second = sorted((row[f"value_{side}"], row[side]) for side in "ab")
    assert f"By SI-MAE, {best[1]} is best with {number(best[0])} (95" in text
    assert f"followed by {second[1]} with {number(second[0])}, a difference of " in text
    assert f"$p = {row['p_mean']:.4f}$" in text
    references = (tmp_path / "paper" / "references.bib").read_text()
    assert set(re.findall(r"citep{(\w+)}", text)) == set(re.findall(r"^@\w+{(\w+),", references, re.M))
    assert r"\begin{tabular}" in (tmp_path / "paper" / "table.tex").read_text()


def test_one_method_and_the_command(benchmark_root: Path, tmp_path: Path) -> None:
    shown = run("paper", benchmark_root / "results" / "mixed" / "Net", "--out", tmp_path / "paper")
    assert shown.exit_code == 0, shown.stderr
    assert not (tmp_path / "paper" / "forest.pdf").exists()
    assert "permutation" not in (tmp_path / "paper" / "paragraph.tex").read_text()
    assert str(tmp_path / "paper" / "table.tex") in shown.stdout.splitlines()

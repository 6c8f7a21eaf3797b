"""The command compare: parent folders, several data sets, verdicts, the forest plot."""

import dataclasses
import json
import shutil
from pathlib import Path

import pytest
from helpers.command_line import run
from helpers.evaluate_runs import copied
from typer.testing import Result

import sisod


def call(*args: str) -> Result:
    return run("compare", *args, "--resamples", "50")


@pytest.fixture(scope="module")
def scored(method_folders: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two methods on one data set."""
    root = copied(method_folders, tmp_path_factory.mktemp("scored"), 4)
    folders = (root / name for name in ("A", "B", "MSOD/mask"))
    assert run("evaluate", *folders, "--out", root / "out", "--jobs", 1).exit_code == 0
    return root / "out" / "MSOD"


@pytest.fixture
def results(scored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two methods on two data sets with the same images, a third method on one of them."""
    monkeypatch.chdir(tmp_path)
    for dataset in ("MSOD", "OTHER"):
        shutil.copytree(scored, f"out/{dataset}")
    shutil.copytree(scored / "B", "out/OTHER/C")
    return Path("out")


def test_begins_with_the_verdict(results: Path) -> None:
    """In the order given; a narrow table, all columns if wanted."""
    b, a = (str(results / "MSOD" / name) for name in ("B", "A"))
    shown = call(b, a, "--metrics", "mae,si_mae")
    assert shown.exit_code == 0, shown.stderr
    verdict, *_, caption, tests, rule = shown.stdout.splitlines()
    assert verdict == "B against A: undecided on both metrics"
    assert caption == "4 images, 50 bootstrap resamples, seed 0"
    assert "permutation test" in tests
    assert rule.startswith("better or worse: p, mean is at most 0.05 (not corrected for the 2 ")
    assert "warning: no difference can be decided" in shown.stderr
    narrow, wide = (
        call(b, a, *options, "--format", "md").stdout.splitlines()[0] for options in ((), ("--all",))
    )
    assert narrow == "| metric | B | A | difference | 95 % interval | p, mean | verdict |"
    assert wide == f"{narrow} B leads | B wins | A wins | ties | p, images |"
    content = json.loads(call(b, a, "--format", "json").stdout)
    assert content["methods"] == ["B", "A"]
    assert content["verdicts"][0].startswith("B against A: ")
    assert {"p_mean", "verdict", "a_gain"} <= content["pairs"][0].keys()


def test_who_is_best_of_three(results: Path) -> None:
    """C has the maps of B."""
    shown = call(str(results / "OTHER"), "--metrics", "si_mae").stdout
    assert shown.splitlines()[0] == "SI-MAE: A is best, but B and C cannot be told from it"
    assert " against " not in shown
    assert "B against C: equal on all 13 metrics" in call(str(results / "OTHER"), "--all").stdout


def test_every_data_set_is_compared(results: Path) -> None:
    shown = call(str(results), "--metrics", "mae")
    assert shown.exit_code == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[lines.index("MSOD") + 1].startswith("A against B: ")
    assert lines[lines.index("OTHER") + 1].startswith("MAE: ")
    assert "warning: MSOD: 4 images are too few" in shown.stderr
    table = call(str(results), "--metrics", "mae", "--format", "csv").stdout.splitlines()
    assert table[0].startswith("dataset,metric,a,b,")
    assert [line.split(",")[:4] for line in table[1:]] == [
        ["MSOD", "mae", "A", "B"],
        ["OTHER", "mae", "A", "B"],
        ["OTHER", "mae", "A", "C"],
        ["OTHER", "mae", "B", "C"],
    ]
    content = json.loads(call(str(results), "--metrics", "mae", "--format", "json").stdout)
    assert [(part["dataset"], part["methods"]) for part in content] == [
        ("MSOD", ["A", "B"]),
        ("OTHER", ["A", "B", "C"]),
    ]
    text = call(str(results), "--metrics", "mae", "--format", "md").stdout
    assert text.startswith("### MSOD\n\n| metric | A | B |")
    assert r"\paragraph{OTHER}" in call(str(results), "--metrics", "mae", "--format", "latex").stdout


def test_a_metric_that_some_results_lack(results: Path) -> None:
    """All of them are named, also those of other data sets."""
    for method in ("A", "B"):
        shutil.rmtree(results / "OTHER" / method)
        evaluation = sisod.Evaluation.load(results / "MSOD" / method)
        images = evaluation.images.with_columns(s=evaluation.images["mae"])
        summary = evaluation.summary | {"s": evaluation.summary["mae"]}
        defined = evaluation.defined | {"s": 4}
        run_record = evaluation.run | {"metrics": [*evaluation.run["metrics"], "s"]}
        dataclasses.replace(
            evaluation, images=images, summary=summary, defined=defined, run=run_record
        ).save(results / "OTHER" / method)
    shutil.rmtree(results / "OTHER" / "C")
    shown = call(str(results), "--metrics", "s,found")
    assert shown.exit_code == 1
    assert shown.stderr.startswith("error: 2 of 4 results have no s (MSOD/A, MSOD/B); evaluate again")


def test_a_folder_and_a_result(results: Path) -> None:
    """The result belongs to the data set that its parent folder is named after."""
    shown = call(str(results / "MSOD"), f"new={results / 'MSOD' / 'B'}", "--metrics", "mae")
    assert shown.exit_code == 0, shown.stderr
    assert "new" in shown.stdout
    shutil.rmtree(results / "OTHER" / "A")
    shutil.rmtree(results / "OTHER" / "B")
    shown = call(str(results), "--metrics", "mae")
    assert "warning: OTHER has one method only and is not compared" in shown.stderr
    assert "A against B: " in shown.stdout


def test_errors(results: Path) -> None:
    named = call(f"x={results}")
    assert named.exit_code == 2
    assert "'x=out' names one method" in named.stderr
    twice = call(str(results), str(results / "MSOD" / "A"))
    assert twice.exit_code == 2
    assert "two results on 'MSOD' are called 'A'" in twice.stderr
    for path in ("MSOD/A", "OTHER/A", "OTHER/C"):
        shutil.rmtree(results / path)
    alone = call(str(results))
    assert alone.exit_code == 2
    assert "expected two or more methods" in alone.stderr
    for options in ((), ("--metrics", "mae")):
        message = call(str(results / "MSOD"), *options).stderr
        assert "expected two or more methods to compare, got 1" in message
    Path("empty").mkdir()
    assert "no result in or below 'empty'" in call("empty").stderr


def test_a_plot_of_each_data_set(results: Path) -> None:
    pytest.importorskip("matplotlib", reason="extra report is not installed")
    drawn = call(str(results), "--plot", "forest.svg", "--metrics", "mae")
    assert drawn.stderr.endswith("drawn to forest-OTHER.svg\n")
    assert Path("forest-MSOD.svg").read_bytes().startswith(b"<?xml")
    assert sorted(path.name for path in Path().glob("*.svg")) == ["forest-MSOD.svg", "forest-OTHER.svg"]
    wrong = call(str(results), "--plot", "forest.txt")
    assert wrong.exit_code == 2
    assert "'forest.txt'" in wrong.stderr

"""The commands `table` and `metrics`, and that `evaluate` prints the same tables."""

import csv
import io
import json
from pathlib import Path

import pytest
from helpers.command_line import error_message, run
from rich.console import Console

import sisod
from sisod.analysis.scores import object_scores, title
from sisod.report.metric_list import metric_grid
from sisod.report.summary import OBJECT_KEYS
from sisod.scoring.metrics import PAPER_KEYS, find_metrics

DEFAULT_KEYS = [*PAPER_KEYS, *(key for key in OBJECT_KEYS if key in find_metrics(None))]


def printed(*arguments: str | Path | int) -> str:
    result = run(*arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def records(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_stored_metrics_are_printed_without_scoring(benchmark_root: Path) -> None:
    results = benchmark_root / "results"
    text = printed("table", results, "--metrics", "SI-MAE,maxf,em", "--format", "csv")
    rows = records(text)
    assert [*rows[0]] == ["dataset", "method", "si_mae", "f_max", "e_mean"]
    assert len(rows) == 8
    for row in rows:
        summary = sisod.Evaluation.load(results / row["dataset"] / row["method"]).summary
        assert float(row["si_mae"]) == summary["si_mae"]
        assert float(row["f_max"]) == summary["f_max"]


def test_the_same_metrics_by_default_in_every_format(benchmark_root: Path) -> None:
    results = benchmark_root / "results" / "mixed"
    assert [*records(printed("table", results, "--format", "csv"))[0]][2:] == DEFAULT_KEYS
    assert [*json.loads(printed("table", results, "--format", "json"))[0]["metrics"]] == DEFAULT_KEYS
    for options in ([], ["--format", "md"]):
        text = printed("table", results, *options)
        assert all(sisod.METRICS[key].title in text for key in DEFAULT_KEYS)
        assert "Precision" not in text


@pytest.mark.parametrize("options", [[], ["--metrics", "mae,Fm", "--format", "csv"]])
def test_evaluate_prints_what_table_prints(
    benchmark_root: Path, tmp_path: Path, options: list[str]
) -> None:
    maps, masks = (benchmark_root / name / "crowded" for name in ("maps", "data"))
    scored = printed(
        "evaluate", maps / "Net", maps / "coarse", maps / "large only", masks / "mask",
        "--out", tmp_path, "--jobs", 1, *options,
    )  # fmt: skip
    names = ("Net", "coarse", "large only")
    assert printed("table", *(tmp_path / "crowded" / name for name in names), *options) == scored


def test_all_is_what_every_result_has(benchmark_root: Path) -> None:
    result = run("table", benchmark_root / "results", "--metrics", "all", "--format", "csv")
    rows = records(result.stdout)
    assert result.stderr.splitlines() == [
        f"{name} (large only): Object precision small, Object F1 small undefined on all {n} images"
        for name, n in (("crowded", 6), ("mixed", 14))
    ]
    assert [*rows[0]] == ["dataset", "method", *find_metrics(None)]


def test_options_of_the_layout(benchmark_root: Path) -> None:
    results = benchmark_root / "results"
    options = "--metrics mae,fm --layout rows --digits 2 --rank 0 --format md --group method"
    text = printed("table", results, *options.split())
    assert text.splitlines()[0] == "| method | metric | crowded | mixed |"
    assert "**" not in text
    value = sisod.Evaluation.load(results / "crowded" / "Net").summary["mae"]
    assert text.splitlines()[2].startswith(f"| Net | MAE ↓ | {value:.2f} |")
    assert "--rank is for tables that people read" in error_message(
        run("table", results, "--rank", 1, "--format", "json"), exit_codes=(2,)
    )


# what is not stored


@pytest.fixture
def partly(benchmark_root: Path, tmp_path: Path) -> Path:
    """Two results of one data set, of which the second has the S-measure."""
    maps, masks = (benchmark_root / name / "crowded" for name in ("maps", "data"))
    for method, metrics in (("Net", "mae,f_mean"), ("coarse", "mae,s")):
        run("evaluate", maps / method, masks / "mask", "--out", tmp_path / "r", "--jobs", 1,
            "--metrics", metrics)  # fmt: skip
    return tmp_path / "r"


def test_metrics_are_added_by_evaluating_again(partly: Path, benchmark_root: Path) -> None:
    """For all methods that lack one; what they have stays as it is."""
    maps, masks = (benchmark_root / name / "crowded" for name in ("maps", "data"))
    again = ("evaluate", maps / "Net", maps / "coarse", masks / "mask", "--out", partly,
             "--metrics", "mae,s,auc", "--jobs", 1)  # fmt: skip
    message = error_message(run("table", partly, "--metrics", "mae,Smeasure,auc"))
    assert message == (
        "2 of 2 results have no s, auc (crowded/Net, crowded/coarse); evaluate again as before, with "
        "--metrics s,auc, which adds what is missing"
    )
    before = sisod.Evaluation.load(partly / "crowded" / "Net")
    printed(*again, "--format", "json")
    after = sisod.Evaluation.load(partly / "crowded" / "Net")
    assert [*after.summary] == ["mae", "f_mean", "s", "auc"] == after.run["metrics"]
    assert after.images.select(before.images.columns).equals(before.images)
    assert {key: after.summary[key] for key in before.summary} == before.summary
    assert len(records(printed("table", partly, "--metrics", "mae,sm,auc", "--format", "csv"))) == 2
    inputs = after.run["inputs"]
    direct = sisod.evaluate(inputs["predictions"], inputs["ground_truths"], metrics=["s", "auc"], jobs=1)
    assert direct.summary == {key: after.summary[key] for key in ("s", "auc")}
    refused = run(*again)  # nothing is missing now
    assert (refused.exit_code, "exists already" in refused.stderr) == (1, True)


def test_metrics_of_some_results_only_are_left_out_with_a_warning(partly: Path) -> None:
    result = run("table", partly, "--metrics", "all", "--format", "csv")
    assert [*records(result.stdout)[0]] == ["dataset", "method", "mae"]
    assert result.stderr == (
        "warning: 2 metrics are left out because not every result has them (f_mean, s); name one with "
        "--metrics to see which results lack it\n"
    )


def test_protocols_that_cannot_be_compared(benchmark_root: Path, tmp_path: Path) -> None:
    maps, masks = (benchmark_root / name / "crowded" for name in ("maps", "data"))
    for method, protocol in (("Net", "official"), ("coarse", "default")):
        run("evaluate", maps / method, masks / "mask", "--out", tmp_path, "--protocol", protocol,
            "--metrics", "mae", "--jobs", 1)  # fmt: skip
    result = run("table", tmp_path)
    assert result.exit_code == 0
    assert result.stderr == (
        "warning: the results have different protocols (official, default), "
        "so numbers are not comparable\n"
    )
    assert "**" not in run("table", tmp_path, "--format", "md").stdout


# sisod metrics


def test_metrics_lists_every_metric() -> None:
    rows = records(printed("metrics", "--format", "csv"))
    assert [row["key"] for row in rows] == [*sisod.METRICS, *object_scores()]
    by_key = {row["key"]: row for row in rows}
    assert list(by_key["s"].values()) == [
        *("s", "S", "higher", "on request", sisod.METRICS["s"].meaning, ""),
    ]
    assert list(by_key["object_mae"].values())[:4] == [
        *("object_mae", "MAE of objects", "lower", "by compare"),
    ]
    assert by_key["found"]["title"] == by_key["object_recall"]["title"] == "Object recall"
    assert by_key["pd"]["computed"] == "infrared only"
    assert by_key["fpr_max"]["better"] == by_key["n_predicted"]["better"] == "neither"
    assert by_key["fpr_max"]["trivial"].startswith("it is the value at the lowest threshold")


@pytest.mark.parametrize("width", [20, 80, 120])
def test_every_metric_has_one_line_in_a_terminal(width: int) -> None:
    file = io.StringIO()
    for table in metric_grid(width).terminal(width):
        Console(file=file, width=width).print(table)
    rows = [row.strip("│").split("│") for row in file.getvalue().splitlines() if row.startswith("│")]
    if width == 20:  # no key is lost, even if it is folded
        assert "".join(row[0].strip() for row in rows) == "".join([*sisod.METRICS, *object_scores()])
        return
    cells = [[cell.strip() for cell in row] for row in rows]
    assert [row[:2] for row in cells] == [[k, title(k)] for k in (*sisod.METRICS, *object_scores())]
    assert {row[2] for row in cells} == {"higher", "lower", "neither"}
    assert (len(cells[0]) == 5) == (width >= 120)
    assert width < 120 or any(row[4].endswith("…") for row in cells)

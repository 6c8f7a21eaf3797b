"""Metrics of the user all the way: folders, processes, saved results, groups, intervals, merging."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.custom_metrics import OVERLAP, PIXEL_ERROR, fails_on_small, pixel_error
from helpers.evaluate_runs import SOME, copied
from helpers.folder_contents import content

import sisod
from sisod.analysis import bootstrap_intervals, by_number, by_size, compare
from sisod.common.exceptions import InputError, UsageError
from sisod.evaluation.saved import read_run, read_summary
from sisod.scoring.custom import _REGISTERED
from sisod.scoring.metrics import _TABLE, is_custom

BUILT_IN = ("mae", "si_mae", "iou_binary", "si_iou_binary")
OWN = ("pixel_error", "si_pixel_error", "overlap", "si_overlap")
CHOICE: list[Any] = [*BUILT_IN, PIXEL_ERROR, OVERLAP]


def scored(root: Path, method: str = "A", **options: Any) -> sisod.Evaluation:
    return sisod.evaluate(root / method, root / "MSOD/mask", **({"metrics": CHOICE} | options))


def forget() -> None:
    """Make this process like one that never knew the metrics of the user."""
    for key in filter(is_custom, list(_TABLE)):
        del _TABLE[key]
    _REGISTERED.clear()


@pytest.fixture(scope="module")
def three_batches_root(method_folders: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied(method_folders, tmp_path_factory.mktemp("own"), SOME)


@pytest.fixture(scope="module")
def results(three_batches_root: Path) -> Iterator[dict[str, sisod.Evaluation]]:
    yield {method: scored(three_batches_root, method, jobs=1) for method in "AB"}
    forget()


def same(a: Any, b: Any) -> bool:
    return bool(np.allclose(a.to_numpy(), b.to_numpy(), rtol=0, atol=1e-12, equal_nan=True))


def test_summary_and_rows_equal_the_built_in(results: dict[str, sisod.Evaluation]) -> None:
    for result in results.values():
        for key, own_key in zip(BUILT_IN, OWN, strict=True):
            assert result.summary[own_key] == pytest.approx(result.summary[key], abs=1e-12)
            assert same(result.images[own_key], result.images[key])
            assert result.defined[own_key] == result.defined[key]
        assert same(result.objects["pixel_error"], result.objects["mae"])
        assert same(result.objects["overlap"], result.objects["iou_binary"])


def test_groups_intervals_and_comparisons_equal_those_of_the_built_in(
    results: dict[str, sisod.Evaluation],
) -> None:
    sizes, numbers = by_size(results["A"], groups="log"), by_number(results["A"])
    for key, own_key in (("mae", "pixel_error"), ("iou_binary", "overlap")):
        assert same(sizes[own_key], sizes[key])
        assert same(sizes[f"n_{own_key}"], sizes[f"n_{key}"])
        assert same(numbers[own_key], numbers[key])
    table = bootstrap_intervals(results["A"], resamples=200)
    intervals = {
        row["metric"]: [row[c] for c in ("value", "low", "high")] for row in table.iter_rows(named=True)
    }
    built_in, own = (*BUILT_IN, "object_mae"), (*OWN, "object_pixel_error")
    compared = compare(results["A"], results["B"], metrics=[*built_in, *own], resamples=200).table
    rows = {row["metric"]: list(row.values())[3:] for row in compared.iter_rows(named=True)}
    for key, own_key in zip(built_in, own, strict=True):
        assert intervals[own_key] == pytest.approx(intervals[key], abs=1e-12)
        assert rows[own_key] == pytest.approx(rows[key], abs=1e-12, nan_ok=True)
    default = compare(results["A"], results["B"], resamples=20).table["metric"]
    assert default.unique(maintain_order=True).to_list() == ["mae", "si_mae", "found", *OWN]


def test_processes_give_the_same_bytes(three_batches_root: Path, tmp_path: Path) -> None:
    for jobs in (1, 2):
        scored(three_batches_root, jobs=jobs, out=tmp_path / str(jobs))
    assert content(tmp_path / "1") == content(tmp_path / "2")


# functions in other processes


def test_a_local_function_is_sent_to_other_processes(three_batches_root: Path) -> None:
    def local(p: Any, gt: Any) -> float:
        return pixel_error(p, gt)

    result = scored(three_batches_root, metrics=["mae", local], jobs=2)
    assert result.summary["local"] == pytest.approx(result.summary["mae"], abs=1e-12)


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_names_the_function_and_the_file(three_batches_root: Path, jobs: int) -> None:
    with pytest.raises(InputError) as caught:
        scored(three_batches_root, metrics=[fails_on_small], jobs=jobs)
    message = str(caught.value)
    assert message.startswith(str(three_batches_root / "A" / "scene"))
    assert ".png: the metric 'fails_on_small' (function helpers.custom_metrics:fails_on_small" in message
    assert "raised ArithmeticError: too small" in message


# saved results


def test_a_saved_result_is_shown_by_a_process_without_the_function(
    results: dict[str, sisod.Evaluation], tmp_path: Path
) -> None:
    results["A"].save(tmp_path / "A")
    code = (
        "import sisod, sys; result = sisod.Evaluation.load('A'); m = sisod.METRICS['si_overlap'];"
        "print(m.title, m.direction, result.summary['si_overlap']); result.save('again');"
        "from sisod.analysis import by_size; print(by_size(result)['overlap'][0]);"
        "print('helpers.custom_metrics' in sys.modules)"
    )
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        f"SI-Overlap up {results['A'].summary['si_overlap']}",
        str(by_size(results["A"])["overlap"][0]),
        "False",
    ]
    assert content(tmp_path / "again") == content(tmp_path / "A")
    assert json.loads((tmp_path / "A/run.json").read_text())["custom"]["pixel_error"] == {
        "title": "Pixel error",
        "direction": "down",
        "si": "separable",
        "function": "helpers.custom_metrics:pixel_error",
    }


@pytest.fixture
def stored(results: dict[str, sisod.Evaluation], tmp_path: Path) -> Path:
    results["A"].save(tmp_path / "A")
    forget()
    return tmp_path / "A"


def test_a_stored_metric_cannot_be_computed_without_its_function(stored: Path) -> None:
    assert read_summary(stored, read_run(stored))[0]["overlap"] > 0  # also adds it
    with pytest.raises(UsageError, match="overlap is known from a saved result only, not its function"):
        sisod.score(np.ones((2, 2), bool), np.ones((2, 2), bool), metrics="overlap")


def test_two_results_must_agree_unless_this_process_says_what_holds(
    stored: Path, tmp_path: Path
) -> None:
    first = sisod.Evaluation.load(stored)
    first.save(tmp_path / "other")
    record = json.loads((tmp_path / "other/run.json").read_text())
    record["custom"]["overlap"]["direction"] = "down"
    (tmp_path / "other/run.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match="the metric 'overlap' has other settings"):
        sisod.Evaluation.load(tmp_path / "other")
    sisod.register_metric(OVERLAP)
    assert sisod.Evaluation.load(tmp_path / "other").summary == first.summary
    assert sisod.METRICS["overlap"].direction == "up"


# resuming


def mine(version: int) -> sisod.CustomMetric:
    """Two functions of the same name that differ in their text."""
    if version == 1:

        def function(_p: Any, _gt: Any) -> float:
            return 1.0
    else:

        def function(_p: Any, _gt: Any) -> float:
            return 2.0

    return sisod.CustomMetric(function, key="mine")


def test_a_changed_function_is_not_resumed(three_batches_root: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"out": tmp_path / "out", "jobs": 1}
    scored(three_batches_root, metrics=[mine(1)], **options)
    scored(three_batches_root, metrics=[mine(1)], **options, resume=True)
    with pytest.raises(InputError, match="is another run: function of mine was"):
        scored(three_batches_root, metrics=[mine(2)], **options, resume=True)


# the command line


MODULE = """
import numpy as np
import sisod

def boundary_error(p, gt):
    return float(np.abs(p - gt).mean())

named = sisod.CustomMetric(boundary_error, key="named", title="Named", direction="down", si="separable")
"""


@pytest.mark.usefixtures("inside_tmp_path")
@pytest.mark.parametrize("jobs", [1, 2])
def test_the_command_imports_a_function_of_the_current_folder(
    three_batches_root: Path, jobs: int
) -> None:
    """In a process of its own: the current folder is added to the path there."""
    Path("mine.py").write_text(MODULE)
    Path("json.py").write_text("raise SystemExit('a file of the current folder ran')")
    done = subprocess.run(  # noqa: S603
        [
            *(sys.executable, "-P", "-c", "from sisod.cli import app; app()", "evaluate"),
            *(three_batches_root / "A", three_batches_root / "MSOD/mask", "--out", "out"),
            *("--metrics", "mae", "--metrics", "si_mae,mine:boundary_error,mine:named"),
            *("--jobs", str(jobs), "--format", "csv"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    names, values = (line.split(",") for line in done.stdout.strip().splitlines())
    assert names == ["dataset", "method", "mae", "si_mae", "boundary_error", "named", "si_named"]
    row = dict(zip(names, values, strict=True))
    for own, built_in in (("boundary_error", "mae"), ("named", "mae"), ("si_named", "si_mae")):
        assert float(row[own]) == pytest.approx(float(row[built_in]), abs=1e-12)

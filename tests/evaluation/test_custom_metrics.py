"""Metrics of the user all the way: folders, processes, saved results, groups, intervals, merging."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.command_line import error_message, run
from helpers.custom_metrics import OVERLAP, PIXEL_ERROR, fails_on_small, pixel_error
from helpers.evaluate_runs import SOME, copied
from helpers.folder_contents import content

import sisod
from sisod.analysis import bootstrap_intervals, by_number, by_size, compare
from sisod.common.exceptions import InputError, UsageError
from sisod.evaluation.saved import read_summary
from sisod.scoring.custom import _REGISTERED
from sisod.scoring.metrics import _TABLE, is_custom

BUILT_IN = ("mae", "si_mae", "iou_binary", "si_iou_binary")
OWN = ("pixel_error", "si_pixel_error", "overlap", "si_overlap")
CHOICE: list[Any] = [*BUILT_IN, PIXEL_ERROR, OVERLAP]
NAMED = "mae,helpers.custom_metrics:PIXEL_ERROR"


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


def test_groups_equal_those_of_the_built_in(results: dict[str, sisod.Evaluation]) -> None:
    sizes, numbers = by_size(results["A"], groups="log"), by_number(results["A"])
    for key, own_key in (("mae", "pixel_error"), ("iou_binary", "overlap")):
        assert same(sizes[own_key], sizes[key])
        assert same(sizes[f"n_{own_key}"], sizes[f"n_{key}"])
    for key, own_key in zip(BUILT_IN, OWN, strict=True):
        assert same(numbers[own_key], numbers[key])
        assert same(numbers[f"n_{own_key}"], numbers[f"n_{key}"])


def test_intervals_and_comparison_equal_those_of_the_built_in(
    results: dict[str, sisod.Evaluation],
) -> None:
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


def test_a_comparison_has_it_by_default(results: dict[str, sisod.Evaluation]) -> None:
    compared = compare(results["A"], results["B"], resamples=20).table
    assert compared["metric"].unique(maintain_order=True).to_list() == [
        *("mae", "si_mae", "found"),
        *OWN,
    ]


def test_nobody_leads_without_a_direction(three_batches_root: Path) -> None:
    a, b = (scored(three_batches_root, method, metrics=[pixel_error], jobs=1) for method in "AB")
    row = next(compare(a, b, metrics=["pixel_error"], resamples=20).table.iter_rows(named=True))
    assert (row["a_wins"], row["b_wins"], row["ties"]) == (0, 0, 0)


def test_processes_give_the_same_bytes(three_batches_root: Path, tmp_path: Path) -> None:
    for jobs in (1, 2):
        scored(three_batches_root, jobs=jobs, out=tmp_path / str(jobs))
    assert content(tmp_path / "1") == content(tmp_path / "2")


def test_merged_evaluators_equal_one() -> None:
    rng = np.random.default_rng(0)
    images = [(rng.random((9, 9)), rng.random((9, 9)) > 0.6) for _ in range(5)]
    whole, *parts = (sisod.Evaluator(metrics=CHOICE) for _ in range(3))
    for index, (pred, gt) in enumerate(images):
        for evaluator in (whole, parts[index % 2]):
            evaluator.update(pred, gt, name=str(index))
    assert parts[0].merge(parts[1]).result().summary == whole.result().summary


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


def load_elsewhere(folder: Path, code: str) -> str:
    """Run code in a process that does not know the functions, with `result` loaded."""
    program = f"import sisod; result = sisod.Evaluation.load({str(folder)!r}); {code}"
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_a_saved_result_is_shown_by_a_process_without_the_function(
    results: dict[str, sisod.Evaluation], tmp_path: Path
) -> None:
    results["A"].save(tmp_path / "A")
    code = (
        "m = sisod.METRICS['si_overlap']; print(m.title, m.direction, result.summary['si_overlap']);"
        "result.save('again'); from sisod.analysis import by_size; print(by_size(result)['overlap'][0]);"
        "import sys; print('helpers.custom_metrics' in sys.modules)"
    ).replace("again", str(tmp_path / "again"))
    printed = load_elsewhere(tmp_path / "A", code).splitlines()
    assert printed[0] == f"SI-Overlap up {results['A'].summary['si_overlap']}"
    assert printed[1] == str(by_size(results["A"])["overlap"][0])
    assert printed[2] == "False"
    assert content(tmp_path / "again") == content(tmp_path / "A")


def test_what_is_stored(results: dict[str, sisod.Evaluation], tmp_path: Path) -> None:
    results["A"].save(tmp_path / "A")
    stored = json.loads((tmp_path / "A/run.json").read_text())["custom"]
    assert stored["pixel_error"] == {
        "title": "Pixel error",
        "direction": "down",
        "si": "separable",
        "function": "helpers.custom_metrics:pixel_error",
    }
    plain = sisod.Evaluator(metrics=["mae"])
    plain.update(np.ones((2, 2), bool), np.ones((2, 2), bool))
    assert "custom" not in plain.result().run


@pytest.fixture
def stored(results: dict[str, sisod.Evaluation], tmp_path: Path) -> Path:
    results["A"].save(tmp_path / "A")
    forget()
    return tmp_path / "A"


def test_a_stored_metric_cannot_be_computed_without_its_function(stored: Path) -> None:
    assert read_summary(stored)[0]["overlap"] > 0  # also adds it
    with pytest.raises(UsageError, match="overlap is known from a saved result only, not its function"):
        sisod.score(np.ones((2, 2), bool), np.ones((2, 2), bool), metrics="overlap")


def change(folder: Path, **changes: Any) -> None:
    record = json.loads((folder / "run.json").read_text())
    record["custom"]["overlap"] |= changes
    (folder / "run.json").write_text(json.dumps(record))


def test_two_results_must_agree_unless_this_process_says_what_holds(
    stored: Path, tmp_path: Path
) -> None:
    first = sisod.Evaluation.load(stored)
    first.save(tmp_path / "other")
    change(tmp_path / "other", direction="down")
    with pytest.raises(InputError, match="the metric 'overlap' has other settings"):
        sisod.Evaluation.load(tmp_path / "other")
    sisod.register_metric(OVERLAP)
    assert sisod.Evaluation.load(tmp_path / "other").summary == first.summary
    assert sisod.METRICS["overlap"].direction == "up"


# resuming


def test_a_changed_function_is_not_resumed(three_batches_root: Path, tmp_path: Path) -> None:
    def version(number: float) -> sisod.CustomMetric:
        return sisod.CustomMetric(pixel_error, title=f"Error {number}")

    scored(three_batches_root, metrics=[version(1)], out=tmp_path / "out", jobs=1)
    scored(three_batches_root, metrics=[version(1)], out=tmp_path / "out", jobs=1, resume=True)
    with pytest.raises(InputError, match="is another run: function of pixel_error was"):
        scored(three_batches_root, metrics=[version(2)], out=tmp_path / "out", jobs=1, resume=True)


def mine(version: int) -> sisod.CustomMetric:
    """Two functions of the same name that differ in their text."""
    if version == 1:

        def function(_p: Any, _gt: Any) -> float:
            return 1.0
    else:

        def function(_p: Any, _gt: Any) -> float:
            return 2.0

    return sisod.CustomMetric(function, key="mine")


def test_the_text_of_a_function_is_part_of_its_digest() -> None:
    assert mine(1).function_name == mine(2).function_name
    assert mine(1).digest() == mine(1).digest() != mine(2).digest()


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


@pytest.mark.usefixtures("inside_tmp_path")
def test_workers_import_the_module_that_the_program_imported(three_batches_root: Path) -> None:
    """The program's folder is the current one; another folder of the path has a module of that name."""
    for folder, number in (("program", 1.0), ("installed", 2.0)):
        Path(folder).mkdir()
        Path(folder, "mine.py").write_text(f"def constant(p, gt):\n    return {number}\n")
    Path("program/main.py").write_text(
        "import mine, sisod\n"
        f"folders = {str(three_batches_root / 'A')!r}, {str(three_batches_root / 'MSOD/mask')!r}\n"
        "print(sisod.evaluate(*folders, metrics=[mine.constant], jobs=2).summary)\n"
    )
    done = subprocess.run(
        [sys.executable, "main.py"],
        cwd="program",
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(Path("installed").resolve()), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == ("{'constant': 1.0}", "")


def test_the_table_of_the_command(four_images: Path, tmp_path: Path) -> None:
    result = run(
        "evaluate", four_images / "A", four_images / "MSOD/mask", "--out", tmp_path / "out",
        "--metrics", NAMED, "--format", "md", "--jobs", 1,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "| Pixel error ↓ | SI-Pixel error ↓ |" in result.stdout


def test_a_name_that_is_wrong_is_a_sentence(four_images: Path, tmp_path: Path) -> None:
    result = run(
        "evaluate", four_images / "A", four_images / "MSOD/mask", "--out", tmp_path / "out",
        "--metrics", "mae,no_such_module:f",
    )  # fmt: skip
    assert "there is no module 'no_such_module'" in error_message(result)

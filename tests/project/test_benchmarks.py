"""The benchmarks run; what they measure is not asserted, machines differ."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.paths import RESULTS

_ROWS = (
    "partition, count metrics and SI forms; PySODMetrics",
    "the same, S and weighted F; PySODMetrics",
    "partition, count metrics and SI forms; OpenCV decodes",
    "growth with pixels",
    "growth with frames",
)


@pytest.mark.needs("py_sod_metrics")
@pytest.mark.slow
def test_engine_benchmark_prints_every_row_and_writes_nothing_when_quick() -> None:
    before = _written()
    command = [sys.executable, "-m", "benchmarks.speed.engine", "--quick"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)  # noqa: S603
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert lines[0] == "| what | ours | peer | ratio | target | met |"
    table = lines[2 : 2 + len(_ROWS)]
    for line, what in zip(table, _ROWS, strict=True):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert cells[0].startswith(what)
        assert len(cells) == 6
        assert cells[-1] in ("yes", "no")
    assert sum(line.startswith("| 0.1 Mpx ") for line in lines) == 1
    assert sum(line.startswith("| 1000 ") for line in lines) == 1
    assert _written() == before


@pytest.mark.needs("torch")
@pytest.mark.slow
def test_networks_benchmark_prints_both_tables_and_writes_nothing_when_quick() -> None:
    before = _written()
    command = [sys.executable, "-m", "benchmarks.speed.networks", "--quick"]
    alone = os.environ | {"OMP_NUM_THREADS": "1"}  # on a shared machine two would wait for each other
    run = subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, timeout=600, check=False, env=alone
    )
    assert run.returncode == 0, run.stderr
    lines = [line.strip("| ").split(" | ") for line in run.stdout.splitlines() if line.startswith("|")]
    assert lines[0] == ["network", "mode", "batch", "time per image", "memory per image", "peak memory"]
    found = [tuple(cells[:3]) for cells in lines if cells[0] in ("tiny", "ldf")]
    assert found == [(name, mode, "1") for name in ("tiny", "ldf") for mode in ("inference", "training")]
    assert _written() == before


def test_compare_benchmark_prints_every_row_and_writes_nothing_when_quick() -> None:
    before = _written()
    command = [sys.executable, "-m", "benchmarks.speed.compare", "--quick"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)  # noqa: S603
    assert run.returncode == 0, run.stderr
    lines = [line.strip("| ").split(" | ") for line in run.stdout.splitlines() if line.startswith("|")]
    assert lines[0] == ["what", "processor time"]
    assert [cells[0] for cells in lines[2:]] == [
        "the paper's nine metrics and the objects found",
        "maxima of mean curves too",
        "everything",
    ]
    assert _written() == before


def _written() -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in RESULTS.glob("*.[jm]*")}

"""The benchmark of the loader runs; what it measures is not asserted, machines differ."""

import subprocess
import sys
from pathlib import Path

import pytest
from helpers.paths import RESULTS

pytest.importorskip("lightning", reason="extra torch is not installed")


@pytest.mark.slow
def test_loader_benchmark_prints_its_rows_and_writes_nothing_when_quick() -> None:
    before = _written()
    command = [sys.executable, "-m", "benchmarks.speed.loader", "--quick"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)  # noqa: S603
    assert run.returncode == 0, run.stderr
    lines = [line for line in run.stdout.splitlines() if line.startswith("|")]
    begins = [line.split("|")[1].strip() for line in lines]
    assert begins[2:] == [
        "one sample at 96 x 96: read, augmented, frames found",
        "of it reading",
        "of it augmenting",
        "of it finding frames",
        "share of EDN's time spent waiting",
    ]
    assert _written() == before


def _written() -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in RESULTS.glob("loader.*")}

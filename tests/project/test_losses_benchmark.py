"""The benchmark of the losses runs; what it measures is not asserted, machines differ."""

import subprocess
import sys
from pathlib import Path

import pytest
from helpers.paths import RESULTS


@pytest.mark.needs("torch")
@pytest.mark.slow
def test_losses_benchmark_prints_every_table_and_writes_nothing_when_quick() -> None:
    before = _written()
    command = [sys.executable, "-m", "benchmarks.speed.losses", "--quick"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)  # noqa: S603
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert lines[0] == "| what | ours | peer | ratio | target | met |"
    assert lines[2].startswith(
        "| 12 x 5 maps of 96 x 96, BCE + Dice, boxes given, mean over 1 to 50 frames"
    )
    begins = [line.split("|")[1].strip() for line in lines if line.startswith("|")]
    for name in ("50", "edn", "poolnet", "icon", "gatenet", "ldf", "DUTS-TE", "XPIE"):
        assert name in begins
    edn = next(line for line in lines if line.startswith("| edn |"))
    assert "| 340 s | 543.8 s | 1.60 |" in edn
    assert "one EDN step" in run.stdout
    assert _written() == before


def _written() -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in RESULTS.glob("losses.*")}

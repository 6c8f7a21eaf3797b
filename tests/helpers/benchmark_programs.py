"""Short runs of the programs in benchmarks/speed."""

import os
import subprocess
import sys

from helpers.paths import RESULTS


def run_quick(name: str, *, threads: int | None = None) -> list[str]:
    """Run a benchmark with --quick, check that it changes no saved result, return the printed lines."""
    before = _modification_times()
    command = [sys.executable, "-m", f"benchmarks.speed.{name}", "--quick"]
    environment = os.environ | ({} if threads is None else {"OMP_NUM_THREADS": str(threads)})
    ended = subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, timeout=600, check=False, env=environment
    )
    assert ended.returncode == 0, ended.stderr
    assert _modification_times() == before
    return ended.stdout.splitlines()


def _modification_times() -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in RESULTS.iterdir()}

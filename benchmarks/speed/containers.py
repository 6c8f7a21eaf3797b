"""Speed of `sisod evaluate` on Parquet and tar, against the same pairs in folders.

Run as `python -m benchmarks.speed.containers`; writes containers.json and containers.md to
`benchmarks/results`. `--quick` measures less and writes nothing. Processor time is compared, that of all
processes together: it depends less on what else the machine does than the time on the clock.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.speed.folders import write_pairs
from benchmarks.timing import RESULTS, TABLE_HEAD, Row, machine, markdown, progress
from sisod.data.containers.parquet import parquet_file
from sisod.data.containers.tar import tar_file

_SHARD = 500  # pairs in a shard, as `sisod predict --container` packs maps
_KINDS = ("folder", "tar", "tar shards", "parquet", "parquet shards")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and unless quick write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer files, nothing written")
    quick = parser.parse_args(arguments).quick
    n_files, repetitions = (96, 1) if quick else (5000, 3)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        progress(f"writing {n_files} pairs as files, tar and Parquet")
        write_pairs(root, n_files)
        pack(root)
        seconds = measure(root, repetitions)
    facts = machine(("sisod", "numpy", "opencv-python-headless", "polars"))
    content = {"files": n_files, "seconds": seconds, "machine": facts}
    print(page(content), end="")
    if not quick:
        (RESULTS / "containers.json").write_text(json.dumps(content, indent=2) + "\n")
        (RESULTS / "containers.md").write_text(page(content))


def page(content: Mapping[str, Any]) -> str:
    """What containers.md says, from what containers.json holds."""
    parts = [
        f"Made by `python -m benchmarks.speed.containers`: processor time of `sisod evaluate` on "
        f"{content['files']} pairs of 300 x 400 PNG files, count metrics, process start included; the "
        "peer is the folder.",
        markdown(TABLE_HEAD, [row.cells() for row in ratios(content["seconds"])]),
    ]
    return "\n\n".join(parts) + "\n"


def pack(root: Path) -> None:
    """Write the pairs to one tar, to one Parquet file, and to shards of each."""
    for what in ("pred", "gt"):
        members = {path.name: path.read_bytes() for path in sorted((root / what).iterdir())}
        (root / f"{what}.tar").write_bytes(tar_file(members))
        (root / f"{what}.parquet").write_bytes(parquet_file(members, column="image"))
        names = sorted(members)
        for kind in ("tar", "parquet"):
            folder = root / f"{what} {kind} shards"
            folder.mkdir()
            for at in range(0, len(names), _SHARD):
                part = {name: members[name] for name in names[at : at + _SHARD]}
                content = tar_file(part) if kind == "tar" else parquet_file(part, column="image")
                (folder / f"{at:06d}.{kind}").write_bytes(content)


def measure(root: Path, repetitions: int) -> dict[str, float]:
    """Return the median processor time of every kind with one and with two processes, in turn."""
    times: dict[str, list[float]] = {}
    for repetition in range(repetitions):
        for jobs in (1, 2):
            for kind in _KINDS:
                times.setdefault(f"{kind} {jobs}", []).append(processor_time(root, kind, jobs))
        progress(f"  repetition {repetition + 1} of {repetitions}")
    return {name: statistics.median(values) for name, values in times.items()}


def processor_time(root: Path, kind: str, jobs: int) -> float:
    """Evaluate once; return the seconds of processor time of all processes."""
    ends = {"folder": "", "tar": ".tar", "parquet": ".parquet"}
    pred, gt = (str(root / f"{what}{ends.get(kind, f' {kind}')}") for what in ("pred", "gt"))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "sisod", "evaluate", f"maps={pred}", gt, "--dataset", "data"]
        command += ["--out", out, "--jobs", str(jobs), "--format", "csv"]
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ratios(seconds: Mapping[str, float]) -> list[Row]:
    """Set every container against the folder."""
    rows = []
    for jobs, processes in ((1, "one process"), (2, "two processes")):
        folder = seconds[f"folder {jobs}"]
        for kind in _KINDS[1:]:
            ours = seconds[f"{kind} {jobs}"]
            rows.append(Row(f"{kind}, {processes}", (ours,), folder, ours / folder, 1.0, at_least=False))
    return rows


if __name__ == "__main__":
    main()

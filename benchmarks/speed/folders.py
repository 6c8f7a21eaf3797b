"""Speed of `sisod evaluate`: two processes against one, and against only decoding the files.

Run as `python -m benchmarks.speed.folders`; writes folders.json and folders.md to
`benchmarks/results`. `--quick` measures less and writes nothing.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.speed.synthetic_maps import make_pairs
from benchmarks.timing import (
    RESULTS,
    TABLE_HEAD,
    Row,
    interleaved_medians,
    machine,
    markdown,
    progress,
    write_results,
)

_DECODE = """
import sys, cv2
cv2.setNumThreads(1)
for path in sys.stdin.read().splitlines():
    assert cv2.imread(path, cv2.IMREAD_UNCHANGED) is not None
"""


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    """Measure, print, unless quick write the table, and return the seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer files, nothing written")
    quick = parser.parse_args(arguments).quick
    n_files, repetitions = (8, 1) if quick else (5019, 3)  # as many as DUTS-TE has
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        progress(f"writing {n_files} pairs")
        write_pairs(root, n_files)
        seconds = measure(root, repetitions)
        memory = measure_memory(root, n_files)
    facts = machine(("sisod", "numpy", "opencv-python-headless", "polars"))
    content = {"files": n_files, "seconds": seconds, "memory": memory, "machine": facts}
    print(page(content), end="")
    if not quick:
        write_results("folders", content, page(content))
    return seconds


def page(content: Mapping[str, Any]) -> str:
    """What folders.md says, from what folders.json holds."""
    parts = [
        f"Made by `python -m benchmarks.speed.folders`: {content['files']} pairs of 300 x 400 PNG "
        "files, count metrics, process start included.",
        markdown(TABLE_HEAD, [row.cells() for row in ratios(content["seconds"])]),
        markdown(("images", "largest memory of a process"), content["memory"]),
    ]
    return "\n\n".join(parts) + "\n"


def write_pairs(root: Path, n_files: int) -> None:
    """Write made pairs, 48 different ones in turn."""
    pairs = make_pairs(48)
    for folder in ("pred", "gt"):
        (root / folder).mkdir()
    for index in range(n_files):
        pair = pairs[index % len(pairs)]
        (root / "pred" / f"{index:06d}.png").write_bytes(pair.pred_file.tobytes())
        (root / "gt" / f"{index:06d}.png").write_bytes(pair.gt_file.tobytes())


def measure(root: Path, repetitions: int) -> dict[str, float]:
    """Time everything in turn."""
    calls: dict[str, list[Callable[[], object]]] = {
        "evaluate 1": [lambda: evaluate(root, 1)],
        "decode 1": [lambda: decode(root, 1)],
        "evaluate 2": [lambda: evaluate(root, 2)],
        "decode 2": [lambda: decode(root, 2)],
    }
    progress("evaluating and decoding with one and two processes")
    medians = interleaved_medians(calls, repetitions=repetitions)
    return {name: values[0] for name, values in medians.items()}


def ratios(t: Mapping[str, float]) -> list[Row]:
    """Set the times against each other and against the targets."""
    return [
        Row("one process; two processes", (t["evaluate 1"],), t["evaluate 2"],
            t["evaluate 1"] / t["evaluate 2"], 1.7, at_least=True),
        Row("two processes; only decoding, two processes", (t["evaluate 2"],), t["decode 2"],
            t["evaluate 2"] / t["decode 2"], 1.6, at_least=False),
        Row("one process; only decoding, one process", (t["evaluate 1"],), t["decode 1"],
            t["evaluate 1"] / t["decode 1"], 1.6, at_least=False),
    ]  # fmt: skip


def evaluate(root: Path, jobs: int, *, first: int | None = None) -> None:
    """Run the command in a process of its own."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "sisod", "evaluate", str(root / "pred"), str(root / "gt")]
        command += ["--out", out, "--jobs", str(jobs), "--format", "csv"]
        if first is not None:
            names = Path(out, "names.txt")
            names.write_text("\n".join(f"{index:06d}" for index in range(first)), encoding="utf-8")
            command += ["--list", str(names)]
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603


def decode(root: Path, jobs: int) -> None:
    """Only read and decode the same files, shared out among processes."""
    paths = sorted(str(path) for path in root.rglob("*.png"))
    processes = [
        subprocess.Popen([sys.executable, "-c", _DECODE], stdin=subprocess.PIPE)  # noqa: S603
        for _ in range(jobs)
    ]
    for index, process in enumerate(processes):
        assert process.stdin is not None
        process.stdin.write("\n".join(paths[index::jobs]).encode())
        process.stdin.close()
    assert [process.wait() for process in processes] == [0] * jobs


def measure_memory(root: Path, n_files: int) -> list[tuple[str, str]]:
    """Largest resident memory of runs over a part and over all of the files."""
    rows = []
    for count in (n_files // 4, n_files):
        code = (
            "from benchmarks.speed.folders import largest, Path; "
            f"print(largest(Path({str(root)!r}), {count}))"
        )
        found = subprocess.run(  # noqa: S603
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            text=True,
            cwd=RESULTS.parents[1],
        )
        rows.append((str(count), f"{int(found.stdout) / 1024:.0f} MiB"))
    return rows


def largest(root: Path, count: int) -> int:
    """Evaluate some files and return the largest memory of any process below this one, in KiB."""
    evaluate(root, 2, first=count)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss


if __name__ == "__main__":
    main()

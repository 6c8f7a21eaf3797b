"""Speed of scoring before and after a change: two checkouts, in turn, in processor time.

Run as `python -m benchmarks.speed.before_after CHECKOUT`, the folder of the repository as it was before;
writes before_after.json and before_after.md to `benchmarks/results`. `--quick` measures less and writes
nothing. Processor time of one thread, in turn: the ratios can be trusted on a machine that is in use.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.speed.growth import COUNT_KEYS
from benchmarks.speed.synthetic_maps import make_pairs
from benchmarks.timing import RESULTS, duration, machine, markdown, progress, write_results

CONTENDERS = {
    "decoding": None,
    "count metrics": (),
    "with S": ("s",),
    "with weighted F": ("wf",),
    "with S and weighted F": ("s", "wf"),
    "with their size-invariant forms": ("s", "wf", "si_s", "si_wf"),
}
_WORKER = """
import json, sys, time
import cv2, numpy as np, sisod
cv2.setNumThreads(1)
data = np.load(sys.argv[1])
pairs = list(zip(*(list(data[key]) for key in ("pred", "gt"))))
files = [data[f"file_{index}"] for index in range(2 * len(pairs))]
for line in sys.stdin:
    keys = json.loads(line)
    times = []
    for index, pair in enumerate(pairs):
        start = time.process_time()
        if keys is None:
            for file in files[2 * index : 2 * index + 2]:
                cv2.imdecode(file, cv2.IMREAD_GRAYSCALE)
        else:
            sisod.score(*pair, metrics=tuple(keys))
        times.append(time.process_time() - start)
    print(json.dumps(times), flush=True)
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and unless quick write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path, help="folder of the repository as it was before")
    parser.add_argument("--quick", action="store_true", help="fewer maps, nothing written")
    options = parser.parse_args(arguments)
    n_pairs, rounds = (8, 1) if options.quick else (24, 15)
    checkouts = {"before": options.before, "after": RESULTS.parents[1]}
    content = {
        "maps": n_pairs,
        "seconds": measure(checkouts, n_pairs, rounds),
        "machine": machine(("sisod", "numpy", "opencv-python-headless")),
    }
    print(page(content), end="")
    if not options.quick:
        write_results("before_after", content, page(content))


def measure(checkouts: Mapping[str, Path], n_pairs: int, rounds: int) -> dict[str, dict[str, float]]:
    """Return checkout -> contender -> seconds: the mean over maps of the median over rounds."""
    times: dict[str, dict[str, list[list[float]]]] = {
        name: {contender: [] for contender in CONTENDERS} for name in checkouts
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "pairs.npz")
        _save_pairs(file, n_pairs)
        workers = {name: _start(path, file) for name, path in checkouts.items()}
        try:
            for index in range(rounds + 1):
                progress(f"round {index} of {rounds}")
                for contender, extra in CONTENDERS.items():
                    keys = None if extra is None else (*COUNT_KEYS, *extra)
                    for name, worker in workers.items():
                        answer = _ask(worker, keys)
                        if index:  # the first round warms up
                            times[name][contender].append(answer)
        finally:
            for worker in workers.values():
                worker.communicate()  # the end of its input ends it
    return {
        name: {
            contender: statistics.fmean(statistics.median(one) for one in zip(*seconds, strict=True))
            for contender, seconds in contenders.items()
        }
        for name, contenders in times.items()
    }


def page(content: Mapping[str, Any]) -> str:
    """What before_after.md says, from what before_after.json holds."""
    before, after = content["seconds"]["before"], content["seconds"]["after"]
    rows = [
        [
            name,
            duration(before[name]),
            duration(after[name]),
            f"{before[name] / after[name]:.2f}",
            f"{before[name] / before['decoding']:.2f}",
            f"{after[name] / after['decoding']:.2f}",
        ]
        for name in CONTENDERS
    ]
    head = (
        "Made by `python -m benchmarks.speed.before_after CHECKOUT`: processor time of one thread, "
        f"means over {content['maps']} maps of 300 x 400, both versions in turn."
    )
    columns = ("what", "before", "after", "faster by", "before / decoding", "after / decoding")
    return f"{head}\n\n{markdown(columns, rows)}\n"


def _save_pairs(file: Path, n_pairs: int) -> None:
    pairs = make_pairs(n_pairs)
    encoded = [content for pair in pairs for content in (pair.pred_file, pair.gt_file)]
    np.savez(
        file,
        pred=np.stack([pair.pred for pair in pairs]),
        gt=np.stack([pair.gt for pair in pairs]),
        **{f"file_{index}": content for index, content in enumerate(encoded)},  # type: ignore[arg-type]
    )


def _start(checkout: Path, file: Path) -> "subprocess.Popen[str]":
    settings = {"PYTHONPATH": str(checkout.resolve() / "src"), "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", _WORKER, str(file)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | settings,
    )


def _ask(worker: "subprocess.Popen[str]", keys: Sequence[str] | None) -> list[float]:
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(json.dumps(keys) + "\n")
    worker.stdin.flush()
    answer: list[float] = json.loads(worker.stdout.readline())
    return answer


if __name__ == "__main__":
    main()

"""What a billion images would take, worked out from measured figures.

Run as `python -m benchmarks.speed.scale` after `python -m benchmarks.speed.folders`; writes
scale.json and scale.md. Measures what folders.json
does not hold: bytes of a pair and of a batch's rows, Dask's cost of a task.
"""

import json
import statistics
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

from benchmarks.speed.synthetic_maps import make_pairs
from benchmarks.timing import RESULTS, machine, markdown, progress
from sisod.evaluation.batches import BATCH
from sisod.evaluation.cluster import TASK_BATCHES
from sisod.evaluation.evaluator import Evaluator

IMAGES = 10**9
CORES = 1000
DOLLARS = 0.04  # assumed price of a core for an hour


def main() -> None:
    """Measure, work out, write."""
    folders = json.loads((RESULTS / "folders.json").read_text())
    pairs = make_pairs(BATCH)
    measured = {
        "core seconds per image": folders["seconds"]["evaluate 1"] / folders["files"],
        "bytes per pair": statistics.mean(p.pred_file.nbytes + p.gt_file.nbytes for p in pairs),
        "bytes per batch of rows": float(rows_bytes()),
        "scheduler seconds per task": task_seconds(),
    }
    content = {"measured": measured, "machine": machine(("sisod", "distributed"))}
    print(page(content), end="")
    (RESULTS / "scale.json").write_text(json.dumps(content, indent=2) + "\n")
    (RESULTS / "scale.md").write_text(page(content))


def rows_bytes() -> int:
    """Bytes that one batch sends back."""
    evaluator = Evaluator()
    for index, pair in enumerate(make_pairs(BATCH)):
        evaluator.update(pair.pred, pair.gt, name=f"{index:012d}")
    return len(evaluator.rows().to_bytes())


def task_seconds(count: int = 2000) -> float:
    """Seconds that the scheduler, its worker and the client need for a task that does nothing."""
    progress("timing empty Dask tasks")
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options, silence_logs=50) as cluster, Client(cluster) as client:
        client.gather(client.map(_nothing, range(100), pure=False))
        start = time.perf_counter()
        client.gather(client.map(_nothing, range(count), pure=False))
        return (time.perf_counter() - start) / count


def _nothing(index: int) -> bytes:
    return np.int64(index).tobytes()


def page(content: Mapping[str, Any]) -> str:
    """What scale.md says, from what scale.json holds: the billion worked out."""
    measured = content["measured"]
    in_task = BATCH * TASK_BATCHES
    tasks = IMAGES / in_task
    core_hours = IMAGES * measured["core seconds per image"] / 3600
    scheduler_hours = tasks * measured["scheduler seconds per task"] / 3600
    busy = in_task * measured["core seconds per image"] / measured["scheduler seconds per task"]
    sent = IMAGES / BATCH * measured["bytes per batch of rows"]
    rows = [
        ("one image, one core", f"{1000 * measured['core seconds per image']:.1f} ms"),
        ("a billion images", f"{core_hours:,.0f} core hours"),
        (f"on {CORES} cores", f"{core_hours / CORES:.1f} hours"),
        (f"at {DOLLARS} dollars a core hour", f"{core_hours * DOLLARS:,.0f} dollars"),
        (f"tasks, {in_task} images each", f"{tasks / 1e6:.1f} million"),
        ("scheduler, one task", f"{1000 * measured['scheduler seconds per task']:.2f} ms"),
        ("scheduler, all tasks", f"{scheduler_hours:.1f} hours"),
        ("cores one scheduler keeps busy", f"{busy:,.0f}"),
        ("read from the store", f"{IMAGES * measured['bytes per pair'] / 1e12:.1f} TB"),
        ("sent back, all count metrics", f"{sent / 1e12:.1f} TB"),
    ]
    return markdown(("what", "figure"), rows) + "\n"


if __name__ == "__main__":
    main()

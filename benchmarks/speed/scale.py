"""What a billion images would take, worked out from measured figures.

Run as `python -m benchmarks.speed.scale` after `python -m benchmarks.speed.folders`; writes
scale.json and scale.md. Measures what folders.json does not hold: bytes of a pair and of the rows of a
batch and of a shard, Dask's cost of a task, the cost of the tables. All times that are measured here are
CPU times, so that a busy machine changes them little.
"""

import json
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import polars as pl
from distributed import Client, LocalCluster

from benchmarks.speed.synthetic_maps import Pair, make_pairs
from benchmarks.timing import RESULTS, machine, markdown, progress, write_results
from sisod.data.storage import list_shards
from sisod.evaluation.driver import make_plan
from sisod.evaluation.evaluator import Evaluator
from sisod.evaluation.executors import GROUP
from sisod.evaluation.result import Evaluation
from sisod.evaluation.rows import Rows
from sisod.evaluation.shards import ShardPair
from sisod.evaluation.tasks import BATCH, Folders, make_request, score_task
from sisod.scoring.protocols import PROTOCOLS

IMAGES = 10**9
CORES = 1000
DOLLARS = 0.04  # assumed price of a core for an hour
SHARD = 320 * BATCH  # images in a shard, 10,240: about 150 MB


def main() -> None:
    """Measure, work out, write."""
    folders = json.loads((RESULTS / "folders.json").read_text())
    pairs = make_pairs(BATCH)
    from_files, from_shard = scoring_seconds()
    measured = {
        "core seconds per image": folders["seconds"]["evaluate 1"] / folders["files"],
        "bytes per pair": statistics.mean(p.pred_file.nbytes + p.gt_file.nbytes for p in pairs),
        "bytes per batch of rows": float(rows_bytes()),
        "bytes per answer of a shard": float(shard_bytes()),
        "scheduler CPU seconds per task": task_seconds(),
        "CPU seconds per image from files": from_files,
        "CPU seconds per image from a shard": from_shard,
        "client CPU seconds per image": table_seconds(),
    }
    content = {"measured": measured, "machine": machine(("sisod", "distributed"))}
    print(page(content), end="")
    write_results("scale", content, page(content))


def batch_rows() -> Rows:
    """Return the rows of one batch."""
    evaluator = Evaluator()
    for index, pair in enumerate(make_pairs(BATCH)):
        evaluator.update(pair.pred, pair.gt, name=f"{index:012d}")
    return evaluator.rows()


def rows_bytes() -> int:
    """Bytes that one batch sends back."""
    return len(batch_rows().to_bytes())


def shard_bytes() -> int:
    """Bytes that one shard sends back."""
    rows = Rows.joined([batch_rows()] * (SHARD // BATCH))
    paths = [f"00000-of-97657.parquet/row {index:05d}/{index:012d}.png" for index in range(SHARD)]
    files = dict.fromkeys(("prediction", "ground_truth"), np.array([path.encode() for path in paths]))
    return len(replace(rows, tables=rows.tables | {"files": files}).to_bytes())


def task_seconds(count: int = 2000) -> float:
    """CPU seconds of the scheduler and the client for a task that does nothing.

    Both are in this process; the worker is in another.
    """
    progress("timing empty Dask tasks")
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options, silence_logs=50) as cluster, Client(cluster) as client:
        client.gather(client.map(_nothing, range(100), pure=False))
        start = time.process_time()
        client.gather(client.map(_nothing, range(count), pure=False))
        return (time.process_time() - start) / count


def _nothing(index: int) -> bytes:
    return np.int64(index).tobytes()


def scoring_seconds(count: int = 10 * BATCH, rounds: int = 3) -> tuple[float, float]:
    """CPU seconds of an image whose two files are in folders, and in a shard with others."""
    progress("scoring files and a shard")
    cv2.setNumThreads(0)
    pairs = make_pairs(count)
    names = [f"{index:012d}" for index in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        _write_files(Path(folder), names, pairs)
        files = make_request(Folders(f"{folder}/pred", f"{folder}/gt"))
        table = make_request(Folders(f"{folder}/table#pred", f"{folder}/table#gt"))
        (pred,), (gt,) = (list_shards(root) for root in (table.pred_root, table.gt_root))
        batches = make_plan(files).tasks
        seconds: dict[str, list[float]] = {"files": [], "shard": []}
        for _ in range(rounds):
            start = time.process_time()
            for batch in batches:
                score_task(files, batch)
            seconds["files"].append(time.process_time() - start)
            start = time.process_time()
            score_task(table, ShardPair(0, pred, gt))
            seconds["shard"].append(time.process_time() - start)
    return min(seconds["files"]) / count, min(seconds["shard"]) / count


def _write_files(folder: Path, names: list[str], pairs: list[Pair]) -> None:
    """Write pairs as two folders of files and as one table."""
    contents = {
        "pred": [pair.pred_file.tobytes() for pair in pairs],
        "gt": [pair.gt_file.tobytes() for pair in pairs],
    }
    (folder / "table").mkdir()
    pl.DataFrame({"name": names, **contents}).write_parquet(folder / "table" / "0.parquet")
    for kind, files in contents.items():
        (folder / kind).mkdir()
        for name, content in zip(names, files, strict=True):
            (folder / kind / f"{name}.png").write_bytes(content)


def table_seconds(n_shards: int = 2) -> float:
    """CPU seconds of the client for the tables of an image, from the rows of shards to their files."""
    progress("writing tables")
    batch = batch_rows()
    answers = []
    for index in range(n_shards):
        ends = [f"-{index}-{number:05d}" for number in range(SHARD // BATCH)]
        parts = [replace(batch, names=tuple(f"{name}{end}" for name in batch.names)) for end in ends]
        answers.append(Rows.joined(parts).to_bytes())
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        rows = Rows.joined([Rows.from_bytes(data, where="an answer") for data in answers])
        result = Evaluation.from_rows(rows, PROTOCOLS["default"], by_name=True)
        result.save(Path(folder) / "result")
        return (time.process_time() - start) / (n_shards * SHARD)


def page(content: Mapping[str, Any]) -> str:
    """What scale.md says, from what scale.json holds: the billion worked out, in files and in shards."""
    measured = content["measured"]
    work = [worked_out(measured, by_shards=by_shards) for by_shards in (False, True)]
    formats: dict[str, Callable[[dict[str, Any]], str]] = {
        "one image, one core": lambda w: f"{1000 * w['core seconds']:.1f} ms",
        "a billion images": lambda w: f"{w['core hours']:,.0f} core hours",
        f"on {CORES} cores": lambda w: f"{w['core hours'] / CORES:.1f} hours",
        f"at {DOLLARS} dollars a core hour": lambda w: f"{w['core hours'] * DOLLARS:,.0f} dollars",
        "images in a task": lambda w: f"{w['images in a task']:,.0f}",
        "tasks": lambda w: f"{w['tasks']:,.0f}",
        "listed by the client": lambda w: w["listed"],
        "scheduler, one task": lambda _: f"{1000 * measured['scheduler CPU seconds per task']:.2f} ms",
        "scheduler, all tasks": lambda w: f"{w['scheduler hours']:.2g} hours",
        "cores one scheduler keeps busy": lambda w: f"{w['busy cores']:,.0f}",
        "read from the store": lambda _: f"{IMAGES * measured['bytes per pair'] / 1e12:.1f} TB",
        "sent back, all count metrics": lambda w: f"{w['sent'] / 1e12:.1f} TB",
        "client, all tables": lambda w: f"{w['client hours']:.0f} hours",
    }
    rows = [(what, *(text(one) for one in work)) for what, text in formats.items()]
    return markdown(("what", "pairs of files", "shards"), rows) + "\n"


def worked_out(measured: Mapping[str, float], *, by_shards: bool) -> dict[str, Any]:
    """Return what a billion images take, as pairs of files or as shards."""
    in_task = SHARD if by_shards else BATCH * GROUP
    core_seconds = measured["core seconds per image"]
    if by_shards:
        core_seconds *= measured["CPU seconds per image from a shard"]
        core_seconds /= measured["CPU seconds per image from files"]
    sent = (
        measured["bytes per answer of a shard"] / SHARD
        if by_shards
        else measured["bytes per batch of rows"] / BATCH
    )
    tasks = IMAGES / in_task
    listed = f"{2 * tasks:,.0f} shards" if by_shards else f"{2 * IMAGES / 1e9:.0f} billion files"
    return {
        "core seconds": core_seconds,
        "core hours": IMAGES * core_seconds / 3600,
        "images in a task": in_task,
        "tasks": tasks,
        "listed": listed,
        "scheduler hours": tasks * measured["scheduler CPU seconds per task"] / 3600,
        "busy cores": in_task * core_seconds / measured["scheduler CPU seconds per task"],
        "sent": IMAGES * sent,
        "client hours": IMAGES * measured["client CPU seconds per image"] / 3600,
    }


if __name__ == "__main__":
    main()

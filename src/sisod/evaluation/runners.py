"""Who scores the batches: this process, or several on this machine; `cluster` is for more."""

import collections
import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from typing import IO

import cv2

from sisod.common.errors import InputError
from sisod.common.output import write_atomically
from sisod.common.processes import module_settings
from sisod.evaluation.batches import Batch, Job, score_batch
from sisod.evaluation.worker import READY, START

Advance = Callable[[int], None]
_AHEAD = 2  # batches a worker has at a time: the one it scores and the next


def default_jobs() -> int:
    """Return the number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_here(job: Job, batches: Iterable[Batch], advance: Advance) -> None:
    """Score in this process, on one core."""
    threads = cv2.getNumThreads()
    cv2.setNumThreads(0)  # none but this one; 1 would wait for the others to end, which a fork has not
    try:
        for batch in batches:
            write_atomically(batch.shard, score_batch(job, batch.pairs).to_bytes())
            advance(len(batch.pairs))
    finally:
        cv2.setNumThreads(threads)


def run_processes(job: Job, batches: Iterable[Batch], advance: Advance, *, jobs: int) -> None:
    """Score in processes of this machine; the first failure stops all."""
    from concurrent.futures import ThreadPoolExecutor

    waiting: queue.SimpleQueue[Batch] = queue.SimpleQueue()
    for batch in batches:
        waiting.put(batch)
    failed = threading.Event()
    workers: list[_Worker] = []
    try:
        workers.extend(_Worker(job) for _ in range(jobs))
        import polars as pl  # noqa: F401  (the tables would wait for it afterwards)

        with ThreadPoolExecutor(jobs) as threads:
            try:
                done = [threads.submit(_feed, worker, waiting, advance, failed) for worker in workers]
                for future in done:
                    future.result()
            finally:  # before the threads are waited for: each is blocked on its worker's answer
                failed.set()
                for worker in workers:
                    worker.stop()
    finally:
        for worker in workers:
            worker.stop()


def _feed(
    worker: "_Worker",
    waiting: "queue.SimpleQueue[Batch]",
    advance: Advance,
    failed: threading.Event,
) -> None:
    sent: collections.deque[Batch] = collections.deque()
    try:
        while not failed.is_set():
            while len(sent) < _AHEAD and not waiting.empty():
                with contextlib.suppress(queue.Empty):  # another thread was faster
                    sent.append(waiting.get_nowait())
                    worker.send(sent[-1])
            if not sent:
                return
            worker.wait()
            advance(len(sent.popleft().pairs))
    except BaseException:
        failed.set()
        raise


class _Worker:
    """One `sisod.evaluation.worker` process."""

    def __init__(self, job: Job) -> None:
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (lives as long as the process)
        self._process = subprocess.Popen(  # noqa: S603  (our own command)
            [sys.executable, "-c", START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            # no threads: the work is shared out by processes
            env=os.environ | module_settings() | {"OPENBLAS_NUM_THREADS": "1"},
            start_new_session=True,  # ctrl-C reaches the parent, which ends its workers
        )
        self._is_ready = False
        self._send(job.to_json())

    def send(self, batch: Batch) -> None:
        self._send({"pairs": batch.pairs, "shard": str(batch.shard)})

    def wait(self) -> None:
        """Read the answer to the oldest batch not yet answered."""
        while not self._is_ready:
            self._is_ready = self._line().endswith(READY)
        answer = json.loads(self._line())
        if "errno" in answer:
            raise OSError(answer["errno"], answer["error"])
        if "error" in answer:
            raise InputError(answer["error"])

    def _line(self) -> str:
        assert self._process.stdout is not None  # noqa: S101
        line = self._process.stdout.readline()
        if not line:
            raise InputError(self._death())
        return line.decode(errors="replace").rstrip()

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        self._errors.close()

    def _send(self, content: object) -> None:
        assert self._process.stdin is not None  # noqa: S101
        try:
            self._process.stdin.write(json.dumps(content).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise InputError(self._death()) from None

    def _death(self) -> str:
        code = self._process.wait()
        self._errors.seek(0)
        last = self._errors.read().decode(errors="replace").strip().splitlines()[-1:]
        said = f": {last[0]}" if last else ""
        return f"a worker process ended with code {code}{said}; what was finished is kept, use --resume"

"""Scoring of tasks in this process or in several on this machine; `cluster` is for more machines.

A runner hands over the rows of each task as bytes as soon as they are there, in any order, and from
any thread; what becomes of them is the caller's business.
"""

import collections
import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable

import cv2

from sisod.common.errors import InputError
from sisod.common.processes import module_settings
from sisod.evaluation.answers import Task
from sisod.evaluation.request import Request
from sisod.evaluation.shards import score_task
from sisod.evaluation.worker import READY, START
from sisod.scoring.custom import import_folders

Deliver = Callable[[Task, bytes], None]  # takes the rows of a task
_PATIENCE = 0.2  # seconds until ctrl-C is noticed
_AHEAD = 2  # tasks a worker has at a time: the one it scores and the next


def default_jobs() -> int:
    """Return the number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_here(request: Request, tasks: Iterable[Task], deliver: Deliver) -> None:
    """Score in this process, on one core."""
    threads = cv2.getNumThreads()
    cv2.setNumThreads(
        0
    )  # no other threads; 1 would wait for those to end that a forked process does not have
    try:
        for task in tasks:
            deliver(task, score_task(request, task.message()))
    finally:
        cv2.setNumThreads(threads)


def run_processes(request: Request, tasks: Iterable[Task], deliver: Deliver, *, jobs: int) -> None:
    """Score in processes of this machine; the first failure stops all."""
    from concurrent.futures import ThreadPoolExecutor, wait

    unscored: queue.SimpleQueue[Task] = queue.SimpleQueue()
    for task in tasks:
        unscored.put(task)
    failed = threading.Event()
    workers: list[_Worker] = []
    try:
        workers.extend(_Worker(request) for _ in range(jobs))
        import polars as pl  # noqa: F401  (while the workers start; the tables need it)

        with ThreadPoolExecutor(jobs) as threads:
            try:
                futures = [
                    threads.submit(_feed, worker, unscored, deliver, failed) for worker in workers
                ]
                # without a timeout, ctrl-C would not be noticed: polars lets waits go on after signals
                while wait(futures, timeout=_PATIENCE).not_done:
                    pass
                for future in futures:
                    future.result()
            finally:  # before waiting for the threads: each is blocked on its worker's answer
                failed.set()
                for worker in workers:
                    worker.stop()
    finally:
        for worker in workers:
            worker.stop()


def _feed(
    worker: "_Worker",
    unscored: "queue.SimpleQueue[Task]",
    deliver: Deliver,
    failed: threading.Event,
) -> None:
    sent: collections.deque[Task] = collections.deque()
    try:
        while not failed.is_set():
            while len(sent) < _AHEAD and not unscored.empty():
                with contextlib.suppress(queue.Empty):  # another thread was faster
                    sent.append(unscored.get_nowait())
                    worker.send(sent[-1])
            if not sent:
                return
            rows = worker.receive()
            deliver(sent.popleft(), rows)
    except BaseException:
        failed.set()
        raise


def _own_modules(request: Request) -> dict[str, str]:
    """Settings with which a process also imports the modules of the user's metrics."""
    return module_settings(folders=import_folders(request.custom)) if request.custom else {}


class _Worker:
    """One `sisod.evaluation.worker` process."""

    def __init__(self, request: Request) -> None:
        self._process = subprocess.Popen(  # noqa: S603  (our own command)
            [sys.executable, "-c", START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # no threads: the work is divided among processes
            env=os.environ
            | module_settings()
            | _own_modules(request)
            | {"OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"},
            start_new_session=True,  # ctrl-C reaches the parent, which ends its workers
        )
        self._printed: collections.deque[bytes] = collections.deque(maxlen=20)  # last lines on stderr
        self._printing = threading.Thread(target=self._keep_printed, daemon=True)
        self._printing.start()
        self._is_ready = False
        self._send(request.to_json())

    def send(self, task: Task) -> None:
        self._send(task.message())

    def receive(self) -> bytes:
        """Return the rows of the oldest task that was sent and not yet answered."""
        while not self._is_ready:
            self._is_ready = self._read_line().endswith(READY)
        answer = json.loads(self._read_line())
        if "error" in answer:
            raise InputError(answer["error"])
        return self._read(answer["bytes"])

    def _read(self, count: int) -> bytes:
        assert self._process.stdout is not None  # noqa: S101
        data = self._process.stdout.read(count)
        if len(data) < count:
            raise InputError(self._death())
        return data

    def _read_line(self) -> str:
        assert self._process.stdout is not None  # noqa: S101
        line = self._process.stdout.readline()
        if not line:
            raise InputError(self._death())
        return line.decode(errors="replace").rstrip()

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        self._printing.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def _send(self, content: object) -> None:
        assert self._process.stdin is not None  # noqa: S101
        try:
            self._process.stdin.write(json.dumps(content).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise InputError(self._death()) from None

    def _keep_printed(self) -> None:
        assert self._process.stderr is not None  # noqa: S101
        with self._process.stderr as lines:
            self._printed.extend(lines)

    def _death(self) -> str:
        code = self._process.wait()
        self._printing.join()
        last = b"".join(self._printed).decode(errors="replace").strip().splitlines()[-1:]
        reason = f": {last[0]}" if last else ""
        return (
            f"a worker process ended with code {code}{reason}; what was finished is kept, use --resume"
        )

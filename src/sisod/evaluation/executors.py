"""Where tasks are scored: in several processes, on Dask or on Ray; one loop over an executor.

Executors have the interface of `concurrent.futures`. Workers of a cluster read the files themselves, by
the paths or URLs they are given. Answers come in any order; the caller puts them in that of the tasks.
"""

import asyncio
import logging
import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import cv2

from sisod.common.exceptions import InputError, UsageError, require
from sisod.common.imports import describe_error, explain_errors
from sisod.common.processes import keep_freed_memory, safe_children
from sisod.data.storage import resolved_root
from sisod.evaluation.rows import Rows
from sisod.evaluation.tasks import PairBatch, Request, Task, score_task

GROUP = 8  # batches in a task of a large cluster run
_PATIENCE = 10.0  # seconds for a scheduler to answer, and for its first worker
_NO_WORKERS = 30.0  # seconds without any worker during a run: one that died may be restarted
_CHECK_AFTER = 2.0  # seconds without an answer after which a cluster is checked
_KEPT = "what was finished is kept, use --resume"
_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}  # the work is divided already


@dataclass(frozen=True)
class Pool:
    """Where tasks are scored.

    Attributes:
        executor: runs functions in other processes.
        n_ahead: how many tasks it is given at a time.
        is_cluster: whether the processes are on other machines.
        check: raises if nobody is there to answer any more.
    """

    executor: Executor
    n_ahead: int
    is_cluster: bool = False
    check: Callable[[], None] = lambda: None


def run_tasks(
    request: Request, tasks: Sequence[Task], *, jobs: int, cluster: str | None
) -> Generator[tuple[Task, Rows]]:
    """Score tasks; give each with its answer as soon as it is there.

    Args:
        request: what decides the scores.
        tasks: to be scored.
        jobs: processes on this machine.
        cluster: address of a Dask scheduler, `ray` or `ray://HOST:PORT`; None for this machine.
    """
    with _open_pool(jobs, cluster) as pool:
        request = replace(request, names=None)  # perhaps a long list, which workers do not need
        size = 1
        if pool.is_cluster:
            pred_root, gt_root = resolved_root(request.pred_root), resolved_root(request.gt_root)
            request = replace(request, pred_root=pred_root, gt_root=gt_root)
            # large groups spare the scheduler, but every worker should get several; a shard is large
            most = GROUP if isinstance(tasks[0], PairBatch) else 1
            size = max(1, min(most, len(tasks) // (2 * pool.n_ahead)))
        waiting = iter([tasks[at : at + size] for at in range(0, len(tasks), size)])
        running: dict[Future[list[Rows]], Sequence[Task]] = {}

        def submit(count: int) -> None:
            for group in islice(waiting, count):
                future = pool.executor.submit(_score_group, request, group, on_cluster=pool.is_cluster)
                running[future] = group

        submit(pool.n_ahead)
        while running:
            done, _ = wait(running, timeout=_CHECK_AFTER, return_when=FIRST_COMPLETED)
            if not done:
                pool.check()
            for future in done:
                group = running.pop(future)
                yield from zip(group, _answers(future), strict=True)
                submit(1)


def _answers(future: "Future[list[Rows]]") -> list[Rows]:
    try:
        return future.result()
    except InputError:
        raise
    except BrokenProcessPool as error:
        found = re.search(r"\{(.*)\}", str(error))
        reason = f" ({found[1]})" if found else ""
        raise InputError(
            f"a worker process ended{reason}, perhaps killed by the system for want of memory; "
            f"{_KEPT}, with fewer --jobs"
        ) from error
    except CancelledError:
        raise InputError(f"the cluster does not answer any more; {_KEPT}") from None
    except Exception as error:
        cause = getattr(error, "cause", None)  # of Ray
        if isinstance(cause, InputError):
            raise cause from None
        if type(error).__module__.partition(".")[0] not in ("distributed", "ray"):
            raise
        raise InputError(
            f"the cluster could not score a task: {describe_error(error)}; {_KEPT}"
        ) from error


def _score_group(request: Request, tasks: Sequence[Task], *, on_cluster: bool) -> list[Rows]:
    """Score in another process; an error names the worker of a cluster."""
    try:
        return [score_task(request, task) for task in tasks]
    except InputError as error:
        if not on_cluster:
            raise
        raise InputError(
            f"{error} (on the worker {socket.gethostname()!r}; workers read files themselves: give "
            "folders that all of them share, or URLs)"
        ) from None


@contextmanager
def _open_pool(jobs: int, cluster: str | None) -> Iterator[Pool]:
    if cluster is not None:
        opened = _open_ray if cluster == "ray" or cluster.startswith("ray://") else _open_dask
        with opened(cluster) as pool:
            yield pool
    else:
        from loky import ProcessPoolExecutor

        with safe_children():
            # unlike Python's own, it does not run the caller's script again
            executor = ProcessPoolExecutor(
                jobs, env=_ENVIRONMENT, initializer=_start_worker, initargs=(os.getpid(),)
            )
            try:
                yield Pool(executor, 2 * jobs)
            finally:
                executor.shutdown(kill_workers=True)


def _start_worker(parent: int) -> None:
    os.dup2(2, 1)  # standard output is for results: what libraries print goes to standard error
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C is for the parent, which ends its workers
    cv2.setNumThreads(1)
    keep_freed_memory()
    if sys.platform != "win32":
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """End this process after its parent, however that ended."""
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)


# --------------------------------------------------------------------------------------------- clusters


def check_cluster(address: str) -> None:
    """Raise if no cluster can be reached at an address."""
    with _open_pool(1, address):
        pass


@contextmanager
def _open_dask(address: str) -> Iterator[Pool]:
    require("--cluster", "dask", "distributed")
    if not address.strip():
        raise UsageError("--cluster is empty; expected the address of a scheduler, tcp://HOST:PORT")
    from distributed import Client

    loggers = [logging.getLogger(f"distributed.{name}") for name in ("client", "comm", "core")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)  # our error message says what it would log
    try:
        try:
            if not address.startswith("inproc://"):  # in this process
                with ThreadPoolExecutor(1) as threads:  # a notebook has an event loop of its own
                    threads.submit(asyncio.run, _ask_scheduler(address)).result()
            client = Client(address, timeout=_PATIENCE)
        except ValueError as error:
            raise UsageError(
                f"--cluster {address!r} is not the address of a Dask scheduler, tcp://HOST:PORT: "
                f"{describe_error(error)}"
            ) from error
        except Exception as error:  # a malformed answer may raise anything
            raise InputError(
                f"no Dask scheduler answers at {address!r} in {_PATIENCE:g} seconds; start one with "
                f"'dask scheduler', and give the address that it prints ({describe_error(error)})"
            ) from error
        try:
            try:
                client.wait_for_workers(1, timeout=_PATIENCE)
            except TimeoutError:
                raise InputError(
                    f"the Dask scheduler at {address!r} has no workers; start some with 'dask worker "
                    f"{address}'"
                ) from None
            n_ahead = 2 * max(1, sum(client.nthreads().values()))
            executor = client.get_executor(pure=False)
            yield Pool(executor, n_ahead, is_cluster=True, check=_watch(client, address))
        finally:
            client.close(timeout=_CHECK_AFTER)
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


async def _ask_scheduler(address: str) -> None:
    """Raise if nobody answers in time; a client would wait for minutes for a silent server."""
    from distributed import rpc
    from distributed.security import Security

    async def ask() -> None:
        async with rpc(address, connection_args=Security().get_connection_args("client")) as server:
            await server.identity()

    await asyncio.wait_for(ask(), _PATIENCE)


def _watch(client: Any, address: str) -> Callable[[], None]:
    """Return a function that raises once the scheduler, or all its workers, have been gone for long."""
    last = time.monotonic()

    def check() -> None:
        nonlocal last
        with suppress(Exception):  # no answer
            if client.sync(client.scheduler.ncores, callback_timeout=_CHECK_AFTER):
                last = time.monotonic()
        if time.monotonic() - last >= _NO_WORKERS:
            raise InputError(
                f"the Dask scheduler at {address!r} has lost all its workers, or does not answer any "
                f"more; {_KEPT}"
            )

    return check


@contextmanager
def _open_ray(address: str) -> Iterator[Pool]:
    require("--cluster", "ray")
    import ray

    was_running = ray.is_initialized()
    if not was_running:
        with explain_errors(f"no Ray cluster answers at {address!r}"):
            ray.init(None if address == "ray" else address, log_to_driver=False, logging_level="ERROR")
    try:
        n_cpus = max(1, int(ray.cluster_resources().get("CPU", 1)))
        yield Pool(_RayExecutor(), 2 * n_cpus, is_cluster=True)
    finally:
        if not was_running:
            ray.shutdown()


class _RayExecutor(Executor):
    """Runs functions as tasks of Ray, which gives those of a worker that dies to another."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        import ray

        future: Future[Any] = ray.remote(fn).remote(*args, **kwargs).future()
        return future

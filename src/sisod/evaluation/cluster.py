"""Batches scored on a Dask cluster: every wait has a limit, and every failure is one sentence.

Workers read the files themselves, by the paths or URLs they are given, and send back rows.
"""

import asyncio
import contextlib
import logging
import os
import queue
import socket
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sisod.common.errors import InputError, UsageError, printable, require
from sisod.common.folders import is_url
from sisod.data.containers import find_member
from sisod.data.containers.coco import image_stamp, is_coco
from sisod.evaluation.answers import Task
from sisod.evaluation.batches import PairBatch, Pairs
from sisod.evaluation.request import Request
from sisod.evaluation.runners import Deliver
from sisod.evaluation.shards import ShardPair, score_task

TASK_BATCHES = 8  # batches in a task of a large cluster run
_PATIENCE = 10.0  # seconds for a scheduler to answer, and for its first worker
_NO_WORKERS = 30.0  # seconds without any worker during a run: one that died may be restarted
_CHECK_AFTER = 2.0  # seconds without an answer after which the cluster is checked
_KEPT = "what was finished is kept, use --resume"

Stamps = Sequence[tuple[str, str]]
Running = dict[str, tuple[Any, Sequence[Task]]]  # by key: futures of Dask and their tasks


def run_cluster(request: Request, tasks: Sequence[Task], deliver: Deliver, *, address: str) -> None:
    """Score on a Dask cluster; Dask gives the tasks of a worker that dies to another."""
    if not tasks:
        return
    with _connected(address) as client:
        threads = _count_threads(client, address)
        # large tasks spare the scheduler, but every thread should get several; a shard is large
        most = 1 if isinstance(tasks[0], ShardPair) else TASK_BATCHES
        size = max(1, min(most, len(tasks) // (4 * threads)))
        waiting = iter([tasks[at : at + size] for at in range(0, len(tasks), size)])
        description = request.resolved().to_json()  # workers have other working folders
        running: Running = {}
        watch = _Watch(client, address)
        finished: queue.SimpleQueue[Any] = queue.SimpleQueue()

        def submit(count: int) -> None:
            for _, group in zip(range(count), waiting, strict=False):
                future = client.submit(*_call(description, group), pure=False)
                running[future.key] = future, group
                future.add_done_callback(finished.put)

        submit(4 * threads)  # enough to keep all busy, few enough to hold in memory
        while running:
            future = watch.wait(finished)
            _, group = running.pop(future.key)
            for task, data in zip(group, watch.answer(future), strict=True):
                deliver(task, data)
            submit(1)


def _call(description: dict[str, Any], group: Sequence[Task]) -> tuple[Any, ...]:
    """Return the function that a worker calls, and its arguments."""
    batches = [task for task in group if isinstance(task, PairBatch)]
    if batches:
        pairs, stamps = [b.pairs for b in batches], [b.stamps for b in batches]
        return score_on_worker, description, pairs, stamps
    return score_shards_on_worker, description, [task.message() for task in group]


@contextlib.contextmanager
def _connected(address: str) -> Iterator[Any]:
    client = _connect(address)
    logger = logging.getLogger("distributed.client")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # our error message says what it would log
    try:
        yield client
    finally:
        client.close(timeout=_CHECK_AFTER)
        logger.setLevel(level)


def _connect(address: str) -> Any:
    check_scheduler(address)
    from distributed import Client

    try:
        return Client(address, timeout=_PATIENCE)
    except Exception as error:
        raise InputError(f"no Dask scheduler answers at {address!r}: {_reason(error)}") from error


def check_scheduler(address: str) -> None:
    """Refuse an address where no scheduler answers; Dask itself would wait for minutes."""
    require("--cluster", "dask", "distributed")
    if not address.strip():
        raise UsageError("--cluster is empty; expected the address of a scheduler, tcp://HOST:PORT")
    if address.startswith("inproc://"):  # in this process
        return
    try:
        with ThreadPoolExecutor(1) as threads:  # a notebook has an event loop of its own in this one
            kind = threads.submit(asyncio.run, _server_kind(address)).result()
    except TimeoutError:
        if _is_listening(address):
            raise InputError(
                f"what listens at {address!r} is not a Dask scheduler: it gave no answer in "
                f"{_PATIENCE:g} seconds; expected the address that 'dask scheduler' prints"
            ) from None
        raise InputError(
            f"no Dask scheduler answers at {address!r} in {_PATIENCE:g} seconds; start one with "
            "'dask scheduler', and give the address that it prints"
        ) from None
    except (ValueError, TypeError) as error:  # the text is not an address
        raise UsageError(
            f"--cluster {address!r} is not the address of a Dask scheduler: {_reason(error)}; expected "
            "tcp://HOST:PORT"
        ) from error
    except Exception as error:  # a malformed answer may raise anything
        raise InputError(f"no Dask scheduler answers at {address!r}: {_reason(error)}") from error
    if kind != "Scheduler":
        raise InputError(f"a Dask {kind} answers at {address!r}; expected the scheduler's address")


async def _server_kind(address: str) -> str:
    """Return what kind of server listens at an address."""
    from distributed import rpc
    from distributed.security import Security

    async def ask() -> str:
        arguments = Security().get_connection_args("client")
        async with rpc(address, connection_args=arguments) as server:
            return str((await server.identity()).get("type"))

    return await asyncio.wait_for(ask(), _PATIENCE)


def _is_listening(address: str) -> bool:
    """Say whether anything listens at an address."""
    try:
        parts = urlsplit(address if "://" in address else f"tcp://{address}")
        socket.create_connection((parts.hostname, parts.port), timeout=1).close()
    except (OSError, ValueError):
        return False
    return True


def _count_threads(client: Any, address: str) -> int:
    """Return how many threads the workers have in all; refuse a cluster without a worker."""
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
    except TimeoutError:
        raise InputError(
            f"the Dask scheduler at {address!r} has no workers; start some with 'dask worker {address}'"
        ) from None
    threads: dict[str, int] = client.nthreads()
    return max(1, sum(threads.values()))


class _Watch:
    """Waits for results; checks the cluster meanwhile, and gives up when it cannot answer any more."""

    def __init__(self, client: Any, address: str) -> None:
        self._client, self._address = client, address
        self._last_answer = 0.0  # time of the last answer of the scheduler
        self._last_worker = 0.0  # time at which it last had a worker

    def wait(self, finished: "queue.SimpleQueue[Any]") -> Any:
        """Return the next future that is done."""
        self._last_answer = self._last_worker = time.monotonic()
        while True:
            try:
                return finished.get(timeout=_CHECK_AFTER)
            except queue.Empty:
                self._check()

    def answer(self, future: Any) -> list[bytes]:
        """Return the result of a finished future; Dask may have to compute it again to fetch it."""
        self._last_answer = self._last_worker = time.monotonic()
        while True:
            try:
                answer: list[bytes] = future.result(timeout=_CHECK_AFTER)
            except InputError:
                raise
            except CancelledError:
                raise InputError(self._gone_message()) from None
            except Exception as error:
                if not isinstance(error, TimeoutError) or future.status == "error":
                    raise InputError(
                        f"the Dask cluster at {self._address!r} could not score a batch: "
                        f"{_reason(error)}; {_KEPT}"
                    ) from error
                self._check()
            else:
                return answer

    def _check(self) -> None:
        workers = None  # unless the scheduler answers
        if self._client.status == "running":
            # any exception here means that there is no answer
            with contextlib.suppress(Exception):
                workers = self._client.sync(self._client.scheduler.ncores, callback_timeout=_CHECK_AFTER)
        now = time.monotonic()
        if workers is not None:
            self._last_answer = now
        if workers or workers is None:
            self._last_worker = now
        if now - self._last_answer >= _PATIENCE:
            raise InputError(self._gone_message())
        if now - self._last_worker >= _NO_WORKERS:
            raise InputError(
                f"the Dask scheduler at {self._address!r} has lost all its workers; {_KEPT}"
            )

    def _gone_message(self) -> str:
        return f"the Dask scheduler at {self._address!r} does not answer any more; {_KEPT}"


def _reason(error: Exception) -> str:
    text = str(error).strip().partition("\n")[0]
    return printable(f"{type(error).__name__}: {text}" if text else type(error).__name__)


# the following functions are called on the workers


def score_on_worker(
    description: dict[str, Any], groups: list[Pairs], stamps: list[Stamps]
) -> list[bytes]:
    """Return the rows of several batches."""
    request = Request.from_json(description)
    for pairs, pair_stamps in zip(groups, stamps, strict=True):
        _check_files(request, pairs, pair_stamps)
    return _score_all(request, groups)


def score_shards_on_worker(description: dict[str, Any], messages: list[dict[str, Any]]) -> list[bytes]:
    """Return the answers of shards."""
    for message in messages:
        for shard in (message["pred"], message["gt"]):
            _check_size(shard["file"], shard["stamp"])
    return _score_all(Request.from_json(description), messages)


def _score_all(request: Request, messages: Sequence[Any]) -> list[bytes]:
    try:
        return [score_task(request, message) for message in messages]
    except InputError as error:
        raise InputError(f"{error} (on the Dask worker {socket.gethostname()!r})") from None


def _check_files(request: Request, pairs: Pairs, stamps: Stamps) -> None:
    """Refuse files that differ in size from those that the client listed."""
    roots = (request.pred_root, request.gt_root)
    for (_, *paths), pair_stamps in zip(pairs, stamps, strict=True):
        for root, path, stamp in zip(roots, paths, pair_stamps, strict=True):
            if is_coco(root):
                _check_coco(request, root, path, stamp)
                continue
            place = find_member(f"{root}/{path}")
            _check_size(f"{root}/{path}" if place is None else place.file, stamp)


def _check_size(file: str, stamp: str) -> None:
    if is_url(file):
        return
    listed_size = stamp.partition("-")[0]
    try:
        size = os.stat(file).st_size  # noqa: PTH116  (in a hot loop)
    except OSError as error:
        raise InputError(_unseen_message(Path(file), error.strerror or str(error))) from None
    if str(size) != listed_size:
        raise InputError(
            _unseen_message(Path(file), f"another file, of {size} bytes instead of {listed_size}")
        )


def _check_coco(request: Request, root: str, path: str, stamp: str) -> None:
    """Refuse a COCO file whose annotations of an image differ from those that the client listed."""
    if is_url(root):
        return
    try:
        truths = request.gt_root if root == request.pred_root else None
        is_same = image_stamp(root, path, truths) == stamp
    except InputError as error:
        raise InputError(_unseen_message(Path(root), str(error))) from None
    if not is_same:
        raise InputError(_unseen_message(Path(root), "another file, with other annotations"))


def _unseen_message(file: Path, what: str) -> str:
    return (
        f"the Dask worker {socket.gethostname()!r} does not see the file {str(file)!r} ({what}); "
        "workers read files themselves: give folders that all of them share, or URLs"
    )

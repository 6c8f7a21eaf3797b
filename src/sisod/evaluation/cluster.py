"""Batches scored on a Dask cluster: every wait has an end, and every failure is a sentence.

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
from sisod.common.output import write_atomically
from sisod.evaluation.batches import Batch, Job, Pairs, score_batch
from sisod.evaluation.runners import Advance

TASK_BATCHES = 8  # batches in a task of a large cluster run
_PATIENCE = 10.0  # seconds for a scheduler to answer, and for its first worker
_NO_WORKERS = 30.0  # seconds without any worker, on the way: one that died is started again
_LOOK = 2.0  # seconds without an answer after which the cluster is looked at
_KEPT = "what was finished is kept, use --resume"

Stamps = Sequence[tuple[str, str]]
Running = dict[str, tuple[Any, Sequence[Batch]]]  # by key, futures of Dask and what they score


def run_cluster(job: Job, batches: Sequence[Batch], advance: Advance, *, address: str) -> None:
    """Score on a Dask cluster; a worker that dies is replaced by another, by Dask.

    The roots of the job must mean the same in every working folder.
    """
    if not batches:
        return
    with _connected(address) as client:
        threads = _count_threads(client, address)
        # large tasks spare the scheduler, but every thread should get several
        size = max(1, min(TASK_BATCHES, len(batches) // (4 * threads)))
        waiting = iter([batches[at : at + size] for at in range(0, len(batches), size)])
        description = job.to_json()
        running: Running = {}
        watch = _Watch(client, address)
        finished: queue.SimpleQueue[Any] = queue.SimpleQueue()

        def submit(count: int) -> None:
            for _, group in zip(range(count), waiting, strict=False):
                pairs, stamps = [b.pairs for b in group], [b.stamps for b in group]
                future = client.submit(score_on_worker, description, pairs, stamps, pure=False)
                running[future.key] = future, group
                future.add_done_callback(finished.put)

        submit(4 * threads)  # enough to keep all busy, few to hold in memory
        while running:
            future = watch.wait(finished)
            _, group = running.pop(future.key)
            for batch, data in zip(group, watch.answer(future), strict=True):
                write_atomically(batch.shard, data)
                advance(len(batch.pairs))
            submit(1)


@contextlib.contextmanager
def _connected(address: str) -> Iterator[Any]:
    client = _connect(address)
    logger = logging.getLogger("distributed.client")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # what it logs of a scheduler that is gone, our refusal says
    try:
        yield client
    finally:
        client.close(timeout=_LOOK)
        logger.setLevel(level)


def _connect(address: str) -> Any:
    check_scheduler(address)
    from distributed import Client

    try:
        return Client(address, timeout=_PATIENCE)
    except Exception as error:
        raise InputError(f"no Dask scheduler answers at {address!r}: {_reason(error)}") from error


def check_scheduler(address: str) -> None:
    """Refuse an address where no scheduler answers; Dask itself waits for minutes if nothing does."""
    require("--cluster", "dask", "distributed")
    if not address.strip():
        raise UsageError("--cluster is empty; expected the address of a scheduler, tcp://HOST:PORT")
    if address.startswith("inproc://"):  # of this very process
        return
    try:
        with ThreadPoolExecutor(1) as threads:  # a notebook has an event loop of its own in this one
            kind = threads.submit(asyncio.run, _ask(address)).result()
    except TimeoutError:
        if _is_taken(address):
            raise InputError(
                f"what listens at {address!r} is not a Dask scheduler: it gave no answer in "
                f"{_PATIENCE:g} seconds; expected the address that 'dask scheduler' prints"
            ) from None
        raise InputError(
            f"no Dask scheduler answers at {address!r} in {_PATIENCE:g} seconds; start one with "
            "'dask scheduler', and give the address that it prints"
        ) from None
    except (ValueError, TypeError) as error:  # of an address that cannot be one
        raise UsageError(
            f"--cluster {address!r} is not the address of a Dask scheduler: {_reason(error)}; expected "
            "tcp://HOST:PORT"
        ) from error
    except Exception as error:  # what was sent back makes no sense: anything may come of it
        raise InputError(f"no Dask scheduler answers at {address!r}: {_reason(error)}") from error
    if kind != "Scheduler":
        raise InputError(f"a Dask {kind} answers at {address!r}; expected the scheduler's address")


async def _ask(address: str) -> str:
    """Return what kind of server listens at an address."""
    from distributed import rpc
    from distributed.security import Security

    async def ask() -> str:
        arguments = Security().get_connection_args("client")
        async with rpc(address, connection_args=arguments) as server:
            return str((await server.identity()).get("type"))

    return await asyncio.wait_for(ask(), _PATIENCE)


def _is_taken(address: str) -> bool:
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
    """Looks at the cluster while nothing comes of it, and gives up where nothing can come any more."""

    def __init__(self, client: Any, address: str) -> None:
        self._client, self._address = client, address
        self._lost = 0.0  # when the scheduler answered the last time
        self._alone = 0.0  # when it had a worker the last time

    def wait(self, finished: "queue.SimpleQueue[Any]") -> Any:
        """Return the next future that is done."""
        self._lost = self._alone = time.monotonic()
        while True:
            try:
                return finished.get(timeout=_LOOK)
            except queue.Empty:
                self._look()

    def answer(self, future: Any) -> list[bytes]:
        """Return what came of a future that is done; it may have to be done again to be fetched."""
        self._lost = self._alone = time.monotonic()
        while True:
            try:
                answer: list[bytes] = future.result(timeout=_LOOK)
            except InputError:
                raise
            except CancelledError:
                raise InputError(self._gone()) from None
            except Exception as error:
                if not isinstance(error, TimeoutError) or future.status == "error":
                    raise InputError(
                        f"the Dask cluster at {self._address!r} could not score a batch: "
                        f"{_reason(error)}; {_KEPT}"
                    ) from error
                self._look()
            else:
                return answer

    def _look(self) -> None:
        workers = None  # unless the scheduler answers
        if self._client.status == "running":
            # whatever goes wrong here, it is no answer
            with contextlib.suppress(Exception):
                workers = self._client.sync(self._client.scheduler.ncores, callback_timeout=_LOOK)
        now = time.monotonic()
        if workers is not None:
            self._lost = now
        if workers or workers is None:
            self._alone = now
        if now - self._lost >= _PATIENCE:
            raise InputError(self._gone())
        if now - self._alone >= _NO_WORKERS:
            raise InputError(
                f"the Dask scheduler at {self._address!r} has lost all its workers; {_KEPT}"
            )

    def _gone(self) -> str:
        return f"the Dask scheduler at {self._address!r} does not answer any more; {_KEPT}"


def _reason(error: Exception) -> str:
    text = str(error).strip().partition("\n")[0]
    return printable(f"{type(error).__name__}: {text}" if text else type(error).__name__)


# what follows is called on the workers


def score_on_worker(job: dict[str, Any], groups: list[Pairs], stamps: list[Stamps]) -> list[bytes]:
    """Return the rows of some batches."""
    wanted = Job.from_json(job)
    for pairs, of_pairs in zip(groups, stamps, strict=True):
        _check_files(wanted, pairs, of_pairs)
    try:
        return [score_batch(wanted, pairs).to_bytes() for pairs in groups]
    except InputError as error:
        raise InputError(f"{error} (on the Dask worker {socket.gethostname()!r})") from None


def _check_files(job: Job, pairs: Pairs, stamps: Stamps) -> None:
    """Refuse files that are not those which the client listed, as far as their size tells."""
    for (_, *paths), of_pair in zip(pairs, stamps, strict=True):
        for root, path, stamp in zip((job.pred_root, job.gt_root), paths, of_pair, strict=True):
            if is_url(root):
                continue
            file = Path(root, path)
            try:
                size = os.stat(file).st_size  # noqa: PTH116  (in a hot loop)
            except OSError as error:
                raise InputError(_unseen(file, error.strerror or str(error))) from None
            if str(size) != stamp.partition("-")[0]:
                here, there = f"{size} bytes", stamp.partition("-")[0]
                raise InputError(_unseen(file, f"another file, of {here} instead of {there}"))


def _unseen(file: Path, what: str) -> str:
    return (
        f"the Dask worker {socket.gethostname()!r} does not see the file {str(file)!r} ({what}); "
        "workers read files themselves: give folders that all of them share, or URLs"
    )

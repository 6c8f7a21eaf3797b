"""A Dask scheduler with workers on this machine, and folders behind a URL."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sisod.common.run_folder import partial_folder


@contextmanager
def local_cluster(n_workers: int, *, threads: int = 1, processes: bool = True) -> Iterator[Any]:
    """Start a cluster; stop it at the end.

    Its dashboard takes any free port. By default it would be 8787, and Dask warns if another test, at
    work at the same time, has that one; a warning is an error here.
    """
    distributed = pytest.importorskip("distributed", reason="extra cluster is not installed")
    with distributed.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=threads,
        processes=processes,
        dashboard_address=":0",
        silence_logs=50,
    ) as started:
        yield started


@contextmanager
def killing_a_worker(cluster: Any, out: Path) -> Iterator[None]:
    """Kill one of the workers once the first task of the run into `out` is stored."""
    victim = next(iter(cluster.workers.values())).pid

    def wait_and_kill() -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not list(partial_folder(out).glob(".parts/*.rows")):
            time.sleep(0.002)
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=wait_and_kill)
    killer.start()
    yield
    killer.join()
    assert not partial_folder(out).exists()


@contextmanager
def in_memory(folder: Path, name: str) -> Iterator[str]:
    """Copy a folder into memory and yield its URL; `name` must be that of no other copy."""
    fsspec = pytest.importorskip("fsspec", reason="extra cluster is not installed")
    memory = fsspec.filesystem("memory")
    memory.put(f"{folder}/", f"/{name}/", recursive=True)
    try:
        yield f"memory://{name}"
    finally:
        memory.rm(f"/{name}", recursive=True)

"""A Dask scheduler with workers on this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


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

"""Folders behind a URL: fsspec's file system in memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


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

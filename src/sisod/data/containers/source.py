"""Bytes of a container file, local or behind a URL."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, NamedTuple

from sisod.common.folders import is_url
from sisod.data.urls import file_system, stamp_of, url_errors


class FileState(NamedTuple):
    """Size of a file, and a stamp that differs once it changed."""

    size: int
    stamp: str


def file_state(file: str) -> FileState:
    """Return size and stamp of a file."""
    if is_url(file):
        with url_errors(file):
            system, path = file_system(file)
            info = system.info(path)
        return FileState(int(info["size"]), stamp_of(info))
    state = os.stat(file)  # noqa: PTH116  (in a hot loop)
    return FileState(state.st_size, f"{state.st_size}-{state.st_mtime_ns}")


@contextmanager
def open_file(file: str) -> Iterator[IO[bytes]]:
    """Open a file for reading at any position."""
    if is_url(file):
        with url_errors(file):
            system, path = file_system(file)
            with system.open(path, "rb") as stream:
                yield stream
        return
    with open(file, "rb", buffering=0) as local:  # noqa: PTH123
        yield local


def read_range(file: str, begin: int, end: int) -> bytes:
    """Return the bytes from `begin` to before `end`; fewer if the file ends earlier."""
    if is_url(file):
        with url_errors(file):
            system, path = file_system(file)
            content: bytes = system.cat_file(path, start=begin, end=end)
        return content
    with open(file, "rb", buffering=0) as local:  # noqa: PTH123
        local.seek(begin)
        return local.read(end - begin)


def read_all(file: str) -> bytes:
    """Return the whole content of a file behind a URL."""
    with url_errors(file):
        system, path = file_system(file)
        content: bytes = system.cat_file(path)
    return content

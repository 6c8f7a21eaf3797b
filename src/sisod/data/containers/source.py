"""Bytes of a container file, local or behind a URL."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
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


_open_descriptor = os.open  # faster than a file object, and it is opened for every member
_READING = os.O_RDONLY | getattr(os, "O_BINARY", 0)
ReadAt = Callable[
    [int, int], bytes
]  # takes a position and a count; fewer bytes if the file ends earlier


@contextmanager
def open_file(file: str) -> Iterator[ReadAt]:
    """Open a file for reading at any position."""
    if is_url(file):
        with url_errors(file):
            system, path = file_system(file)
            with system.open(path, "rb") as stream:
                yield lambda position, count: _seek_and_read(stream, position, count)
        return
    number = _open_descriptor(file, _READING)
    try:
        yield partial(_read_at, number)
    finally:
        os.close(number)


def read_range(file: str, begin: int, end: int) -> bytes:
    """Return the bytes from `begin` to before `end`; fewer if the file ends earlier."""
    if is_url(file):
        with url_errors(file):
            system, path = file_system(file)
            content: bytes = system.cat_file(path, start=begin, end=end)
        return content
    number = _open_descriptor(file, _READING)
    try:
        return _read_at(number, begin, end - begin)
    finally:
        os.close(number)


def _read_at(number: int, position: int, count: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(number, count, position)
    os.lseek(number, position, os.SEEK_SET)  # on Windows
    return os.read(number, count)


def _seek_and_read(stream: IO[bytes], position: int, count: int) -> bytes:
    stream.seek(position)
    return stream.read(count)


def read_all(file: str) -> bytes:
    """Return the whole content of a file behind a URL."""
    with url_errors(file):
        system, path = file_system(file)
        content: bytes = system.cat_file(path)
    return content

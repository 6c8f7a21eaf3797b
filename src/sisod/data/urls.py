"""Files by their path or URL: state, content, ranges of bytes. URLs are read through fsspec."""

import errno
import io
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from sisod.common.exceptions import InputError, printable, require
from sisod.common.output import is_url

MOST_CONTENT = 1 << 31  # bytes of a file that is read: twice what the largest image takes unpacked


class FileState(NamedTuple):
    """Size of a file, and a stamp that differs once it changed."""

    size: int
    stamp: str


def file_state(file: str) -> FileState:
    """Return size and stamp of a file."""
    with url_errors(file):
        if is_url(file):
            system, path = file_system(file)
            info = system.info(path)
            return FileState(int(info["size"]), stamp_of(info))
        state = os.stat(file)  # noqa: PTH116  (in a hot loop)
        return FileState(state.st_size, f"{state.st_size}-{state.st_mtime_ns}")


@contextmanager
def open_file(file: str) -> Iterator[IO[bytes]]:
    """Open a file for reading at any position."""
    with url_errors(file):
        system, path = file_system(file) if is_url(file) else (io, file)
        with system.open(path, "rb") as stream:
            yield stream


def read_range(file: str, begin: int, end: int) -> bytes:
    """Return the bytes from `begin` to before `end`."""
    if is_url(file):
        with url_errors(file):
            system, path = file_system(file)
            content: bytes = system.cat_file(path, start=begin, end=end)
            return content
    with open_file(file) as stream:
        stream.seek(begin)
        return stream.read(end - begin)


def read_file(root: str | Path, path: str = "") -> bytes:
    """Return the content of a file, which may be given as a path below a root.

    Raises:
        InputError: it cannot be read, or is larger than any image.
    """
    name = f"{str(root).rstrip('/')}/{path}" if path else str(root)
    with url_errors(name):
        if is_url(root):
            system, base = file_system(str(root))
            content: bytes = system.cat_file(f"{base}/{path}" if path else base)
            return content
        place = os.path.join(root, path) if path else root  # noqa: PTH118  (in a hot loop)
        with open(place, "rb", buffering=0) as file:  # noqa: PTH123
            if os.fstat(file.fileno()).st_size > MOST_CONTENT:
                raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
            return file.read()


def file_system(root: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path there."""
    require(f"{root!r} is a URL, which", "fsspec")
    import fsspec

    with url_errors(root):  # unknown protocol, or its package is missing
        system, base = fsspec.core.url_to_fs(root)
    return system, str(base).rstrip("/")


def stamp_of(info: Mapping[str, Any]) -> str:
    """Return a stamp that differs once a file behind a URL changed, from what its file system tells."""
    changed = next((info[key] for key in ("ETag", "etag", "mtime", "LastModified") if key in info), "")
    return f"{info.get('size')}-{changed}"


@contextmanager
def url_errors(name: str) -> Iterator[None]:
    """Say in one sentence which file or URL failed; packages behind fsspec raise all kinds of errors."""
    try:
        yield
    except Exception as error:
        if isinstance(error, InputError) or not (isinstance(error, OSError) or is_url(name)):
            raise
        reason = str(error) if is_url(name) else getattr(error, "strerror", None) or str(error)
        if isinstance(error, FileNotFoundError) and error.strerror is None:
            reason = "it does not exist"
        reason = printable(reason.strip().partition("\n")[0] or type(error).__name__)
        raise InputError(f"{printable(name)!r} cannot be read: {reason}") from error

"""Files below a root, in a container or behind a URL (through fsspec): names, state and content."""

import errno
import io
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

from sisod.common.exceptions import InputError, printable, require
from sisod.common.output import is_url

# of two photographs of one image the first of these is taken; JPEG first, since some data sets keep the
# masks, as PNG, beside their photographs
EXTENSIONS = (".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp", ".npy", ".npz")
_OF_WINDOWS = ("Thumbs.db", "desktop.ini")
MOST_CONTENT = 1 << 31  # bytes of a file that is read: twice what the largest image takes unpacked


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file below a root: its relative path, with slashes, and a stamp that differs once it changed.

    Inside a container, `path` also says where the content is, and `member` is the file's name there.
    `is_image` is set if the container declares the content an image, whatever the name.
    """

    path: str
    stamp: str
    member: str = ""
    is_image: bool = False

    @property
    def name(self) -> str:
        """The path that names the image."""
        return self.member or self.path


@dataclass(frozen=True, slots=True)
class Shard:
    """One file of a container.

    Attributes:
        file: its path or URL.
        prefix: its path below the root and a slash, empty if it is the root.
        selection: a column of Parquet or an extension in a tar, empty for the default.
        stamp: differs once the file changed.
    """

    file: str
    prefix: str
    selection: str
    stamp: str


class Place(NamedTuple):
    """Where the content of a member is: `place` is a range of bytes in a tar, or a row of Parquet."""

    file: str
    selection: str
    place: str


def has_image_extension(path: str) -> bool:
    """Tell whether a path ends in the extension of an image file."""
    return path.lower().endswith(EXTENSIONS)


def is_hidden(path: str) -> bool:
    """Tell whether a file is none of the user's images: hidden, or added by an operating system.

    A file is hidden if its name, or that of a folder on its path, begins with a dot. In an archive, `..`
    is not hidden but leads elsewhere.

    Example:
        >>> [is_hidden(path) for path in ("night/.im1.png", ".cache/im1.png", "night/im1.png")]
        [True, True, False]
    """
    names = path.split("/")
    dotted = (name.startswith(".") and name not in (".", "..") for name in names)
    return any(dotted) or "__MACOSX" in names or names[-1] in _OF_WINDOWS


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
    """Return the file system of a URL, and the path there; to be called inside `url_errors`."""
    require(f"{root!r} is a URL, which", "fsspec")
    import fsspec

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

"""Where files are: a local folder, or any store that fsspec knows, by URL."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sisod.errors import InputError


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file below a root: its path relative to it, with slashes, and what tells that it changed."""

    path: str
    stamp: str


def is_url(root: str | Path) -> bool:
    """Say whether a root is a URL rather than a local folder."""
    return "://" in str(root)


def list_files(root: str | Path) -> list[StoredFile]:
    """Return every file below a root, links followed, sorted by path."""
    check_utf8(str(root), "the folder name")
    found = list(_list_url(str(root)) if is_url(root) else _list_folder(Path(root)))
    for file in found:
        check_utf8(file.path, f"{root}: the file name")
    return sorted(found, key=lambda file: file.path)


def check_utf8(name: str, what: str) -> None:
    """Refuse names that tables and JSON cannot hold."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"{what} {name!r} is not valid UTF-8; rename the file") from None


def read_bytes(root: str | Path, path: str) -> bytes:
    """Return the content of one file below a root."""
    if is_url(root):
        system, base = _file_system(str(root))
        content: bytes = system.cat_file(f"{base}/{path}")
        return content
    with open(os.path.join(root, path), "rb", buffering=0) as file:  # noqa: PTH118, PTH123  (in a hot loop)
        return file.read()


def _list_folder(root: Path) -> Iterator[StoredFile]:
    if not root.exists():
        raise InputError(f"{str(root)!r} does not exist; expected a folder of maps")
    if not root.is_dir():
        raise InputError(f"{str(root)!r} is a file; expected a folder of maps")
    waiting: list[tuple[Path, str, frozenset[tuple[int, int]]]] = [(root, "", frozenset())]
    while waiting:
        folder, prefix, above = waiting.pop()
        try:
            state = folder.stat()
            if (state.st_dev, state.st_ino) in above:  # a link to a folder above would never end
                continue
            with os.scandir(folder) as entries:
                inside = above | {(state.st_dev, state.st_ino)}
                for entry in entries:
                    kind, stamp = _kind(entry)
                    if kind == "folder":
                        waiting.append((Path(entry.path), f"{prefix}{entry.name}/", inside))
                    elif kind == "file":
                        yield StoredFile(prefix + entry.name, stamp)
        except OSError as error:
            raise InputError(f"{str(folder)!r} cannot be read: {error.strerror}") from error


def _kind(entry: "os.DirEntry[str]") -> tuple[str, str]:
    """Tell folders from files; links that lead nowhere and pipes are neither."""
    try:
        if entry.is_dir():
            return "folder", ""
        if entry.is_file():
            info = entry.stat()
            return "file", f"{info.st_size}-{info.st_mtime_ns}"
    except OSError:  # a link to itself
        pass
    return "other", ""


def _list_url(root: str) -> Iterator[StoredFile]:
    system, base = _file_system(root)
    if not system.isdir(base):
        raise InputError(f"{root!r} does not exist or is not a folder; expected a folder of maps")
    for path, info in system.find(base, detail=True).items():
        changed = next(
            (info[key] for key in ("ETag", "etag", "mtime", "LastModified") if key in info), ""
        )
        yield StoredFile(path[len(base) :].lstrip("/"), f"{info['size']}-{changed}")


def _file_system(root: str) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError:
        raise InputError(
            f"{root!r} is a URL, which needs fsspec; install it with: pip install 'sisod[cluster]'"
        ) from None
    system, base = fsspec.core.url_to_fs(root)
    return system, str(base).rstrip("/")

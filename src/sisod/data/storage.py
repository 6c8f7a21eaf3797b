"""Listing and reading of files below a folder, a URL of fsspec, or a container at either."""

import errno
import os
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sisod.common.arguments import check_utf8, shown
from sisod.common.errors import InputError, UsageError
from sisod.common.folders import is_url
from sisod.common.output import stays_inside
from sisod.data.containers import (
    Shard,
    find_member,
    is_container,
    is_shard,
    list_members,
    list_selections,
    open_shard,
    read_member,
    split_root,
)
from sisod.data.containers.coco import is_coco, list_images
from sisod.data.containers.source import file_state
from sisod.data.stored_file import MOST_CONTENT as MOST_CONTENT
from sisod.data.stored_file import StoredFile as StoredFile
from sisod.data.stored_file import has_image_extension, is_system_file
from sisod.data.urls import file_system, stamp_of, url_errors

_LOCAL_PATHS = {"file", "local"}  # protocols that take a relative path below the working folder
_ON_THIS_MACHINE = _LOCAL_PATHS | {"memory", "zip", "tar", "dir"}


def list_files(root: str | Path) -> list[StoredFile]:
    """Return every file below a root, sorted by path; those of a container by their names inside.

    Files that an operating system adds, such as `._im1.png` of macOS, are left out.
    Links in a folder are followed. A folder that several links lead to is listed below each of them. Two
    kinds of links are not followed: those to a folder that contains the link, and those that were
    already followed and are reached again through another link, which would list the same files 2^n
    times.
    """
    if is_coco(root):
        return list_images(root)
    base, selection, files = _list_root(str(root))
    shards = _shards(base, selection, files)
    if not shards and selection and files:
        raise InputError(
            f"{str(root)!r} selects #{selection} of a folder without shards; expected Parquet or tar "
            f"files in it; for its own files, leave out #{selection}"
        )
    if not shards:
        return files
    members = [member for shard in shards for member in list_members(shard)]
    if selection and not members and (known := list_selections(shards[0])):
        raise InputError(
            f"{str(root)!r} has no image files that end in .{selection}; expected one of "
            f"{', '.join(known)} behind the #"
        )
    return sorted(members, key=lambda member: (member.name, member.path))


def list_shards(root: str | Path) -> list[Shard]:
    """Return the shards of a container in the order of their paths; none for a folder of images.

    The root is one file (`masks.tar`, `train.parquet#mask`), or a folder that holds such files and no
    image files.
    """
    return _shards(*_list_root(str(root)))


def _list_root(root: str) -> tuple[str, str, list[StoredFile]]:
    """Return a root without its selection, the selection, and the files below, sorted by path.

    A root that is itself a shard is its only file, with an empty path.
    """
    if not root:  # of an unset variable of a shell; the system would take the current folder
        raise UsageError("the name of a folder is empty; expected a folder, a container or a URL")
    check_utf8(root, "the folder name")
    base, selection = split_root(root)
    if is_shard(base) and _is_file(base):
        return base, selection, [StoredFile("", file_state(base).stamp)]
    files = _list_url(base) if is_url(base) else _list_folder(Path(base))
    of_user = (file for file in files if not is_system_file(file.path))
    return base, selection, sorted(of_user, key=lambda file: file.path)


def _is_file(path: str) -> bool:
    if not is_url(path):
        return os.path.isfile(path)  # noqa: PTH113
    with url_errors(path):
        system, base = file_system(path)
        return not system.isdir(base)


def _shards(base: str, selection: str, files: list[StoredFile]) -> list[Shard]:
    if any(has_image_extension(file.path) for file in files):
        return []  # archives beside images are not read
    return [
        open_shard(f"{base.rstrip('/')}/{file.path}", f"{file.path}/", selection, stamp=file.stamp)
        if file.path
        else open_shard(base, "", selection, stamp=file.stamp)
        for file in files
        if is_shard(file.path or base)
    ]


def is_local_root(root: str | Path) -> bool:
    """Tell whether a root is an existing folder or container of this machine."""
    base = split_root(str(root))[0]
    return os.path.isdir(base) or (not is_url(base) and is_container(base))  # noqa: PTH112


def is_below(path: Path, root: str | Path) -> bool:
    """Tell whether a path of this machine is a folder of files, or below it."""
    base = split_root(str(root))[0]
    return not is_url(base) and path.resolve().is_relative_to(Path(base).resolve())


def resolved_root(root: str | Path) -> str:
    """Return a root that means the same in every working folder, of this process and of others.

    Example:
        >>> resolved_root("s3://bucket/maps"), resolved_root("maps") == str(Path.cwd() / "maps")
        ('s3://bucket/maps', True)
    """
    if not is_url(root):
        return str(Path(root).resolve())
    return "::".join(_resolved_link(link) for link in str(root).split("::"))


def _resolved_link(link: str) -> str:
    """Resolve one link of a chain of URLs: a URL, the name of a protocol alone, or a local path."""
    protocol, separator, path = link.rpartition("://")
    if separator and protocol in _LOCAL_PATHS:
        return f"{protocol}://{Path(path).resolve()}"
    if separator or re.fullmatch(
        "[a-z]*", link
    ):  # fsspec distinguishes a protocol name from a path like this
        return link
    return str(Path(link).resolve())


def has_folder(root: str | Path, name: str) -> bool:
    """Tell whether there is a folder of this name directly below a root."""
    if not stays_inside(name):
        return False
    if not is_url(root):
        return os.path.isdir(os.path.join(root, name))  # noqa: PTH112, PTH118
    with url_errors(str(root)):
        system, base = file_system(str(root))
        return bool(system.isdir(f"{base}/{name}"))


def is_remote(root: str | Path) -> bool:
    """Tell from its URL whether reading below a root accesses other machines.

    Example:
        >>> is_remote("zip://maps::edn.zip"), is_remote("http://host/maps")
        (False, True)
    """
    if not is_url(root):
        return False
    links = str(root).split("::")
    protocols = [link.partition("://")[0] for link in links if "://" in link]
    return not set(protocols) <= _ON_THIS_MACHINE


def read_bytes(root: str | Path, path: str) -> bytes:
    """Return the content of one file below a root."""
    place = find_member(f"{root}/{path}")
    if place is not None:
        return read_member(place)
    if is_url(root):
        with url_errors(f"{str(root).rstrip('/')}/{path}"):
            system, base = file_system(str(root))
            content: bytes = system.cat_file(f"{base}/{path}")
        return content
    with open(os.path.join(root, path), "rb", buffering=0) as file:  # noqa: PTH118, PTH123  (in a hot loop)
        if os.fstat(file.fileno()).st_size > MOST_CONTENT:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        return file.read()


def _list_folder(root: Path) -> Iterator[StoredFile]:
    if not os.path.isdir(root):  # noqa: PTH112  (pathlib fails for names that are too long)
        name = shown(str(root), most=400)
        if os.path.exists(root):  # noqa: PTH110
            raise InputError(f"{name} is a file; expected a folder of images, a .parquet or a .tar file")
        raise InputError(f"{name} does not exist; expected a folder of images")
    followed: set[tuple[_Identity, str]] = set()
    links: deque[_Link] = deque([_Link((0, 0), "", _Folder(root, "", frozenset()))])
    while links:  # folders reached through the fewest links first
        folder_of_link, name, start = links.popleft()
        if (folder_of_link, name) in followed:
            continue
        followed.add((folder_of_link, name))
        next_links: list[_Link] = []
        waiting = [start]
        while waiting:
            folder = waiting.pop()
            try:
                itself = _identity(folder.path.stat())
                if itself in folder.above:  # a link to a folder above would never end
                    continue
                inside = folder.above | {itself}
                with os.scandir(folder.path) as entries:
                    for entry in entries:
                        kind, stamp = _kind(entry)
                        if kind == "file":
                            yield StoredFile(folder.prefix + entry.name, stamp)
                        elif kind == "folder":
                            below = _Folder(Path(entry.path), f"{folder.prefix}{entry.name}/", inside)
                            if not entry.is_symlink():
                                waiting.append(below)
                            elif _identity(below.path.stat()) not in inside:
                                next_links.append(_Link(itself, entry.name, below))
            except OSError as error:
                raise InputError(f"{str(folder.path)!r} cannot be read: {error.strerror}") from error
        links.extend(
            sorted(next_links, key=lambda link: link.folder.prefix)
        )  # independent of the system's order


_Identity = tuple[int, int]  # device and inode of a folder, the same for all paths to it


class _Folder(NamedTuple):
    """A folder to be listed, the prefix of its files' paths, and the folders above it."""

    path: Path
    prefix: str
    above: frozenset[_Identity]


class _Link(NamedTuple):
    """A link to a folder: the folder that contains it, its name, and its target."""

    inside: _Identity
    name: str
    folder: _Folder


def _identity(state: os.stat_result) -> _Identity:
    return state.st_dev, state.st_ino


def _kind(entry: "os.DirEntry[str]") -> tuple[str, str]:
    """Return "file" with its stamp, "folder" or "other", such as a broken link or a pipe."""
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
    with url_errors(root):
        system, base = file_system(root)
        files = system.find(base, detail=True) if system.isdir(base) else None
    if files is None:
        raise InputError(f"{root!r} does not exist or is not a folder; expected a folder of images")
    for path, info in files.items():
        yield StoredFile(path[len(base) :].lstrip("/"), stamp_of(info))

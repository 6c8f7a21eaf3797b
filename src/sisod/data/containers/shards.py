"""One interface to all formats of containers: the members of a shard, and their content.

Every format is a module beside this one. A member is found again by its path alone, in any process:
`masks.tar/bytes 512-9000/im1.png` says which bytes of the file, `train.parquet#mask/row 17/im1.png`
which row. The path is also what error messages show.
"""

import errno
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from sisod.common.errors import InputError
from sisod.common.folders import is_url
from sisod.data.containers import parquet, tar
from sisod.data.containers.source import file_state, open_file, read_range
from sisod.data.stored_file import MOST_CONTENT, StoredFile, has_image_extension, is_system_file

_EXTENSIONS = (".tar", ".parquet")
_COMPRESSED = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")
_MEMBER = re.compile(
    r"(?P<file>.+?\.(?i:tar|parquet))(?P<selection>#[^/\\]*)?[/\\]"
    r"(?:bytes (?P<begin>\d{1,18})-(?P<end>\d{1,18})|row (?P<row>\d{1,18}))[/\\]",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Shard:
    """One file of a container.

    `file` is its path or URL; `prefix` its path below the root and a slash, empty if it is the root;
    `selection` a column of Parquet or an extension in a tar, empty for the default; `stamp` differs once
    the file changed.
    """

    file: str
    prefix: str
    selection: str
    stamp: str


class _Place(NamedTuple):
    """Where the content of a member is: a range of bytes in a tar, or a row of Parquet."""

    file: str
    selection: str
    begin: int
    end: int
    row: int


def is_shard(path: str) -> bool:
    """Tell from its name whether a file is a shard of a container.

    Example:
        >>> is_shard("data/train-00000-of-00002.parquet"), is_shard("masks/im1.png")
        (True, False)
    """
    return path.lower().endswith(_EXTENSIONS + _COMPRESSED)


def split_root(root: str) -> tuple[str, str]:
    """Split a root into the path of a file or folder and the selection behind `#`.

    A name with `#` that exists is taken as it is.

    Example:
        >>> split_root("s3://bucket/train.parquet#mask"), split_root("masks.tar")
        (('s3://bucket/train.parquet', 'mask'), ('masks.tar', ''))
    """
    base, mark, selection = root.rpartition("#")
    if not mark or "/" in selection or "::" in root:
        return root, ""
    if not is_url(root) and (os.path.lexists(root) or not os.path.exists(base)):  # noqa: PTH110
        return root, ""
    return base, selection


def is_container(root: str | Path) -> bool:
    """Tell whether a root is one container file, with or without a selection.

    A URL is told by its name.
    """
    file = split_root(str(root))[0]
    return is_shard(file) and (is_url(file) or os.path.isfile(file))  # noqa: PTH113


def plain_root(root: str | Path) -> str:
    """Return a root without the selection, and without the extension if it is a container file.

    Example:
        >>> plain_root("s3://bucket/MSOD.parquet#mask"), plain_root("data/mask")
        ('s3://bucket/MSOD', 'data/mask')
    """
    file = split_root(str(root))[0]
    return file.rpartition(".")[0] if is_container(file) else file


def list_selections(shard: Shard) -> list[str]:
    """Return what can be selected of a shard: its columns of images, or the extensions of its images."""
    if not _is_tar(shard):
        return parquet.image_columns(shard.file)
    names = (member.name.rpartition("/")[2] for member in _user_members(shard.file))
    extensions = {name.partition(".")[2] for name in names if has_image_extension(name)}
    return sorted(extensions)


def open_shard(file: str, prefix: str = "", selection: str = "", *, stamp: str | None = None) -> Shard:
    """Return a file as a shard; refuse one that cannot be read at any position."""
    if file.lower().endswith(_COMPRESSED):
        raise InputError(
            f"{file!r} is a compressed archive, which can only be read from its beginning; decompress "
            "it to a .tar file first"
        )
    return Shard(file, prefix, selection, file_state(file).stamp if stamp is None else stamp)


def list_members(shard: Shard) -> Iterator[StoredFile]:
    """Yield the members of a shard in stored order."""
    if _is_tar(shard):
        for _, _, member in _tar_members(shard):
            yield member
    else:
        for row, name in enumerate(parquet.parquet_names(shard.file, shard.selection)):
            yield _row(shard, row, name)


def read_shard(shard: Shard) -> Iterator[tuple[StoredFile, bytes]]:
    """Yield the members of a shard in stored order with their content, in one pass over the file."""
    if _is_tar(shard):
        with open_file(shard.file) as read_at:
            for begin, end, member in _tar_members(shard):
                yield member, _whole(read_at(begin, end - begin), end - begin)
    else:
        for row, (name, content) in enumerate(parquet.parquet_rows(shard.file, shard.selection)):
            yield _row(shard, row, name), content


def find_member(path: str) -> _Place | None:
    """Return where a member is; None if the path does not lead into a container."""
    if "bytes " not in path and "row " not in path:  # quick: every file of a folder is asked
        return None
    match = _MEMBER.match(path)
    if match is None:
        return None
    file, selection = _resolve(match["file"])
    begin, end, row = (int(match[key] or 0) for key in ("begin", "end", "row"))
    return _Place(file, selection or (match["selection"] or "#")[1:], begin, end, row)


def works_in_fork(path: str | Path) -> bool:
    """Tell whether a forked process can read a file; not Parquet: it lacks the threads of polars."""
    place = find_member(str(path))
    return place is None or place.file.lower().endswith(".tar")


def read_member(place: _Place) -> bytes:
    """Return the content of a member."""
    if not place.file.lower().endswith(".tar"):
        return parquet.parquet_bytes(place.file, place.selection, place.row)
    size = place.end - place.begin
    if size > MOST_CONTENT:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return _whole(read_range(place.file, place.begin, place.end), size)


def _whole(content: bytes, size: int) -> bytes:
    if len(content) != size:
        raise OSError(errno.EIO, "the archive became shorter while it was read")
    return content


def _is_tar(shard: Shard) -> bool:
    return shard.file.lower().endswith(".tar")


def _tar_members(shard: Shard) -> Iterator[tuple[int, int, StoredFile]]:
    for name, begin, end in _user_members(shard.file):
        path = f"{shard.prefix}bytes {begin}-{end}/{name}"
        if not shard.selection:
            yield begin, end, StoredFile(path, shard.stamp, name)
            continue
        folder, slash, last = name.rpartition("/")
        key, _, extension = last.partition(".")  # as WebDataset splits names
        if key and extension == shard.selection:
            yield begin, end, StoredFile(path, shard.stamp, f"{folder}{slash}{key}", is_image=True)


def _user_members(file: str) -> Iterator[tar.TarMember]:
    """Yield the members of an archive without the files that an operating system adds."""
    return (member for member in tar.tar_members(file) if not is_system_file(member.name))


def _row(shard: Shard, row: int, name: str) -> StoredFile:
    return StoredFile(f"{shard.prefix}row {row}/{name}", shard.stamp, name, is_image=True)


@lru_cache(maxsize=1024)
def _resolve(file: str) -> tuple[str, str]:
    """Split a shard's path if the folder above it has a selection, like `data#mask/0.parquet`."""
    if "#" not in file or (not is_url(file) and os.path.exists(file)):  # noqa: PTH110
        return file, ""
    for mark in reversed([index for index, letter in enumerate(file) if letter == "#"]):
        selection, slash, below = file[mark + 1 :].partition("/")
        plain = f"{file[:mark]}{slash}{below}"
        if is_url(plain) or os.path.exists(plain):  # noqa: PTH110
            return plain, selection
    return file, ""

"""One interface to all formats of containers: the members of a shard, and their content.

Every format is a module with four functions: `selections` of a file, `members` and `contents` of a
shard, and `read`. A member is found again by its path alone, in any process: `masks.tar/bytes
512-9000/im1.png` says which bytes of the file, `train.parquet#mask/row 17/im1.png` which row. Error
messages show this path.
"""

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from sisod.common.exceptions import InputError
from sisod.common.output import is_url
from sisod.data.files import Place, Shard, StoredFile, file_state

_EXTENSIONS = (".tar", ".parquet")
_COMPRESSED = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")
_MEMBER = re.compile(
    r"(?P<file>.+?\.(?i:tar|parquet))(?P<selection>#[^/\\]*)?[/\\]"
    r"(?P<place>bytes \d{1,18}-\d{1,18}|row \d{1,18})[/\\]",
    re.DOTALL,
)


def is_shard(path: str) -> bool:
    """Tell from its name whether a file is a shard of a container.

    Example:
        >>> is_shard("data/train-00000-of-00002.parquet"), is_shard("masks/im1.png")
        (True, False)
    """
    return path.lower().endswith(_EXTENSIONS + _COMPRESSED)


def is_coco(root: str | Path) -> bool:
    """Tell whether a root is a COCO file.

    Example:
        >>> is_coco("annotations/instances_val2017.json"), is_coco("masks")
        (True, False)
    """
    return str(root).lower().endswith(".json") and (is_url(root) or not os.path.isdir(root))  # noqa: PTH112


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
    """Tell whether a root is one container file, with or without a selection; a URL by its name.

    Example:
        >>> is_container("s3://bucket/train.parquet#mask"), is_container("s3://bucket/masks")
        (True, False)
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


def open_shard(file: str, prefix: str = "", selection: str = "", *, stamp: str | None = None) -> Shard:
    """Return a file as a shard.

    Raises:
        InputError: the file is compressed, so that it cannot be read at any position.
    """
    if file.lower().endswith(_COMPRESSED):
        raise InputError(
            f"{file!r} is a compressed archive, which can only be read from its beginning; decompress "
            "it to a .tar file first"
        )
    return Shard(file, prefix, selection, file_state(file).stamp if stamp is None else stamp)


def list_selections(shard: Shard) -> list[str]:
    """Return what can be selected of a shard: its columns of images, or the extensions of its images."""
    names: list[str] = _format(shard.file).selections(shard.file)
    return names


def list_members(shard: Shard) -> Iterator[StoredFile]:
    """Yield the members of a shard in stored order."""
    yield from _format(shard.file).members(shard)


def read_shard(shard: Shard) -> Iterator[tuple[StoredFile, bytes]]:
    """Yield the members of a shard in stored order with their content, in one pass over the file."""
    yield from _format(shard.file).contents(shard)


def find_member(path: str) -> Place | None:
    """Return where a member is; None if the path does not lead into a container."""
    if "bytes " not in path and "row " not in path:  # quick: every file of a folder is looked at
        return None
    match = _MEMBER.match(path)
    if match is None or match["place"].startswith("bytes") != match["file"].lower().endswith(".tar"):
        return None
    file, selection = _resolve(match["file"])
    return Place(file, selection or (match["selection"] or "#")[1:], match["place"])


def read_member(member: Place) -> bytes:
    """Return the content of a member."""
    content: bytes = _format(member.file).read(member)
    return content


def works_in_fork(path: str | Path) -> bool:
    """Tell whether a forked process can read a file; not Parquet: it lacks the threads of polars."""
    member = find_member(str(path))
    return member is None or member.file.lower().endswith(".tar")


def _format(file: str) -> Any:
    if file.lower().endswith(".tar"):
        from sisod.data.containers import tar

        return tar
    from sisod.data.containers import parquet

    return parquet


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

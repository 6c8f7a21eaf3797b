"""Listing and reading of files below a folder, a URL of fsspec, or a container at either."""

import os
import re
import stat
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from sisod.common.arguments import check_utf8, short_repr
from sisod.common.exceptions import InputError, UsageError
from sisod.common.output import is_safe_relative_path, is_url
from sisod.data.containers import (
    find_member,
    is_coco,
    is_container,
    is_shard,
    list_members,
    list_selections,
    open_shard,
    read_member,
    split_root,
)
from sisod.data.files import (
    Shard,
    file_state,
    file_system,
    has_image_extension,
    is_hidden,
    read_file,
    stamp_of,
    url_errors,
)
from sisod.data.files import StoredFile as StoredFile

_LOCAL_PATHS = {"file", "local"}  # protocols that take a relative path below the working folder
_ON_THIS_MACHINE = _LOCAL_PATHS | {"memory", "zip", "tar", "dir"}


def list_files(root: str | Path) -> list[StoredFile]:
    """Return every file below a root, sorted by path; those of a container by their names inside.

    Hidden files, and those that an operating system adds, are left out. Links in a folder are followed,
    each once, and none to a folder that contains the link: links to links do not multiply the files.

    Args:
        root: a folder, a container, a COCO file, or a URL of one of these.

    Raises:
        InputError: it cannot be read, or holds nothing that is selected.
    """
    if is_coco(root):
        from sisod.data.containers.coco import list_images

        return list_images(root)
    base, selection, files = _list_root(str(root))
    shards = _shards(base, selection, files)
    if not shards and not selection:
        return files
    members = [member for shard in shards for member in list_members(shard)]
    if selection and not members:
        known = ", ".join(list_selections(shards[0])) if shards else "nothing, for it has no shards,"
        raise InputError(
            f"{str(root)!r} has no image files of #{selection}; expected {known} behind the #"
        )
    return sorted(members, key=lambda member: (member.name, member.path))


def list_shards(root: str | Path) -> list[Shard]:
    """Return the shards of a container in the order of their paths; none for a folder of images.

    The root is one file (`masks.tar`, `train.parquet#mask`), or a folder that holds such files and no
    image files.
    """
    return _shards(*_list_root(str(root)))


def begins_with_shard(root: str) -> bool:
    """Tell from the first file in a folder whether it may hold shards."""
    base, _ = split_root(root)
    if is_shard(base) or is_coco(base):
        return False
    paths = (file.path for file in _list(base) if not is_hidden(file.path))
    return next((is_shard(path) for path in paths if is_shard(path) or has_image_extension(path)), False)


def read_bytes(root: str | Path, path: str) -> bytes:
    """Return the content of one file below a root.

    Args:
        root: folder, container or URL.
        path: as `list_files` names it; in a container it also says where the content is.

    Raises:
        InputError: it cannot be read.
    """
    member = find_member(f"{root}/{path}")
    return read_file(root, path) if member is None else read_member(member)


def _list_root(root: str) -> tuple[str, str, list[StoredFile]]:
    """Return a root without its selection, the selection, and the files below, sorted by path.

    A root that is itself a shard is its only file, with an empty path.
    """
    check_utf8(root, "the folder name")
    base, selection = split_root(root)
    if is_container(base) and not _is_folder(base):
        return base, selection, [StoredFile("", file_state(base).stamp)]
    visible = (file for file in _list(base) if not is_hidden(file.path))
    return base, selection, sorted(visible, key=lambda file: file.path)


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


def _list(root: str) -> Iterator[StoredFile]:
    if not root:  # of an unset variable of a shell; the system would take the current folder
        raise UsageError("the name of a folder is empty; expected a folder, a container or a URL")
    return _list_url(root) if is_url(root) else _list_folder(root)


def _list_folder(root: str) -> Iterator[StoredFile]:
    if not os.path.isdir(root):  # noqa: PTH112  (pathlib fails for names that are too long)
        state = "is a file" if os.path.exists(root) else "does not exist"  # noqa: PTH110
        name = short_repr(root, most=400)
        raise InputError(f"{name} {state}; expected a folder of images, a .parquet or a .tar file")
    followed = set()
    folders = deque([(root, "", frozenset({_identity(root)}))])
    while folders:  # those behind the fewest links first
        folder, prefix, above = folders.popleft()
        with url_errors(folder), os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                try:
                    info = entry.stat()
                except OSError:  # a broken link
                    continue
                if stat.S_ISREG(info.st_mode):
                    yield StoredFile(prefix + entry.name, f"{info.st_size}-{info.st_mtime_ns}")
                elif stat.S_ISDIR(info.st_mode):
                    target = _identity(entry.path)
                    below = (entry.path, f"{prefix}{entry.name}/", above | {target})
                    if not entry.is_symlink():
                        folders.appendleft(below)
                    elif (
                        target not in above and (link := (_identity(folder), entry.name)) not in followed
                    ):
                        followed.add(link)
                        folders.append(below)


def _identity(folder: str) -> tuple[int, int]:
    """Return device and inode of a folder, the same for all paths to it."""
    state = os.stat(folder)  # noqa: PTH116
    return state.st_dev, state.st_ino


def _list_url(root: str) -> Iterator[StoredFile]:
    with url_errors(root):
        system, base = file_system(root)
        files = system.find(base, detail=True) if system.isdir(base) else None
    if files is None:
        raise InputError(f"{root!r} does not exist or is not a folder; expected a folder of images")
    for path, info in files.items():
        yield StoredFile(path[len(base) :].lstrip("/"), stamp_of(info))


# --------------------------------------------------------------------------------------- what a root is


def is_local_root(root: str | Path) -> bool:
    """Tell whether a root is an existing folder or container of this machine."""
    base = split_root(str(root))[0]
    return not is_url(base) and (_is_folder(base) or is_container(base))


def is_below(path: Path, root: str | Path) -> bool:
    """Tell whether a path of this machine is a folder of files, or below it."""
    base = split_root(str(root))[0]
    return not is_url(base) and path.resolve().is_relative_to(Path(base).resolve())


def has_folder(root: str | Path, name: str) -> bool:
    """Tell whether there is a folder of this name directly below a root.

    Example:
        >>> has_folder(Path(__file__).parent, "containers"), has_folder("masks", "../maps")
        (True, False)
    """
    return is_safe_relative_path(name) and _is_folder(str(root), name)


def _is_folder(root: str, name: str = "") -> bool:
    if not is_url(root):
        return os.path.isdir(os.path.join(root, name))  # noqa: PTH112, PTH118
    with url_errors(root):
        system, base = file_system(root)
        return bool(system.isdir(f"{base}/{name}" if name else base))


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
    is_protocol = re.fullmatch("[a-z]*", link)  # as fsspec tells one from a path
    return link if separator or is_protocol else str(Path(link).resolve())


def is_remote(root: str | Path) -> bool:
    """Tell from its URL whether reading below a root accesses other machines.

    Example:
        >>> is_remote("zip://maps::edn.zip"), is_remote("http://host/maps")
        (False, True)
    """
    links = str(root).split("::") if is_url(root) else []
    protocols = {link.partition("://")[0] for link in links if "://" in link}
    return not protocols <= _ON_THIS_MACHINE

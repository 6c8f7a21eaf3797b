"""Output files: written atomically, inside their folder, by one process at a time."""

import errno
import io
import json
import os
import re
import secrets
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sisod.common.exceptions import InputError

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_LEAST_ROOM = 1 << 16  # bytes; a disk with less is full
_TEMPORARY = re.compile(r"\.sisod-[0-9a-f]{16}\.tmp")


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file under a temporary name first, so that nobody ever reads half of it."""
    temporary = _temporary(path)
    try:
        temporary.write_bytes(data)  # raises if the disk is full
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_files(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write several files of a folder: all, or none if there is no room for one.

    Args:
        folder: made if it does not exist.
        contents: path below the folder -> bytes.
    """
    temporary: dict[Path, Path] = {}
    try:
        for name, data in contents.items():
            path = output_path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
            temporary[path] = _temporary(path)
            temporary[path].write_bytes(data)
        for path, unfinished in temporary.items():
            unfinished.replace(path)
    finally:
        for unfinished in temporary.values():
            unfinished.unlink(missing_ok=True)


def write_output(path: Path, data: bytes) -> None:
    """Write a file that the user named; a link to a file is followed."""
    with write_file(path) as unfinished:
        unfinished.write_bytes(data)


@contextmanager
def write_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to, which replaces the file that the user named at the end."""
    with readable_errors(path, "make room there or give another file"):
        target = resolve_link(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        folder = _temporary(target)
        folder.mkdir()
        try:
            unfinished, ordinary = folder / target.name, folder / ".mode"
            ordinary.touch()  # has the mode of the umask; a file written by a library may not
            yield unfinished
            unfinished.chmod(ordinary.stat().st_mode)
            unfinished.replace(target)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def write_png(path: Path, picture: "NDArray[np.uint8] | NDArray[np.uint16]") -> None:
    """Write a picture atomically; create the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, png_bytes(picture))


def png_bytes(picture: "NDArray[np.uint8] | NDArray[np.uint16]") -> bytes:
    """Return a picture (grey or BGR) as the bytes of a PNG file."""
    import cv2

    done, data = cv2.imencode(".png", picture)
    if not done:
        raise InputError(f"a picture of shape {picture.shape} cannot be written as PNG")
    return data.tobytes()


def table_bytes(table: "pl.DataFrame") -> bytes:
    """Return a table as the bytes of a Parquet file."""
    buffer = io.BytesIO()
    table.write_parquet(buffer)
    return buffer.getvalue()


def is_temporary(path: Path) -> bool:
    """Tell whether a path has one of the temporary names that these functions use."""
    return _TEMPORARY.fullmatch(path.name) is not None


def remove_temporary(folder: Path) -> None:
    """Remove the temporary files of a killed process below an output folder."""
    for path in list(folder.rglob(".sisod-*.tmp")):
        if is_temporary(path):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _temporary(path: Path) -> Path:
    # independent of the length of the name: most file systems allow 255 bytes
    return path.parent / f".sisod-{secrets.token_hex(8)}.tmp"


# ------------------------------------------------------------------------------------------------ paths


def output_path(folder: Path, name: str, suffix: str = "") -> Path:
    """Return the path of the output for an input called `name`; refuse one outside the folder.

    Names also come from archives and web servers, which may contain any text.

    Example:
        >>> output_path(Path("maps"), "night/im1", ".png").as_posix()
        'maps/night/im1.png'
    """
    if not is_safe_relative_path(name):
        raise InputError(
            f"the name {name!r} does not lead to a place inside the output folder; rename the file"
        )
    path = folder / f"{name}{suffix}"
    for above in list(path.relative_to(folder).parents)[:-1]:
        if (folder / above).is_symlink():
            raise InputError(
                f"{str(folder / above)!r} is a link that leads out of the output folder; "
                "remove it or give another folder"
            )
    return path


def is_safe_relative_path(name: str) -> bool:
    """Tell whether a name used as a relative path stays inside the folder.

    Example:
        >>> [is_safe_relative_path(name) for name in ("night/im1", "../im1", "/im1", "night/")]
        [True, False, False, False]
    """
    if "\0" in name or (sys.platform == "win32" and ("\\" in name or ":" in name)):
        return False
    return all(part not in ("", ".", "..") for part in name.split("/"))


def is_url(root: str | Path) -> bool:
    """Tell whether a root is a URL rather than a local folder."""
    return "://" in str(root)


def resolve_link(path: Path) -> Path:
    """Return the target of a link, and an absolute path for one that ends in a dot or two."""
    if not path.is_symlink() and path.name not in ("", ".."):
        return path
    try:
        target = path.resolve()
    except (OSError, RuntimeError):  # up to Python 3.12
        target = path
    if target.is_symlink():
        raise InputError(f"{str(path)!r} is a link to itself; remove it")
    return target


# ------------------------------------------------------------------------------------------------ locks


@contextmanager
def lock(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Keep other processes from writing to a folder; the lock ends with the process, even by a kill.

    The lock is on a file beside the folder, which is removed afterwards. On a disk that does not support
    locks there is none.

    Args:
        folder: need not exist.
        wait: wait until the other process has ended instead of raising.
    """
    from filelock import FileLock, Timeout

    path = folder.parent / f".{folder.name}.sisod-lock"
    folder.parent.mkdir(parents=True, exist_ok=True)
    # without a soft lock, which would outlive a killed process
    held = FileLock(path, timeout=-1 if wait else 0, fallback_to_soft=False, is_singleton=False)
    try:
        held.acquire(poll_interval=0.02)
    except Timeout:
        raise InputError(
            f"another sisod process is writing to {str(folder)!r}; wait for it or give another folder"
        ) from None
    except (OSError, NotImplementedError):  # writing to the folder will say what is wrong with it
        yield
        return
    try:
        yield
    finally:
        if held.is_locked:  # not in a forked child
            with suppress(OSError):  # Windows removes no open file
                if path.stat().st_size == 0:  # a file of ours
                    path.unlink()
            held.release()


# ----------------------------------------------------------------------------------------------- errors


def system_error(error: Exception, folder: Path) -> OSError:
    """Return the OSError behind an exception of polars or safetensors.

    Example:
        >>> system_error(ValueError("I/O error: No space left on device (os error 28)"), Path()).strerror
        'No space left on device'
    """
    if match := re.search(r"os error (\d+)", str(error)):
        number = int(match[1])
    elif "No space left" in str(error) or shutil.disk_usage(folder).free < _LEAST_ROOM:
        number = errno.ENOSPC
    else:
        return OSError(errno.EIO, (str(error).splitlines() or [type(error).__name__])[0])
    return OSError(number, os.strerror(number))


@contextmanager
def readable_errors(folder: Path, if_full: str) -> Iterator[None]:
    """Turn an OSError into one sentence: where writing failed, and what to do if the disk is full."""
    try:
        yield
    except OSError as error:
        advice = f"; {if_full}" if error.errno in _FULL else ""
        raise InputError(
            f"cannot write below {str(folder.parent)!r}: {error.strerror or error}{advice}"
        ) from error


def json_bytes(content: Any) -> bytes:
    """Return indented JSON, the same on every system."""
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()

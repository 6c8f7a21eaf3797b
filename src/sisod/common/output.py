"""Output files: written atomically, inside their folder, by one process at a time."""

import errno
import json
import os
import platform
import re
import secrets
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sisod.common.errors import InputError
from sisod.common.version import __version__

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_LEAST_ROOM = 1 << 16  # bytes; a disk with less is full
_TEMPORARY = re.compile(r"\.sisod-[0-9a-f]{16}\.tmp")
_HOLDER = re.compile(r"sisod (\d+) (.*)\n")  # content of a lock file: process and machine
_POLL = 0.1  # seconds between two attempts to take a lock


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file under a temporary name first, so that nobody ever reads half of it."""
    temporary = _write_beside(path, data)
    try:
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_files(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write several files of a folder: all, or none if there is no room for one."""
    temporary: dict[Path, Path] = {}
    try:
        for name, data in contents.items():
            path = output_path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
            temporary[path] = _write_beside(path, data)
        for path, unfinished in temporary.items():
            unfinished.replace(path)
    finally:
        for unfinished in temporary.values():
            unfinished.unlink(missing_ok=True)


def write_output(path: Path, data: bytes) -> None:
    """Write a file that the user named; a link to a file is followed."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(followed(path), data)
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror or error}") from error


@contextmanager
def write_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to, which replaces the file at the end."""
    with readable_errors(path, "make room there or give another file"):
        target = followed(path)
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


def is_temporary(path: Path) -> bool:
    """Tell whether a path has one of the temporary names that these functions use."""
    return _TEMPORARY.fullmatch(path.name) is not None


def remove_temporary(folder: Path) -> None:
    """Remove the temporary files of a killed process below an output folder."""
    for path in list(folder.rglob(".sisod-*.tmp")):
        if is_temporary(path):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _write_beside(path: Path, data: bytes) -> Path:
    temporary = _temporary(path)
    with temporary.open("xb") as file:
        try:
            file.write(data)
            file.flush()  # raises if the disk is full
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    return temporary


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
    if not stays_inside(name):
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


def stays_inside(name: str) -> bool:
    """Tell whether a name used as a relative path stays inside the folder.

    Example:
        >>> [stays_inside(name) for name in ("night/im1", "../im1", "/im1", "night/")]
        [True, False, False, False]
    """
    if "\0" in name or (sys.platform == "win32" and ("\\" in name or ":" in name)):
        return False
    return all(part not in ("", ".", "..") for part in name.split("/"))


def followed(path: Path) -> Path:
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
        wait: wait until the other process has ended instead of refusing.
    """
    path = folder.parent / f".{folder.name}.sisod-lock"
    folder.parent.mkdir(parents=True, exist_ok=True)
    while True:
        try:
            file = _open_locked(path)
            break
        except BlockingIOError as error:
            if not wait:
                raise InputError(
                    f"another sisod process{error.strerror} is writing to {str(folder)!r}; "
                    "wait for it or give another folder"
                ) from None
            time.sleep(_POLL)
    try:
        yield
    finally:
        if file is not None:
            _release(file, path)


_held: set[FileIO] = set()


def _close_in_child() -> None:
    """Close the lock files of the parent: a child that outlives it must not keep its locks."""
    for file in _held:
        file.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)


def _open_locked(path: Path) -> FileIO | None:
    """Open and lock a file; None if impossible, BlockingIOError naming the holder if it is locked."""
    while True:
        try:
            file = path.open("a+b", buffering=0)
        except OSError:  # writing to the folder will say what is wrong
            return None
        try:
            _try_lock(file)
        except BlockingIOError:
            holder = _holder(file)
            file.close()
            raise BlockingIOError(errno.EAGAIN, holder) from None
        except OSError:  # the disk does not support locks
            is_empty = not file.seek(0, os.SEEK_END)
            file.close()
            if is_empty:
                path.unlink(missing_ok=True)
            return None
        if file.seek(0, os.SEEK_END) and not _holder(file):  # not a lock file of sisod
            file.close()
            return None
        if _is_at(path, file):
            with suppress(OSError):  # on a full disk the holder is not named
                file.truncate(0)
                file.write(f"sisod {os.getpid()} {platform.node()}\n".encode())
            _held.add(file)
            return file
        file.close()  # its last holder has just removed it


def _is_at(path: Path, file: FileIO) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except OSError:
        return False


def _holder(file: FileIO) -> str:
    """Return the process that has the lock, and its machine if it is another; empty if unknown."""
    with suppress(OSError):
        file.seek(0)
        if match := _HOLDER.fullmatch(file.read(1000).decode(errors="replace")):
            machine = "" if match[2] == platform.node() else f" on {match[2]}"
            return f" (pid {match[1]}{machine})"
    return ""


def _try_lock(file: FileIO) -> None:
    """Lock a file, or raise BlockingIOError at once."""
    if sys.platform == "win32":
        import msvcrt

        file.seek(1 << 30)  # beyond the content, which other processes may then read
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EDEADLK):
                raise BlockingIOError(errno.EAGAIN, "locked") from None
            raise
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _release(file: FileIO, path: Path) -> None:
    """Remove the file of a lock, then release it."""
    if file.closed:  # in a child
        return
    _held.discard(file)
    if sys.platform == "win32":  # an open file cannot be removed there
        file.close()
    with suppress(OSError):
        path.unlink()
    file.close()


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


def write_run(folder: Path, content: dict[str, Any]) -> None:
    """Write the run.json that every output folder holds."""
    write_json(folder / "run.json", {"sisod": __version__, **content})


def write_json(path: Path, content: Any) -> None:
    """Write an indented JSON file, the same on every system."""
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8", newline="\n")

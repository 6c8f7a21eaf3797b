"""Files that appear whole or not at all, below the folder they belong to, by one process at a time."""

import errno
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
from typing import TYPE_CHECKING

from sisod.common.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_LEAST_ROOM = 1 << 16  # bytes; a disk with less is full
_TEMPORARY = re.compile(r"\.sisod-[0-9a-f]{16}\.tmp")
_HOLDER = re.compile(r"sisod (\d+) (.*)\n")  # what a lock file says: process and machine
_POLL = 0.1  # seconds between two looks at a lock that is waited for


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file under another name first, so that nobody ever sees half of it."""
    temporary = _write_beside(path, data)
    try:
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_files(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files of a folder: all of them, or, if there is no room for one, none."""
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
    """Give another name to write to, beside the file, that becomes its name when all is done."""
    with readable_errors(path, "make room there or give another file"):
        target = followed(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        folder = _temporary(target)
        folder.mkdir()
        try:
            unfinished, ordinary = folder / target.name, folder / ".mode"
            ordinary.touch()  # gets the mode that the umask says; what others write may not
            yield unfinished
            unfinished.chmod(ordinary.stat().st_mode)
            unfinished.replace(target)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def write_png(path: Path, picture: "NDArray[np.uint8]") -> None:
    """Write a picture, whole or not at all, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, png_bytes(picture))


def png_bytes(picture: "NDArray[np.uint8]") -> bytes:
    """Return a picture (grey or BGR) as the bytes of a PNG file."""
    import cv2

    done, data = cv2.imencode(".png", picture)
    if not done:
        raise InputError(f"a picture of shape {picture.shape} cannot be written as PNG")
    return data.tobytes()


def is_temporary(path: Path) -> bool:
    """Say whether a name is one under which these functions write."""
    return _TEMPORARY.fullmatch(path.name) is not None


def remove_temporary(folder: Path) -> None:
    """Remove what a killed process was about to write, anywhere below a folder of ours."""
    for path in list(folder.rglob(".sisod-*.tmp")):
        if is_temporary(path):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _write_beside(path: Path, data: bytes) -> Path:
    temporary = _temporary(path)
    with temporary.open("xb") as file:
        try:
            file.write(data)
            file.flush()  # a full disk is noticed here
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    return temporary


def _temporary(path: Path) -> Path:
    # not longer with the name's length: most file systems take 255 bytes
    return path.parent / f".sisod-{secrets.token_hex(8)}.tmp"


# ------------------------------------------------------------------------------------------------ paths


def output_path(folder: Path, name: str, suffix: str = "") -> Path:
    """Return where the output of an input called `name` goes; refuse a name that leads elsewhere.

    Names also come from archives and web servers, which may hold any text.

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
    """Say whether a name leads to a place inside a folder, whichever the folder.

    Example:
        >>> [stays_inside(name) for name in ("night/im1", "../im1", "/im1", "night/")]
        [True, False, False, False]
    """
    if "\0" in name or (sys.platform == "win32" and ("\\" in name or ":" in name)):
        return False
    return all(part not in ("", ".", "..") for part in name.split("/"))


def followed(path: Path) -> Path:
    """Return the place that a path stands for: that of a link, and a name where there was only a dot."""
    if not path.is_symlink() and path.name not in ("", ".."):
        return path
    try:
        place = path.resolve()
    except (OSError, RuntimeError):  # up to Python 3.12
        place = path
    if place.is_symlink():
        raise InputError(f"{str(path)!r} is a link to itself; remove it")
    return place


# ------------------------------------------------------------------------------------------------ locks


@contextmanager
def lock(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Keep other processes from writing to a folder; the system ends it with the process, however.

    The lock is on a file beside the folder, which is removed afterwards. A disk that knows no locks
    is written to without.

    Args:
        folder: which need not exist.
        wait: until the other process has ended, instead of refusing.
    """
    path = folder.parent / f".{folder.name}.sisod-lock"
    folder.parent.mkdir(parents=True, exist_ok=True)
    while True:
        try:
            file = _locked(path)
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


def _locked(path: Path) -> FileIO | None:
    """Open and lock a file; None where that cannot be done, BlockingIOError with who has locked it."""
    while True:
        try:
            file = path.open("a+b", buffering=0)
        except OSError:  # what is wrong with the folder, writing to it will say
            return None
        try:
            _take(file)
        except BlockingIOError:
            holder = _holder(file)
            file.close()
            raise BlockingIOError(errno.EAGAIN, holder) from None
        except OSError:  # a disk without locks
            is_empty = not file.seek(0, os.SEEK_END)
            file.close()
            if is_empty:
                path.unlink(missing_ok=True)
            return None
        if file.seek(0, os.SEEK_END) and not _holder(file):  # somebody else's file
            file.close()
            return None
        if _is_at(path, file):
            with suppress(OSError):  # without room it does not say who
                file.truncate(0)
                file.write(f"sisod {os.getpid()} {platform.node()}\n".encode())
            _held.add(file)
            return file
        file.close()  # its last holder has removed it meanwhile


def _is_at(path: Path, file: FileIO) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except OSError:
        return False


def _holder(file: FileIO) -> str:
    """Say which process has the lock, and where if not here; nothing if it did not say."""
    with suppress(OSError):
        file.seek(0)
        if said := _HOLDER.fullmatch(file.read(1000).decode(errors="replace")):
            machine = "" if said[2] == platform.node() else f" on {said[2]}"
            return f" (pid {said[1]}{machine})"
    return ""


def _take(file: FileIO) -> None:
    """Lock a file, or raise BlockingIOError at once."""
    if sys.platform == "win32":
        import msvcrt

        file.seek(1 << 30)  # beyond what it says, which others may then read
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
    """Remove the file of a lock, then let go of it."""
    if file.closed:  # in a child
        return
    _held.discard(file)
    if sys.platform == "win32":  # where an open file cannot be removed, ours or another's
        file.close()
    with suppress(OSError):
        path.unlink()
    file.close()


# ----------------------------------------------------------------------------------------------- errors


def system_error(error: Exception, folder: Path) -> OSError:
    """Return what the system said to polars or safetensors, which raise no OSError.

    Example:
        >>> system_error(ValueError("I/O error: No space left on device (os error 28)"), Path()).strerror
        'No space left on device'
    """
    if said := re.search(r"os error (\d+)", str(error)):
        number = int(said[1])
    elif "No space left" in str(error) or shutil.disk_usage(folder).free < _LEAST_ROOM:
        number = errno.ENOSPC
    else:
        return OSError(errno.EIO, (str(error).splitlines() or [type(error).__name__])[0])
    return OSError(number, os.strerror(number))


@contextmanager
def readable_errors(folder: Path, if_full: str) -> Iterator[None]:
    """Say in one sentence where writing failed, and what to do if there is no room."""
    try:
        yield
    except OSError as error:
        advice = f"; {if_full}" if error.errno in _FULL else ""
        raise InputError(
            f"cannot write below {str(folder.parent)!r}: {error.strerror or error}{advice}"
        ) from error

"""Output that appears whole or not at all."""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sisod.errors import InputError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file under another name first, so that nobody ever sees half of it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextmanager
def write_file(path: Path) -> Iterator[Path]:
    """Give another name to write to, beside the file, that becomes its name when all is done."""
    with readable_errors(path, "make room there or give another file"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
            unfinished = Path(folder) / path.name
            yield unfinished
            unfinished.chmod(0o644)
            unfinished.replace(path)


@contextmanager
def write_folder(folder: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give a folder to write into that takes the name of `folder` when all is done."""
    with readable_errors(folder, "use --overwrite or another folder"):
        recover(folder)
        check_free(folder, overwrite=overwrite)
        folder.parent.mkdir(parents=True, exist_ok=True)
        inside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
        try:
            yield inside
            put_in_place(inside, folder)
        except BaseException:
            shutil.rmtree(inside, ignore_errors=True)
            raise


def check_free(folder: Path, *, overwrite: bool) -> None:
    """Refuse to write over a result that was not given up, or over anything that is no result."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not (folder / "run.json").exists():
        raise InputError(
            f"{str(folder)!r} exists and is not a result of sisod; "
            "it is not replaced, give another folder or remove it yourself"
        )
    if not overwrite:
        raise InputError(
            f"{str(folder)!r} exists already; use --overwrite to replace it, or give another folder"
        )


def put_in_place(inside: Path, folder: Path) -> None:
    """Move a finished folder to its name; what stood there is removed only after that."""
    inside.chmod(0o755)
    if folder.exists():
        folder.rename(_old(folder))
    inside.rename(folder)
    shutil.rmtree(_old(folder), ignore_errors=True)


def recover(folder: Path) -> None:
    """Undo or finish a replacement that was cut off between its steps."""
    old = _old(folder)
    if old.exists() and folder.exists():
        shutil.rmtree(old)
    elif old.exists():
        old.rename(folder)


def _old(folder: Path) -> Path:
    return folder.parent / f".{folder.name}.old"


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

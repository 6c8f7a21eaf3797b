"""Output that appears whole or not at all."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sisod.errors import InputError


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
def write_folder(folder: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give a folder to write into that takes the name of `folder` when all is done."""
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
    """Refuse to write over an existing result that was not given up."""
    if folder.exists() and not overwrite and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(
            f"{str(folder)!r} exists already; use --overwrite to replace it, or another --out"
        )


def put_in_place(inside: Path, folder: Path) -> None:
    """Move a finished folder to its name; what stood there is removed only after that."""
    inside.chmod(0o755)
    if not folder.exists():
        inside.rename(folder)
        return
    old = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.old."))
    folder.rename(old / folder.name)
    inside.rename(folder)
    shutil.rmtree(old)

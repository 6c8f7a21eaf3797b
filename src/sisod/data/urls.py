"""Access to URLs through fsspec, with every failure in one sentence."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sisod.common.errors import InputError, printable, require


def stamp_of(info: Mapping[str, Any]) -> str:
    """Return a stamp that differs once a file behind a URL changed, from what its file system tells."""
    changed = next((info[key] for key in ("ETag", "etag", "mtime", "LastModified") if key in info), "")
    return f"{info.get('size')}-{changed}"


@contextmanager
def url_errors(url: str) -> Iterator[None]:
    """Say in one sentence which URL failed: the packages behind fsspec raise all kinds of exceptions."""
    try:
        yield
    except InputError:
        raise
    except ImportError as error:
        raise InputError(f"{url!r} needs a package that is not installed: {_reason(error)}") from error
    except Exception as error:
        raise InputError(f"{url!r} cannot be read: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError) and error.strerror is None:
        return "it does not exist"
    text = str(error).strip().partition("\n")[0]
    return printable(text or type(error).__name__)


def file_system(root: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path there."""
    require(f"{root!r} is a URL, which", "fsspec")
    import fsspec

    try:
        system, base = fsspec.core.url_to_fs(root)
    except (ValueError, ImportError) as error:  # unknown protocol, or its package is missing
        raise InputError(f"{root!r} is a URL that fsspec cannot open: {error}") from error
    return system, str(base).rstrip("/")

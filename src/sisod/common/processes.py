"""What a process may use: cores and memory; and what happens if memory runs out."""

import ctypes
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sisod.common.exceptions import InputError
from sisod.common.imports import describe_error

_MEGA = 1 << 20
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h


def default_jobs() -> int:
    """Return the number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def safe_children() -> Iterator[None]:
    """Let processes that libraries start, such as workers of data loaders, import what this one does.

    By default Python puts the current folder first on the path of `python -m` and `python -c`: a file
    `json.py` in it, perhaps downloaded with a data set, would run in every such process.
    """
    path = os.pathsep.join(map(os.path.abspath, sys.path))
    before = dict(os.environ)
    os.environ.update({"PYTHONSAFEPATH": "1", "PYTHONPATH": path})
    try:
        yield
    finally:
        for name in ("PYTHONSAFEPATH", "PYTHONPATH"):
            os.environ.pop(name)
            os.environ.update({name: before[name]} if name in before else {})


def keep_freed_memory() -> None:
    """Let this process keep freed memory, up to 64 MB, where the C library is glibc.

    By default arrays of the size of an image go back to the system when they are freed, and every page
    of the next one is allocated anew: about a tenth of the time of an evaluation. Only for our own
    processes: a library leaves the allocator of its caller alone.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library, another system
        return
    mallopt(_M_TRIM_THRESHOLD, 64 * _MEGA)
    mallopt(_M_MMAP_THRESHOLD, 32 * _MEGA)  # the largest value it accepts


def available_memory() -> int | None:
    """Return the bytes available without swapping, None where the system does not say as Linux does."""
    with suppress(OSError, StopIteration):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    return None


def is_out_of_memory(error: Exception) -> bool:
    """Tell whether memory ran out: in Python and NumPy, or in OpenCV and PyTorch, which only say so."""
    said = re.search("(insufficient|not enough|out of) memory", str(error), re.IGNORECASE)
    return not isinstance(error, InputError) and (isinstance(error, MemoryError) or said is not None)


@contextmanager
def readable_memory_errors() -> Iterator[None]:
    """Turn an error for want of memory into one sentence."""
    try:
        yield
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        raise InputError(
            f"there is not enough memory ({describe_error(error)}); use fewer --jobs, smaller images or "
            "a larger machine"
        ) from error

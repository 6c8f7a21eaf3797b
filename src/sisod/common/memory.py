"""Settings of the memory allocator, and the amount of available memory."""

import ctypes
import os
from pathlib import Path

_MEGA = 1 << 20
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h


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
    """Return the bytes available without swapping, None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")  # all of it, on other systems
    except (AttributeError, OSError, ValueError):
        return None

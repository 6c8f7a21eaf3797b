"""How the allocator of our own processes treats freed memory."""

import ctypes

_MEGA = 1 << 20
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h


def keep_freed_memory() -> None:
    """Let this process keep what it frees, up to 64 MB, where the C library is glibc.

    By default arrays of the size of an image go back to the system when they are freed and every page
    of the next one is fetched anew: about a tenth of the time of an evaluation. Only for processes
    that are ours: a library leaves its caller's allocator alone.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library, another system
        return
    mallopt(_M_TRIM_THRESHOLD, 64 * _MEGA)
    mallopt(_M_MMAP_THRESHOLD, 32 * _MEGA)  # the most it takes

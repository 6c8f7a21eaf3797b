"""Decoders that print nothing: our own error message names the broken file."""

import ctypes
import functools
import os
import threading
from typing import Any

import cv2

# a function of cv2 up to OpenCV 4.12, of cv2.utils.logging from then on
_set_level: Any = getattr(cv2, "setLogLevel", None) or cv2.utils.logging.setLogLevel


class _Quiet:
    """While any thread is inside, OpenCV logs nothing, and libpng and libjpeg print nothing.

    Those two print to the C library's `stderr`, which is replaced by a stream to the null device where
    the C library is glibc. Python's own standard error is another stream to the same file, and stays.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before: tuple[int, int | None] = (0, None)  # log level, C stream

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                stderr, null_stream = _c_streams()
                self._before = _set_level(0), stderr.value
                stderr.value = null_stream

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._restore()

    def reset_after_fork(self) -> None:
        """Forget the threads of the process that this one was forked from."""
        self._lock = threading.Lock()
        if self._inside:
            self._inside = 0
            self._restore()

    def _restore(self) -> None:
        level, stream = self._before
        _set_level(level)
        _c_streams()[0].value = stream


@functools.cache
def _c_streams() -> tuple[ctypes.c_void_p, int | None]:
    """Return glibc's variable `stderr` and a stream to the null device, or a variable of nobody."""
    try:
        libc = ctypes.CDLL(None)
        libc.gnu_get_libc_version  # noqa: B018  (with other C libraries it cannot be replaced)
        libc.fopen.restype = ctypes.c_void_p
        stderr = ctypes.c_void_p.in_dll(libc, "stderr")
        null_stream = libc.fopen(os.devnull.encode(), b"we")  # not inherited by other programs
        return (stderr, null_stream) if null_stream else (ctypes.c_void_p(), None)
    except (AttributeError, OSError, TypeError, ValueError):
        return ctypes.c_void_p(), None


quiet_decoders = _Quiet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=quiet_decoders.reset_after_fork)

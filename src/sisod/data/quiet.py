"""Decoders that print nothing: what they would say of a broken file is in the error that names it."""

import ctypes
import functools
import os
import threading
from typing import Any

import cv2

# at the top up to OpenCV 4.12, in a module of its own from then on
_set_level: Any = getattr(cv2, "setLogLevel", None) or cv2.utils.logging.setLogLevel
_SILENT = 0


class _Quiet:
    """While any thread is inside, OpenCV logs nothing, and libpng and libjpeg print nothing.

    Those two print to the C library's `stderr`, which is exchanged for one that leads nowhere where
    the C library is glibc. Python's own standard error is another stream to the same file, and stays.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._level: int = _SILENT
        self._printed_to: int | None = None

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._level = _set_level(_SILENT)
                stderr, nowhere = _c_streams()
                if stderr is not None:
                    self._printed_to, stderr.value = stderr.value, nowhere

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._restore()

    def start_again(self) -> None:
        """Forget the threads of the process that this one was forked from."""
        self._lock = threading.Lock()
        if self._inside:
            self._inside = 0
            self._restore()

    def _restore(self) -> None:
        _set_level(self._level)
        stderr, _ = _c_streams()
        if stderr is not None:
            stderr.value = self._printed_to


@functools.cache
def _c_streams() -> tuple[ctypes.c_void_p | None, int | None]:
    """Return where glibc keeps its `stderr`, and a stream that leads nowhere; nothing elsewhere."""
    try:
        libc = ctypes.CDLL(None)
        libc.gnu_get_libc_version  # noqa: B018  (other C libraries do not let it be exchanged)
        libc.fopen.restype = ctypes.c_void_p
        nowhere = libc.fopen(os.devnull.encode(), b"we")  # not handed on to other programs
        return (ctypes.c_void_p.in_dll(libc, "stderr"), nowhere) if nowhere else (None, None)
    except (AttributeError, OSError, TypeError, ValueError):
        return None, None


quiet_decoders = _Quiet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=quiet_decoders.start_again)

"""Differences between operating systems: marks that skip a test, and paths in messages."""

import os
import platform
import sys

import pytest

windows = sys.platform == "win32"

posix_signals = pytest.mark.skipif(windows, reason="Windows has no signals to other processes")
posix_limits = pytest.mark.skipif(windows, reason="Windows has no limit on the size of files")
posix_modes = pytest.mark.skipif(windows, reason="Windows has no umask")
posix_names = pytest.mark.skipif(windows, reason="the name cannot be that of a file on Windows")
byte_names = pytest.mark.skipif(
    sys.platform != "linux", reason="macOS and Windows refuse names that are not text"
)
pipes_by_name = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows does not fork")
linux = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux reports the peak memory of a process"
)
glibc = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="decoders can be kept from printing with glibc only"
)
links = pytest.mark.skipif(windows, reason="on Windows only administrators may make links")


def slashes(text: str) -> str:
    r"""Write the paths in a message as on other systems; Windows quotes them as 'out\\MSOD'."""
    return text.replace("\\\\", "/") if windows else text

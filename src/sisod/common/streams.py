"""Standard streams that can be written to, whatever the terminal, the service or the locale gives."""

import codecs
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

_HANDLER = "sisod.spelled"
_KEPT: list[object] = []  # a file that is forgotten would be closed
# what our own tables and sentences use beyond ASCII
_SPELLED = {
    "↑": "^",
    "↓": "v",
    "→": "->",
    "←": "<-",
    "\u00d7": "x",
    "±": "+-",
    "·": ".",
    "\u2013": "-",
    "—": "-",
    "\u2212": "-",
    "…": "...",
    "≤": "<=",
    "≥": ">=",
    "✓": "yes",
    "•": "*",
    "█": "#",
    "━": "-",
    "─": "-",
    "│": "|",
}


def is_terminal(stream: TextIO | None) -> bool:
    """Say whether somebody reads along; a stream may be missing (pythonw, services) or closed."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


@contextmanager
def usable_streams(*, windows: bool = sys.platform == "win32") -> Iterator[None]:
    """Let a command print what its streams cannot take: nothing that is shown may stop a run.

    A descriptor that is closed is opened to nowhere, so that no other file gets its number and with it
    what is meant for the terminal. Characters that an encoding lacks are spelled otherwise. Piped output
    on Windows becomes UTF-8, which documents and programs expect, instead of the system's code page.
    """
    _open_descriptors()
    missing = [name for name in ("stdin", "stdout", "stderr") if _is_closed(getattr(sys, name))]
    with open(os.devnull, "r+", encoding="utf-8") as nowhere:  # noqa: PTH123
        before = {name: getattr(sys, name) for name in missing}
        for name in missing:
            setattr(sys, name, nowhere)
        # a stream of a notebook is of another kind, and takes any text
        changed = [
            (stream, stream.encoding, stream.errors)
            for stream in (sys.stdout, sys.stderr)
            if isinstance(stream, io.TextIOWrapper)
        ]
        for stream, encoding, _ in changed:
            piped = not stream.isatty() and "PYTHONIOENCODING" not in os.environ
            stream.reconfigure(encoding="utf-8" if windows and piped else encoding, errors=_HANDLER)
        try:
            yield
        finally:
            for stream, encoding, errors in changed:
                with suppress(OSError, ValueError):  # nobody reads any more, or it was closed
                    stream.reconfigure(encoding=encoding, errors=errors)
            for name, was in before.items():
                setattr(sys, name, was)


def _open_descriptors() -> None:
    closed = [number for number in range(3) if not _is_open(number)]
    if not closed:
        return
    nowhere = open(os.devnull, "r+b", buffering=0)  # noqa: PTH123, SIM115  (takes the lowest number)
    _KEPT.append(nowhere)
    for number in closed:
        if number != nowhere.fileno():
            os.dup2(nowhere.fileno(), number)
        os.set_inheritable(number, True)  # noqa: FBT003  (as the three are for processes we start)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _is_closed(stream: TextIO | None) -> bool:
    return stream is None or stream.closed


def _spelled(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    spelled = (_SPELLED.get(one) or one.encode("ascii", "backslashreplace").decode() for one in text)
    return "".join(spelled), error.end


codecs.register_error(_HANDLER, _spelled)

"""Standard streams that can always be written to, whatever the terminal, service or locale; progress."""

import codecs
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from sisod.common.exceptions import printable

_HANDLER = "sisod.ascii"
# the characters beyond ASCII in our own tables and messages
_ASCII = {
    "↑": "^", "↓": "v", "→": "->", "←": "<-", "\u00d7": "x", "±": "+-", "·": ".", "\u2013": "-",
    "—": "-", "\u2212": "-", "…": "...", "≤": "<=", "≥": ">=", "✓": "yes",
    "•": "*", "█": "#", "━": "-", "─": "-", "│": "|",
}  # fmt: skip


def is_terminal(stream: TextIO | None) -> bool:
    """Tell whether a stream is a terminal; it may be missing (pythonw, services) or closed."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


@contextmanager
def usable_streams(*, windows: bool = sys.platform == "win32") -> Iterator[None]:
    """Make the standard streams accept any text: printing must never stop a run.

    A closed descriptor is opened to the null device, so that no other file gets its number and with it
    the output meant for the terminal. Characters that an encoding lacks are replaced. Piped output on
    Windows becomes UTF-8, which documents and programs expect, instead of the system's code page.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # the lowest free number is this one; it stays open with the process
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # noqa: FBT003
    streams = {name: getattr(sys, name) for name in ("stdin", "stdout", "stderr")}
    missing = [name for name, stream in streams.items() if stream is None or stream.closed]
    with open(os.devnull, "r+", encoding="utf-8") as null_device:  # noqa: PTH123
        before = {name: getattr(sys, name) for name in missing}
        for name in missing:
            setattr(sys, name, null_device)
        # streams of a notebook have another type, and accept any text
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
                with suppress(OSError, ValueError):  # the reader has ended, or it was closed
                    stream.reconfigure(encoding=encoding, errors=errors)
            for name, original in before.items():
                setattr(sys, name, original)


def _replace_characters(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    parts = (_ASCII.get(char) or char.encode("ascii", "backslashreplace").decode() for char in text)
    return "".join(parts), error.end


codecs.register_error(_HANDLER, _replace_characters)


@contextmanager
def progress_bar(title: str, total: int, *, done: int = 0) -> Iterator[Callable[[int], None]]:
    """Yield a function that is called with the number of items just finished."""
    if not is_terminal(sys.stderr):
        yield lambda count: None  # noqa: ARG005
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(escape(printable(title)), total=total, completed=done, rate="")

        def advance(count: int) -> None:
            speed = bar.tasks[0].speed
            bar.update(task, advance=count, rate=f"{speed:.0f}/s" if speed else "")

        yield advance


@contextmanager
def status(text: str) -> Iterator[None]:
    """Show a note while something takes long that cannot be counted; it disappears afterwards."""
    if not is_terminal(sys.stderr):
        yield
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status(escape(text)):
        yield

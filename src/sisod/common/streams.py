"""Standard streams that can always be written to, whatever the terminal, service or locale; progress."""

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import TextIO

from sisod.common.exceptions import printable


def is_terminal(stream: TextIO | None) -> bool:
    """Tell whether a stream is a terminal; it may be missing (pythonw, services) or closed."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


@contextmanager
def usable_streams(*, windows: bool = sys.platform == "win32") -> Iterator[None]:
    """Make standard output and error accept any text: printing must never stop a run.

    A closed descriptor is opened to the null device, so that no other file gets its number and with it
    the output meant for the terminal. Characters that an encoding lacks are escaped. Piped output on
    Windows becomes UTF-8, which documents and programs expect, instead of the system's code page.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # the lowest free number is this one; it stays open with the process
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # noqa: FBT003
    with ExitStack() as stack:
        for stream, redirect in ((sys.stdout, redirect_stdout), (sys.stderr, redirect_stderr)):
            if stream is None or stream.closed:
                null_device = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
                stack.enter_context(redirect(stack.enter_context(null_device)))
            elif isinstance(stream, io.TextIOWrapper):  # those of a notebook accept any text
                stack.callback(_restore, stream, stream.encoding, stream.errors)
                piped = windows and not stream.isatty() and "PYTHONIOENCODING" not in os.environ
                encoding = "utf-8" if piped else stream.encoding
                stream.reconfigure(encoding=encoding, errors="backslashreplace")
        yield


def _restore(stream: io.TextIOWrapper, encoding: str, errors: str | None) -> None:
    with suppress(OSError, ValueError):  # the reader has ended, or it was closed
        stream.reconfigure(encoding=encoding, errors=errors)


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

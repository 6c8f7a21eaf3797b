"""A progress bar, or a note, on standard error; nothing if that is not a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sisod.common.exceptions import printable
from sisod.common.streams import is_terminal


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

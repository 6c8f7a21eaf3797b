"""What every subcommand shares: errors as one sentence, tables on the terminal, common options."""

import errno
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from sisod.common.errors import EXTRAS, InputError, MissingExtraError, UsageError, is_missing
from sisod.common.streams import is_terminal, usable_streams
from sisod.scoring.protocols import PROTOCOLS

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

# what is written to files says so itself: these, without the name of a file, are of the output
_OUTPUT_ERRORS = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
RUNNING: ContextVar[str] = ContextVar("RUNNING", default="")  # the subcommand
ProtocolName = Annotated[
    str | None,
    typer.Option("--protocol", help=f"Conventions: {', '.join(PROTOCOLS)}; by default the first."),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")]


class Format(StrEnum):
    """Formats for documents and programs."""

    MD = "md"
    LATEX = "latex"
    CSV = "csv"
    JSON = "json"


FormatName = Annotated[
    Format | None, typer.Option("--format", help="Print this instead of the terminal's table.")
]


@contextmanager
def exit_on_user_error(after_interrupt: str = "") -> Iterator[None]:
    """Turn what a user can repair, a missing extra too, into a sentence and exit code 1; 2 for usage."""
    try:
        with extras_named():
            yield
    except InputError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2 if isinstance(error, UsageError) else 1) from None
    except OSError as error:
        if error.filename is not None or error.errno not in _OUTPUT_ERRORS:
            raise
        typer.echo(f"error: cannot write to standard output: {error.strerror}", err=True)
        _drop_output()
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo(f"stopped{after_interrupt}", err=True)
        raise typer.Exit(130) from None


@contextmanager
def extras_named() -> Iterator[None]:
    """Say which extra a command needs; any other import that fails is a fault and stays one."""
    what = f"sisod {RUNNING.get()}" if RUNNING.get() else "this"
    try:
        yield
    except MissingExtraError as error:
        if str(error).startswith("sisod."):  # a module of ours, which the user has not asked for
            raise MissingExtraError(what, str(error.name)) from None
        raise
    except ModuleNotFoundError as error:
        if error.name in EXTRAS and is_missing(error.name):
            raise MissingExtraError(what, error.name) from None
        raise


class Commands(TyperGroup):
    """The commands, with streams that they can write to."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run one."""
        with usable_streams():
            return super().main(*args, **options)


def print_tables(make: "Callable[[int], Sequence[Table]]") -> None:
    """Print rich tables made for the width of the terminal; piped, as wide as they need to be."""
    from rich.console import Console

    console = Console() if is_terminal(sys.stdout) else Console(width=10_000)
    print_rich(console, make(console.width))


def print_rich(console: "Console", tables: "Sequence[Table]") -> None:
    """Print tables; unlike rich itself, not silent when the output cannot be written."""
    with console.capture() as text:
        for table in tables:
            console.print(table)
    sys.stdout.write(text.get())  # typer's echo would write UTF-8 whatever the stream's encoding
    sys.stdout.flush()


def _drop_output() -> None:
    """Send what is left for standard output nowhere, so that Python does not fail again at its end."""
    # in a test it is no file
    with suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), sys.stdout.fileno())

"""What every subcommand shares: failures told in a sentence, tables on the terminal, common options."""

import errno
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from sisod.errors import InputError, UsageError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

# what is written to files says so itself: these, without the name of a file, are of the output
_OUTPUT_ERRORS = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
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
def told(after_interrupt: str = "") -> Iterator[None]:
    """Turn what a user can mend, a missing extra too, into a sentence and exit code 1; 2 for usage."""
    try:
        yield
    except (InputError, ImportError) as error:
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


def make_output_safe(*, windows: bool = sys.platform == "win32") -> None:
    """Keep an arrow or a name that the output's encoding lacks from ending a command.

    Piped output on Windows becomes UTF-8, which documents and programs expect, instead of the system's
    code page. Elsewhere the encoding of the locale stays, and what it lacks becomes a question mark.
    """
    for stream in (sys.stdout, sys.stderr):
        if not isinstance(stream, io.TextIOWrapper) or stream.encoding.lower().startswith("utf"):
            continue
        if windows and not stream.isatty() and "PYTHONIOENCODING" not in os.environ:
            stream.reconfigure(encoding="utf-8")
        else:
            stream.reconfigure(errors="replace")


def print_tables(make: "Callable[[int], Sequence[Table]]") -> None:
    """Print rich tables made for the width of the terminal; piped, as wide as they need to be."""
    from rich.console import Console

    console = Console() if sys.stdout.isatty() else Console(width=10_000)
    print_rich(console, make(console.width))


def print_rich(console: "Console", tables: "Sequence[Table]") -> None:
    """Print tables; unlike rich itself, not silent when the output cannot be written."""
    with console.capture() as text:
        for table in tables:
            console.print(table)
    typer.echo(text.get(), nl=False)


def _drop_output() -> None:
    """Send what is left for standard output nowhere, so that Python does not fail again at its end."""
    with suppress(OSError, ValueError):  # in a test it is no file
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)

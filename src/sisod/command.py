"""What every subcommand shares: failures told in a sentence, tables on the terminal, common options."""

import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from sisod.errors import InputError, UsageError

if TYPE_CHECKING:
    from rich.table import Table

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
    for table in make(console.width):
        console.print(table)

"""Code shared by the subcommands: errors as one sentence, tables on the terminal, common options."""

import errno
import importlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sisod.cli import completion
from sisod.common.arguments import shown
from sisod.common.errors import (
    EXTRAS,
    InputError,
    InputWarning,
    MissingExtraError,
    UsageError,
    is_missing,
)
from sisod.common.grid import UNLIMITED
from sisod.common.progress import status
from sisod.common.streams import is_terminal
from sisod.scoring.protocols import (
    PROTOCOLS,
    Protocol,
    change_protocol,
    find_protocol,
    read_setting,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from sisod.common.grid import Grid
    from sisod.data.truths import Meaning

# errors of standard output, if they name no file; the writers of files report their own
_OUTPUT_ERRORS = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
RUNNING: ContextVar[str] = ContextVar("RUNNING", default="")  # name of the subcommand

# Options of more than one command: the same name, metavar, type and meaning everywhere. What a command
# adds to a help text follows a common beginning.
ProtocolName = Annotated[
    str | None,
    typer.Option(
        "--protocol",
        metavar="NAME",
        help=f"Conventions of scoring: {', '.join(PROTOCOLS)}; by default the first.",
        autocompletion=completion.protocols,
    ),
]
MinArea = Annotated[
    str | None,
    typer.Option(
        "--min-area",
        metavar="PIXELS|SHARE",
        help="Leave out smaller components: 12 is pixels, 0.001 a share of the image, 0 none; "
        "by default the protocol's.",
    ),
]
Connectivity = Annotated[
    str | None,
    typer.Option(
        "--connectivity", metavar="4|8", help="4 or 8, of components; by default the protocol's."
    ),
]
Normalize = Annotated[
    str | None,
    typer.Option(
        "--normalize",
        metavar="minmax|none",
        help="Whether predictions are stretched to [0, 1]: by default the protocol's.",
    ),
]
PredSuffix = Annotated[
    str, typer.Option("--pred-suffix", metavar="TEXT", help="End of prediction names, like _sal.")
]
GtSuffix = Annotated[
    str, typer.Option("--gt-suffix", metavar="TEXT", help="End of ground truth names, like _mask.")
]
LabelMaps = Annotated[
    bool,
    typer.Option(
        "--label-maps",
        help="Ground truths are label maps: every value but 0 is one object, whether it touches others "
        "or not. A COCO file says that itself.",
    ),
]
ClassName = Annotated[
    str | None,
    typer.Option(
        "--class",
        metavar="CLASS",
        help="Only this class: a number of class maps, or a name or number of a COCO file.",
    ),
]
NameList = Annotated[
    Path | None,
    typer.Option("--list", metavar="FILE", help="File of image names, one per line; only these."),
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", metavar="N", min=1, help="Processes; by default one for each core."),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing output.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with an unfinished run.")]
AgainstPaperFlag = Annotated[
    bool,
    typer.Option(
        "--against-paper",
        help="Compare results under the protocol official with the published rows of the same name, "
        "such as MSOD/EDN+SI.",
    ),
]


def out_option(content: str) -> Any:
    """Return the option `--out`: the file or folder that is written, and what it will hold."""
    return typer.Option("--out", metavar="PATH", help=f"Output: {content}.")


def metrics_option(default: str) -> Any:
    """Return the option `--metrics`, and what is computed or shown without it."""
    return typer.Option(
        "--metrics",
        metavar="KEYS",
        help=f"Metrics: paper, sod (salient objects: S, wF, E, F, MAE), dis (high resolution: also HCE, "
        f"BIoU, MBA), all, or keys with commas; by default {default}.",
        autocompletion=completion.metrics,
    )


def images_option(use: str) -> Any:
    """Return the option `--images`, and how to use it."""
    return typer.Option("--images", metavar="DIR", help=f"Folder of photographs: {use}.")


def data_option(content: str) -> Any:
    """Return the option `--data`, and what the folder holds."""
    return typer.Option("--data", metavar="DIR", help=f"Folder of the data: {content}.")


def quick_option(difference: str) -> Any:
    """Return the flag `--quick`, and what it leaves out."""
    return typer.Option("--quick", help=f"A short run: {difference}.")


class Format(StrEnum):
    """Formats for documents and programs."""

    MD = "md"
    LATEX = "latex"
    CSV = "csv"
    JSON = "json"


FormatName = Annotated[
    Format | None,
    typer.Option(
        "--format",
        metavar="md|latex|csv|json",
        help="Print this format instead of a table for the terminal.",
    ),
]


@contextmanager
def exit_on_user_error(after_interrupt: str = "") -> Iterator[None]:
    """Print an error that the user can repair as one sentence; exit with 1, or 2 for wrong usage."""
    try:
        with name_missing_extra(), _warnings_as_lines():
            yield
    except InputError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2 if isinstance(error, UsageError) else 1) from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            name = shown(str(error.filename))
            typer.echo(f"error: the path {name} is too long for this system; shorten it", err=True)
            raise typer.Exit(1) from None
        if error.filename is not None or error.errno not in _OUTPUT_ERRORS:
            raise
        typer.echo(f"error: cannot write to standard output: {error.strerror}", err=True)
        _drop_output()
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo(f"stopped{after_interrupt}", err=True)
        raise typer.Exit(130) from None


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Print each warning about input files once, as one line; others are shown as Python does."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", InputWarning)
        show, printed = warnings.showwarning, set[str]()

        def print_line(message: Any, category: type[Warning], *place: Any) -> None:
            if not issubclass(category, InputWarning):
                show(message, category, *place)
            elif str(message) not in printed:
                printed.add(str(message))
                typer.echo(f"warning: {message}", err=True)

        warnings.showwarning = print_line  # type: ignore[assignment]  # (any further arguments)
        yield


@contextmanager
def name_missing_extra() -> Iterator[None]:
    """Name the extra that a command needs; any other failed import is a bug and is not caught."""
    command = f"sisod {RUNNING.get()}" if RUNNING.get() else "this"
    try:
        yield
    except MissingExtraError as error:
        if str(error).startswith("sisod."):  # a module of ours, which the user does not know
            raise MissingExtraError(command, str(error.name)) from None
        raise
    except ModuleNotFoundError as error:
        if error.name in EXTRAS and is_missing(error.name):
            raise MissingExtraError(command, error.name) from None
        raise


def load_pytorch() -> None:
    """Import PyTorch with a note, because it takes seconds."""
    with status("loading PyTorch"):
        importlib.import_module("torch")


def chosen_protocol(name: str | None, **settings: str | None) -> Protocol:
    """Return the protocol of a name, or the default, with the settings that options change."""
    protocol = find_protocol(name or "default")
    values = {key: read_setting(key, text) for key, text in settings.items() if text is not None}
    return change_protocol(protocol, **values)


def chosen_meaning(gt_root: str, *, labels: bool, category: str | None) -> "Meaning":
    """Return what the values of ground truths mean, by the options --label-maps and --class."""
    from sisod.data.truths import Meaning, check_category

    meaning = Meaning(labels, category or "")
    if category is not None:
        check_category(gt_root, category)
    return meaning


def print_left_out(gt_root: str, protocol: Protocol, n_left_out: int, n_components: int) -> None:
    """Say on standard error how many components of the ground truths have no frame, if any."""
    if n_left_out:
        start = f"{n_left_out} of {n_components} components in {gt_root!r} are"
        if protocol.released_code:
            typer.echo(f"{start} not scored by the rules of the released code", err=True)
        else:
            typer.echo(f"{start} below min_area and not scored; --min-area 0 scores all", err=True)


def print_grids(*grids: "Grid") -> None:
    """Print tables of text."""
    print_tables(lambda width: [table for grid in grids for table in grid.terminal(width)])


def print_tables(make_tables: "Callable[[int], Sequence[Table]]") -> None:
    """Print rich tables made for the width of the terminal; if piped, at their full width."""
    from rich.console import Console

    console = Console() if is_terminal(sys.stdout) else Console(width=UNLIMITED)
    print_rich(console, make_tables(console.width))


def print_rich(console: "Console", tables: "Sequence[Table]") -> None:
    """Print tables; unlike rich itself, raise an error if the output cannot be written."""
    with console.capture() as text:
        for table in tables:
            console.print(table)
    sys.stdout.write(text.get())  # typer's echo would write UTF-8 whatever the stream's encoding
    sys.stdout.flush()


def _drop_output() -> None:
    """Discard buffered standard output, so that Python does not fail again when it exits."""
    # in a test, standard output is not a file
    with suppress(OSError, ValueError), open(os.devnull, "wb") as null:  # noqa: PTH123
        os.dup2(null.fileno(), sys.stdout.fileno())

"""Code shared by the subcommands: errors as one sentence, tables on the terminal, common options."""

import errno
import importlib
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer

from sisod.common.exceptions import EXTRAS, InputError, InputWarning, MissingExtraError, UsageError
from sisod.common.grid import UNLIMITED, Format
from sisod.common.processes import readable_memory_errors
from sisod.common.streams import is_terminal, status
from sisod.scoring.metrics import METRIC_SETS, METRICS
from sisod.scoring.protocols import (
    PROTOCOLS,
    Protocol,
    change_protocol,
    find_protocol,
    read_setting,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

    from sisod.common.grid import Grid
    from sisod.data.truths import TruthFormat

# of standard output, if they name no file; the writers of files report their own
_OUTPUT_ERRORS = (errno.EPIPE, errno.ENOSPC, errno.EIO, errno.EBADF)


def _completion(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return a function for the shell: the names that begin like the last of a list with commas."""

    def complete(incomplete: str) -> list[str]:
        listed, comma, last = incomplete.rpartition(",")
        with suppress(ImportError):  # recipes need PyTorch
            return [f"{listed}{comma}{name}" for name in names() if name.startswith(last)]
        return []

    return complete


complete_protocol = _completion(lambda: PROTOCOLS)
complete_metrics = _completion(lambda: (*METRIC_SETS, "all", *METRICS))
complete_score = _completion(lambda: ("found", *METRICS))
complete_network = _completion(lambda: importlib.import_module("sisod.networks.registry").names())
complete_recipe = _completion(lambda: importlib.import_module("sisod.training.recipe").names())
complete_figure = _completion(lambda: importlib.import_module("sisod.report.gallery").FIGURES)


# Options of more than one command: the same name, metavar, type and meaning everywhere. What a command
# adds to a help text follows a common beginning.
ProtocolName = Annotated[
    str | None,
    typer.Option(
        "--protocol",
        metavar="NAME",
        help=f"Conventions of scoring: {', '.join(PROTOCOLS)}; by default the first.",
        autocompletion=complete_protocol,
    ),
]
MinArea = Annotated[
    str | None,
    typer.Option(
        "--min-area",
        metavar="PIXELS|SHARE",
        help="Leave out smaller components: 12 (pixels), 0.001 (of the image), 0 (none).",
    ),
]
Connectivity = Annotated[
    str | None, typer.Option("--connectivity", metavar="4|8", help="Connectivity of components.")
]
Normalize = Annotated[
    Literal["minmax", "none"] | None,
    typer.Option("--normalize", help="Whether predictions are stretched to [0, 1]: as the protocol."),
]
GtLevel = Annotated[
    str | None,
    typer.Option(
        "--gt-level", metavar="N", help="Least salient value of masks, 1 to 255; normally 128."
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
    typer.Option("--label-maps", help="Ground truths are label maps: every value but 0 is an object."),
]
ClassName = Annotated[
    str | None,
    typer.Option("--class", metavar="CLASS", help="Only this class of class maps or a COCO file."),
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
FormatName = Annotated[
    Format | None,
    typer.Option("--format", help="Print this format instead of a table for the terminal."),
]
AgainstPaperFlag = Annotated[
    bool, typer.Option("--against-paper", help="Compare with the published row, such as MSOD/EDN+SI.")
]


def _option_of(name: str, metavar: str | None, beginning: str) -> Callable[[str], Any]:
    """Return a function that makes an option, whose help ends with what the command says."""
    return lambda ending: typer.Option(name, metavar=metavar, help=f"{beginning}: {ending}.")


out_option = _option_of("--out", "PATH", "Output")
images_option = _option_of("--images", "DIR", "Folder of photographs")
data_option = _option_of("--data", "DIR", "Folder of the data")
quick_option = _option_of("--quick", None, "A short run")


def metrics_option(default: str) -> Any:
    """Return the option `--metrics`, and what is computed or shown without it."""
    return typer.Option(
        "--metrics",
        metavar="KEYS",
        help=f"Metrics: paper, sod (salient objects: S, wF, E, F, MAE), dis (high resolution: also HCE, "
        f"BIoU, MBA), all, or keys with commas; by default {default}.",
        autocompletion=complete_metrics,
    )


def plot_option(content: str) -> Any:
    """Return the option `--plot`, a file whose ending is checked at once, and what it will show."""

    def check(path: Path | None) -> Path | None:
        if path is not None:
            from sisod.report.style import check_plot_path

            check_plot_path(path)
        return path

    text = f"Draw to this .pdf, .png or .svg file: {content}."
    return typer.Option("--plot", metavar="FILE", callback=check, help=text)


@contextmanager
def exit_on_user_error(command: str = "this", *, resumable: bool = False) -> Iterator[None]:
    """Print an error that the user can repair as one sentence; exit with 1, or 2 for wrong usage."""
    try:
        with readable_memory_errors(), _warnings_as_lines():
            yield
    except InputError as error:
        _exit(f"error: {error}", 2 if isinstance(error, UsageError) else 1)
    except ModuleNotFoundError as error:  # any other module than those of the extras is a bug
        if error.name not in EXTRAS:
            raise
        _exit(f"error: {MissingExtraError(command, error.name)}", 1)
    except OSError as error:
        if error.filename is not None or error.errno not in _OUTPUT_ERRORS:
            _exit(f"error: {error}", 1)
        with suppress(OSError, ValueError):  # what is buffered would fail again when Python exits
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _exit(f"error: cannot write to standard output: {error.strerror}", 1)
    except KeyboardInterrupt:
        kept = "; what was finished is kept, go on with --resume" if resumable else ""
        _exit(f"stopped{kept}", 130)


def _exit(message: str, code: int) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(code) from None


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


def load_pytorch() -> None:
    """Import PyTorch with a note, because it takes seconds."""
    with status("loading PyTorch"):
        import sisod.networks.network  # noqa: F401  (it imports PyTorch)


def chosen_protocol(name: str | None, **settings: str | None) -> Protocol:
    """Return the protocol of a name, or the default, with the settings that options change."""
    protocol = find_protocol(name or "default")
    values = {key: read_setting(key, text) for key, text in settings.items() if text is not None}
    return change_protocol(protocol, **values)


def chosen_meaning(gt_root: str, *, labels: bool, category: str | None) -> "TruthFormat":
    """Return what the values of ground truths mean, by the options --label-maps and --class."""
    from sisod.data.truths import TruthFormat, check_category

    meaning = TruthFormat(labels, category or "")
    if category is not None:
        check_category(gt_root, category)
    return meaning


def warn(notes: Iterable[str]) -> None:
    """Print sentences as warnings on standard error."""
    for note in notes:
        typer.echo(f"warning: {note}", err=True)


def save_plot(path: Path, figure: "Figure") -> None:
    """Write a figure to the file of `--plot`, and say so."""
    from sisod.report.style import save_figure

    save_figure(figure, path)
    typer.echo(f"drawn to {path}", err=True)


def print_left_out(gt_root: str, protocol: Protocol, n_left_out: int, n_components: int) -> None:
    """Say on standard error how many components of the ground truths have no frame, if any."""
    if n_left_out:
        start = f"{n_left_out} of {n_components} components in {gt_root!r} are"
        if protocol.released_code:
            typer.echo(f"{start} not scored by the rules of the released code", err=True)
        else:
            typer.echo(f"{start} below min_area and not scored; --min-area 0 scores all", err=True)


def show(
    fmt: Format | None,
    grids: "Sequence[Grid] | Callable[[int], Sequence[Grid]]",
    render: Callable[[Format], str] | None = None,
    *below: str,
) -> None:
    """Print tables, for the terminal or in a format.

    Args:
        fmt: the format; None for the terminal.
        grids: the tables of the terminal, or a function that makes them for its width.
        render: returns the text in a format; None for commands that have no choice.
        below: lines below the tables of the terminal.
    """
    if fmt is not None and render is not None:
        typer.echo(render(fmt))
        return
    make = grids if callable(grids) else lambda _: grids
    print_tables(lambda width: [table for grid in make(width) for table in grid.terminal(width)])
    for line in below:
        typer.echo(line)


def print_tables(tables: "Sequence[Table] | Callable[[int], Sequence[Table]]", width: int = 0) -> None:
    """Print rich tables, raising an error, unlike rich itself, if the output cannot be written.

    Args:
        tables: the tables, or a function that makes them for the width of the terminal.
        width: to print with; by default that of the terminal, or of the tables if they are piped.
    """
    from rich.console import Console

    on_terminal = is_terminal(sys.stdout)
    console = Console(width=width or None if on_terminal or width else UNLIMITED)
    with console.capture() as text:
        for table in tables(console.width) if callable(tables) else tables:
            console.print(table)
    sys.stdout.write(text.get())  # typer's echo would write UTF-8 whatever the stream's encoding
    sys.stdout.flush()

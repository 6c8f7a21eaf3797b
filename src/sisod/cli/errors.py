"""The subcommand errors."""

from enum import StrEnum
from typing import Annotated

import typer

from sisod.cli.report import Results
from sisod.cli.shared import FormatName, exit_on_user_error, print_grids


class ErrorGroups(StrEnum):
    """Groups of objects."""

    SIZE = "size"


def errors(
    paths: Results,
    *,
    by: Annotated[
        ErrorGroups | None,
        typer.Option("--by", metavar="size", help="Show objects in groups by this property."),
    ] = None,
    fmt: FormatName = None,
) -> None:
    """Show where methods fail: objects and wrong pixels by class, from missed to invented.

    Example:
        sisod errors results --by size
    """
    with exit_on_user_error():
        from sisod.evaluation.results import load_results
        from sisod.report.errors import error_grid, error_size_grid, missing_errors, render_errors

        results = load_results(paths)
        if fmt is not None:
            typer.echo(render_errors(results, fmt.value, by_size=by is not None))
        elif by is None:
            print_grids(error_grid(results))
            typer.echo("objects: with their share, invented ones included; pixels: share of all pixels")
        else:
            print_grids(error_size_grid(results))
            typer.echo("shares of the objects of a size, invented ones included")
        for note in missing_errors(results):
            typer.echo(f"warning: {note}", err=True)

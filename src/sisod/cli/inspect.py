"""The subcommand about data sets: parses, calls, prints."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sisod.cli.shared import print_tables, told


class ReportFormat(StrEnum):
    """Formats for programs."""

    JSON = "json"


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command("datasets")(show_datasets)


def show_datasets(
    root: Annotated[Path, typer.Argument(metavar="ROOT", help="Folder that holds data sets.")],
    *,
    fmt: Annotated[
        ReportFormat | None, typer.Option("--format", help="Print this instead of the terminal's table.")
    ] = None,
) -> None:
    """Say which of the paper's data sets a folder holds, what is amiss, and where to get the others."""
    from sisod.data.inspection import inspect_datasets, report_json, report_table
    from sisod.common.errors import InputError

    with told():
        found = inspect_datasets(root)
        if fmt is None:
            print_tables(lambda _: [report_table(found, root)])
        else:
            typer.echo(json.dumps(report_json(found), indent=2, ensure_ascii=False))
        troubled = [one for one in found if one.trouble]
        if troubled:
            first = troubled[0]
            n_there = sum(one.place is not None for one in found)
            raise InputError(
                f"{len(troubled)} of {n_there} data sets found cannot be used as they are "
                f"({first.known.name}: {first.trouble}); --format json names all files"
            )

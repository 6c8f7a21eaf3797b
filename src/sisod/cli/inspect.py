"""The subcommands that show what a data set is like: parse, call, print."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sisod.cli.shared import Overwrite, ProtocolName, exit_on_user_error, print_tables


class ReportFormat(StrEnum):
    """Formats for programs."""

    JSON = "json"


def register(app: typer.Typer) -> None:
    """Add the subcommands."""
    app.command()(frames)
    app.command()(stats)
    app.command("datasets")(show_datasets)


def show_datasets(
    root: Annotated[Path, typer.Argument(metavar="ROOT", help="Folder that holds data sets.")],
    *,
    fmt: Annotated[
        ReportFormat | None, typer.Option("--format", help="Print this instead of the terminal's table.")
    ] = None,
) -> None:
    """Say which of the paper's data sets a folder holds, what is wrong, and where to get the others."""
    from sisod.common.errors import InputError
    from sisod.data.inspection import inspect_datasets, report_json, report_table

    with exit_on_user_error():
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


def frames(
    gt: Annotated[str, typer.Argument(metavar="GT", help="Folder of masks.")],
    *,
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")],
    images: Annotated[str | None, typer.Option(help="Folder of images to draw on.")] = None,
    protocol: ProtocolName = None,
    overwrite: Overwrite = False,
) -> None:
    """Draw numbered frames, background and alpha over masks or images, to see what is scored."""
    from sisod.report.frames import draw_folder
    from sisod.scoring.protocols import find_protocol

    with exit_on_user_error():
        count = draw_folder(
            gt,
            out,
            protocol=find_protocol(protocol or "default"),
            image_root=images,
            overwrite=overwrite,
        )
        typer.echo(f"{count} pictures in {out}")


def stats(
    gt: Annotated[str, typer.Argument(metavar="GT", help="Folder of masks.")],
    *,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw the two panels of the paper's Figure 1: .pdf, .png or .svg."),
    ] = None,
    protocol: ProtocolName = None,
) -> None:
    """Print sizes and numbers of a data set's objects, and the theorem's rho and rho'."""
    from sisod.analysis.masks import mask_statistics, statistics_tables
    from sisod.report.style import check_plot_path, plot_statistics
    from sisod.scoring.protocols import find_protocol

    with exit_on_user_error():
        if plot is not None:
            check_plot_path(plot)
        found = mask_statistics(gt, find_protocol(protocol or "default"))
        print_tables(lambda _: statistics_tables(found))
        if plot is not None:
            plot_statistics(found, plot)
            typer.echo(f"drawn to {plot}", err=True)

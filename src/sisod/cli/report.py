"""Subcommands that show results: errors, plot, report."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from sisod.cli.shared import (
    AgainstPaperFlag,
    FormatName,
    complete_figure,
    complete_score,
    images_option,
    out_option,
    print_grids,
)

Results = Annotated[
    list[Path],
    typer.Argument(
        metavar="DIR",
        help="Results of 'sisod evaluate', or folders that contain them as <dataset>/<method>.",
    ),
]
Images = Annotated[
    list[str] | None,
    images_option("DATASET=DIR if there are several data sets; may be repeated"),
]
Ablation = Annotated[
    Path | None,
    typer.Option("--ablation", metavar="FILE", help="Table of 'sisod ablate', .json or .parquet."),
]

Fetch = Annotated[
    bool,
    typer.Option("--fetch", help="Also read maps and masks from URLs of other machines."),
]


FigureFormat = Literal["pdf", "png", "svg"]

FigureWidth = Literal["single", "double"]

ErrorGroups = Literal["size"]


def plot(
    paths: Results,
    *,
    out: Annotated[Path, out_option("all figures; with --figure, a .pdf, .png or .svg file")],
    figure: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            autocompletion=complete_figure,
            help="Draw only this figure: pr, roc, f, iou, size, size-log, size-quantile, number, "
            "objects, false-objects, errors, errors-size, ablation, examples.",
        ),
    ] = None,
    fmt: Annotated[
        FigureFormat, typer.Option("--format", help="Format of the figures in a folder.")
    ] = "pdf",
    images: Images = None,
    ablation: Ablation = None,
    example: Annotated[
        list[str] | None,
        typer.Option(metavar="IMAGE", help="Image for the examples; may be repeated."),
    ] = None,
    fetch: Fetch = False,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY",
            autocompletion=complete_score,
            help="Score of the figures of sizes, numbers, examples and ablation; may be repeated.",
        ),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Methods to draw, in this order."),
    ] = None,
    width: Annotated[
        FigureWidth, typer.Option(help="Width of one column, or of both columns, of a paper.")
    ] = "double",
) -> None:
    """Draw figures for a paper: curves, scores by size and number, objects, the ablation, examples.

    Example:
        sisod plot results --out figures --images MSOD=data/MSOD/image
    """
    from sisod.common.arguments import check_known
    from sisod.common.exceptions import UsageError
    from sisod.evaluation.results import datasets_of, load_results
    from sisod.report.gallery import (
        FigureRequest,
        figure_names,
        image_folders,
        write_figure,
        write_figures,
    )
    from sisod.report.style import check_plot_path

    if figure is not None:
        check_known("figure", figure, figure_names())
        check_plot_path(out)
    elif out.suffix.lower() in (".pdf", ".png", ".svg"):
        raise UsageError(f"{str(out)!r} is one file; choose its figure with --figure")
    results = load_results(paths)
    request = FigureRequest(
        results,
        image_folders(images or [], datasets_of(results)),
        ablation,
        tuple(example or ()),
        fetch,
        tuple(metric or ()),
        () if methods is None else tuple(methods.split(",")),
        width,
    )
    if figure is None:
        written, missing = write_figures(out, fmt, request)
    else:
        written, missing = [out], write_figure(out, figure, request)
    for note in missing:
        typer.echo(f"warning: {note}", err=True)
    for path in written:
        typer.echo(str(path))


def report(
    paths: Results,
    *,
    out: Annotated[Path, out_option("the page, an .html file")],
    images: Images = None,
    ablation: Ablation = None,
    against_paper: AgainstPaperFlag = False,
    title: Annotated[
        str, typer.Option(metavar="TEXT", help="Title of the page.")
    ] = "Size-invariant evaluation",
    fetch: Fetch = False,
) -> None:
    """Write a web page: scores with intervals, curves, scores by size, objects, failures.

    Example:
        sisod report results --out report.html --images MSOD=data/MSOD/image
    """
    from sisod.evaluation.results import datasets_of, load_results
    from sisod.report import write_report
    from sisod.report.gallery import image_folders

    results = load_results(paths)
    folders = image_folders(images or [], datasets_of(results))
    notes = write_report(
        results,
        out,
        image_roots=folders,
        ablation=ablation,
        against_paper=against_paper,
        title=title,
        fetch=fetch,
    )
    for note in notes:
        typer.echo(f"warning: {note}", err=True)
    typer.echo(str(out))


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
    from sisod.analysis.error_breakdown import has_errors
    from sisod.evaluation.results import load_results
    from sisod.report.error_breakdown import error_grid, error_size_grid, render_errors
    from sisod.report.missing import missing_errors
    from sisod.report.summary import protocol_notes

    results = load_results(paths)
    if fmt is not None:
        typer.echo(render_errors(results, fmt, by_size=by is not None))
    elif by is None:
        print_grids(error_grid(results))
        typer.echo("objects: with their share, invented ones included; pixels: share of all pixels")
    else:
        print_grids(error_size_grid(results))
        typer.echo("shares of the objects of a size, invented ones included")
    protocols = [r.evaluation.protocol.name for r in results if has_errors(r.evaluation)]
    for note in [*missing_errors(results), *protocol_notes(protocols)]:
        typer.echo(f"warning: {note}", err=True)

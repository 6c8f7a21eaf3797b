"""Subcommands that show results: table, metrics, errors, plot, report."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sisod.cli import shared

if TYPE_CHECKING:
    from sisod.evaluation.results import Result

Results = Annotated[
    list[Path],
    typer.Argument(
        metavar="DIR",
        help="Results of 'sisod evaluate', or folders that contain them as <dataset>/<method>.",
    ),
]
Images = Annotated[
    list[str] | None, shared.images_option("DATASET=DIR if there are several data sets; may be repeated")
]
Fetch = Annotated[
    bool, typer.Option("--fetch", help="Also read maps and masks from URLs of other machines.")
]


def plot(
    paths: Results,
    *,
    out: Annotated[Path, shared.out_option("all figures; with --figure, a .pdf, .png or .svg file")],
    figure: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            autocompletion=shared.complete_figure,
            help="Draw only this figure: pr, roc, f, iou, size, size-log, size-quantile, number, "
            "objects, false-objects, errors, examples.",
        ),
    ] = None,
    fmt: Annotated[
        Literal["pdf", "png", "svg"], typer.Option("--format", help="Format of the figures in a folder.")
    ] = "pdf",
    images: Images = None,
    example: Annotated[
        list[str] | None, typer.Option(metavar="IMAGE", help="Image for the examples; repeatable.")
    ] = None,
    fetch: Fetch = False,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY",
            autocompletion=shared.complete_score,
            help="Score to draw, where there is a choice.",
        ),
    ] = None,
    methods: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Methods to draw, in this order.")
    ] = None,
    width: Annotated[
        Literal["single", "double"],
        typer.Option(help="Width of one column, or of both columns, of a paper."),
    ] = "double",
) -> None:
    """Draw figures for a paper: curves, scores by size and number, objects, errors, examples.

    Example:
        sisod plot results --out figures --images MSOD=data/MSOD/image
    """
    from sisod.common.arguments import check_known
    from sisod.common.exceptions import UsageError
    from sisod.report.gallery import FIGURES, FigureRequest, write_figure, write_figures
    from sisod.report.style import check_plot_path

    if figure is not None:
        check_known("figure", figure, FIGURES)
        check_plot_path(out)
    elif out.suffix.lower() in (".pdf", ".png", ".svg"):
        raise UsageError(f"{str(out)!r} is one file; choose its figure with --figure")
    request = FigureRequest(
        *_load(paths, images),
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
    shared.warn(missing)
    for path in written:
        typer.echo(str(path))


def _load(paths: list[Path], images: list[str] | None) -> "tuple[list[Result], dict[str, Path]]":
    """Return results, and the folder of photographs of every data set that `--images` names."""
    from sisod.evaluation.results import datasets_of, load_results
    from sisod.report.gallery import image_folders

    results = load_results(paths)
    return results, image_folders(images or [], datasets_of(results))


def report(
    paths: Results,
    *,
    out: Annotated[Path, shared.out_option("the page, an .html file")],
    images: Images = None,
    against_paper: shared.AgainstPaperFlag = False,
    title: Annotated[
        str, typer.Option(metavar="TEXT", help="Title of the page.")
    ] = "Size-invariant evaluation",
    fetch: Fetch = False,
) -> None:
    """Write a web page: scores with intervals, curves, scores by size, objects, failures.

    Example:
        sisod report results --out report.html --images MSOD=data/MSOD/image
    """
    from sisod.report import write_report

    results, folders = _load(paths, images)
    notes = write_report(
        results,
        out,
        image_roots=folders,
        against_paper=against_paper,
        title=title,
        fetch=fetch,
    )
    shared.warn(notes)
    typer.echo(str(out))


def paper(
    paths: Results,
    *,
    out: Annotated[Path, shared.out_option("table, figures, paragraph and references")],
    metrics: Annotated[str | None, shared.metrics_option("those that 'sisod evaluate' prints")] = None,
    images: Images = None,
    fetch: Fetch = False,
) -> None:
    """Write what a paper needs: LaTeX table, forest plot, sizes, examples, a paragraph, references.

    Example:
        sisod paper results --out paper --images MSOD=data/MSOD/image
    """
    from sisod.report.manuscript import write_manuscript

    results, folders = _load(paths, images)
    written, notes = write_manuscript(results, out, image_roots=folders, metrics=metrics, fetch=fetch)
    shared.warn(notes)
    for path in written:
        typer.echo(str(path))


def errors(
    paths: Results,
    *,
    by: Annotated[
        Literal["size"] | None,
        typer.Option("--by", metavar="size", help="Show objects in groups by this property."),
    ] = None,
    fmt: shared.FormatName = None,
) -> None:
    """Show where methods fail: objects and wrong pixels by class, from missed ones to false ones.

    Example:
        sisod errors results --by size
    """
    from sisod.evaluation.results import load_results
    from sisod.report.error_breakdown import error_grid, error_size_grid, render_errors
    from sisod.report.missing import missing_errors
    from sisod.report.summary import protocol_notes

    results = load_results(paths)
    is_by_size = by == "size"
    grid = error_size_grid(results) if is_by_size else error_grid(results)
    caption = "objects: with their share, false ones included; pixels: share of all pixels"
    if is_by_size:
        caption = "shares of the objects of a size, false ones included"
    shared.show(fmt, [grid], lambda kind: render_errors(results, kind, by_size=is_by_size), caption)
    protocols = [r.evaluation.protocol.name for r in results if r.evaluation.counts is not None]
    shared.warn([*missing_errors(results), *protocol_notes(protocols)])


def table(
    results: Results,
    *,
    metrics: Annotated[
        list[str] | None,
        shared.metrics_option(
            "those that 'sisod evaluate' prints; 'sisod metrics' lists all. May be repeated"
        ),
    ] = None,
    fmt: shared.FormatName = None,
    digits: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, max=17, help="Digits; by default 4, in csv and json all."),
    ] = None,
    group: Annotated[
        Literal["dataset", "method"] | None,
        typer.Option(help="What forms sections, or groups of columns in LaTeX; by default dataset."),
    ] = None,
    rank: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, max=2, help="Mark the best (1), also the second (2), or none."),
    ] = None,
    layout: Annotated[
        Literal["rows", "columns"] | None,
        typer.Option(help="Metrics as rows or columns; by default rows if columns are too wide."),
    ] = None,
) -> None:
    """Print a table of saved results, of any stored metrics, without scoring again.

    Of methods called NAME@SEED, such as EDN@0 and EDN@1, it has mean and deviation over the seeds.

    Example:
        sisod table results --metrics mae,maxf,em --format latex --digits 3
    """
    from sisod.evaluation.notes import undefined_notes
    from sisod.evaluation.results import find_results
    from sisod.evaluation.saved import read_run, read_summary
    from sisod.report.summary import (
        SummaryRow,
        TableStyle,
        choose_tables,
        make_grids,
        merge_seeds,
        render,
    )

    folders = find_results(results)
    runs = {name: read_run(folder) for name, folder in folders.items()}
    lines = [
        SummaryRow(*name, *read_summary(folder, runs[name]), runs[name]["protocol"]["name"])
        for name, folder in folders.items()
    ]
    tables, notes = choose_tables(lines, ",".join(metrics) if metrics else None)
    style = TableStyle(group=group, layout=layout, rank=rank, digits=digits)
    merged = merge_seeds(lines)
    shared.show(
        fmt,
        lambda width: make_grids(merged, tables, style, width=width),
        lambda kind: render(merged, tables, kind, style),
    )
    shared.warn(notes)
    counts = [
        (*name, line.defined, run["images"])
        for (name, run), line in zip(runs.items(), lines, strict=True)
    ]
    for note in undefined_notes(counts, [key for table in tables for key in table]):
        typer.echo(note, err=True)


def show_metrics(*, fmt: shared.FormatName = None) -> None:
    """List every metric: its key, title, better direction, when it is computed, what it measures.

    A narrow terminal has no room for what it measures.

    Other spellings are accepted, too: smeasure or sm for s, wfm for wf, maxf for f_max, em for e_mean.

    The protocol official has the nine metrics of the paper only: mae, si_mae, auc, si_auc, f_mean, ...

    Example:
        sisod metrics --format md
    """
    from sisod.report.metric_list import metric_grid, render_metrics

    shared.show(fmt, lambda width: [metric_grid(width)], render_metrics)

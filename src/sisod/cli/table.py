"""Subcommands that print tables without scoring: table, metrics."""

from typing import Annotated, Literal

import typer

from sisod.cli.report import Results
from sisod.cli.shared import FormatName, metrics_option, print_tables

Group = Literal["dataset", "method"]

MetricLayout = Literal["rows", "columns"]


def table(
    results: Results,
    *,
    metrics: Annotated[
        list[str] | None,
        metrics_option("those that 'sisod evaluate' prints; 'sisod metrics' lists all. May be repeated"),
    ] = None,
    fmt: FormatName = None,
    digits: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, max=17, help="Digits; by default 4, in csv and json all."),
    ] = None,
    group: Annotated[
        Group | None,
        typer.Option(help="What forms sections, or groups of columns in LaTeX; by default dataset."),
    ] = None,
    rank: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, max=2, help="Mark the best (1), also the second (2), or none."),
    ] = None,
    layout: Annotated[
        MetricLayout | None,
        typer.Option(help="Metrics as rows or columns; by default rows if columns are too wide."),
    ] = None,
) -> None:
    """Print a table of saved results, of any stored metrics, without scoring again.

    Example:
        sisod table results --metrics mae,maxf,em --format latex --digits 3
    """
    from sisod.evaluation.notes import undefined_notes
    from sisod.evaluation.results import find_results
    from sisod.evaluation.saved import read_run, read_summary
    from sisod.report.summary import SummaryRow, TableStyle, choose_tables, render, terminal_tables

    folders = find_results(results)
    runs = {name: read_run(folder) for name, folder in folders.items()}
    lines = [
        SummaryRow(*name, *read_summary(folder), runs[name]["protocol"]["name"])
        for name, folder in folders.items()
    ]
    tables, notes = choose_tables(folders, lines, ",".join(metrics) if metrics else None)
    style = TableStyle(
        group=group,
        layout=layout,
        rank=rank,
        digits=digits,
    )
    if fmt is None:
        print_tables(lambda width: terminal_tables(lines, tables, width=width, style=style))
    else:
        typer.echo(render(lines, tables, fmt, style))
    for note in notes:
        typer.echo(f"warning: {note}", err=True)
    counts = [
        (*name, line.defined, run["images"])
        for (name, run), line in zip(runs.items(), lines, strict=True)
    ]
    for note in undefined_notes(counts, [key for table in tables for key in table]):
        typer.echo(note, err=True)


def show_metrics(*, fmt: FormatName = None) -> None:
    """List every metric: its key, title, better direction, when it is computed, what it measures.

    A narrow terminal has no room for what it measures: --format md prints all.

    Other spellings are accepted, too: smeasure or sm for s, wfm for wf, maxf for f_max, em for e_mean.

    The protocol official has the nine metrics of the paper only: mae, si_mae, auc, si_auc, f_mean, ...

    Example:
        sisod metrics --format md
    """
    from sisod.report.metric_list import metric_grid, render_metrics

    if fmt is None:
        print_tables(lambda width: metric_grid(width).terminal(width))
    else:
        typer.echo(render_metrics(fmt))

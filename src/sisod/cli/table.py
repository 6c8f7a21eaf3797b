"""Subcommands that print tables without scoring: table, metrics."""

from enum import StrEnum
from typing import Annotated

import typer

from sisod.cli.report import Results
from sisod.cli.shared import FormatName, exit_on_user_error, metrics_option, print_tables


class Group(StrEnum):
    """What forms groups of columns, or sections."""

    DATASET = "dataset"
    METHOD = "method"


class MetricLayout(StrEnum):
    """Whether metrics are the rows or the columns."""

    ROWS = "rows"
    COLUMNS = "columns"


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
        typer.Option(
            metavar="N",
            min=0,
            max=17,
            help="Digits after the point; by default 4, and all of them in csv and json.",
        ),
    ] = None,
    group: Annotated[
        Group | None,
        typer.Option(
            metavar="dataset|method",
            help="Groups of columns in LaTeX, sections elsewhere; by default data sets.",
        ),
    ] = None,
    rank: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            max=2,
            help="2: best bold, second best underlined; 1: only the best; 0: no marks; by default 2.",
        ),
    ] = None,
    layout: Annotated[
        MetricLayout | None,
        typer.Option(
            metavar="rows|columns",
            help="Metrics as rows or as columns; by default rows if columns are too wide.",
        ),
    ] = None,
) -> None:
    """Print a table of saved results, of any stored metrics, without scoring again.

    Example:
        sisod table results --metrics mae,maxf,em --format latex --digits 3
    """
    with exit_on_user_error():
        from sisod.evaluation.notes import DefinedCounts, undefined_notes
        from sisod.evaluation.results import find_results
        from sisod.evaluation.saved import read_run, read_summary
        from sisod.report.summary import Line, TableStyle, choose_tables, render, terminal_tables

        folders = find_results(results)
        runs = {name: read_run(folder) for name, folder in folders.items()}
        lines = [
            Line(*name, *read_summary(folder), runs[name]["protocol"]["name"])
            for name, folder in folders.items()
        ]
        tables, notes = choose_tables(folders, lines, ",".join(metrics) if metrics else None)
        style = TableStyle(
            group=None if group is None else group.value,
            layout=None if layout is None else layout.value,
            rank=rank,
            digits=digits,
        )
        if fmt is None:
            print_tables(lambda width: terminal_tables(lines, tables, width=width, style=style))
        else:
            typer.echo(render(lines, tables, fmt.value, style))
        for note in notes:
            typer.echo(f"warning: {note}", err=True)
        counts = [
            DefinedCounts(*name, line.defined, run.get("images", max(line.defined.values(), default=0)))
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
    with exit_on_user_error():
        from sisod.report.metric_list import metric_grid, render_metrics

        if fmt is None:
            print_tables(lambda width: metric_grid(width).terminal(width))
        else:
            typer.echo(render_metrics(fmt.value))

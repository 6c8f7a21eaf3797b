"""One subcommand per public verb: parses, calls, prints."""

from pathlib import Path
from typing import Annotated

import typer

import sisod
from sisod.networks import commands as network_commands

app = typer.Typer(
    help="Score, train and look at segmentation so that small objects count.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001  (typer calls it with the flag)
    if wanted:
        typer.echo(f"sisod {sisod.__version__}")
        raise typer.Exit


@app.callback()
def main(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Score, train and look at segmentation so that small objects count."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the maps and the figure.")] = Path("demo"),
) -> None:
    """Show on made scenes how MAE and SI-MAE rank two methods the other way round."""
    from rich.console import Console
    from rich.table import Table

    from sisod.demo import KEYS, preferred, run_demo

    found = run_demo(out)
    count = len(next(iter(found.results.values())).images)
    table = Table(title=f"{count} made scenes, one or two large objects and two to five small ones each")
    table.add_column("method")
    for key in KEYS:
        metric = sisod.METRICS[key]
        table.add_column(f"{metric.title} {'↑' if metric.direction == 'up' else '↓'}", justify="right")
    for method, text in (("A", "A  large objects only"), ("B", "B  every object, coarsely")):
        cells = []
        for key in KEYS:
            cell = f"{found.results[method].summary[key]:.4f}"
            cells.append(f"[bold]{cell}[/bold]" if preferred(found.results, key) == method else cell)
        table.add_row(text, *cells)
    Console(width=120).print(table)
    for method in found.results:
        keys = [key for key in KEYS if preferred(found.results, key) == method]
        if keys:
            typer.echo(
                f"Method {method} is preferred by {', '.join(sisod.METRICS[k].title for k in keys)}."
            )
    typer.echo(f"The picture of it: {found.figure}")


network_commands.register(app)

"""The subcommand that shows what this is about: parses, calls, prints."""

from pathlib import Path
from typing import Annotated

import typer

from sisod.cli.shared import exit_on_user_error, print_tables
from sisod.common.errors import TRAINING, MissingExtraError, require


def register(app: typer.Typer) -> None:
    """Add the subcommand."""
    app.command()(demo)


def demo(
    *,
    out: Annotated[Path, typer.Option(help="Folder for everything that is made.")] = Path("demo"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Only the first part, in seconds: no training.")
    ] = False,
) -> None:
    """Show on made scenes what size-invariant metrics see, then train with both losses and compare."""
    from sisod.report.summary import Line, terminal_tables
    from sisod.reproduction.demo import KEYS, preferred, run_demo
    from sisod.scoring.metrics import METRICS

    with exit_on_user_error():
        found = run_demo(out)
        titles = {"A": "A, large only", "B": "B, all, coarsely"}
        lines = [
            Line("made", titles[method], result.summary, result.defined)
            for method, result in found.results.items()
        ]
        print_tables(lambda width: terminal_tables(lines, KEYS, width=width))
        for method in found.results:
            keys = [key for key in KEYS if preferred(found.results, key) == method]
            if keys:
                names = ", ".join(METRICS[key].title for key in keys)
                typer.echo(f"Method {method} is preferred by {names}.")
        typer.echo(f"The picture of it: {found.figure}")
        if not quick:
            _demo_of_training(out / "trained")


def _demo_of_training(folder: Path) -> None:
    require("the second part, which trains a network,", *TRAINING)
    from sisod.reproduction.demo_training import run_trained_demo, tables_of, verdict

    typer.echo("Now a small network learns such scenes, with the plain and the size-invariant loss.")
    found = run_trained_demo(folder)
    print_tables(lambda _: tables_of(found))
    typer.echo(verdict(found))
    typer.echo(f"Maps, results and pictures ({found.examples.name}): {folder}")
    if found.page is not None:
        typer.echo(f"The page of it, for a browser: {found.page}")
    else:
        typer.echo(str(MissingExtraError("The page of it, for a browser,", "jinja2")), err=True)

"""The command line: one module for each group of commands; each parses, calls and prints.

Nothing heavy is imported before a command runs, so that `--help` answers at once.
"""

from typing import Annotated

import typer

from sisod.cli import compare, demo, evaluate, inspect, networks, predict, report, reproduce, train
from sisod.cli.shared import RUNNING, Commands, exit_on_user_error
from sisod.common.version import __version__

app = typer.Typer(
    help="Score, train and look at segmentation so that small objects count.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    cls=Commands,
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001  (typer calls it with the flag)
    if wanted:
        with exit_on_user_error():
            typer.echo(f"sisod {__version__}")
        raise typer.Exit


@app.callback()
def main(
    context: typer.Context,
    *,
    version: Annotated[  # noqa: ARG001  (its callback does it)
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Score, train and look at segmentation so that small objects count."""
    RUNNING.set(context.invoked_subcommand or "")


for _module in (evaluate, inspect, demo, compare, networks, train, predict, report, reproduce):
    _module.register(app)

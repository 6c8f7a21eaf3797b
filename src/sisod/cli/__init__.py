"""The command line, one module for each group of commands: parse arguments, call the library, print.

Heavy modules are imported when a command runs, so that `--help` is quick.
"""

from typing import Annotated

import typer

from sisod.cli import compare, demo, evaluate, inspect, networks, predict, report, reproduce, train
from sisod.cli.shared import RUNNING, Commands, exit_on_user_error
from sisod.common.version import __version__

app = typer.Typer(
    help="Evaluate and train segmentation so that small objects count.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    cls=Commands,
)


def _print_version(requested: bool) -> None:  # noqa: FBT001  (typer passes the flag)
    if requested:
        with exit_on_user_error():
            typer.echo(f"sisod {__version__}")
        raise typer.Exit


@app.callback()
def main(
    context: typer.Context,
    *,
    version: Annotated[  # noqa: ARG001  (handled by its callback)
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Evaluate and train segmentation so that small objects count."""
    RUNNING.set(context.invoked_subcommand or "")


for _module in (evaluate, inspect, demo, compare, networks, train, predict, report, reproduce):
    _module.register(app)

"""The command line, one module for each group of commands: parse arguments, call the library, print.

Heavy modules are imported when a command runs, so that `--help` is quick.
"""

from collections.abc import Callable
from typing import Annotated

import typer

from sisod.cli import compare, evaluate, inspect, networks, report, reproduce, train
from sisod.cli.shared import exit_on_user_error
from sisod.common.streams import usable_streams
from sisod.common.version import __version__

# every command, in the order and the groups of the help: a new command is one line here
COMMANDS: dict[str, dict[str, Callable[..., None]]] = {
    "Start here": {
        "evaluate": evaluate.evaluate,
        "compare": compare.compare,
        "report": report.report,
        "train": train.train,
        "predict": networks.predict,
        "demo": reproduce.demo,
    },
    "Results": {
        "table": report.table,
        "errors": report.errors,
        "plot": report.plot,
        "paper": report.paper,
        "metrics": report.show_metrics,
    },
    "Data": {
        "check": inspect.check,
        "frames": inspect.frames,
        "stats": inspect.stats,
        "datasets": inspect.show_datasets,
    },
    "Networks": {
        "networks": networks.show_networks,
        "calibrate": train.calibrate,
        "ablate": train.ablate,
        "convert": networks.convert,
        "export": networks.export,
        "reproduce": reproduce.reproduce,
        "bench": reproduce.bench,
    },
}

app = typer.Typer(
    help="Evaluate and train segmentation so that small objects count.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _print_version(requested: bool) -> None:  # noqa: FBT001  (typer passes the flag)
    if requested:
        from sisod.scoring import kernel

        typer.echo(f"sisod {__version__} ({kernel.engine()} engine)")
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
    context.with_resource(usable_streams())
    name = context.invoked_subcommand
    functions = {key: value for group in COMMANDS.values() for key, value in group.items()}
    resumable = name in functions and "resume" in functions[name].__annotations__
    context.with_resource(exit_on_user_error(f"sisod {name}", resumable=resumable))


for _group, _functions in COMMANDS.items():
    for _name, _function in _functions.items():
        app.command(_name, rich_help_panel=_group)(_function)

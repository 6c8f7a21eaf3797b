"""The subcommand `demo`: parses, calls, prints."""

from pathlib import Path
from typing import Annotated

import typer

from sisod.cli.shared import out_option, print_tables, quick_option
from sisod.common.exceptions import TRAINING, MissingExtraError, require


def demo(
    *,
    out: Annotated[Path, out_option("all files")] = Path("demo"),
    quick: Annotated[bool, quick_option("only the first part, in seconds, no training")] = False,
) -> None:
    """Compare metrics on synthetic scenes, then train with both losses and compare the networks.

    Example:
        sisod demo --quick
    """
    from sisod.report.summary import SummaryRow, terminal_tables
    from sisod.reproduction.demo import KEYS, preferred, run_demo
    from sisod.scoring.metrics import METRICS

    methods = run_demo(out)
    titles = {"A": "A, large only", "B": "B, all, coarsely"}
    lines = [
        SummaryRow("synthetic", titles[method], result.summary, result.defined)
        for method, result in methods.results.items()
    ]
    print_tables(lambda width: terminal_tables(lines, [KEYS], width=width))
    for method in methods.results:
        keys = [key for key in KEYS if preferred(methods.results, key) == method]
        if keys:
            names = ", ".join(METRICS[key].title for key in keys)
            typer.echo(f"Method {method} is preferred by {names}.")
    typer.echo(f"The picture of both methods: {methods.figure}")
    if not quick:
        _demo_training(out / "trained")


def _demo_training(folder: Path) -> None:
    require("the second part, which trains a network,", *TRAINING)
    from sisod.reproduction.demo_training import run_trained_demo

    typer.echo("Now a small network learns such scenes, with the plain and the size-invariant loss.")
    trained = run_trained_demo(folder)
    print_tables(trained.grid().terminal)
    typer.echo(trained.caption())
    typer.echo(f"Runs, maps and results: {folder}")
    if trained.page is not None:
        typer.echo(f"The report, for a browser: {trained.page}")
    else:
        typer.echo(str(MissingExtraError("The report, for a browser,", "jinja2")), err=True)

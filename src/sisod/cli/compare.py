"""The subcommand compare."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sisod.cli.shared import (
    AgainstPaperFlag,
    Format,
    FormatName,
    exit_on_user_error,
    metrics_option,
    print_grids,
)

if TYPE_CHECKING:
    from sisod.analysis.comparison import Comparison
    from sisod.evaluation.result import Evaluation
    from sisod.paper.against import AgainstPaper


def compare(
    results: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]DIR [NAME=]DIR...",
            help="Two or more result folders of 'sisod evaluate', of the same images.",
        ),
    ],
    *,
    metrics: Annotated[
        str | None,
        metrics_option(
            "those of the paper, found, object_f1, false_objects and bsi_f_binary; also object_ + a "
            "column of the object table"
        ),
    ] = None,
    resamples: Annotated[
        int, typer.Option(metavar="N", min=1, help="Number of bootstrap resamples.")
    ] = 10_000,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the resampling.")] = 0,
    against_paper: AgainstPaperFlag = False,
    fmt: FormatName = None,
) -> None:
    """Compare results pair by pair: bootstrap intervals over images, and sign tests.

    With --against-paper, EDN+SI=results/MSOD/run is compared with the published row MSOD/EDN+SI.

    Example:
        sisod compare results/MSOD/EDN results/MSOD/ICON
    """
    from sisod.analysis.comparison import compare_many
    from sisod.common.errors import UsageError
    from sisod.evaluation.benchmark import split_name
    from sisod.paper.against import against_paper as compare_with_row

    with exit_on_user_error():
        if against_paper:
            if len(results) != 1:
                raise UsageError(f"--against-paper takes one result, got {len(results)}")
            ((network, evaluation),) = load_named(results).items()
            dataset = Path(split_name(results[0])[1]).resolve().parent.name
            _show(compare_with_row(evaluation, f"{dataset}/{network}"), fmt)
            return
        comparison = compare_many(load_named(results), metrics=metrics, resamples=resamples, seed=seed)
        _show(comparison, fmt)
        for note in comparison.notes:
            typer.echo(f"warning: {note}", err=True)


def _show(comparison: "Comparison | AgainstPaper", fmt: Format | None) -> None:
    if fmt is None:
        print_grids(comparison.grid())
        typer.echo(comparison.caption())
    else:
        typer.echo(comparison.render(fmt.value))


def load_named(results: list[str]) -> "dict[str, Evaluation]":
    """Load result folders, each under its name."""
    from sisod.common.arguments import check_utf8
    from sisod.common.errors import UsageError
    from sisod.evaluation.benchmark import split_name
    from sisod.evaluation.result import Evaluation

    evaluations: dict[str, Evaluation] = {}
    for name, folder in map(split_name, results):
        check_utf8(name, "the name")
        if name in evaluations:
            raise UsageError(f"two results are called {name!r}; give them names, as NAME=DIR")
        evaluations[name] = Evaluation.load(folder)
    return evaluations

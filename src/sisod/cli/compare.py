"""The subcommand compare."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sisod.cli import shared
from sisod.common.arguments import check_utf8
from sisod.common.exceptions import UsageError, printable
from sisod.common.grid import Format

if TYPE_CHECKING:
    from sisod.analysis.comparison import Comparison
    from sisod.evaluation.result import Evaluation
    from sisod.evaluation.results import Result


def compare(
    results: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]DIR",
            help="Results of 'sisod evaluate', or folders that contain them as <dataset>/<method>.",
        ),
    ],
    *,
    metrics: Annotated[
        str | None,
        shared.metrics_option("those of the paper and of objects; also object_ + a column of objects"),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Show all columns, and the verdict of every pair of methods.")
    ] = False,
    resamples: Annotated[
        int, typer.Option(metavar="N", min=1, help="Number of bootstrap resamples, and of permutations.")
    ] = 10_000,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed: of the resampling.")] = 0,
    plot: Annotated[Path | None, shared.plot_option("every difference")] = None,
    against_paper: shared.AgainstPaperFlag = False,
    fmt: shared.FormatName = None,
) -> None:
    """Compare methods pair by pair: a verdict, differences with confidence intervals, tests.

    Results called NAME@SEED, such as EDN@0 and EDN@1, are runs of one method: seeds are resampled too.

    With --against-paper, EDN+SI=results/MSOD/run is compared with the published row MSOD/EDN+SI.

    Example:
        sisod compare results/MSOD/EDN results/MSOD/ICON --plot forest.pdf
    """
    if against_paper:
        if plot is not None:
            raise UsageError("--plot draws differences of methods; leave out --against-paper")
        _compare_with_paper(results, fmt)
        return
    comparisons = _compare_datasets(results, metrics, resamples, seed)
    if fmt is not None:
        from sisod.analysis.comparison import render_datasets

        typer.echo(render_datasets(comparisons, fmt, everything=everything))
    for name, comparison in comparisons.items():
        several = len(comparisons) > 1
        if fmt is None:
            for line in ([printable(name)] if several else []) + comparison.conclusion():
                typer.echo(line)
            pairs = comparison.verdicts() if everything and len(comparison.methods) > 2 else []
            below = (*pairs, comparison.caption(), *comparison.legend())
            shared.show(None, [comparison.grid(everything=everything)], None, *below)
        shared.warn(f"{name}: {note}" if several else note for note in comparison.notes)
        if plot is not None:
            from sisod.report.drawing.forest import comparison_figure

            path = plot.with_name(f"{plot.stem}-{name}{plot.suffix}") if several else plot
            shared.save_plot(path, comparison_figure(comparison))


def _compare_with_paper(paths: list[str], fmt: Format | None) -> None:
    from sisod.paper import against_paper

    results = _load(paths)
    if len(results) > 1:
        raise UsageError(f"--against-paper takes one result, as results/MSOD/EDN, got {len(results)}")
    (result,) = results
    comparison = against_paper(result.evaluation, f"{result.dataset}/{result.method}")
    shared.show(fmt, [comparison.grid()], comparison.render, comparison.caption())


def _compare_datasets(
    paths: list[str], metrics: str | None, resamples: int, seed: int
) -> "dict[str, Comparison]":
    """Return data set -> comparison; results given one by one are compared with each other."""
    from sisod.analysis.comparison import compare_many
    from sisod.analysis.scores import chosen_keys

    results = _load(paths)
    single = len(results) == len(paths)
    datasets: dict[str, dict[str, Evaluation]] = {}
    for result in results:
        methods = datasets.setdefault("" if single else result.dataset, {})
        if result.method in methods:
            raise UsageError(
                f"two results on {result.dataset!r} are called {result.method!r}; give one a name, as "
                "NAME=DIR"
            )
        methods[result.method] = result.evaluation
    compared = {name: methods for name, methods in datasets.items() if len(methods) > 1} or datasets
    for name in datasets.keys() - compared.keys():
        shared.warn([f"{printable(name)} has one method only and is not compared"])
    if metrics is not None and len(results) > 1:  # so that a message names every result without one
        chosen_keys(metrics, [result for result in results if single or result.dataset in compared])
    return {
        name: compare_many(methods, metrics=metrics, resamples=resamples, seed=seed)
        for name, methods in compared.items()
    }


def _load(paths: list[str]) -> "list[Result]":
    """Load result folders, each under its name, and the results in folders that contain them."""
    from sisod.evaluation.benchmark import split_name
    from sisod.evaluation.results import Result, load_results

    results = []
    for path in paths:
        name, folder = split_name(path)
        check_utf8(name, "the name")
        loaded = load_results([folder])
        if Path(folder, "run.json").is_file():
            loaded = [Result(loaded[0].dataset, name, loaded[0].evaluation)]
        elif path != folder:
            raise UsageError(f"{path!r} names one method, but the folder contains results; leave it out")
        results += loaded
    return results

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


def compare(
    results: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]DIR...",
            help="Two or more result folders of 'sisod evaluate', of the same images; or folders that "
            "contain them as <dataset>/<method>, compared for each data set.",
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
        int,
        typer.Option(metavar="N", min=1, help="Number of bootstrap resamples, and of permutations."),
    ] = 10_000,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the resampling.")] = 0,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw to this .pdf, .png or .svg file: every difference with its interval; with "
            "several data sets, one file for each.",
        ),
    ] = None,
    against_paper: AgainstPaperFlag = False,
    fmt: FormatName = None,
) -> None:
    """Compare methods pair by pair: confidence intervals, sign and permutation tests, a verdict.

    With --against-paper, EDN+SI=results/MSOD/run is compared with the published row MSOD/EDN+SI.

    Example:
        sisod compare results/MSOD/EDN results/MSOD/ICON --plot forest.pdf
    """
    from sisod.common.errors import UsageError
    from sisod.evaluation.benchmark import split_name
    from sisod.report.style import check_plot_path

    with exit_on_user_error():
        if plot is not None:
            check_plot_path(plot)
        if against_paper:
            if len(results) != 1:
                raise UsageError(f"--against-paper takes one result, got {len(results)}")
            folder = Path(split_name(results[0])[1])
            if folder.is_dir() and not _is_result(folder):
                raise UsageError(
                    f"--against-paper takes the folder of one result, as results/MSOD/EDN; "
                    f"{str(folder)!r} is not one"
                )
            if plot is not None:
                raise UsageError("--plot draws differences of methods; leave out --against-paper")
            _compare_with_paper(results, fmt)
            return
        comparisons = _compare_datasets(results, metrics, resamples, seed)
        _show(comparisons, fmt)
        for name, comparison in comparisons.items():
            start = f"{name}: " if len(comparisons) > 1 else ""
            for note in comparison.notes:
                typer.echo(f"warning: {start}{note}", err=True)
        if plot is not None:
            _draw(comparisons, plot)


def _compare_with_paper(results: list[str], fmt: Format | None) -> None:
    from sisod.evaluation.benchmark import split_name
    from sisod.paper.against import against_paper

    ((network, evaluation),) = load_named(results).items()
    dataset = Path(split_name(results[0])[1]).resolve().parent.name
    comparison = against_paper(evaluation, f"{dataset}/{network}")
    if fmt is None:
        print_grids(comparison.grid())
        typer.echo(comparison.caption())
    else:
        typer.echo(comparison.render(fmt.value))


def _compare_datasets(
    results: list[str], metrics: str | None, resamples: int, seed: int
) -> "dict[str, Comparison]":
    """Return data set -> comparison of its methods."""
    from sisod.analysis.bootstrap import chosen_keys
    from sisod.analysis.comparison import compare_many
    from sisod.common.errors import InputError, printable
    from sisod.evaluation.results import Result

    datasets = load_datasets(results)
    compared = {name: methods for name, methods in datasets.items() if len(methods) > 1}
    if len(datasets) > 1 and not compared:
        raise InputError(
            f"expected two or more methods on the same data set, got one on each of {len(datasets)}"
        )
    for name in datasets if compared else ():
        if name not in compared:
            typer.echo(f"warning: {printable(name)} has one method only and is not compared", err=True)
    if (
        metrics is not None and compared
    ):  # of all data sets, so that the message names every result without one
        chosen_keys(metrics, [Result(d, m, e) for d, ms in compared.items() for m, e in ms.items()])
    return {
        name: compare_many(methods, metrics=metrics, resamples=resamples, seed=seed)
        for name, methods in (compared or datasets).items()
    }


def _show(comparisons: "dict[str, Comparison]", fmt: Format | None) -> None:
    from sisod.analysis.comparison import render_datasets
    from sisod.common.errors import printable

    if fmt is not None and len(comparisons) == 1:
        (comparison,) = comparisons.values()
        typer.echo(comparison.render(fmt.value))
    elif fmt is not None:
        typer.echo(render_datasets(comparisons, fmt.value))
    else:
        for name, comparison in comparisons.items():
            if len(comparisons) > 1:
                typer.echo(printable(name))
            print_grids(comparison.grid())
            typer.echo("\n".join([comparison.caption(), *comparison.legend(), *comparison.verdicts()]))


def _draw(comparisons: "dict[str, Comparison]", path: Path) -> None:
    from sisod.report.forest import comparison_figure
    from sisod.report.style import save_figure

    for name, comparison in comparisons.items():
        out = path
        if len(comparisons) > 1:
            out = path.with_name(f"{path.stem}-{name}{path.suffix}")
        save_figure(comparison_figure(comparison), out)
        typer.echo(f"drawn to {out}", err=True)


def load_datasets(results: list[str]) -> "dict[str, dict[str, Evaluation]]":
    """Load results by data set and method.

    Result folders that are given themselves are compared with each other, under the data set "". If a
    folder contains results, every result belongs to the data set that its parent folder is named after.
    """
    from sisod.common.errors import UsageError
    from sisod.evaluation.benchmark import split_name
    from sisod.evaluation.results import load_results

    folders = {text: Path(split_name(text)[1]) for text in results}
    parents = {text for text, path in folders.items() if path.is_dir() and not _is_result(path)}
    if not parents:
        return {"": load_named(results)}
    datasets: dict[str, dict[str, Evaluation]] = {}
    for text in dict.fromkeys(results):
        if text not in parents:
            loaded = [(folders[text].resolve().parent.name, *load_named([text]).popitem())]
        elif text != str(split_name(text)[1]):
            raise UsageError(f"{text!r} names one method, but the folder contains results; leave it out")
        else:
            loaded = [(r.dataset, r.method, r.evaluation) for r in load_results([folders[text]])]
        for dataset, method, evaluation in loaded:
            if method in datasets.setdefault(dataset, {}):
                raise UsageError(
                    f"two results on {dataset!r} are called {method!r}; give one a name, as NAME=DIR"
                )
            datasets[dataset][method] = evaluation
    return datasets


def _is_result(folder: Path) -> bool:
    return (folder / "run.json").is_file()


def load_named(results: list[str]) -> "dict[str, Evaluation]":
    """Load result folders, each under its name."""
    from sisod.common.arguments import check_utf8
    from sisod.common.errors import InputError, UsageError
    from sisod.evaluation.benchmark import split_name
    from sisod.evaluation.result import Evaluation

    evaluations: dict[str, Evaluation] = {}
    for name, folder in map(split_name, results):
        check_utf8(name, "the name")
        if name in evaluations:
            raise UsageError(f"two results are called {name!r}; give them names, as NAME=DIR")
        if not Path(folder).is_dir():
            raise InputError(f"{folder!r} is not a folder; expected one that 'sisod evaluate' wrote")
        evaluations[name] = Evaluation.load(folder)
    return evaluations

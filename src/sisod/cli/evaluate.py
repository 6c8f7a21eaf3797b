"""One subcommand per public verb: parses, calls, prints."""

import sys
from pathlib import Path
from typing import Annotated

import typer

import sisod
from sisod import (
    analysis_commands,
    dataset_commands,
    predict_command,
    report_commands,
    reproduce_commands,
    training_commands,
)
from sisod.cli.shared import RUNNING, Commands, Format, FormatName, Overwrite, print_tables, told
from sisod.common.errors import TRAINING, MissingExtraError, require
from sisod.networks import commands as network_commands
from sisod.common.streams import is_terminal

app = typer.Typer(
    help="Score, train and look at segmentation so that small objects count.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    cls=Commands,
)

ProtocolName = Annotated[
    str | None,
    typer.Option("--protocol", help=f"Conventions: {', '.join(sisod.PROTOCOLS)}; by default the first."),
]


def _print_version(wanted: bool) -> None:  # noqa: FBT001  (typer calls it with the flag)
    if wanted:
        with told():
            typer.echo(f"sisod {sisod.__version__}")
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


@app.command()
def evaluate(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]PRED... GT",
            help="Folders of predictions, then the folder of ground truths; or one TOML file of methods "
            "and data sets. Folders may be fsspec URLs.",
        ),
    ],
    *,
    out: Annotated[Path, typer.Option(help="Results go to OUT/<dataset>/<method>.")],
    dataset: Annotated[
        str | None, typer.Option(help="Name of the data set; by default from GT.")
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(help="paper, all, or keys with commas; by default all functions of counts."),
    ] = None,
    protocol: ProtocolName = None,
    fmt: FormatName = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Processes; by default one for each core.")
    ] = None,
    pred_suffix: Annotated[str, typer.Option(help="End of prediction names, like _sal.")] = "",
    gt_suffix: Annotated[str, typer.Option(help="End of ground truth names, like _mask.")] = "",
    names: Annotated[
        Path | None, typer.Option("--list", help="File of image names, one a line; only these.")
    ] = None,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Score what has a prediction, say how many do not.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse predictions of another size instead of resizing.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an unfinished run.")] = False,
    overwrite: Overwrite = False,
    cluster: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler, like tcp://host:8786.")
    ] = None,
) -> None:
    """Score folders of maps; print the table, write summary, images, objects and curves."""
    from sisod.evaluation.driver import Options, Request, check_request, evaluate_to
    from sisod.common.memory import keep_freed_memory
    from sisod.scoring.metrics import find_metrics
    from sisod.data.pairs import read_names
    from sisod.scoring.protocols import find_protocol
    from sisod.evaluation.requests import read_request
    from sisod.evaluation.saved import read_summary
    from sisod.report.summary import Line, render, shown_keys, terminal_tables

    keep_freed_memory()
    with told("; what was finished is kept, go on with --resume"):
        wanted = read_request(paths, dataset=dataset, pred_suffix=pred_suffix, gt_suffix=gt_suffix)
        chosen = metrics or wanted.metrics
        settled = find_protocol(protocol or wanted.protocol or "default")
        keys = find_metrics(chosen, settled)
        listed = None if names is None else tuple(read_names(names))
        jobs_to_do = []
        for cell in wanted.cells:
            request = Request(
                pred_root=cell.pred_root,
                gt_root=cell.gt_root,
                protocol=settled,
                keys=keys,
                pred_suffix=cell.pred_suffix,
                gt_suffix=cell.gt_suffix,
                names=listed,
                allow_missing=allow_missing,
                strict=strict,
            )
            options = Options(
                jobs=jobs,
                resume=resume,
                overwrite=overwrite,
                cluster=cluster,
                title=f"{cell.method} on {cell.dataset}",
            )
            folder = out / cell.dataset / cell.method
            jobs_to_do.append((cell, folder, request, options, check_request(folder, request, options)))
        lines = []
        for cell, folder, request, options, pairing in jobs_to_do:
            for note in evaluate_to(folder, request, options, pairing=pairing):
                typer.echo(f"warning: {note}", err=True)
            lines.append(Line(cell.dataset, cell.method, *read_summary(folder)))
        if fmt is None:
            shown = shown_keys(keys, chosen=chosen is not None)
            print_tables(lambda width: terminal_tables(lines, shown, width=width))
            if is_terminal(sys.stderr):
                typer.echo(f"all {len(keys)} metrics, tables and curves are in {out}", err=True)
        else:
            everything = chosen is not None or fmt in (Format.CSV, Format.JSON)
            typer.echo(render(lines, shown_keys(keys, chosen=everything), fmt.value))


@app.command()
def frames(
    gt: Annotated[str, typer.Argument(metavar="GT", help="Folder of masks.")],
    *,
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")],
    images: Annotated[str | None, typer.Option(help="Folder of images to draw on.")] = None,
    protocol: ProtocolName = None,
    overwrite: Overwrite = False,
) -> None:
    """Draw numbered frames, background and alpha over masks or images, to see what is scored."""
    from sisod.report.frames import draw_folder
    from sisod.scoring.protocols import find_protocol

    with told():
        count = draw_folder(
            gt,
            out,
            protocol=find_protocol(protocol or "default"),
            image_root=images,
            overwrite=overwrite,
        )
        typer.echo(f"{count} pictures in {out}")


@app.command()
def stats(
    gt: Annotated[str, typer.Argument(metavar="GT", help="Folder of masks.")],
    *,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw the two panels of the paper's Figure 1: .pdf, .png or .svg."),
    ] = None,
    protocol: ProtocolName = None,
) -> None:
    """Print sizes and numbers of a data set's objects, and the theorem's rho and rho'."""
    from sisod.report.style import check_plot_path, plot_statistics
    from sisod.scoring.protocols import find_protocol
    from sisod.analysis.masks import mask_statistics, statistics_tables

    with told():
        if plot is not None:
            check_plot_path(plot)
        found = mask_statistics(gt, find_protocol(protocol or "default"))
        print_tables(lambda _: statistics_tables(found))
        if plot is not None:
            plot_statistics(found, plot)
            typer.echo(f"drawn to {plot}", err=True)


@app.command()
def demo(
    *,
    out: Annotated[Path, typer.Option(help="Folder for everything that is made.")] = Path("demo"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Only the first part, in seconds: no training.")
    ] = False,
) -> None:
    """Show on made scenes what size-invariant metrics see, then train with both losses and compare."""
    from sisod.reproduction.demo import KEYS, preferred, run_demo
    from sisod.report.summary import Line, terminal_tables

    with told():
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
                names = ", ".join(sisod.METRICS[key].title for key in keys)
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


analysis_commands.register(app)
dataset_commands.register(app)
network_commands.register(app)
training_commands.register(app)
predict_command.register(app)
report_commands.register(app)
reproduce_commands.register(app)

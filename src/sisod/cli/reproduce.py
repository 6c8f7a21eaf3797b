"""The subcommands demo, reproduce, bench: parse, call, print. They import PyTorch only when run."""

import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sisod.cli import shared
from sisod.cli.train import Workers
from sisod.common.exceptions import TRAINING, InputError, MissingExtraError, UsageError, require

if TYPE_CHECKING:
    from sisod.reproduction.cells import GridCell
    from sisod.reproduction.run import Reproduction


def reproduce(
    *,
    out: Annotated[Path, shared.out_option("runs, maps, results and tables")],
    data: Annotated[
        Path | None, shared.data_option("it holds DUTS-TR and the data sets to test on")
    ] = None,
    scale: Annotated[
        Literal["full", "tiny"],
        typer.Option(help="tiny: all cells in minutes, on synthetic scenes, as a test."),
    ] = "full",
    cell: Annotated[
        str | None, typer.Option(metavar="CELL", help="Only this cell; --dry-run lists them.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list cells and costs.")] = False,
    commands: Annotated[bool, typer.Option("--commands", help="Only print their commands.")] = False,
    tflops: Annotated[
        float | None,
        typer.Option(metavar="X", min=0.1, help="For --dry-run: TFLOP/s of the GPU; by default 10."),
    ] = None,
    precision: Annotated[
        str, typer.Option(metavar="NAME", help="32-true, 16-mixed or bf16-mixed: of all networks.")
    ] = "32-true",
    workers: Workers = None,
) -> None:
    """Train the paper's whole grid, score it, print its tables beside our numbers; resumable.

    Example:
        sisod reproduce --data data --out reproduction --dry-run
    """
    if (data is None) != (scale == "tiny"):
        raise UsageError(
            "--data is the folder that holds DUTS-TR and the paper's test sets; --scale tiny makes its "
            "own data: give one of the two"
        )
    if sum((cell is not None, dry_run, commands)) > 1:
        raise UsageError("--cell, --dry-run and --commands exclude each other; choose one")
    from sisod.reproduction.cells import find_cell, grid
    from sisod.reproduction.run import Reproduction, open_reproduction
    from sisod.reproduction.sets import find_sets, write_synthetic_sets

    cells = grid() if cell is None else (find_cell(cell),)
    root, runs = data or out / "data", not (dry_run or commands)
    exists = open_reproduction(out, scale, root, precision, write=runs and data is None)
    with tempfile.TemporaryDirectory() as scratch:  # for synthetic sets that are only counted
        if data is None:
            root = write_synthetic_sets(root if exists or runs else Path(scratch))
        sets = find_sets(root)
        work = Reproduction(out, scale, sets, precision, workers)
        shared.warn(filter(None, (*sets.notes, sets.incomplete if data else "")))
        if commands:
            for job in cells:
                typer.echo(_command(job, work, data))
        elif dry_run:
            _print_costs(cells, work, tflops)
        else:
            open_reproduction(out, work.scale, root, precision, write=True)
            _run(cells, work)


def _run(cells: "Sequence[GridCell]", work: "Reproduction") -> None:
    from sisod.reproduction.run import run_cells
    from sisod.reproduction.tables import make_tables

    def report(text: str) -> None:
        typer.echo(text, err=True)  # stdout is for the tables

    failed = run_cells([cell for cell in cells if cell.kind != "tables"], work, report)
    if cells[-1].kind == "tables" and (not failed or (work.out / "results").exists()):
        tables = make_tables(work)
        tables.write(work)
        for title, grid in tables.grids().items():
            typer.echo(f"\n{title}")
            shared.show(None, [grid])
        typer.echo(
            f"{tables.caption} All tables, those under the protocol default too: {work.out / 'tables'}"
        )
    if failed:
        raise InputError(
            f"{len(failed)} of {len(cells)} cells failed ({', '.join(failed)}); repair what is reported "
            "above (options named there are those of sisod train, predict and evaluate), and the same "
            "command goes on with them"
        )


def _command(cell: "GridCell", work: "Reproduction", data: Path | None) -> str:
    """Return the command of a scheduler's job; paths are absolute, since it starts in another folder."""
    words = ["sisod", "reproduce", "--out", str(work.out.absolute())]
    words += ["--scale", work.scale] if data is None else ["--data", str(data.absolute())]
    if work.precision != "32-true":
        words += ["--precision", work.precision]
    if work.workers is not None:
        words += ["--workers", str(work.workers)]
    first = "all others" if cell.kind == "tables" else ", ".join(cell.needs)
    return shlex.join([*words, "--cell", cell.name]) + (f"  # after {first}" if first else "")


def _print_costs(cells: "Sequence[GridCell]", work: "Reproduction", tflops: float | None) -> None:
    from sisod.reproduction.cells import DUTS_TR, TFLOPS, costs_grid

    counts = {DUTS_TR: len(work.sets.training.samples)}
    counts |= {dataset.name: len(dataset.samples) for dataset in work.sets.tests}
    states = {cell.name: work.state(cell) for cell in cells}
    grid = costs_grid(cells, work.scale, counts, tflops=tflops or TFLOPS, states=states)
    shared.show(None, [grid])
    tests = ", ".join(f"{name} {count}" for name, count in counts.items() if name != DUTS_TR)
    typer.echo(f"{counts[DUTS_TR]} images to train on, to test on: {tests}.")
    source = "about the median of what the paper's own epochs on a GeForce RTX 3090 come to, 3.8 to 18.3"
    typer.echo(
        f"GPU hours from multiply-adds at {tflops or TFLOPS:g} TFLOP/s"
        + (f" ({source})." if tflops is None else ".")
    )


def bench(
    *,
    quick: Annotated[bool, shared.quick_option("small encoders and images, for a rough idea")] = False,
    fmt: shared.FormatName = None,
) -> None:
    """Measure the time of both losses; print the paper's two tables of time beside ours.

    Example:
        sisod bench --quick --format md
    """
    from sisod.reproduction.loss_time import run_bench

    measured = run_bench(quick=quick)
    shared.show(fmt, [*measured.grids().values()], measured.render, measured.caption())


def demo(
    *,
    out: Annotated[Path, shared.out_option("all files")] = Path("demo"),
    quick: Annotated[bool, shared.quick_option("only the first part, in seconds, no training")] = False,
) -> None:
    """Compare metrics on synthetic scenes, then train with three losses and compare the networks.

    Example:
        sisod demo --quick
    """
    from sisod.report.summary import SummaryRow, make_grids
    from sisod.reproduction.demo import KEYS, preferred, run_demo
    from sisod.scoring.metrics import METRICS

    methods = run_demo(out)
    titles = {"A": "A, large only", "B": "B, all, coarsely"}
    lines = [
        SummaryRow("synthetic", titles[method], result.summary, result.defined)
        for method, result in methods.results.items()
    ]
    shared.show(None, lambda width: make_grids(lines, [KEYS], width=width))
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

    typer.echo("Now a small network learns such scenes with three losses.")
    trained = run_trained_demo(folder)
    shared.show(None, [trained.grid()], None, trained.caption(), trained.verdict())
    if trained.page is not None:
        typer.echo(f"The report, for a browser: {trained.page}")
    else:
        typer.echo(str(MissingExtraError("The report, for a browser,", "jinja2")), err=True)

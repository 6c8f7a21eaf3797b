"""The subcommand that scores folders of maps: parses, calls, prints."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from sisod.cli import shared
from sisod.common.streams import is_terminal


def evaluate(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]PRED... GT",
            help="Folders of predictions and of ground truths, or one TOML file of methods and data "
            "sets. Also .parquet (#COLUMN), .tar and COCO .json files, and fsspec URLs.",
        ),
    ],
    *,
    out: Annotated[Path, shared.out_option("results, to PATH/<dataset>/<method>")],
    dataset: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the data set; by default of its folder.")
    ] = None,
    metrics: Annotated[
        list[str] | None,
        shared.metrics_option("all functions of counts. One of your own is package.module:function"),
    ] = None,
    protocol: shared.ProtocolName = None,
    min_area: shared.MinArea = None,
    connectivity: shared.Connectivity = None,
    normalize: shared.Normalize = None,
    gt_level: shared.GtLevel = None,
    fmt: shared.FormatName = None,
    jobs: shared.Jobs = None,
    pred_suffix: shared.PredSuffix = "",
    gt_suffix: shared.GtSuffix = "",
    labels: shared.LabelMaps = False,
    category: shared.ClassName = None,
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...", help="Each a data set: maps in PRED/CLASS, or class maps like GT."
        ),
    ] = None,
    names: shared.NameList = None,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Score the images that have a prediction.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at predictions of another size instead of resizing.")
    ] = False,
    resume: shared.Resume = False,
    overwrite: shared.Overwrite = False,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Dask: tcp://host:8786; Ray: ray or ray://host:port."),
    ] = None,
) -> None:
    """Score folders of maps; print the table, write summary, images, objects and curves.

    Example:
        sisod evaluate EDN=maps/edn ICON=maps/icon data/MSOD/mask --out results
    """
    from sisod.common.processes import keep_freed_memory
    from sisod.data.pairs import read_names
    from sisod.evaluation.benchmark import read_benchmark, score_benchmark
    from sisod.evaluation.notes import undefined_notes
    from sisod.evaluation.tasks import Options
    from sisod.report.summary import SummaryRow, make_grids, merge_seeds, render, shown_keys

    keep_freed_memory()
    chosen_classes = [] if category is None else [category]
    chosen_classes += [] if classes is None else classes.split(",")
    benchmark = read_benchmark(
        paths,
        dataset=dataset,
        pred_suffix=pred_suffix,
        gt_suffix=gt_suffix,
        labels=labels,
        classes=chosen_classes or None,
    )
    options = Options(jobs=jobs, resume=resume, overwrite=overwrite, cluster=cluster)
    conventions = shared.chosen_protocol(
        protocol or benchmark.protocol,
        min_area=min_area,
        connectivity=connectivity,
        normalize=normalize,
        gt_level=gt_level,
    )
    requests = benchmark.requests(
        protocol=conventions,
        metrics=",".join(metrics) if metrics else None,
        names=None if names is None else read_names(names),
        allow_missing=allow_missing,
        strict=strict,
    )
    lines, left_out, defined = [], [], []
    for name, result, notes in score_benchmark(requests, out, options):
        shared.warn(notes)
        lines.append(SummaryRow(*name, result.summary, result.defined))
        run = result.run
        left_out.append((requests[name].gt_root, run["left_out"], run["components"]))
        defined.append((*name, result.defined, run["images"]))
    for gt_root, n_left_out, n_components in dict.fromkeys(left_out):  # once for all methods
        shared.print_left_out(gt_root, conventions, n_left_out, n_components)
    keys = next(iter(requests.values())).scorer.keys
    shown = shown_keys(keys, chosen=bool(metrics or benchmark.metrics))
    shared.show(
        fmt,
        lambda width: make_grids(merge_seeds(lines), shown, width=width),
        lambda kind: render(merge_seeds(lines), shown, kind),
    )
    if fmt is None and is_terminal(sys.stderr):
        typer.echo(f"all {len(keys)} metrics, tables and curves are in {out}", err=True)
    for note in undefined_notes(defined, [key for table in shown for key in table]):
        typer.echo(note, err=True)

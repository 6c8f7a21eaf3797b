"""Subcommands about data sets: datasets, frames, stats."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from sisod.cli import shared
from sisod.common.exceptions import pluralize

Masks = Annotated[
    str, typer.Argument(metavar="GT", help="Folder of masks, or a .parquet, .tar or COCO .json file.")
]


def show_datasets(
    root: Annotated[Path, typer.Argument(metavar="ROOT", help="Folder that holds data sets.")],
    *,
    fmt: shared.FormatName = None,
) -> None:
    """List the paper's data sets in a folder, their problems, and where to get the missing ones.

    Example:
        sisod datasets data
    """
    from sisod.common.exceptions import InputError
    from sisod.data.inspection import inspect_datasets, render_report, report_grid

    inspections = inspect_datasets(root)
    shared.show(
        fmt, [report_grid(inspections, root)], lambda kind: render_report(inspections, root, kind)
    )
    unusable = [one for one in inspections if one.trouble]
    if unusable:
        first = unusable[0]
        n_datasets = sum(one.image_dir is not None for one in inspections)
        raise InputError(
            f"{len(unusable)} of {n_datasets} data sets found cannot be used as they are "
            f"({first.name}: {first.trouble}); --format json names all files"
        )


def check(
    pred: Annotated[
        str, typer.Argument(metavar="PRED", help="Predictions: folder, container or fsspec URL.")
    ],
    gt: Masks,
    *,
    fmt: shared.FormatName = None,
    gt_level: shared.GtLevel = None,
    pred_suffix: shared.PredSuffix = "",
    gt_suffix: shared.GtSuffix = "",
    labels: shared.LabelMaps = False,
    category: shared.ClassName = None,
) -> None:
    """Look at a sample of pairs before anything is scored: names, size, values, shift, swap, inversion.

    Each finding has its evidence and what to do. The exit code is 1 if numbers would be wrong.

    Example:
        sisod check maps/edn data/MSOD/mask
    """
    from sisod.common.grid import Grid, render
    from sisod.data.checks import check_pairs

    findings, n_pairs = check_pairs(
        pred,
        gt,
        pred_suffix=pred_suffix,
        gt_suffix=gt_suffix,
        meaning=shared.chosen_meaning(gt, labels=labels, category=category),
        level=shared.chosen_protocol(None, gt_level=gt_level).gt_level,
    )
    if fmt is not None:
        records = [asdict(finding) for finding in findings]
        rows = tuple((f.problem, f.evidence, f.remedy) for f in findings)
        typer.echo(
            render(Grid(("problem", "evidence", "remedy"), rows, n_text=3), records, records, fmt)
        )
    else:
        for finding in findings:
            kind = "problem" if finding.wrong else "note"
            typer.echo(f"{kind}: {finding.problem}: {finding.evidence}; {finding.remedy}")
        typer.echo(f"{pluralize(n_pairs, 'pair')} looked at: {pluralize(len(findings), 'finding')}")
    raise typer.Exit(any(finding.wrong for finding in findings))


def frames(
    gt: Masks,
    *,
    out: Annotated[Path, shared.out_option("the pictures")],
    images: Annotated[str | None, shared.images_option("draw on these instead of the masks")] = None,
    protocol: shared.ProtocolName = None,
    min_area: shared.MinArea = None,
    fmt: shared.FormatName = None,
    gt_suffix: shared.GtSuffix = "",
    labels: shared.LabelMaps = False,
    category: shared.ClassName = None,
    names: shared.NameList = None,
    overwrite: shared.Overwrite = False,
) -> None:
    """Draw what is scored over masks or images: numbered frames, background, alpha.

    Example:
        sisod frames data/MSOD/mask --images data/MSOD/image --out frames
    """
    from sisod.data.pairs import read_names
    from sisod.report.masks import draw_folder, render_pictures

    chosen = shared.chosen_protocol(protocol, min_area=min_area)
    pictures = draw_folder(
        gt,
        out,
        protocol=chosen,
        image_root=images,
        gt_suffix=gt_suffix,
        names=None if names is None else read_names(names),
        meaning=shared.chosen_meaning(gt, labels=labels, category=category),
        overwrite=overwrite,
    )
    n_components = sum(picture.components for picture in pictures)
    n_left_out = n_components - sum(picture.frames for picture in pictures)
    shared.print_left_out(gt, chosen, n_left_out, n_components)
    if fmt is None:
        typer.echo(f"{len(pictures)} pictures in {out}")
    else:
        typer.echo(render_pictures(pictures, fmt))


def stats(
    gt: Masks,
    *,
    plot: Annotated[Path | None, shared.plot_option("Figure 1 of the paper")] = None,
    protocol: shared.ProtocolName = None,
    min_area: shared.MinArea = None,
    fmt: shared.FormatName = None,
    gt_suffix: shared.GtSuffix = "",
    labels: shared.LabelMaps = False,
    category: shared.ClassName = None,
    names: shared.NameList = None,
) -> None:
    """Print how large and how many the objects of a data set are, and the paper's rho and rho'.

    Example:
        sisod stats data/MSOD/mask --plot sizes.pdf
    """
    from sisod.analysis.masks import mask_statistics
    from sisod.data.pairs import read_names
    from sisod.evaluation.notes import grey_masks_note
    from sisod.report.drawing.studies import statistics_figure
    from sisod.report.masks import render_statistics, statistics_grids

    chosen = shared.chosen_protocol(protocol, min_area=min_area)
    statistics = mask_statistics(
        gt,
        chosen,
        gt_suffix=gt_suffix,
        names=None if names is None else read_names(names),
        meaning=shared.chosen_meaning(gt, labels=labels, category=category),
    )
    shared.print_left_out(gt, chosen, statistics.n_left_out, statistics.n_components)
    if statistics.n_grey:
        n_masks, n_emptied = len(statistics.n_objects), statistics.n_emptied
        typer.echo(grey_masks_note(gt, chosen, statistics.n_grey, n_masks, n_emptied), err=True)
    grids = statistics_grids(statistics)
    shared.show(fmt, grids, lambda kind: render_statistics(statistics, chosen, kind))
    if plot is not None:
        shared.save_plot(plot, statistics_figure(statistics))

"""The subcommand `calibrate`: parses, calls, prints. PyTorch is imported only when it runs."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sisod.cli.shared import Overwrite, data_option, exit_on_user_error, out_option, print_grids
from sisod.cli.train import Masks
from sisod.common.errors import UsageError

if TYPE_CHECKING:
    from sisod.training.calibration import FittedCalibration


class ObjectiveName(StrEnum):
    """What the calibration minimises."""

    BCE = "bce"
    MAE = "mae"


def calibrate(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN | MAPS [GT]",
            help="A run folder of train; or a folder of maps and the folder of their ground truths; or "
            "a folder of maps alone, with --apply.",
        ),
    ],
    *,
    data: Annotated[
        Path | None,
        data_option("the data set that RUN was trained on; by default where it was then"),
    ] = None,
    masks: Masks = None,
    objective: Annotated[
        ObjectiveName, typer.Option(help="Cross-entropy or mean absolute error, which wants hard maps.")
    ] = ObjectiveName.BCE,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Use only so many images.")
    ] = 500,
    out: Annotated[
        Path | None,
        out_option("the calibrated maps; of RUN a calibrated copy, instead of the network in RUN"),
    ] = None,
    apply: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A calibration.json, fitted before; nothing is fitted."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Draw to a .pdf, .png or .svg file: reliability before and after."
        ),
    ] = None,
    batch: Annotated[int, typer.Option(metavar="N", min=1, help="Images per batch.")] = 8,
    device: Annotated[
        str, typer.Option(metavar="NAME", help="cpu, cuda, cuda:1, mps; auto: a GPU if there is one.")
    ] = "auto",
    overwrite: Overwrite = False,
) -> None:
    """Fit temperature and shift of the logits on images that were neither trained on nor tested on.

    Of RUN, they are stored with the network, and predict and export apply them.

    Example:
        sisod calibrate runs/edn --data data/DUTS-TR
    """
    with exit_on_user_error():
        _check_usage(paths, data=data, masks=masks, out=out, apply=apply, plot=plot)
        if plot is not None:
            from sisod.report.style import check_plot_path

            check_plot_path(plot)
        from sisod.training import calibration as room

        count = limit or 500
        if apply is not None:
            assert out is not None  # noqa: S101  (checked above)
            fixed = room.read_calibration_file(apply)
            done = room.apply_to_maps(fixed, paths[0], out, overwrite=overwrite)
        elif len(paths) == 2:
            assert out is not None  # noqa: S101  (checked above)
            done = room.calibrate_maps(
                *paths, out, objective=objective.value, limit=count, overwrite=overwrite
            )
            typer.echo(
                "note: the images of these ground truths must not be test images; calibrate maps of "
                f"test images with --apply {out / 'calibration.json'}",
                err=True,
            )
        else:
            fitted = room.calibrate_run(
                paths[0],
                data=data,
                masks=masks,
                objective=objective.value,
                limit=count,
                batch=batch,
                device=device,
                out=out,
                overwrite=overwrite,
            )
            _print_fit(fitted, plot)
            typer.echo(f"{fitted.calibration}: stored with the network in {out or paths[0]}")
            return
        if done.fitted is not None:
            _print_fit(done.fitted, plot)
        merged = f"; {256 - done.n_levels} of 256 grey levels merge" if done.n_levels < 256 else ""
        typer.echo(f"{done.calibration}: {done.n_maps} maps of 16 bits in {out}{merged}")


def _check_usage(
    paths: list[str],
    *,
    data: Path | None,
    masks: Path | None,
    out: Path | None,
    apply: Path | None,
    plot: Path | None,
) -> None:
    if len(paths) > 2 or (len(paths) == 2 and apply is not None):
        raise UsageError(
            f"calibrate takes RUN, or MAPS GT, or MAPS with --apply, got {len(paths)} folders"
            + (" and --apply" if apply is not None else "")
        )
    for_run = len(paths) == 1 and apply is None
    if not for_run and out is None:
        raise UsageError("calibrated maps need a folder; name it with --out")
    if not for_run and (data is not None or masks is not None):
        raise UsageError("--data and --masks are for a run; leave them out for maps")
    if apply is not None and plot is not None:
        raise UsageError("--plot draws a fit, and --apply fits nothing; leave one of them out")


def _print_fit(fitted: "FittedCalibration", plot: Path | None) -> None:
    print_grids(fitted.grid())
    if plot is not None:
        from sisod.report.reliability import reliability_figure
        from sisod.report.style import save_figure

        save_figure(reliability_figure(fitted.panels()), plot)
        typer.echo(f"drawn to {plot}", err=True)

"""The subcommand calibrate: parse, call, print. PyTorch is imported only when it runs."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sisod.cli.networks import FactoryName
from sisod.cli.predict import Batch, Device
from sisod.cli.shared import (
    GtSuffix,
    Overwrite,
    PredSuffix,
    data_option,
    exit_on_user_error,
    load_pytorch,
    out_option,
    print_grids,
)
from sisod.cli.train import Limit, Masks
from sisod.common.errors import UsageError

if TYPE_CHECKING:
    from sisod.training.calibration import FittedCalibration

_OF_RUNS = ("data", "masks", "test", "batch", "device", "factory")
_OF_PAIRS = ("pred_suffix", "gt_suffix")
_OF_FITS = ("objective", "limit", "plot", *_OF_PAIRS)


class ObjectiveName(StrEnum):
    """What the calibration minimises."""

    BCE = "bce"
    MAE = "mae"


def calibrate(
    context: typer.Context,
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
        data_option("the data set that RUN was trained on; by default the folder that train read"),
    ] = None,
    masks: Masks = None,
    test: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            help="Data set to score on: its images are not used. A folder of images will do. May be "
            "repeated.",
        ),
    ] = None,
    objective: Annotated[
        ObjectiveName,
        typer.Option(
            help="Minimize cross-entropy, or mean absolute error, which makes maps black and white."
        ),
    ] = ObjectiveName.BCE,
    limit: Limit = 500,
    out: Annotated[
        Path | None,
        out_option("the calibrated maps; for RUN, a calibrated copy, and RUN is not changed"),
    ] = None,
    apply: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A calibration.json, fitted before; nothing is fitted."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Draw to this .pdf, .png or .svg file: reliability before and after."
        ),
    ] = None,
    pred_suffix: PredSuffix = "",
    gt_suffix: GtSuffix = "",
    batch: Batch = 8,
    device: Device = "auto",
    factory: FactoryName = None,
    overwrite: Overwrite = False,
) -> None:
    """Fit temperature and shift of the logits on images that were neither trained on nor tested on.

    With RUN, the two numbers are stored in the network, and predict and export apply them.

    Example:
        sisod calibrate runs/edn --data data/DUTS-TR
    """
    with exit_on_user_error():
        _check_usage(context, n_paths=len(paths))
        if plot is not None:
            from sisod.report.style import check_plot_path

            check_plot_path(plot)
        load_pytorch()
        from sisod.training import calibration as room

        if apply is not None:
            assert out is not None  # noqa: S101  (checked above)
            fixed = room.read_calibration_file(apply)
            done = room.apply_to_maps(fixed, paths[0], out, overwrite=overwrite)
        elif len(paths) == 2:
            assert out is not None  # noqa: S101  (checked above)
            done = room.calibrate_maps(
                paths[0],
                paths[1],
                out,
                objective=objective.value,
                limit=limit,
                pred_suffix=pred_suffix,
                gt_suffix=gt_suffix,
                overwrite=overwrite,
            )
            typer.echo(
                "note: the images of these ground truths must not be test images; calibrate maps of "
                f"test images with --apply {out / 'calibration.json'}",
                err=True,
            )
        else:
            from sisod.data.datasets import find_images

            fitted = room.calibrate_run(
                paths[0],
                data=data,
                masks=masks,
                tests=[find_images(root) for root in test or ()],
                objective=objective.value,
                limit=limit,
                batch=batch,
                device=device,
                factory=factory,
                out=out,
                overwrite=overwrite,
            )
            print_grids(fitted.grid())
            typer.echo(f"{fitted.calibration}: stored with the network in {out or paths[0]}")
            _draw_fit(fitted, plot)
            return
        if done.fitted is not None:
            print_grids(done.fitted.grid())
        lost = 256 - done.n_levels
        merged = f"; {lost} of the 256 levels of 8-bit maps merge with others" if lost else ""
        typer.echo(f"{done.calibration}: {done.n_maps} maps of 16 bits in {out}{merged}")
        _draw_fit(done.fitted, plot)


def _check_usage(context: typer.Context, *, n_paths: int) -> None:
    """Refuse options that the kind of input does not have."""
    given = [name for name in context.params if _is_given(context, name)]
    applied = "apply" in given
    if n_paths > 2 or (n_paths == 2 and applied):
        raise UsageError(
            f"calibrate takes RUN, or MAPS GT, or MAPS with --apply, got {n_paths} folders"
            + (" and --apply" if applied else "")
        )
    is_run = n_paths == 1 and not applied
    if not is_run and "out" not in given:
        raise UsageError("calibrated maps need a folder; name it with --out")
    if is_run:
        _refuse_options(given, _OF_PAIRS, "are for maps with ground truths")
        if "masks" in given and "data" not in given:
            raise UsageError("--masks needs --data, the folder of the images; give both or none")
    else:
        _refuse_options(given, _OF_RUNS, "are for a run")
    if applied:
        _refuse_options(given, _OF_FITS, "are for a fit, and --apply fits nothing")


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _refuse_options(given: list[str], refused: Sequence[str], reason: str) -> None:
    wrong = [name for name in refused if name in given]
    if wrong:
        flags = [f"--{name.replace('_', '-')}" for name in refused]
        found = ", ".join(f"--{name.replace('_', '-')}" for name in wrong)
        raise UsageError(f"{', '.join(flags)} {reason}; leave {found} out")


def _draw_fit(fitted: "FittedCalibration | None", plot: Path | None) -> None:
    """Draw last: what was fitted is stored and printed even if the figure cannot be written."""
    if plot is not None and fitted is not None:
        from sisod.report.drawing.reliability import reliability_figure
        from sisod.report.style import save_figure

        save_figure(reliability_figure(fitted.panels()), plot)
        typer.echo(f"drawn to {plot}", err=True)

"""The subcommand calibrate: parse, call, print. PyTorch is imported only when it runs."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from sisod.cli.networks import FactoryName
from sisod.cli.predict import Batch, Device
from sisod.cli.shared import Overwrite, data_option, load_pytorch, out_option, print_grids
from sisod.cli.train import Limit, Masks
from sisod.common.exceptions import UsageError


def calibrate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder of train.")],
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
        Literal["bce", "mae"],
        typer.Option(
            help="Minimize cross-entropy, or mean absolute error, which makes maps black and white."
        ),
    ] = "bce",
    limit: Limit = 500,
    out: Annotated[Path | None, out_option("a calibrated copy; RUN is not changed")] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Draw to this .pdf, .png or .svg file: reliability before and after."
        ),
    ] = None,
    batch: Batch = 8,
    device: Device = "auto",
    factory: FactoryName = None,
    overwrite: Overwrite = False,
) -> None:
    """Fit temperature and shift of the logits on images that were neither trained on nor tested on.

    The two numbers are stored in the network, and predict and export apply them.

    Example:
        sisod calibrate runs/edn --data data/DUTS-TR
    """
    if masks is not None and data is None:
        raise UsageError("--masks needs --data, the folder of the images; give both or none")
    if plot is not None:
        from sisod.report.style import check_plot_path

        check_plot_path(plot)
    load_pytorch()
    from sisod.data.datasets import find_images
    from sisod.training.calibration import calibrate_run

    fitted = calibrate_run(
        run,
        data=data,
        masks=masks,
        tests=[find_images(root) for root in test or ()],
        objective=objective,
        limit=limit,
        batch=batch,
        device=device,
        factory=factory,
        out=out,
        overwrite=overwrite,
    )
    print_grids(fitted.grid())
    typer.echo(f"{fitted.calibration}: stored with the network in {out or run}")
    if plot is not None:  # last: what was fitted is stored and printed even if this fails
        from sisod.report.drawing.reliability import reliability_figure
        from sisod.report.style import save_figure

        save_figure(reliability_figure(fitted.panels()), plot)
        typer.echo(f"drawn to {plot}", err=True)

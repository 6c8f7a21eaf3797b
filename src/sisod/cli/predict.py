"""The subcommands that use a network: parse, call, print. PyTorch is imported only when one runs."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sisod.cli.networks import NetworkName, Origin, OriginName
from sisod.cli.shared import (
    Overwrite,
    Resume,
    data_option,
    exit_on_user_error,
    out_option,
    print_grids,
)
from sisod.cli.train import Limit, Masks
from sisod.common.errors import UsageError

if TYPE_CHECKING:
    from sisod.training.calibration import FittedCalibration

Batch = Annotated[int, typer.Option("--batch", metavar="N", min=1, help="Images per batch.")]
Device = Annotated[
    str,
    typer.Option(
        "--device", metavar="NAME", help="cpu, cuda, cuda:1, mps; auto: a GPU if there is one."
    ),
]


class ContainerName(StrEnum):
    """Formats of shards."""

    PARQUET = "parquet"
    TAR = "tar"


def predict(
    checkpoint: Annotated[
        str,
        typer.Argument(
            metavar="CKPT",
            help="A run folder of train, a safetensors file, a folder of save_pretrained, a repository "
            "on the Hugging Face hub, or an authors' checkpoint.",
        ),
    ],
    images: Annotated[
        str,
        typer.Argument(
            metavar="IMAGES", help="Folder of images, a .parquet or .tar file, or an fsspec URL."
        ),
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder for the maps.")],
    *,
    size: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Side of the input; by default the training's if known, or 384."
        ),
    ] = None,
    batch: Batch = 8,
    device: Device = "auto",
    container: Annotated[
        ContainerName | None,
        typer.Option(
            help="Pack the maps into shards of 500 in OUT instead of single files; evaluate takes OUT "
            "as before."
        ),
    ] = None,
    network: NetworkName = None,
    origin: OriginName = Origin.AUTHORS,
    resume: Resume = False,
    overwrite: Overwrite = False,
) -> None:
    """Write a map for every image of a folder, at its size: 8-bit, or 16-bit of a calibrated network.

    Example:
        sisod predict runs/edn data/MSOD/image maps/edn
    """
    with exit_on_user_error("; the maps written so far are kept, go on with --resume"):
        from sisod.networks.predict import DEFAULT_SIZE, load_network, predict_folder, trained_size

        loaded = load_network(checkpoint, network=network, origin=origin.value)
        done = predict_folder(
            loaded,
            images,
            out,
            size=size or trained_size(checkpoint) or DEFAULT_SIZE,
            batch=batch,
            device=device,
            resume=resume,
            overwrite=overwrite,
            container=None if container is None else container.value,
        )
        kept = f", {done.n_kept} kept from before" if done.n_kept else ""
        typer.echo(f"{done.n_new} maps of {loaded.facts.title} in {out}{kept}")


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
    test: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR", help="Data set to score on: its images are not used; may be repeated."
        ),
    ] = None,
    objective: Annotated[
        ObjectiveName, typer.Option(help="Cross-entropy or mean absolute error, which wants hard maps.")
    ] = ObjectiveName.BCE,
    limit: Limit = 500,
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
            metavar="FILE", help="Draw to this .pdf, .png or .svg file: reliability before and after."
        ),
    ] = None,
    batch: Batch = 8,
    device: Device = "auto",
    overwrite: Overwrite = False,
) -> None:
    """Fit temperature and shift of the logits on images that were neither trained on nor tested on.

    Of RUN, they are stored with the network, and predict and export apply them.

    Example:
        sisod calibrate runs/edn --data data/DUTS-TR
    """
    with exit_on_user_error():
        of_run = data is not None or masks is not None or bool(test)
        _check_usage(paths, of_run=of_run, out=out, apply=apply, plot=plot)
        if plot is not None:
            from sisod.report.style import check_plot_path

            check_plot_path(plot)
        from sisod.training import calibration as room

        if apply is not None:
            assert out is not None  # noqa: S101  (checked above)
            fixed = room.read_calibration_file(apply)
            done = room.apply_to_maps(fixed, paths[0], out, overwrite=overwrite)
        elif len(paths) == 2:
            assert out is not None  # noqa: S101  (checked above)
            done = room.calibrate_maps(
                paths[0], paths[1], out, objective=objective.value, limit=limit, overwrite=overwrite
            )
            typer.echo(
                "note: the images of these ground truths must not be test images; calibrate maps of "
                f"test images with --apply {out / 'calibration.json'}",
                err=True,
            )
        else:
            from sisod.data.datasets import open_dataset

            fitted = room.calibrate_run(
                paths[0],
                data=data,
                masks=masks,
                tests=[open_dataset(root, prefer=()) for root in test or ()],
                objective=objective.value,
                limit=limit,
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
    of_run: bool,
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
    if not for_run and of_run:
        raise UsageError("--data, --masks and --test are for a run; leave them out for maps")
    if apply is not None and plot is not None:
        raise UsageError("--plot draws a fit, and --apply fits nothing; leave one of them out")


def _print_fit(fitted: "FittedCalibration", plot: Path | None) -> None:
    print_grids(fitted.grid())
    if plot is not None:
        from sisod.report.drawing.reliability import reliability_figure
        from sisod.report.style import save_figure

        save_figure(reliability_figure(fitted.panels()), plot)
        typer.echo(f"drawn to {plot}", err=True)

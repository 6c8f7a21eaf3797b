"""The subcommands that train: parse, call, print. PyTorch is imported only when one runs."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sisod.networks.commands import told_with_extras


class LossName(StrEnum):
    """The loss a network is trained with; nothing else differs."""

    SI = "si"
    PLAIN = "plain"


class LoggerName(StrEnum):
    """Loggers; metrics.csv is always written."""

    CSV = "csv"
    TENSORBOARD = "tensorboard"


def register(app: typer.Typer) -> None:
    """Add the subcommands."""
    app.command("train")(train)


def train(
    recipe: Annotated[
        str, typer.Argument(metavar="RECIPE", help="A recipe that comes with sisod, or a TOML file.")
    ],
    *,
    data: Annotated[
        Path,
        typer.Option(help="A data set, a root that holds DUTS-TR, or a folder of images with --masks."),
    ],
    out: Annotated[Path, typer.Option(metavar="RUN", help="Folder of the run.")],
    masks: Annotated[
        Path | None, typer.Option(help="Folder of masks, if DATA is one of images.")
    ] = None,
    loss: Annotated[LossName, typer.Option(help="Size-invariant or plain.")] = LossName.SI,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Replace a value, like optimizer.lr=1e-4."),
    ] = None,
    val: Annotated[
        Path | None, typer.Option(help="Data set to validate on; the least SI-MAE is kept as best.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Use only so many images.")] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Leave out images that cannot be read, say how many.")
    ] = False,
    devices: Annotated[
        str, typer.Option(help="Number of devices or processes, as Lightning's.")
    ] = "auto",
    nodes: Annotated[int, typer.Option(min=1, help="Number of machines.")] = 1,
    strategy: Annotated[str, typer.Option(help="Lightning's strategy, like ddp.")] = "auto",
    precision: Annotated[str, typer.Option(help="Lightning's precision, like bf16-mixed.")] = "32-true",
    workers: Annotated[
        int | None, typer.Option(min=0, help="Processes that read images; by default one a core.")
    ] = None,
    logger: Annotated[LoggerName, typer.Option(help="Log to this beside metrics.csv.")] = LoggerName.CSV,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an unfinished run.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")] = False,
) -> None:
    """Train a network: checkpoints, metrics and the network itself go to RUN."""
    with told_with_extras(f"; go on with --resume --out {out}"):
        from sisod.training.recipes import find_recipe

        settled = find_recipe(recipe, settings or ())
        from sisod.training.train import Machine, Request
        from sisod.training.train import train as run

        record = run(
            settled,
            Request(
                data=data,
                out=out,
                masks=masks,
                loss=loss.value,
                val=val,
                limit=limit,
                skip_bad=skip_bad,
                resume=resume,
                overwrite=overwrite,
            ),
            Machine(devices, nodes, strategy, precision, workers, logger.value),
        )
        if record["skipped"]:
            typer.echo(
                f"warning: {len(record['skipped'])} images left out: {record['skipped'][0]}", err=True
            )
        typer.echo(
            f"{settled.name}, {loss.value} loss: {record['steps']} steps on {record['images']} images in "
            f"{record['seconds']:.0f} s; the network of the {record['model']} epoch is in {out}"
        )

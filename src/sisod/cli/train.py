"""The subcommands that train: parse, call, print. PyTorch is imported only when one runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from sisod.cli.networks import FactoryName
from sisod.cli.shared import (
    Overwrite,
    Resume,
    complete_recipe,
    data_option,
    load_pytorch,
    out_option,
    print_tables,
)
from sisod.common.exceptions import UsageError, pluralize

LossName = Literal["si", "balanced", "plain"]

LoggerName = Literal["csv", "tensorboard"]

Data = Annotated[
    list[Path],
    data_option("a data set, a root that holds DUTS-TR, or images with --masks beside them"),
]
Masks = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Folder of masks, if --data is one of images.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Replace a value of the recipe, like optimizer.lr=1e-4; may be repeated.",
    ),
]
RecipeName = Annotated[
    str,
    typer.Argument(
        metavar="RECIPE",
        help="A recipe that comes with sisod (edn, fpn, gatenet, icon, ldf, poolnet, each also with "
        "-lite, for a small encoder; tiny), or a TOML file.",
        autocompletion=complete_recipe,
    ),
]
Limit = Annotated[int | None, typer.Option(metavar="N", min=1, help="Use at most N images.")]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Leave out images that cannot be used and say how many.")
]
Devices = Annotated[
    str, typer.Option(metavar="N", help="Number of devices or processes, as for Lightning.")
]
Nodes = Annotated[int, typer.Option(metavar="N", min=1, help="Number of machines.")]
Strategy = Annotated[str, typer.Option(metavar="NAME", help="Lightning's strategy, like ddp.")]
RecipePrecision = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="32-true, 16-mixed or bf16-mixed: by default the recipe's."),
]
Workers = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, help="Processes that read images; by default one per core."),
]


def only_one(folders: Sequence[Path]) -> Path:
    """Return the folder of `--data`; raise if it is given several times."""
    if len(folders) > 1:
        raise UsageError(
            f"--data is given {len(folders)} times; expected one data set; give one of them"
        )
    return folders[0]


def train(
    recipe: RecipeName,
    *,
    data: Data,
    out: Annotated[Path, out_option("the run: checkpoints, metrics, the network")],
    masks: Masks = None,
    loss: Annotated[
        LossName,
        typer.Option(
            help="si: size-invariant (--set loss.normalize=false: Eq. 16 of the paper as printed); "
            "balanced: BCE and Tversky over cells and the image, for fewer false objects; plain."
        ),
    ] = "si",
    settings: Settings = None,
    factory: FactoryName = None,
    val: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Data set to validate on; keeps the lowest SI-MAE."),
    ] = None,
    limit: Limit = None,
    labels: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder labels of another run of LDF, used again."),
    ] = None,
    skip_bad: SkipBad = False,
    devices: Devices = "auto",
    nodes: Nodes = 1,
    strategy: Strategy = "auto",
    precision: RecipePrecision = None,
    workers: Workers = None,
    logger: Annotated[LoggerName, typer.Option(help="Logger in addition to metrics.csv.")] = "csv",
    resume: Resume = False,
    overwrite: Overwrite = False,
) -> None:
    """Train a network; write checkpoints, metrics and the network itself.

    Example:
        sisod train edn --data data/DUTS-TR --out runs/edn
    """
    from sisod.training.recipe import BALANCED_LOSS, find_recipe

    is_balanced = loss == "balanced"
    loss_settings = BALANCED_LOSS if is_balanced else ()
    chosen_recipe = find_recipe(recipe, [*loss_settings, *(settings or ())], factory=factory)
    load_pytorch()
    from sisod.training.train import Machine, TrainingRequest
    from sisod.training.train import train as run

    machine = Machine(devices, nodes, strategy, precision, workers, logger)
    record = run(
        chosen_recipe,
        TrainingRequest(
            data=only_one(data),
            out=out,
            masks=masks,
            loss="si" if is_balanced else loss,
            val=val,
            limit=limit,
            labels=labels,
            skip_bad=skip_bad,
            resume=resume,
            overwrite=overwrite,
        ),
        machine,
    )
    if not machine.is_first_process:
        return
    if record["skipped"]:
        typer.echo(
            f"warning: {len(record['skipped'])} images left out: {record['skipped'][0]}", err=True
        )
    typer.echo(
        f"{chosen_recipe.name}, {loss} loss: {pluralize(record['steps'], 'step')} on "
        f"{pluralize(record['images'], 'image')} in {record['seconds']:.0f} s; "
        f"the network of the {record['model']} epoch is in {out}"
    )


def ablate(
    recipe: RecipeName,
    *,
    data: Data,
    out: Annotated[Path, out_option("runs, results and tables")],
    test: Annotated[
        list[Path], typer.Option(metavar="DIR", help="Data set to score on: may be repeated.")
    ],
    seeds: Annotated[int, typer.Option(metavar="N", min=1, help="How many seeds.")] = 3,
    masks: Masks = None,
    settings: Settings = None,
    factory: FactoryName = None,
    limit: Limit = None,
    skip_bad: SkipBad = False,
    devices: Devices = "auto",
    nodes: Nodes = 1,
    strategy: Strategy = "auto",
    precision: RecipePrecision = None,
    workers: Workers = None,
    resume: Resume = False,
) -> None:
    """Train with alpha of 0, 1 and the ratio and with the plain loss, over seeds; print the tables.

    Example:
        sisod ablate edn --data data/DUTS-TR --test data/MSOD --out ablation
    """
    from sisod.training.recipe import find_recipe

    chosen_recipe = find_recipe(recipe, settings or (), factory=factory)
    load_pytorch()
    from sisod.training.ablate import ablate as run
    from sisod.training.ablate import ablation_tables
    from sisod.training.train import Machine, TrainingRequest

    request = TrainingRequest(
        data=only_one(data), out=out, masks=masks, limit=limit, skip_bad=skip_bad, resume=resume
    )
    machine = Machine(devices, nodes, strategy, precision, workers)
    rows = run(chosen_recipe, request, test, n_seeds=seeds, machine=machine)
    for title, table in ablation_tables(rows, chosen_recipe.name).items():
        typer.echo(title)
        print_tables(table.terminal)

"""The subcommands train, ablate, calibrate: parse, call, print. They import PyTorch only when run."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from sisod.cli import shared
from sisod.cli.networks import Batch, Device, FactoryName
from sisod.common.exceptions import UsageError, pluralize

Data = Annotated[
    list[Path],
    shared.data_option("a data set, a root that holds DUTS-TR, or images with --masks beside them"),
]
Masks = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Folder of masks, if --data is one of images.")
]
MaskSuffix = Annotated[
    str,
    typer.Option(
        metavar="TEXT", help="End of the masks' names, like _mask, if only some images have it."
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A value of the recipe, like optimizer.lr=1e-4."),
]
RecipeName = Annotated[
    str,
    typer.Argument(
        metavar="RECIPE",
        help="A recipe of sisod (edn, fpn, gatenet, icon, ldf, poolnet, each also with -lite, for a "
        "small encoder; tiny), or a TOML file.",
        autocompletion=shared.complete_recipe,
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


def train(
    recipe: RecipeName,
    *,
    data: Data,
    out: Annotated[Path, shared.out_option("the run: checkpoints, metrics, the network")],
    masks: Masks = None,
    mask_suffix: MaskSuffix = "",
    loss: Annotated[
        Literal["si", "balanced", "plain"],
        typer.Option(help="si: size-invariant; balanced: size-invariant, fewer false objects; plain."),
    ] = "si",
    settings: Settings = None,
    factory: FactoryName = None,
    val: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Data set to validate on; keeps the best epoch."),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Epochs, instead of the recipe's.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Seed: instead of the recipe's.")
    ] = None,
    limit: Limit = None,
    labels: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder labels of another run of LDF, used again.")
    ] = None,
    skip_bad: SkipBad = False,
    devices: Devices = "auto",
    nodes: Nodes = 1,
    strategy: Strategy = "auto",
    precision: RecipePrecision = None,
    workers: Workers = None,
    logger: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Logger beside metrics.csv: tensorboard, wandb, mlflow or a class of Lightning.",
        ),
    ] = "csv",
    resume: shared.Resume = False,
    overwrite: shared.Overwrite = False,
) -> None:
    """Train a network; write checkpoints, metrics and the network itself.

    Example:
        sisod train edn --data data/DUTS-TR --out runs/edn
    """
    from sisod.training.recipe import BALANCED_LOSS, find_recipe

    is_balanced = loss == "balanced"
    loss_settings = BALANCED_LOSS if is_balanced else ()
    lengths = {"train.epochs": epochs, "train.seed": seed}
    given = [f"{key}={value}" for key, value in lengths.items() if value is not None]
    chosen_recipe = find_recipe(recipe, [*loss_settings, *(settings or ()), *given], factory=factory)
    shared.load_pytorch()
    from sisod.training.train import Machine, TrainingRequest
    from sisod.training.train import train as run

    machine = Machine(devices, nodes, strategy, precision, workers, logger)
    record = run(
        chosen_recipe,
        TrainingRequest(
            data=data,
            out=out,
            masks=masks,
            mask_suffix=mask_suffix,
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
    skipped = record["skipped"]
    shared.warn(f"{len(skipped)} images left out: {first}" for first in skipped[:1])
    typer.echo(
        f"{chosen_recipe.name}, {loss} loss: {pluralize(record['steps'], 'step')} on "
        f"{pluralize(record['images'], 'image')} in {record['seconds']:.0f} s; "
        f"the network of the {record['model']} epoch is in {out}"
    )


def ablate(
    recipe: RecipeName,
    *,
    data: Data,
    out: Annotated[Path, shared.out_option("runs, results and tables")],
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
    resume: shared.Resume = False,
) -> None:
    """Train with alpha of 0, 1 and the ratio and with the plain loss, over seeds; print the tables.

    Example:
        sisod ablate edn --data data/DUTS-TR --test data/MSOD --out ablation
    """
    from sisod.training.recipe import find_recipe

    chosen_recipe = find_recipe(recipe, settings or (), factory=factory)
    shared.load_pytorch()
    from sisod.training.ablate import ablate as run
    from sisod.training.ablate import ablation_tables
    from sisod.training.train import Machine, TrainingRequest

    request = TrainingRequest(
        data=data, out=out, masks=masks, limit=limit, skip_bad=skip_bad, resume=resume
    )
    machine = Machine(devices, nodes, strategy, precision, workers)
    rows = run(chosen_recipe, request, test, n_seeds=seeds, machine=machine)
    for title, table in ablation_tables(rows, chosen_recipe.name).items():
        typer.echo(title)
        shared.show(None, [table])


def calibrate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder of train.")],
    *,
    data: Annotated[
        Path | None, shared.data_option("of the training; by default what train read")
    ] = None,
    masks: Masks = None,
    test: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="Data set to score on: its images are not used; repeatable."),
    ] = None,
    objective: Annotated[
        Literal["bce", "mae"],
        typer.Option(help="Minimize cross-entropy, or absolute error, which makes black and white."),
    ] = "bce",
    limit: Limit = 500,
    out: Annotated[Path | None, shared.out_option("a calibrated copy; RUN is not changed")] = None,
    plot: Annotated[Path | None, shared.plot_option("reliability before and after")] = None,
    batch: Batch = 8,
    device: Device = "auto",
    factory: FactoryName = None,
    overwrite: shared.Overwrite = False,
) -> None:
    """Fit temperature and shift of the logits on images that were neither trained on nor tested on.

    The two numbers are stored in the network, and predict and export apply them.

    Example:
        sisod calibrate runs/edn --data data/DUTS-TR
    """
    if masks is not None and data is None:
        raise UsageError("--masks needs --data, the folder of the images; give both or none")
    shared.load_pytorch()
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
    shared.show(
        None, [fitted.grid()], None, f"{fitted.calibration}: stored with the network in {out or run}"
    )
    if plot is not None:  # last: what was fitted is stored and printed even if this fails
        from sisod.report.drawing.studies import reliability_figure

        shared.save_plot(plot, reliability_figure(fitted.panels()))

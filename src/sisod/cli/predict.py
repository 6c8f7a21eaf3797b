"""The subcommand predict: parse, call, print. PyTorch is imported only when it runs."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import typer

from sisod.cli.networks import FactoryName, NetworkName, OriginName
from sisod.cli.shared import Overwrite, Resume, load_pytorch
from sisod.common.exceptions import UsageError

Batch = Annotated[int, typer.Option("--batch", metavar="N", min=1, help="Images per batch.")]
Device = Annotated[
    str,
    typer.Option(
        "--device", metavar="NAME", help="cpu, cuda, cuda:1, mps; auto: a GPU if there is one."
    ),
]


def predict(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A run folder of train, a safetensors file, a folder of save_pretrained, a repository "
            "on the Hugging Face hub, an authors' checkpoint; or a model of yours: onnx:FILE, "
            "hf:FOLDER, py:MODULE:FUNCTION (see sisod networks).",
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
            metavar="N", min=1, help="Side of the input; by default the model's own if known, or 384."
        ),
    ] = None,
    batch: Batch = 8,
    device: Device = "auto",
    container: Annotated[
        Literal["parquet", "tar"] | None,
        typer.Option(
            help="Pack the maps into shards of 500 in OUT instead of single files; evaluate takes OUT "
            "as before."
        ),
    ] = None,
    bits: Annotated[
        int | None,
        typer.Option(
            metavar="8|16",
            help="Depth of the maps: 8, and 16 if calibrated, by default; 16 to compare networks by "
            "metrics over all thresholds, such as object_f1_max.",
        ),
    ] = None,
    mean: Annotated[
        str | None,
        typer.Option(
            metavar="R,G,B",
            help="What is subtracted from values in [0, 1] of a model of yours; by default its own "
            "configuration's, or ImageNet's.",
        ),
    ] = None,
    std: Annotated[
        str | None, typer.Option(metavar="R,G,B", help="What they are then divided by; as for --mean.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            metavar="N|NAME",
            help="Which map of a model of yours is the prediction, by position (-1 is the last) or "
            "name; by default the last, of an ONNX file the first.",
        ),
    ] = None,
    channel: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, help="Channel of the object in maps with several, counted from 0."
        ),
    ] = None,
    activation: Annotated[
        Literal["sigmoid", "softmax", "none"] | None,
        typer.Option(
            help="What turns the values of a model of yours into probabilities; none if they are "
            "probabilities; by default its own configuration's, or sigmoid."
        ),
    ] = None,
    normalize: Annotated[
        Literal["minmax", "none"] | None,
        typer.Option(
            help="Whether predictions are stretched to [0, 1]: minmax is for models such as U2-Net; by "
            "default none.",
        ),
    ] = None,
    trust_remote_code: Annotated[
        bool,
        typer.Option(
            "--trust-remote-code",
            help="Run the Python code that comes with a model hf:, as you; read it first.",
        ),
    ] = False,
    network: NetworkName = None,
    origin: OriginName = "authors",
    factory: FactoryName = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
) -> None:
    """Write a map for every image of a folder, at its size.

    Example:
        sisod predict runs/edn data/MSOD/image maps/edn
    """
    from sisod.networks.adapters.kinds import ModelOptions, check_model

    options = ModelOptions(
        size=size,
        mean=_three_numbers("mean", mean),
        std=_three_numbers("std", std),
        output=_position_or_name(output),
        activation=activation,
        normalize=normalize,
        channel=channel,
        trust_remote_code=trust_remote_code,
        network=network,
        origin=origin,
        factory=factory,
    )
    if check_model(model, options)[0] == "onnx":
        from sisod.networks.onnx_model import open_onnx, predict_onnx

        opened = open_onnx(model, options, device=device)
        title, write = opened.title, partial(predict_onnx, opened)
    else:
        load_pytorch()
        from sisod.networks.predict import predict_folder
        from sisod.networks.saved import load_model

        loaded = load_model(model, options)
        title = loaded.facts.title
        write = partial(predict_folder, loaded, size=size, device=device)
    done = write(
        images,
        out,
        batch=batch,
        resume=resume,
        overwrite=overwrite,
        container=container,
        bits=cast("Any", bits),  # checked with the other arguments
    )
    kept = f", {done.n_kept} kept from before" if done.n_kept else ""
    typer.echo(f"{done.n_new} maps of {title} in {out}{kept}")


def _three_numbers(name: str, text: str | None) -> tuple[float, float, float] | None:
    if text is None:
        return None
    try:
        red, green, blue = (float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(
            f"--{name} must be three numbers with commas, like 0.485,0.456,0.406, got {text!r}"
        ) from None
    return red, green, blue


def _position_or_name(text: str | None) -> int | str | None:
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        return text

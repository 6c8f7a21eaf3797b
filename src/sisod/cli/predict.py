"""The subcommands that use a network: parse, call, print. PyTorch is imported only when one runs."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sisod.cli.networks import FactoryName, NetworkName, Origin, OriginName
from sisod.cli.shared import Overwrite, Resume, exit_on_user_error, load_pytorch
from sisod.common.errors import UsageError

if TYPE_CHECKING:
    from sisod.networks.map_shards import Container

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


class ActivationName(StrEnum):
    """What turns the values of a model into probabilities."""

    SIGMOID = "sigmoid"
    SOFTMAX = "softmax"
    NONE = "none"


def predict(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A run folder of train, a safetensors file, a folder of save_pretrained, a repository "
            "on the Hugging Face hub, an authors' checkpoint; or a model of yours: onnx:FILE, "
            "hf:FOLDER, smp:FOLDER, py:MODULE:FUNCTION (see sisod networks).",
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
        ContainerName | None,
        typer.Option(
            help="Pack the maps into shards of 500 in OUT instead of single files; evaluate takes OUT "
            "as before."
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
        ActivationName | None,
        typer.Option(
            help="What turns the values of a model of yours into probabilities; none if they are "
            "probabilities; by default its own configuration's, or sigmoid."
        ),
    ] = None,
    normalize: Annotated[
        str | None,
        typer.Option(
            metavar="minmax|none",
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
    origin: OriginName = Origin.AUTHORS,
    factory: FactoryName = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
) -> None:
    """Write a map for every image of a folder, at its size: 8-bit, or 16-bit if calibrated.

    Example:
        sisod predict runs/edn data/MSOD/image maps/edn
    """
    with exit_on_user_error("; the maps written so far are kept, go on with --resume"):
        from sisod.networks.others.kinds import (
            KINDS,
            ModelOptions,
            refuse_checkpoint_options,
            split_kind,
        )

        options = ModelOptions(
            size=size,
            mean=_three_numbers("mean", mean),
            std=_three_numbers("std", std),
            output=_position_or_name(output),
            activation=None if activation is None else activation.value,
            normalize=_normalization(normalize),
            channel=channel,
            trust_remote_code=trust_remote_code,
        )
        packed: Container | None = None if container is None else container.value
        kind = split_kind(model)[0]
        if kind is not None:
            KINDS[kind].check_installed()
        if kind == "onnx":
            from sisod.networks.onnx_model import open_onnx, predict_onnx

            refuse_checkpoint_options(model, network=network, factory=factory)
            opened = open_onnx(model, options, device=device)
            done = predict_onnx(
                opened,
                images,
                out,
                batch=batch,
                resume=resume,
                overwrite=overwrite,
                container=packed,
            )
            title = opened.title
        else:
            load_pytorch()
            from sisod.networks.others.load import load_model
            from sisod.networks.predict import default_size, predict_folder

            loaded = load_model(model, options, network=network, origin=origin.value, factory=factory)
            done = predict_folder(
                loaded,
                images,
                out,
                size=size or default_size(loaded, model),
                batch=batch,
                device=device,
                resume=resume,
                overwrite=overwrite,
                container=packed,
            )
            title = loaded.facts.title
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


def _normalization(text: str | None) -> Literal["none", "minmax"] | None:
    match text:
        case None | "none" | "minmax":
            return text
    raise UsageError(f"--normalize must be 'minmax' or 'none', got {text!r}")


def _position_or_name(text: str | None) -> int | str | None:
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        return text

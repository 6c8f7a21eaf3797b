"""The subcommands networks, convert, export, predict. They import PyTorch only when run."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import typer

from sisod.cli import shared
from sisod.common.exceptions import InputError, MissingExtraError, UsageError, require
from sisod.common.imports import explain_errors

NetworkName = Annotated[
    str | None,
    typer.Option(
        "--network",
        metavar="NAME",
        help="Network of an authors' checkpoint; by default recognised.",
        autocompletion=shared.complete_network,
    ),
]
OriginName = Annotated[  # the two prepared images differently
    Literal["authors", "si-sod"],
    typer.Option("--origin", help="Whose checkpoint: the network's authors', or the paper's (si-sod)."),
]

FactoryName = Annotated[
    str | None,
    typer.Option(
        "--factory",
        metavar="MODULE:FUNCTION",
        help="Function of yours that builds the network; its module is imported and run.",
    ),
]
Batch = Annotated[int, typer.Option("--batch", metavar="N", min=1, help="Images per batch.")]
Device = Annotated[
    str, typer.Option("--device", metavar="NAME", help="cpu, cuda, cuda:1, mps; auto: a GPU if any.")
]


def show_networks(
    *,
    encoder: Annotated[
        Literal["resnet50", "efficientnet_lite0"],
        typer.Option(help="Encoder of all networks except tiny."),
    ] = "resnet50",
) -> None:
    """List the networks: parameters, multiply-adds at 384 x 384, maps, paper, licence of the weights.

    And the kinds of models that predict takes beside them, with the package that each needs. Without
    PyTorch the table has no numbers.

    Example:
        sisod networks --encoder efficientnet_lite0
    """
    from sisod.networks.registry import kinds_table, missing_module, networks_table

    module = missing_module()
    if module is not None:
        typer.echo(f"note: {MissingExtraError('counting parameters', module)}", err=True)
    shared.print_tables([networks_table(encoder), kinds_table()], width=120)


def convert(
    checkpoint: Annotated[Path, typer.Argument(metavar="CKPT", help="An authors' checkpoint.")],
    out: Annotated[Path, typer.Argument(metavar="OUT.safetensors", help="The file to write.")],
    *,
    network: NetworkName = None,
    origin: OriginName = "authors",
    overwrite: shared.Overwrite = False,
) -> None:
    """Convert a published checkpoint to a safetensors file that names its network and input.

    Example:
        sisod convert EDN.pth edn.safetensors
    """
    _check_out(out, ".safetensors", overwrite=overwrite)
    from sisod.networks.saved import convert_published

    converted = convert_published(checkpoint, out, name=network, origin=origin)
    typer.echo(f"{converted.facts.title} of {origin}, {len(converted.state_dict())} tensors: {out}")


def export(
    checkpoint: Annotated[
        str,
        typer.Argument(
            metavar="CKPT", help="A folder of train, a safetensors file, or a Hugging Face repository."
        ),
    ],
    out: Annotated[Path, typer.Argument(metavar="MODEL.onnx", help="The file to write.")],
    *,
    height: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Input height; by default the network's own.")
    ] = None,
    width: Annotated[int | None, typer.Option(metavar="N", min=1, help="Input width.")] = None,
    dynamic_size: Annotated[
        bool, typer.Option("--dynamic-size", help="Allow any height and width.")
    ] = False,
    factory: FactoryName = None,
    overwrite: shared.Overwrite = False,
) -> None:
    """Write a network as ONNX: RGB images in [0, 1] in, saliency in [0, 1] out.

    Example:
        sisod export edn.safetensors edn.onnx --dynamic-size
    """
    _check_out(out, ".onnx", overwrite=overwrite)
    require("sisod export", "torch", "onnx", "onnxscript")
    shared.load_pytorch()
    from sisod import networks

    network = networks.from_pretrained(checkpoint, factory=factory)
    from sisod.networks.export import export_onnx
    from sisod.networks.predict import DEFAULT_SIZE

    own = network.input_size or DEFAULT_SIZE
    size = (height or own[0], width or own[1])
    export_onnx(network, out, size=size, dynamic_size=dynamic_size)
    free = "any size" if dynamic_size else f"{size[0]} x {size[1]}"
    typer.echo(f"{network.facts.title}, any batch of {free}: {out}")


def _check_out(path: Path, suffix: str, *, overwrite: bool) -> None:
    """Raise for a wrong output path before anything slow starts."""
    if path.suffix != suffix:
        raise UsageError(f"the output must end in {suffix}, got {str(path)!r}")
    if path.is_dir():
        raise InputError(f"{str(path)!r} is a folder; give the name of a file")
    if path.exists() and not overwrite:
        raise InputError(f"{str(path)!r} exists already; use --overwrite to replace it")


def predict(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A run folder of train, a safetensors file, a Hugging Face repository, an authors' "
            "checkpoint; or a model of yours: onnx:FILE, hf:FOLDER, py:MODULE:FUNCTION.",
        ),
    ],
    images: Annotated[
        str,
        typer.Argument(metavar="IMAGES", help="Folder, .parquet or .tar file, or an fsspec URL."),
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder for the maps.")],
    *,
    size: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Side of the input; by default the model's own, or 384."),
    ] = None,
    batch: Batch = 8,
    device: Device = "auto",
    container: Annotated[
        Literal["parquet", "tar"] | None,
        typer.Option(help="Pack the maps into shards of 500, which evaluate reads too."),
    ] = None,
    bits: Annotated[
        int | None,
        typer.Option(metavar="8|16", help="Depth of the maps; by default 8, and 16 if calibrated."),
    ] = None,
    mean: Annotated[
        str | None,
        typer.Option(metavar="R,G,B", help="Mean of images in [0, 1]; by default the model's."),
    ] = None,
    std: Annotated[
        str | None, typer.Option(metavar="R,G,B", help="Deviation; by default the model's.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            metavar="N|NAME",
            help="Output that is the prediction; by default the last, of an ONNX file the first.",
        ),
    ] = None,
    channel: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Channel of the object, counted from 0.")
    ] = None,
    activation: Annotated[
        Literal["sigmoid", "softmax", "none"] | None,
        typer.Option(help="What makes probabilities; by default the model's, or sigmoid."),
    ] = None,
    normalize: Annotated[
        Literal["minmax", "none"] | None,
        typer.Option(help="Whether predictions are stretched to [0, 1]: minmax for U2-Net."),
    ] = None,
    trust_remote_code: Annotated[
        bool,
        typer.Option("--trust-remote-code", help="Run the Python code of a model hf:; read it first."),
    ] = False,
    network: NetworkName = None,
    origin: OriginName = "authors",
    factory: FactoryName = None,
    resume: shared.Resume = False,
    overwrite: shared.Overwrite = False,
) -> None:
    """Write a map for every image of a folder, at its size.

    Example:
        sisod predict runs/edn data/MSOD/image maps/edn
    """
    from sisod.networks.registry import ModelOptions, check_model

    options = ModelOptions(
        size=size,
        mean=_numbers(mean),
        std=_numbers(std),
        output=int(output) if output and output.lstrip("-").isdecimal() else output,
        activation=activation,
        normalize=normalize,
        channel=channel,
        trust_remote_code=trust_remote_code,
        network=network,
        origin=origin,
        factory=factory,
    )
    kind, path = check_model(model, options)
    if kind == "onnx":
        from sisod.networks.onnx_model import OnnxModel, predict_onnx

        opened = OnnxModel(path, device=device, **options.given())
        title, write = opened.title, partial(predict_onnx, opened)
    else:
        shared.load_pytorch()
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


def _numbers(text: str | None) -> Any:
    """Return the numbers of `--mean` or `--std`."""
    with explain_errors("--mean and --std are three numbers with commas, like 0.485,0.456,0.406"):
        return None if text is None else tuple(map(float, text.split(",")))

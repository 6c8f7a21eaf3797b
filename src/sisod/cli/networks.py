"""The subcommands about networks: parse, call, print. PyTorch is imported only when one runs."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from sisod.cli.shared import Overwrite, complete_network, load_pytorch, print_rich
from sisod.common.exceptions import InputError, MissingExtraError, UsageError, require

Origin = Literal["authors", "si-sod"]  # of a checkpoint; the two prepared images differently
NetworkName = Annotated[
    str | None,
    typer.Option(
        "--network",
        metavar="NAME",
        help="Network of an authors' checkpoint; by default recognised by the key names.",
        autocompletion=complete_network,
    ),
]
OriginName = Annotated[
    Origin,
    typer.Option(
        "--origin",
        help="Origin of an authors' checkpoint: the network's own repository, or the paper's (si-sod).",
    ),
]

FactoryName = Annotated[
    str | None,
    typer.Option(
        "--factory",
        metavar="MODULE:FUNCTION",
        help="Function of yours that builds the network. Its module is imported and run; a "
        "factory that only a recipe or a checkpoint names is not.",
    ),
]


_SIDE_HELP = (
    "Height of the input; by default the size that the run folder was trained at, or that a wrapped "
    "network says, or 384."
)


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
    from rich.console import Console

    from sisod.networks.adapters.kinds import kinds_table
    from sisod.networks.registry import missing_module, networks_table

    module = missing_module()
    if module is not None:
        typer.echo(f"note: {MissingExtraError('counting parameters', module)}", err=True)
    print_rich(Console(width=120), [networks_table(encoder), kinds_table()])


def convert(
    checkpoint: Annotated[Path, typer.Argument(metavar="CKPT", help="An authors' checkpoint.")],
    out: Annotated[Path, typer.Argument(metavar="OUT.safetensors", help="The file to write.")],
    *,
    network: NetworkName = None,
    origin: OriginName = "authors",
    overwrite: Overwrite = False,
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
            metavar="CKPT",
            help="A safetensors file of convert, a folder of train or save_pretrained, or a repository "
            "on the Hugging Face hub.",
        ),
    ],
    out: Annotated[Path, typer.Argument(metavar="MODEL.onnx", help="The file to write.")],
    *,
    height: Annotated[int | None, typer.Option(metavar="N", min=1, help=_SIDE_HELP)] = None,
    width: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Input width; see --height.")
    ] = None,
    dynamic_size: Annotated[
        bool, typer.Option("--dynamic-size", help="Allow any height and width.")
    ] = False,
    factory: FactoryName = None,
    overwrite: Overwrite = False,
) -> None:
    """Write a network as ONNX: RGB images in [0, 1] in, saliency in [0, 1] out.

    Example:
        sisod export edn.safetensors edn.onnx --dynamic-size
    """
    _check_out(out, ".onnx", overwrite=overwrite)
    require("sisod export", "torch", "onnx", "onnxscript")
    load_pytorch()
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

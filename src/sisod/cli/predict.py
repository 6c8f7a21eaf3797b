"""The subcommand `predict`: parses, calls, prints. PyTorch is imported only when it runs."""

from pathlib import Path
from typing import Annotated

import typer

from sisod.cli.networks import NetworkName, Origin, OriginName
from sisod.cli.shared import Overwrite, Resume, exit_on_user_error


def predict(
    checkpoint: Annotated[
        str,
        typer.Argument(
            metavar="CKPT",
            help="A run folder of train, a safetensors file, a folder of save_pretrained, a repository "
            "on the Hugging Face hub, or an authors' checkpoint.",
        ),
    ],
    images: Annotated[str, typer.Argument(metavar="IMAGES", help="Folder of images, or an fsspec URL.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder for the maps.")],
    *,
    size: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Side of the input; by default the training's if known, or 384."
        ),
    ] = None,
    batch: Annotated[int, typer.Option(metavar="N", min=1, help="Images per batch.")] = 8,
    device: Annotated[
        str, typer.Option(metavar="NAME", help="cpu, cuda, cuda:1, mps; auto: a GPU if there is one.")
    ] = "auto",
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
        )
        kept = f", {done.n_kept} kept from before" if done.n_kept else ""
        typer.echo(f"{done.n_new} maps of {loaded.facts.title} in {out}{kept}")

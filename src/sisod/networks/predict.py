"""Images -> 8-bit maps at their own size, with any network that can be loaded; never by unpickling."""

import hashlib
import json
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  (the name everybody knows it by)
from numpy.typing import NDArray
from torch import Tensor

from sisod import networks
from sisod.common import folders
from sisod.common.arguments import check_whole
from sisod.common.errors import InputError, UsageError, shorten_list
from sisod.common.folders import is_url
from sisod.common.output import (
    followed,
    lock,
    output_path,
    readable_errors,
    remove_temporary,
    write_atomically,
    write_png,
)
from sisod.common.progress import progress_bar
from sisod.data.datasets import visible_files
from sisod.data.images import read_colour, resize
from sisod.networks.checkpoints import read_state
from sisod.networks.memory import check_memory, memory_errors
from sisod.networks.network import WEIGHTS_FILE, Network
from sisod.networks.saved import recognise

DEFAULT_SIZE = 384  # of the paper
_THREADS = 4  # that read and write files beside the network
KIND = "prediction"
RECIPE_FILE = "recipe.toml"  # of a run folder
_Names = Sequence[tuple[str, str]]  # names of a batch, and their files


@dataclass(frozen=True)
class Prediction:
    """What was written: maps made now, and maps that an earlier run had made."""

    out: Path
    n_made: int
    n_kept: int


@dataclass(frozen=True)
class _Picture:
    """An image at the network's size, and the height and width of its own."""

    name: str
    small: NDArray[np.uint8]
    shape: tuple[int, int]


def load_network(
    checkpoint: str | Path, *, network: str | None = None, origin: str = "authors"
) -> Network:
    """Return the network of a checkpoint, in eval mode.

    Args:
        checkpoint: a run folder of `sisod train`, a folder of `save_pretrained`, a safetensors file, a
            repository on the Hugging Face hub, or an authors' checkpoint.
        network: which network an authors' checkpoint is of; by default its key names tell.
        origin: whose checkpoint it is, `"authors"` or `"si-sod"`; see `networks.load_published`.
    """
    path = Path(checkpoint)
    if path.is_file() and (path.suffix != ".safetensors" or network is not None):
        state = read_state(path)
        name = network or recognise(state, source=str(path))
        return networks.load_published(name, state, origin=origin).eval()
    if network is not None:
        raise UsageError(
            f"--network is for the file of an authors' checkpoint, got {str(checkpoint)!r}; leave it out"
        )
    weights = path / WEIGHTS_FILE  # whose header says which network it is
    return networks.from_pretrained(weights if weights.is_file() else checkpoint)


def trained_size(checkpoint: str | Path) -> int | None:
    """Return the size that the recipe of a run folder trained at; None for any other checkpoint."""
    path = Path(checkpoint)
    try:
        recipe = tomllib.loads(
            ((path if path.is_dir() else path.parent) / RECIPE_FILE).read_text("utf-8")
        )
        return int(recipe["data"]["size"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def predict_folder(
    network: Network,
    images: str | Path,
    out: str | Path,
    *,
    size: int = DEFAULT_SIZE,
    batch: int = 8,
    device: str = "auto",
    resume: bool = False,
    overwrite: bool = False,
) -> Prediction:
    """Write one 8-bit PNG for each image, at the image's size, under its path below `images`.

    Args:
        network: what predicts; its `input_spec` says how an image becomes its input.
        images: folder of images, or URL; folders inside are kept.
        out: folder for the maps and `run.json`; must not exist, or be empty.
        size: side of the square that images are scaled to for the network.
        batch: images at a time.
        device: where the network runs, as PyTorch names it; `"auto"`: on the first GPU if there is one.
        resume: keep the maps that an unfinished run of the same network on the same images has made.
        overwrite: replace an earlier result of `predict`; it stays until all maps are made.
    """
    place, target = _device(device), followed(Path(out))
    size, batch = check_whole("size", size, least=1), check_whole("batch", batch, least=1)
    if resume and overwrite:
        raise UsageError("--resume goes on with a run and --overwrite begins again; choose one")
    check_memory(network, batch=batch, height=size, width=size, advice="lower --size or --batch")
    files = visible_files(images)
    if not files:
        raise InputError(f"{str(images)!r} has no image files; expected jpg, png or the like")
    _check_apart(target, images)
    for name in files:
        output_path(target, name, ".png")
    settings = {
        "command": "predict",
        "images": str(images) if is_url(images) else str(Path(images).resolve()),
        "network": network.config(),
        "weights": weights_digest(network),
        "size": size,
    }
    stamps = {name: f"{file.path} {file.stamp}" for name, file in files.items()}
    full = "free some room and go on with --resume"
    with readable_errors(target / "maps", full), lock(target):
        work = _prepare(target, settings, stamps, resume=resume, overwrite=overwrite)
        kept = _maps(work) & files.keys()
        _write_run(work, settings, finished=False, files=stamps)
        # batches are those of an unbroken run, so that a map is the same to the last bit
        listed = [(name, file.path) for name, file in files.items()]
        batches = [listed[begin : begin + batch] for begin in range(0, len(listed), batch)]
        waiting = [chunk for chunk in batches if not kept.issuperset(name for name, _ in chunk)]
        network = network.to(place).eval()
        with (
            memory_errors(f"a batch of {batch} images of {size} x {size}"),
            progress_bar("predicting", len(files), done=len(kept)) as advance,
        ):
            for done in _predict(network, str(images), waiting, work, kept, size=size):
                advance(done)
        _write_run(work, settings, finished=True, n_maps=len(files), files=stamps)
        if work != target:
            folders.put_in_place(work, target)
    return Prediction(Path(out), len(files) - len(kept), len(kept))


def _predict(
    network: Network, root: str, batches: Sequence[_Names], out: Path, kept: set[str], *, size: int
) -> Iterator[int]:
    """Predict batch by batch while the next is read and the last is written; give how many are new."""
    written: list[Future[None]] = []
    with ThreadPoolExecutor(_THREADS) as pool:
        try:
            for pictures in _read_ahead(pool, root, batches, size=size):
                maps = predict_batch(network, pictures_tensor(pictures), [p.shape for p in pictures])
                _finish(written)
                written = [
                    pool.submit(write_png, output_path(out, picture.name, ".png"), array)
                    for picture, array in zip(pictures, maps, strict=True)
                    if picture.name not in kept
                ]
                yield len(written)
            _finish(written)
        except BaseException:
            wait(written)  # they are made
            pool.shutdown(cancel_futures=True)
            raise


@torch.inference_mode()
def predict_batch(
    network: Network, images: Tensor, shapes: Sequence[tuple[int, int]]
) -> list[NDArray[np.uint8]]:
    """Return 8-bit maps of the given heights and widths.

    Args:
        network: in eval mode.
        images: (B, 3, H, W) RGB, uint8.
        shapes: one for each image; the logits are scaled to it.
    """
    place = next(network.parameters()).device
    logits = network(network.input_spec.apply(images.to(place)))[0]
    maps = []
    for logit, shape in zip(logits, shapes, strict=True):
        probs = F.interpolate(logit[None], size=shape, mode="bilinear", align_corners=False).sigmoid()
        if not bool(torch.isfinite(probs).all()):
            raise InputError(
                f"the map of {network.facts.name} is not finite; its weights are broken, or its input "
                f"({tuple(images.shape)}) is not what they were made for"
            )
        maps.append((probs[0, 0] * 255).round().to(torch.uint8).cpu().numpy())
    return maps


def pictures_tensor(pictures: Sequence[_Picture]) -> Tensor:
    """Join pictures to (B, 3, H, W) in RGB."""
    stack = np.stack([picture.small for picture in pictures])[..., ::-1]
    return torch.from_numpy(np.ascontiguousarray(stack.transpose(0, 3, 1, 2)))


def _read_ahead(
    pool: ThreadPoolExecutor, root: str, batches: Sequence[_Names], *, size: int
) -> Iterator[list[_Picture]]:
    """Give batches; the next one is being read meanwhile."""
    ahead: list[Future[_Picture]] = []
    for chunk in batches:
        reading = [pool.submit(_read, root, name, path, size) for name, path in chunk]
        if ahead:
            yield [future.result() for future in ahead]
        ahead = reading
    if ahead:
        yield [future.result() for future in ahead]


def _read(root: str, name: str, path: str, size: int) -> _Picture:
    image = read_colour(root, path)
    height, width = image.shape[:2]
    return _Picture(name, resize(image, size), (height, width))


def _finish(written: Sequence[Future[None]]) -> None:
    for future in written:
        future.result()


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        place = torch.device(name)
        torch.empty(1, device=place)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        first = str(error).splitlines()[0]
        raise UsageError(f"device {name!r} cannot be used ({first}); cpu always can") from error
    return place


def _check_apart(out: Path, images: str | Path) -> None:
    if is_url(images):
        return
    inside, outside = out.resolve(), Path(images).resolve()
    if inside == outside or inside.is_relative_to(outside):
        raise UsageError(
            f"the maps would go into the folder of images, {str(images)!r}; give a folder outside"
        )


def _prepare(
    target: Path, settings: dict[str, Any], stamps: dict[str, str], *, resume: bool, overwrite: bool
) -> Path:
    """Make the folder to write to, or find the one to go on with."""
    folders.recover(target)
    if not (resume or overwrite or folders.is_free(target) or _is_finished(target)):
        raise InputError(
            f"a run into {str(target)!r} is unfinished; use --resume to go on with it, or "
            "--overwrite to begin again"
        )
    work, goes_on = folders.choose_folder(
        target,
        kind=KIND,
        resume=resume,
        overwrite=overwrite,
        differs=lambda folder: _difference(folder, settings, stamps),
    )
    if not goes_on:
        folders.check_free(target, kind=KIND, overwrite=overwrite, inputs=(settings["images"],))
        if work != target:
            folders.discard(work)
        folders.begin(work, KIND)
    remove_temporary(work)  # of a run that was killed
    return work


def _maps(folder: Path) -> set[str]:
    return {path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.png")}


def _is_finished(folder: Path) -> bool:
    return folders.kind_of(folder) != KIND or bool(folders.read_run(folder).get("finished"))


def _difference(folder: Path, settings: dict[str, Any], stamps: dict[str, str]) -> str | None:
    """Say why the maps in a folder are not of these settings and images; None if they are.

    Images may be added; those that were predicted must be as they were, as for `sisod evaluate`.
    """
    before, advice = folders.read_run(folder), "or --overwrite to begin again"
    for key, value in json.loads(json.dumps(settings)).items():
        if before.get(key) != value:
            return (
                f"cannot resume into {str(folder)!r}: {key} differs from that of the maps there; "
                f"use the settings of the unfinished run, {advice}"
            )
    then = before.get("files", {})
    changed = sorted(
        name for name in _maps(folder) if name not in then or stamps.get(name) != then[name]
    )
    if changed:
        return (
            f"cannot resume into {str(folder)!r}: {len(changed)} images were predicted and their files "
            f"changed or are gone since ({shorten_list(changed)}); put them back, {advice}"
        )
    return None


def _write_run(out: Path, settings: dict[str, Any], **more: Any) -> None:
    from sisod.common.version import __version__

    versions = {"sisod": __version__, "kind": KIND, "torch": torch.__version__}
    text = json.dumps({**versions, **settings, **more}, indent=2, ensure_ascii=False)
    write_atomically(out / folders.RUN_FILE, f"{text}\n".encode())


def weights_digest(network: Network) -> str:
    """Return what tells the weights of networks apart."""
    digest = hashlib.sha256()
    for name, value in sorted(network.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.detach().cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()

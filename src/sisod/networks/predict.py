"""Images -> maps at their own size, with any network that can be loaded; nothing is unpickled."""

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
from sisod.data.containers import split_root
from sisod.data.datasets import visible_photographs
from sisod.data.images import read_colour, resize
from sisod.networks.checkpoints import read_state
from sisod.networks.memory import check_memory, memory_errors
from sisod.networks.network import WEIGHTS_FILE, Network
from sisod.networks.saved import recognise

DEFAULT_SIZE = 384  # of the paper
_THREADS = 4  # that read and write files while the network runs
KIND = "prediction"
RECIPE_FILE = "recipe.toml"  # of a run folder
_NamedFiles = Sequence[tuple[str, str]]  # names and paths of the images of a batch


@dataclass(frozen=True)
class Prediction:
    """The folder of maps: how many this run predicted, how many it kept from an unfinished run."""

    out: Path
    n_new: int
    n_kept: int


@dataclass(frozen=True)
class _LoadedImage:
    """An image resized for the network, and its original height and width."""

    name: str
    resized: NDArray[np.uint8]
    shape: tuple[int, int]


def load_network(
    checkpoint: str | Path, *, network: str | None = None, origin: str = "authors"
) -> Network:
    """Return the network of a checkpoint, in eval mode.

    Args:
        checkpoint: a run folder of `sisod train`, a folder of `save_pretrained`, a safetensors file, a
            repository on the Hugging Face hub, or an authors' checkpoint.
        network: name of the network of an authors' checkpoint; by default recognised by its key names.
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
    weights = path / WEIGHTS_FILE  # its header names the network
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
    """Write one PNG for each image, at the image's size, under its path below `images`.

    Maps have 8 bits; those of a calibrated network have 16, so that fewer levels merge.

    Args:
        network: its `input_spec` says how an image becomes its input, its `calibration` how a logit
            becomes a probability.
        images: folder of images, or URL; subfolders are kept.
        out: folder for the maps and `run.json`; must not exist, or be empty.
        size: side of the square that images are resized to for the network.
        batch: images per batch.
        device: as PyTorch names it; `"auto"` is the first GPU if there is one, else the CPU.
        resume: keep the maps of an unfinished run of the same network on the same images.
        overwrite: replace an earlier result of `predict`; it stays until all maps are written.
    """
    torch_device, target = find_device(device), followed(Path(out))
    size, batch = check_whole("size", size, least=1), check_whole("batch", batch, least=1)
    if resume and overwrite:
        raise UsageError("--resume goes on with a run and --overwrite begins again; choose one")
    check_memory(network, batch=batch, height=size, width=size, advice="lower --size or --batch")
    files = visible_photographs(images)
    if not files:
        raise InputError(f"{str(images)!r} has no image files; expected jpg, png or the like")
    _check_outside(target, images)
    for name in files:
        output_path(target, name, ".png")
    settings = {
        "command": "predict",
        "images": str(images) if is_url(images) else str(Path(images).resolve()),
        "network": network.config(),
        "weights": weights_digest(network),
        "size": size,
    }
    if network.calibration is not None:
        settings["calibration"] = network.calibration.to_json()
    stamps = {name: f"{file.path} {file.stamp}" for name, file in files.items()}
    full = "free some room and go on with --resume"
    with readable_errors(target / "maps", full), lock(target):
        work = _prepare(target, settings, stamps, resume=resume, overwrite=overwrite)
        kept = _map_names(work) & files.keys()
        _write_run(work, settings, finished=False, files=stamps)
        # the batches are those of an uninterrupted run, so that every map is bit-identical
        listed = [(name, file.path) for name, file in files.items()]
        batches = [listed[begin : begin + batch] for begin in range(0, len(listed), batch)]
        waiting = [chunk for chunk in batches if not kept.issuperset(name for name, _ in chunk)]
        network = network.to(torch_device).eval()
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
    network: Network, root: str, batches: Sequence[_NamedFiles], out: Path, kept: set[str], *, size: int
) -> Iterator[int]:
    """Predict batch by batch while others are read and written; yield the number of new maps of each."""
    writes: list[Future[None]] = []
    with ThreadPoolExecutor(_THREADS) as pool:
        try:
            for loaded in _read_ahead(pool, root, batches, size=size):
                maps = predict_batch(network, _stack(loaded), [p.shape for p in loaded])
                _wait_for(writes)
                writes = [
                    pool.submit(write_png, output_path(out, image.name, ".png"), array)
                    for image, array in zip(loaded, maps, strict=True)
                    if image.name not in kept
                ]
                yield len(writes)
            _wait_for(writes)
        except BaseException:
            wait(writes)  # keep the maps that are computed
            pool.shutdown(cancel_futures=True)
            raise


@torch.inference_mode()
def predict_batch(
    network: Network, images: Tensor, shapes: Sequence[tuple[int, int]]
) -> list[NDArray[np.uint8] | NDArray[np.uint16]]:
    """Return maps of the given heights and widths: 8-bit, or 16-bit of a calibrated network.

    Args:
        network: in eval mode.
        images: (B, 3, H, W) RGB, uint8.
        shapes: one for each image; the logits are resized to it.
    """
    probs = (network.saliency(logits) for logits in predict_logits(network, images, shapes))
    if network.calibration is None:
        return [(p * 255).round().to(torch.uint8).cpu().numpy() for p in probs]
    return [(p.double() * 65535).round().int().cpu().numpy().astype(np.uint16) for p in probs]


@torch.inference_mode()
def predict_logits(network: Network, images: Tensor, shapes: Sequence[tuple[int, int]]) -> list[Tensor]:
    """Return the logits of the prediction, not calibrated, at the given heights and widths.

    The arguments are those of `predict_batch`.
    """
    torch_device = next(network.parameters()).device
    logits = network(network.input_spec.apply(images.to(torch_device)))[0]
    resized = []
    for logit, shape in zip(logits, shapes, strict=True):
        values = F.interpolate(logit[None], size=shape, mode="bilinear", align_corners=False)[0, 0]
        if bool(torch.isnan(values).any()):
            raise InputError(
                f"the map of {network.facts.name} is not finite; its weights are broken, or they do not "
                f"fit an input of shape {tuple(images.shape)}"
            )
        resized.append(values)
    return resized


def _stack(loaded: Sequence[_LoadedImage]) -> Tensor:
    """Return images as one tensor (B, 3, H, W) in RGB."""
    stack = np.stack([image.resized for image in loaded])[..., ::-1]
    return torch.from_numpy(np.ascontiguousarray(stack.transpose(0, 3, 1, 2)))


def _read_ahead(
    pool: ThreadPoolExecutor, root: str, batches: Sequence[_NamedFiles], *, size: int
) -> Iterator[list[_LoadedImage]]:
    """Yield batches; the next one is being read meanwhile."""
    ahead: list[Future[_LoadedImage]] = []
    for chunk in batches:
        reading = [pool.submit(_read, root, name, path, size) for name, path in chunk]
        if ahead:
            yield [future.result() for future in ahead]
        ahead = reading
    if ahead:
        yield [future.result() for future in ahead]


def _read(root: str, name: str, path: str, size: int) -> _LoadedImage:
    image = read_colour(root, path)
    height, width = image.shape[:2]
    return _LoadedImage(name, resize(image, size), (height, width))


def _wait_for(writes: Sequence[Future[None]]) -> None:
    for future in writes:
        future.result()


def find_device(name: str) -> torch.device:
    """Return a device by its name; `"auto"` is the first GPU if there is one, else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch_device = torch.device(name)
        torch.empty(1, device=torch_device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        first = str(error).splitlines()[0]
        raise UsageError(f"device {name!r} cannot be used ({first}); cpu is always available") from error
    return torch_device


def _check_outside(out: Path, images: str | Path) -> None:
    if is_url(images):
        return
    if out.resolve().is_relative_to(Path(split_root(str(images))[0]).resolve()):
        raise UsageError(
            f"the maps would go into the folder of images, {str(images)!r}; give a folder outside"
        )


def _prepare(
    target: Path, settings: dict[str, Any], stamps: dict[str, str], *, resume: bool, overwrite: bool
) -> Path:
    """Create the folder to write to, or find that of the run to resume."""
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


def _map_names(folder: Path) -> set[str]:
    return {path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.png")}


def _is_finished(folder: Path) -> bool:
    return folders.kind_of(folder) != KIND or bool(folders.read_run(folder).get("finished"))


def _difference(folder: Path, settings: dict[str, Any], stamps: dict[str, str]) -> str | None:
    """Say why the maps in a folder do not belong to these settings and images; None if they do.

    Images may be added; those already predicted must be unchanged, as for `sisod evaluate`.
    """
    before, advice = folders.read_run(folder), "or --overwrite to begin again"
    for key, value in json.loads(json.dumps(settings)).items():
        if before.get(key) != value:
            return (
                f"cannot resume into {str(folder)!r}: {key} differs from that of the maps there; "
                f"use the settings of the unfinished run, {advice}"
            )
    earlier = before.get("files", {})
    changed = sorted(
        name for name in _map_names(folder) if name not in earlier or stamps.get(name) != earlier[name]
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
    """Return the SHA-256 of all tensors of a network, with their names."""
    digest = hashlib.sha256()
    for name, value in sorted(network.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.detach().cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()

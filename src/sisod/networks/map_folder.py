"""A folder of maps, written by any model: batches are read ahead, maps are written in other threads.

The runtime of the model is its own affair, so this module does without PyTorch.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sisod.common import folders
from sisod.common.arguments import check_choice
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
from sisod.data.images import read_colour
from sisod.networks.map_shards import CONTAINERS, Container, MapShards, packed_names

GreyMap = NDArray[np.uint8] | NDArray[np.uint16]
KIND = "prediction"
_THREADS = 4  # that read and write files while the model runs
_NamedFiles = Sequence[tuple[str, str]]  # names and paths of the images of a batch


class MapModel(Protocol):
    """What `write_maps` needs of a model."""

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the input."""

    @property
    def versions(self) -> dict[str, str]:
        """Versions of the packages that run it, for `run.json`."""

    def settings(self) -> dict[str, Any]:
        """Return what decides the maps beside images and size, as plain data."""

    def prepare(self, image: NDArray[np.uint8]) -> NDArray[Any]:
        """Return an image (BGR) as the model takes it, without the batch; called in another thread."""

    def predict(
        self, images: NDArray[Any], shapes: Sequence[tuple[int, int]]
    ) -> list[Callable[[], GreyMap]]:
        """Return for each prepared image the function that finishes its map, called in another thread.

        Each map gets the height and width in `shapes`.
        """


@dataclass(frozen=True)
class Prediction:
    """The folder of maps: how many this run predicted, how many it kept from an unfinished run."""

    out: Path
    n_new: int
    n_kept: int


@dataclass(frozen=True)
class _LoadedImage:
    """An image prepared for the model, and its original height and width."""

    name: str
    prepared: NDArray[Any]
    shape: tuple[int, int]


def write_maps(
    model: MapModel,
    images: str | Path,
    out: str | Path,
    *,
    batch: int,
    resume: bool = False,
    overwrite: bool = False,
    container: Container | None = None,
) -> Prediction:
    """Write one PNG for each image, at the image's size; see `predict_folder`."""
    target = followed(Path(out))
    if container is not None:
        check_choice("container", container, CONTAINERS)
    if resume and overwrite:
        raise UsageError("--resume goes on with a run and --overwrite begins again; choose one")
    files = visible_photographs(images)
    if not files:
        raise InputError(f"{str(images)!r} has no image files; expected jpg, png or the like")
    _check_outside(target, images)
    for name in files:
        output_path(target, name, ".png")
    height, width = model.size
    settings = {
        "command": "predict",
        "images": str(images) if is_url(images) else str(Path(images).resolve()),
        "size": height if height == width else [height, width],
        "container": container,
        **model.settings(),
    }
    stamps = {name: f"{file.path} {file.stamp}" for name, file in files.items()}
    full = "free some room and go on with --resume"
    with readable_errors(target / "maps", full), lock(target):
        work = _prepare(target, settings, stamps, resume=resume, overwrite=overwrite)
        kept = _map_names(work) & files.keys()
        _write_run(work, model.versions, settings, finished=False, files=stamps)
        # the batches are those of an uninterrupted run, so that every map is bit-identical
        listed = [(name, file.path) for name, file in files.items()]
        batches = [listed[begin : begin + batch] for begin in range(0, len(listed), batch)]
        waiting = [chunk for chunk in batches if not kept.issuperset(name for name, _ in chunk)]
        shards = None if container is None else MapShards(work, container, list(files))
        bar = progress_bar("predicting", len(files), done=len(kept))
        with _discarded_if_empty(work), bar as advance:
            for done in _predict(model, str(images), waiting, work, kept):
                advance(done)
                if shards is not None:
                    shards.pack()
        if shards is not None:
            shards.finish()
        _write_run(work, model.versions, settings, finished=True, n_maps=len(files), files=stamps)
        if work != target:
            folders.put_in_place(work, target)
    return Prediction(Path(out), len(files) - len(kept), len(kept))


@contextmanager
def _discarded_if_empty(work: Path) -> Iterator[None]:
    """Remove a run that fails before its first map, so that the corrected command can be given."""
    try:
        yield
    except InputError:
        if not _map_names(work):
            folders.discard(work)
        raise


def _predict(
    model: MapModel, root: str, batches: Sequence[_NamedFiles], out: Path, kept: set[str]
) -> Iterator[int]:
    """Predict batch by batch while others are read and written; yield the number of new maps of each."""
    writes: list[Future[None]] = []
    with ThreadPoolExecutor(_THREADS) as pool:
        try:
            for loaded in _read_ahead(pool, model, root, batches):
                stacked = np.stack([image.prepared for image in loaded])
                finishers = model.predict(stacked, [image.shape for image in loaded])
                _wait_for(writes)
                writes = [
                    pool.submit(_write, output_path(out, image.name, ".png"), finish)
                    for image, finish in zip(loaded, finishers, strict=True)
                    if image.name not in kept
                ]
                yield len(writes)
            _wait_for(writes)
        except BaseException:
            wait(writes)  # keep the maps that are computed
            pool.shutdown(cancel_futures=True)
            raise


def _read_ahead(
    pool: ThreadPoolExecutor, model: MapModel, root: str, batches: Sequence[_NamedFiles]
) -> Iterator[list[_LoadedImage]]:
    """Yield batches; the next one is being read meanwhile."""
    ahead: list[Future[_LoadedImage]] = []
    for chunk in batches:
        reading = [pool.submit(_read, model, root, name, path) for name, path in chunk]
        if ahead:
            yield [future.result() for future in ahead]
        ahead = reading
    if ahead:
        yield [future.result() for future in ahead]


def _read(model: MapModel, root: str, name: str, path: str) -> _LoadedImage:
    image = read_colour(root, path)
    height, width = image.shape[:2]
    return _LoadedImage(name, model.prepare(image), (height, width))


def _write(path: Path, finish: Callable[[], GreyMap]) -> None:
    write_png(path, finish())


def _wait_for(writes: Sequence[Future[None]]) -> None:
    for future in writes:
        future.result()


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
    single = {path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.png")}
    return single | packed_names(folder)


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


def _write_run(out: Path, versions: dict[str, str], settings: dict[str, Any], **more: Any) -> None:
    from sisod.common.version import __version__

    content = {"sisod": __version__, "kind": KIND, **versions, **settings, **more}
    text = json.dumps(content, indent=2, ensure_ascii=False)
    write_atomically(out / folders.RUN_FILE, f"{text}\n".encode())

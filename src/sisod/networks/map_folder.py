"""A folder of maps, written by any model: batches are read ahead, maps are written in other threads.

The runtime of the model is its own affair, so this module does without PyTorch. Maps may be packed into
Parquet or tar shards, 500 in each, in the order of their images; a run that is killed keeps the shards
that are written, and at no time there are many small files.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict, get_args

import numpy as np
from numpy.typing import NDArray

from sisod.common.arguments import check_choice, check_int
from sisod.common.exceptions import InputError, UsageError, shorten_list
from sisod.common.output import is_url, output_path, png_bytes, write_atomically, write_png
from sisod.common.run_folder import OtherRunError, Run, discard, open_run
from sisod.common.streams import progress_bar
from sisod.data.containers import split_root
from sisod.data.containers.parquet import parquet_file
from sisod.data.containers.tar import tar_file
from sisod.data.images import read_colour
from sisod.data.pairs import files_by_name, find_photographs

Container = Literal["parquet", "tar"]
SHARD = 500  # maps
Bits = Literal[8, 16]
GreyMap = NDArray[np.uint8] | NDArray[np.uint16]
Probabilities = NDArray[np.float32]
_THREADS = 4  # that read and write files while the model runs


class MapOptions(TypedDict, total=False):
    """Where and how maps are written; see `predict_folder`."""

    resume: bool
    overwrite: bool
    container: Container | None
    bits: Bits | None


@dataclass(frozen=True)
class MapModel:
    """What `write_maps` needs of a model.

    Attributes:
        size: height and width of the input.
        versions: of the packages that run it, for `run.json`.
        settings: what decides the maps beside images and size, as plain data.
        prepare: image (BGR) -> the model's input, without the batch; called in other threads.
        predict: prepared images, heights and widths of the maps -> for each map the function that
            finishes it, called in another thread.
    """

    size: tuple[int, int]
    versions: dict[str, str]
    settings: dict[str, Any]
    prepare: Callable[[NDArray[np.uint8]], NDArray[Any]]
    predict: Callable[[NDArray[Any], Sequence[tuple[int, int]]], list[Callable[[], Probabilities]]]


@dataclass(frozen=True)
class Prediction:
    """The folder of maps: how many this run predicted, how many it kept from an unfinished run."""

    out: Path
    n_new: int
    n_kept: int


def write_maps(
    model: MapModel,
    images: str | Path,
    out: str | Path,
    *,
    batch: int,
    resume: bool = False,
    overwrite: bool = False,
    container: Container | None = None,
    bits: Bits | None = None,
) -> Prediction:
    """Write one PNG for each image, at the image's size; the arguments are those of `predict_folder`."""
    if bits is not None:
        check_choice("bits", bits, get_args(Bits))
    if container is not None:
        check_choice("container", container, get_args(Container))
    check_int("batch", batch, least=1)
    files = find_photographs(images, all_used=True)
    if not files:
        raise InputError(f"{str(images)!r} has no image files; expected jpg, png or the like")
    place = images if is_url(images) else Path(images).resolve()
    if not is_url(images) and Path(out).resolve().is_relative_to(split_root(str(place))[0]):
        raise UsageError(
            f"the maps would go into the folder of images, {str(images)!r}; give a folder outside"
        )
    of_model, (height, width) = model.settings, model.size
    depth = bits or (16 if "calibration" in of_model else 8)
    config = {
        "images": str(place),
        "size": height if height == width else [height, width],
        "container": container,
        "bits": depth,
        **of_model,
    }
    stamps = {name: f"{file.path} {file.stamp}" for name, file in files.items()}
    # `sisod evaluate` copies the calibration
    record = {**model.versions, "calibration": of_model.get("calibration"), "files": stamps}
    with open_run(
        out,
        kind="prediction",
        config=config,
        resume=resume,
        overwrite=overwrite,
        inputs=[images],
        in_place=True,
    ) as run:
        for name in files:
            output_path(run.path, name, ".png")  # raises for names that lead elsewhere
        kept = _kept_names(run, stamps)
        run.begin()
        run.save(finished=False, **record)
        # the batches are those of an uninterrupted run, so that every map is bit-identical
        listed = [(name, file.path) for name, file in files.items()]
        batches = [listed[begin : begin + batch] for begin in range(0, len(listed), batch)]
        waiting = [chunk for chunk in batches if not kept.issuperset(name for name, _ in chunk)]
        unpacked: dict[str, bytes] = {}
        try:
            with progress_bar("predicting", len(files), done=len(kept)) as advance:
                for maps in _predict(model, str(images), waiting, run.path, kept, container, depth):
                    advance(len(maps))
                    unpacked |= maps
                    while container is not None and len(unpacked) >= SHARD:
                        unpacked = _write_shard(run.path, container, unpacked)
        except InputError:
            if not files_by_name(run.path):  # so that the corrected command can be given
                discard(run.path)
            raise
        if container is not None and unpacked:
            _write_shard(run.path, container, unpacked)
        run.finish(n_maps=len(files))
    return Prediction(Path(out), len(files) - len(kept), len(kept))


def _kept_names(run: Run, stamps: dict[str, str]) -> set[str]:
    """Return the names of the maps of an unfinished run; raise if their images changed since.

    Images may be added.
    """
    if not run.resumed:
        return set()
    names, before = set(files_by_name(run.path)), run.record.get("files", {})
    changed = sorted(name for name in names if before.get(name, "") != stamps.get(name))
    if changed:
        raise OtherRunError(
            f"cannot resume into {str(run.path)!r}: {len(changed)} images were predicted and their "
            f"files changed or are gone since ({shorten_list(changed)}); put them back, or --overwrite "
            "to begin again"
        )
    return names


def _predict(
    model: MapModel,
    root: str,
    batches: Sequence[Sequence[tuple[str, str]]],
    out: Path,
    kept: set[str],
    container: Container | None,
    bits: Bits,
) -> Iterator[dict[str, bytes]]:
    """Predict batches of names and paths; yield the new maps of each as PNG, and write single files.

    Meanwhile other threads read the next batch and write the maps of the one before.
    """

    def read(name: str, path: str) -> tuple[str, NDArray[Any], tuple[int, int]]:
        image = read_colour(root, path)
        return name, model.prepare(image), (image.shape[0], image.shape[1])

    def write(name: str, finish: Callable[[], Probabilities]) -> tuple[str, bytes]:
        grey = to_grey(finish(), bits)
        if container is not None:
            return f"{name}.png", png_bytes(grey)
        write_png(output_path(out, name, ".png"), grey)
        return name, b""

    reads: list[Future[tuple[str, NDArray[Any], tuple[int, int]]]] = []
    writes: list[Future[tuple[str, bytes]]] = []
    with ThreadPoolExecutor(_THREADS) as pool:
        try:
            for chunk in (*batches, ()):
                ahead = [pool.submit(read, name, path) for name, path in chunk]
                if reads:
                    names, images, shapes = zip(*(future.result() for future in reads), strict=True)
                    finishers = model.predict(np.stack(images), shapes)
                    yield dict(future.result() for future in writes)
                    maps = zip(names, finishers, strict=True)
                    writes = [pool.submit(write, *one) for one in maps if one[0] not in kept]
                reads = ahead
            yield dict(future.result() for future in writes)
        except BaseException:
            wait(writes)  # keep the maps that are computed
            pool.shutdown(cancel_futures=True)
            raise


def _write_shard(folder: Path, container: Container, maps: dict[str, bytes]) -> dict[str, bytes]:
    """Write the first maps as the next shard; return the others."""
    names = list(maps)
    members = {name: maps[name] for name in names[:SHARD]}
    content = tar_file(members) if container == "tar" else parquet_file(members, column="prediction")
    number = len(list(folder.glob(f"maps-*.{container}")))
    write_atomically(folder / f"maps-{number:05d}.{container}", content)
    return {name: maps[name] for name in names[SHARD:]}


def to_grey(p: Probabilities, bits: Bits) -> GreyMap:
    """Return probabilities as a grey map: 255 is one in 8 bits, 65535 in 16.

    Example:
        >>> to_grey(np.array([[0, 0.5, 1]], dtype=np.float32), 8)
        array([[  0, 128, 255]], dtype=uint8)
    """
    if bits == 8:
        return np.rint(p * 255).astype(np.uint8)
    return np.rint(p.astype(np.float64) * 65535).astype(np.uint16)

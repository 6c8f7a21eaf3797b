"""A folder of maps, written by any model: batches are read ahead, maps are written in other threads.

The runtime of the model is its own affair, so this module does without PyTorch. Maps may be packed into
Parquet or tar shards. Every map is a file first; once the next 500 in the order of their images are
there, they are packed and removed, so a run that is killed loses nothing, and at no time there are many
small files.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypedDict, get_args

import numpy as np
from numpy.typing import NDArray

from sisod.common.arguments import check_choice, check_int
from sisod.common.exceptions import InputError, UsageError, shorten_list
from sisod.common.output import is_url, output_path, write_atomically, write_png
from sisod.common.run_folder import OtherRunError, Run, discard, open_run
from sisod.common.streams import progress_bar
from sisod.data.containers import list_members, open_shard, split_root
from sisod.data.containers.parquet import parquet_file
from sisod.data.containers.tar import tar_file
from sisod.data.images import read_colour
from sisod.data.pairs import find_photographs

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
    ) -> list[Callable[[], Probabilities]]:
        """Return for each prepared image the function that finishes its map, called in another thread.

        Each map gets the height and width in `shapes`.
        """


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
    """Write one PNG for each image, at the image's size.

    Args:
        model: of any runtime.
        images: folder of images, URL or container.
        out: folder for the maps and `run.json`.
        batch: images per batch.
        resume: as for `predict_folder`, and so are the next three.
        overwrite: replace an earlier result.
        container: pack the maps into shards of this format.
        bits: depth of the maps.

    Returns:
        The folder, and how many maps are new or were kept.
    """
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
    of_model, (height, width) = model.settings(), model.size
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
        shards = MapShards(run.path, container, list(files))
        try:
            with progress_bar("predicting", len(files), done=len(kept)) as advance:
                for done in _predict(model, str(images), waiting, run.path, kept, depth):
                    advance(done)
                    shards.pack()
        except InputError:
            if not _map_names(run.path):  # so that the corrected command can be given
                discard(run.path)
            raise
        shards.finish()
        run.finish(n_maps=len(files))
    return Prediction(Path(out), len(files) - len(kept), len(kept))


def _kept_names(run: Run, stamps: dict[str, str]) -> set[str]:
    """Return the names of the maps of an unfinished run; raise if their images changed since.

    Images may be added.
    """
    if not run.resumed:
        return set()
    names, before = _map_names(run.path), run.record.get("files", {})
    changed = sorted(name for name in names if before.get(name, "") != stamps.get(name))
    if changed:
        raise OtherRunError(
            f"cannot resume into {str(run.path)!r}: {len(changed)} images were predicted and their "
            f"files changed or are gone since ({shorten_list(changed)}); put them back, or --overwrite "
            "to begin again"
        )
    return names


def _map_names(folder: Path) -> set[str]:
    single = {path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.png")}
    return single | packed_names(folder)


def _predict(
    model: MapModel,
    root: str,
    batches: Sequence[Sequence[tuple[str, str]]],
    out: Path,
    kept: set[str],
    bits: Bits,
) -> Iterator[int]:
    """Predict batches of names and paths; yield the number of new maps of each.

    Meanwhile other threads read the next batch and write the maps of the one before.
    """

    def read(name: str, path: str) -> tuple[str, NDArray[Any], tuple[int, int]]:
        image = read_colour(root, path)
        return name, model.prepare(image), (image.shape[0], image.shape[1])

    def write(name: str, finish: Callable[[], Probabilities]) -> None:
        write_png(output_path(out, name, ".png"), to_grey(finish(), bits))

    reads: list[Future[tuple[str, NDArray[Any], tuple[int, int]]]] = []
    writes: list[Future[None]] = []
    with ThreadPoolExecutor(_THREADS) as pool:
        try:
            for chunk in (*batches, ()):
                ahead = [pool.submit(read, name, path) for name, path in chunk]
                if reads:
                    names, images, shapes = zip(*(future.result() for future in reads), strict=True)
                    finishers = model.predict(np.stack(images), shapes)
                    for future in writes:
                        future.result()
                    maps = zip(names, finishers, strict=True)
                    writes = [pool.submit(write, *one) for one in maps if one[0] not in kept]
                    yield len(writes)
                reads = ahead
            for future in writes:
                future.result()
        except BaseException:
            wait(writes)  # keep the maps that are computed
            pool.shutdown(cancel_futures=True)
            raise


def to_grey(p: Probabilities, bits: Bits) -> GreyMap:
    """Return probabilities as a grey map: 255 is one in 8 bits, 65535 in 16.

    Example:
        >>> to_grey(np.array([[0, 0.5, 1]], dtype=np.float32), 8)
        array([[  0, 128, 255]], dtype=uint8)
    """
    if bits == 8:
        return np.rint(p * 255).astype(np.uint8)
    return np.rint(p.astype(np.float64) * 65535).astype(np.uint16)


# ----------------------------------------------------------------------------------------------- shards


class MapShards:
    """The shards of a folder of maps; none if the maps stay single files.

    Args:
        folder: where maps are written, and then shards.
        container: format of the shards; None for single files.
        names: of all images, in order.
    """

    def __init__(self, folder: Path, container: Container | None, names: Sequence[str]) -> None:
        self.folder, self.container = folder, container
        packed = packed_names(folder)
        self.n_shards = len(_shard_files(folder))
        self.unpacked = [name for name in names if name not in packed] if container else []
        for name in packed:  # of a run that was killed before it removed them
            self._path(name).unlink(missing_ok=True)

    def pack(self, *, rest: bool = False) -> None:
        """Pack as many whole shards as there are maps for; with `rest`, also the last, smaller one."""
        while names := self.unpacked[:SHARD]:
            # the last map first: mostly it is missing, and the others need not be looked for
            is_whole = len(names) == SHARD and all(self._path(one).exists() for one in reversed(names))
            if not is_whole and not rest:
                return
            members = {f"{name}.png": self._path(name).read_bytes() for name in names}
            is_tar = self.container == "tar"
            write_atomically(
                self.folder / f"maps-{self.n_shards:05d}.{self.container}",
                tar_file(members) if is_tar else parquet_file(members, column="prediction"),
            )
            for name in names:
                self._path(name).unlink()
            self.n_shards += 1
            self.unpacked = self.unpacked[SHARD:]

    def finish(self) -> None:
        """Pack the last maps, and remove the folders that they were in."""
        self.pack(rest=True)
        folders = (path for path in self.folder.rglob("*") if path.is_dir() and self.container)
        for path in sorted(folders, reverse=True):
            with suppress(OSError):  # of the user: not empty
                path.rmdir()

    def _path(self, name: str) -> Path:
        return output_path(self.folder, name, ".png")


def packed_names(folder: Path) -> set[str]:
    """Return the names of the maps in the shards of a folder."""
    shards = (open_shard(str(file)) for file in _shard_files(folder))
    return {member.name.removesuffix(".png") for shard in shards for member in list_members(shard)}


def _shard_files(folder: Path) -> list[Path]:
    return [path for kind in get_args(Container) for path in sorted(folder.glob(f"maps-*.{kind}"))]

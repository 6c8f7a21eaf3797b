"""What a folder holds of the known data sets: counts, what has no partner, sizes that differ."""

import mmap
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sisod.common.errors import InputError, shorten_list
from sisod.common.progress import progress_bar
from sisod.data.catalogue import KNOWN, Known
from sisod.data.datasets import Place, Sample, find_known, match_files
from sisod.data.headers import image_size

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Inspection:
    """What is there of one data set.

    Attributes:
        place: where it lies; None if it is missing.
        n_images: image files.
        without_mask: names of images that have no mask.
        without_image: names of masks that have no image.
        other_size: names of samples whose mask is not of the image's size.
        unreadable: files whose header is none of an image.
        problem: why it could not be looked at.
    """

    known: Known
    place: Place | None = None
    n_images: int = 0
    without_mask: tuple[str, ...] = ()
    without_image: tuple[str, ...] = ()
    other_size: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    problem: str | None = None

    @property
    def trouble(self) -> str | None:
        """Say why it cannot be trained on or evaluated as it is, in a few words."""
        if self.place is None or self.problem:
            return self.problem
        if self.place.mask_dir is None:
            return "no folder of masks"
        for names, what in (
            (self.without_mask, "images have no mask"),
            (self.without_image, "masks have no image"),
            (self.unreadable, "files are not images"),
        ):
            if names:
                return f"{len(names)} {what}: {shorten_list(list(names))}"
        return None if self.n_images else "no images"


def inspect_datasets(root: Path | str) -> list[Inspection]:
    """Look at every known data set below a folder; sizes are read off the files' headers.

    Args:
        root: a folder that holds data sets, or a data set's own folder.
    """
    places = find_known(root)
    return [
        _inspect(known, places[name]) if name in places else Inspection(known)
        for name, known in KNOWN.items()
    ]


def _inspect(known: Known, place: Place) -> Inspection:
    if place.problem is not None:
        return Inspection(known, place, problem=place.problem)
    try:
        found = match_files(place.image_dir, place.mask_dir or place.image_dir)
        other_size, unreadable = _compare_sizes(known.name, found.samples)
    except InputError as error:
        return Inspection(known, place, problem=str(error))
    if place.mask_dir is None:
        return Inspection(known, place, len(found.samples))
    return Inspection(
        known,
        place,
        len(found.samples) + len(found.without_mask),
        found.without_mask,
        found.without_image,
        tuple(other_size),
        tuple(unreadable),
    )


def _compare_sizes(title: str, samples: Iterable[Sample]) -> tuple[list[str], list[str]]:
    other_size, unreadable = [], []
    samples = tuple(samples)
    with progress_bar(f"reading {title}", len(samples)) as advance:
        for sample in samples:
            sizes = {}
            for path in (sample.image, sample.mask):
                if path.suffix.lower() == ".npy":
                    continue  # has no header of an image
                sizes[path] = _size(path)
                if sizes[path] is None:
                    unreadable.append(path.name)
            if None not in sizes.values() and len(set(sizes.values())) > 1:
                other_size.append(sample.name)
            advance(1)
    return other_size, unreadable


def _size(path: Path) -> tuple[int, int] | None:
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return image_size(data)
    except ValueError:  # an empty file
        return None
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read: {error.strerror}") from error


def report_table(found: list[Inspection], root: Path) -> "Table":
    """Return what the command prints."""
    from rich.markup import escape
    from rich.table import Table

    table = Table("data set", "images", "no mask", "no image", "other size", "where, or where to get it")
    for column in table.columns[1:5]:
        column.justify = "right"
    table.columns[-1].overflow = "fold"
    for one in found:
        if one.place is None:
            table.add_row(one.known.name, f"missing, {one.known.count}", "", "", "", one.known.url)
            continue
        where = _where(one.place, root)
        if one.problem or one.place.mask_dir is None:
            where += f": {one.trouble}"
        counts = (one.without_mask, one.without_image, one.other_size)
        table.add_row(
            one.known.name,
            f"{one.n_images} of {one.known.count}",
            *(str(len(names) or "") for names in counts),
            escape(where),
        )
    return table


def report_json(found: list[Inspection]) -> list[dict[str, Any]]:
    """Return the same for programs."""
    return [
        {
            "name": one.known.name,
            "title": one.known.title,
            "like": one.known.like,
            "url": one.known.url,
            "expected": one.known.count,
            "images": one.n_images,
            "image_dir": None if one.place is None else str(one.place.image_dir),
            "mask_dir": None
            if one.place is None or one.place.mask_dir is None
            else str(one.place.mask_dir),
            "without_mask": list(one.without_mask),
            "without_image": list(one.without_image),
            "other_size": list(one.other_size),
            "unreadable": list(one.unreadable),
            "trouble": one.trouble,
        }
        for one in found
    ]


def _where(place: Place, root: Path) -> str:
    """Name the folders as the user would, from the root."""
    images, masks = (
        None if folder is None else _from(folder, root) for folder in (place.image_dir, place.mask_dir)
    )
    return f"{images}, {masks}" if masks is not None else f"{images}"


def _from(folder: Path, root: Path) -> str:
    base = root.absolute()
    return folder.relative_to(base).as_posix() if folder.is_relative_to(base) else str(folder)

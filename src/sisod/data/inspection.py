"""Inspection of data sets: counts, images without masks and the reverse, sizes that differ."""

import math
import mmap
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sisod.common.errors import InputError, shorten_list
from sisod.common.grid import Format, Grid, render
from sisod.common.progress import progress_bar
from sisod.data.catalogue import KNOWN, Known
from sisod.data.containers import find_member
from sisod.data.datasets import DatasetFolders, Sample, find_known, match_files, visible_photographs
from sisod.data.headers import image_size
from sisod.data.images import read_array
from sisod.data.storage import read_bytes
from sisod.scoring.arrays import has_grey_area

if TYPE_CHECKING:
    from rich.table import Table

_MOST_LOOKED_AT = 50  # masks of a data set that are decoded


@dataclass(frozen=True)
class Inspection:
    """The state of one data set.

    Attributes:
        folders: of its images and masks; None if it is missing.
        n_images: image files.
        without_mask: names of images that have no mask.
        without_image: names of masks that have no image.
        other_size: names of samples whose mask is not of the image's size.
        unreadable: files that do not have the header of an image.
        problem: why it could not be inspected.
        n_looked_at: masks whose pixels were looked at.
        n_grey: those of them that are grey in more than the edges of objects.
    """

    known: Known
    folders: DatasetFolders | None = None
    n_images: int = 0
    without_mask: tuple[str, ...] = ()
    without_image: tuple[str, ...] = ()
    other_size: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    problem: str | None = None
    n_looked_at: int = 0
    n_grey: int = 0

    @property
    def note(self) -> str | None:
        """One sentence about masks that are not only black and white; None if there are none."""
        if not self.n_grey:
            return None
        return (
            f"{self.known.name}: {self.n_grey} of the {self.n_looked_at} masks looked at have grey "
            "areas; sisod stats counts them all"
        )

    @property
    def trouble(self) -> str | None:
        """The reason why it cannot be used for training or evaluation as it is; None if it can."""
        if self.folders is None or self.problem:
            return self.problem
        if self.folders.mask_dir is None:
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
    """Inspect every known data set below a folder; sizes come from the headers of the files.

    Args:
        root: a folder that holds data sets, or a data set's own folder.
    """
    folders = find_known(root)
    return [
        _inspect(known, folders[name]) if name in folders else Inspection(known)
        for name, known in KNOWN.items()
    ]


def _inspect(known: Known, folders: DatasetFolders) -> Inspection:
    if folders.problem is not None:
        return Inspection(known, folders, problem=folders.problem)
    try:
        if folders.mask_dir is None:
            return Inspection(known, folders, len(visible_photographs(folders.image_dir)))
        matching = match_files(folders.image_dir, folders.mask_dir)
        other_size, unreadable = _compare_sizes(known.name, matching.samples)
        grey = _look_for_grey([sample.mask for sample in matching.samples])
    except InputError as error:
        return Inspection(known, folders, problem=str(error))
    return Inspection(
        known,
        folders,
        len(matching.samples) + len(matching.without_mask),
        matching.without_mask,
        matching.without_image,
        tuple(other_size),
        tuple(unreadable),
        n_looked_at=len(grey),
        n_grey=sum(grey),
    )


def _look_for_grey(masks: Sequence[Path]) -> list[bool]:
    """Tell of some masks, evenly spread, whether they have grey areas; to decode all takes too long."""
    looked_at = []
    for path in masks[:: math.ceil(len(masks) / _MOST_LOOKED_AT) or 1]:
        with suppress(InputError):  # a damaged mask is reported by whoever reads it
            looked_at.append(has_grey_area(read_array(path.parent, path.name)))
    return looked_at


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
        if find_member(str(path)) is not None:
            return image_size(read_bytes(path.parent, path.name))
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return image_size(data)
    except ValueError:  # an empty file
        return None
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read: {error.strerror}") from error


def report_table(inspections: list[Inspection], root: Path) -> "Table":
    """Return the table that `sisod datasets` prints."""
    from rich.markup import escape
    from rich.table import Table

    grid = _report_grid(inspections, root)
    table = Table(*grid.headings)
    for column in table.columns[1:-1]:
        column.justify = "right"
    table.columns[-1].overflow = "fold"
    for row in grid.rows:
        table.add_row(*map(escape, row))
    return table


def _report_grid(inspections: list[Inspection], root: Path) -> Grid:
    rows: list[tuple[str, ...]] = []
    for inspection in inspections:
        if inspection.folders is None:
            missing = f"missing, {inspection.known.count}"
            rows.append((inspection.known.name, missing, "", "", "", inspection.known.url))
            continue
        where = _where(inspection.folders, root)
        if inspection.problem or inspection.folders.mask_dir is None:
            where += f": {inspection.trouble}"
        counts = (inspection.without_mask, inspection.without_image, inspection.other_size)
        rows.append(
            (
                inspection.known.name,
                f"{inspection.n_images} of {inspection.known.count}",
                *(str(len(names) or "") for names in counts),
                where,
            )
        )
    headings = ("data set", "images", "no mask", "no image", "other size", "where, or where to get it")
    return Grid(headings, tuple(rows), n_text=1)


def render_report(inspections: list[Inspection], root: Path, kind: Format) -> str:
    """Return the table for a document; for a program, all facts: in CSV lists of files as counts."""
    content = _report_json(inspections)
    records = [
        {key: len(value) if isinstance(value, list) else value for key, value in record.items()}
        for record in content
    ]
    return render(_report_grid(inspections, root), records, content, kind)


def _report_json(inspections: list[Inspection]) -> list[dict[str, Any]]:
    return [
        {
            "name": inspection.known.name,
            "title": inspection.known.title,
            "description": inspection.known.description,
            "url": inspection.known.url,
            "expected": inspection.known.count,
            "images": inspection.n_images,
            "image_dir": None if inspection.folders is None else str(inspection.folders.image_dir),
            "mask_dir": None
            if inspection.folders is None or inspection.folders.mask_dir is None
            else str(inspection.folders.mask_dir),
            "without_mask": list(inspection.without_mask),
            "without_image": list(inspection.without_image),
            "other_size": list(inspection.other_size),
            "unreadable": list(inspection.unreadable),
            "masks_looked_at": inspection.n_looked_at,
            "grey_masks": inspection.n_grey,
            "trouble": inspection.trouble,
        }
        for inspection in inspections
    ]


def _where(folders: DatasetFolders, root: Path) -> str:
    """Return the folders as text, relative to the root."""
    images, masks = (
        None if folder is None else _relative(folder, root)
        for folder in (folders.image_dir, folders.mask_dir)
    )
    return f"{images}, {masks}" if masks is not None else f"{images}"


def _relative(folder: Path, root: Path) -> str:
    base = root.absolute()
    return folder.relative_to(base).as_posix() if folder.is_relative_to(base) else str(folder)

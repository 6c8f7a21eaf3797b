"""Inspection of data sets: counts, images without masks and the reverse, sizes that differ."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sisod.common.exceptions import InputError, shorten_list
from sisod.common.grid import Format, Grid, render
from sisod.common.progress import progress_bar
from sisod.data.catalogue import KNOWN, Known
from sisod.data.datasets import DatasetFolders, Sample, find_known, match_files, visible_photographs
from sisod.data.headers import read_header
from sisod.data.storage import read_bytes


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
    """

    known: Known
    folders: DatasetFolders | None = None
    n_images: int = 0
    without_mask: tuple[str, ...] = ()
    without_image: tuple[str, ...] = ()
    other_size: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    problem: str | None = None

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

    Returns:
        One inspection of each known data set, found or missing.
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
    except InputError as error:
        return Inspection(known, folders, problem=str(error))
    return Inspection(
        known,
        folders,
        len(matching.samples) + len(matching.without_mask),
        matching.without_mask,
        matching.without_image,
        other_size,
        unreadable,
    )


def _compare_sizes(title: str, samples: Sequence[Sample]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the samples whose mask has another size, and the files that are no images."""
    other_size, unreadable = [], []
    with progress_bar(f"reading {title}", len(samples)) as advance:
        for sample in samples:
            files = [path for path in (sample.image, sample.mask) if path.suffix.lower() != ".npy"]
            headers = [read_header(read_bytes(path.parent, path.name)) for path in files]
            unreadable += [path.name for path, one in zip(files, headers, strict=True) if one is None]
            if len({(one.height, one.width) for one in headers if one is not None}) > 1:
                other_size.append(sample.name)
            advance(1)
    return tuple(other_size), tuple(unreadable)


def report_grid(inspections: Sequence[Inspection], root: Path) -> Grid:
    """Return the table that `sisod datasets` prints; folders are relative to the root."""
    headings = ("data set", "where, or where to get it", "images", "no mask", "no image", "other size")
    rows: list[tuple[str, ...]] = []
    for one in inspections:
        if one.folders is None:
            rows.append((one.known.name, one.known.url, f"missing, {one.known.count}", "", "", ""))
            continue
        paths = [path for path in (one.folders.image_dir, one.folders.mask_dir) if path is not None]
        base = root.absolute()
        where = ", ".join(
            path.relative_to(base).as_posix() if path.is_relative_to(base) else str(path)
            for path in paths
        )
        if one.problem or one.folders.mask_dir is None:
            where += f": {one.trouble}"
        counts = (one.without_mask, one.without_image, one.other_size)
        n_images = f"{one.n_images} of {one.known.count}"
        rows.append((one.known.name, where, n_images, *(str(len(names) or "") for names in counts)))
    return Grid(headings, tuple(rows), n_text=2)


def render_report(inspections: Sequence[Inspection], root: Path, kind: Format) -> str:
    """Return the table for a document; for a program, all facts: in CSV lists of files as counts."""
    content = [_facts(inspection) for inspection in inspections]
    records = [
        {key: len(value) if isinstance(value, tuple) else value for key, value in facts.items()}
        for facts in content
    ]
    return render(report_grid(inspections, root), records, content, kind)


def _facts(one: Inspection) -> dict[str, Any]:
    image_dir = one.folders and str(one.folders.image_dir)
    mask_dir = one.folders and one.folders.mask_dir and str(one.folders.mask_dir)
    return {
        "name": one.known.name,
        "title": one.known.title,
        "description": one.known.description,
        "url": one.known.url,
        "expected": one.known.count,
        "images": one.n_images,
        "image_dir": image_dir,
        "mask_dir": mask_dir,
        "without_mask": one.without_mask,
        "without_image": one.without_image,
        "other_size": one.other_size,
        "unreadable": one.unreadable,
        "trouble": one.trouble,
    }

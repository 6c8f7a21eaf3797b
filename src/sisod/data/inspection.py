"""Inspection of data sets: counts, images without masks and the reverse, sizes that differ."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from sisod.common.exceptions import InputError, shorten_list
from sisod.common.grid import Format, Grid, render
from sisod.common.streams import progress_bar
from sisod.data.catalogue import KNOWN
from sisod.data.datasets import DatasetFolders, Sample, find_known, match_files
from sisod.data.headers import read_header
from sisod.data.pairs import find_photographs
from sisod.data.storage import read_bytes


@dataclass(frozen=True)
class Inspection:
    """The state of one data set, as `sisod datasets --format json` prints it.

    Attributes:
        name: as tables write it.
        title: what the name stands for.
        description: its particular features.
        url: the page of its authors.
        expected: number of images that it should have.
        images: image files.
        image_dir: folder of its images; None if the data set is missing.
        mask_dir: folder of its masks; None if there is none.
        without_mask: names of images that have no mask.
        without_image: names of masks that have no image.
        other_size: names of samples whose mask is not of the image's size.
        unreadable: files that do not have the header of an image.
        trouble: why it cannot be used for training or evaluation as it is; None if it can.
    """

    name: str
    title: str
    description: str
    url: str
    expected: int
    images: int = 0
    image_dir: str | None = None
    mask_dir: str | None = None
    without_mask: tuple[str, ...] = ()
    without_image: tuple[str, ...] = ()
    other_size: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    trouble: str | None = None


def inspect_datasets(root: Path | str) -> list[Inspection]:
    """Return the state of every known data set, found below a folder or missing.

    Sizes come from the headers of the files.

    Args:
        root: a folder that holds data sets, or a data set's own folder.

    Raises:
        InputError: the folder does not exist.
    """
    folders = find_known(root)
    missing = {
        name: Inspection(name, known.title, known.description, known.url, known.count)
        for name, known in KNOWN.items()
    }
    return [_inspect(one, folders[name]) if name in folders else one for name, one in missing.items()]


def _inspect(one: Inspection, folders: DatasetFolders) -> Inspection:
    image_dir, mask_dir = folders.image_dir, folders.mask_dir
    one = replace(one, image_dir=str(image_dir), mask_dir=None if mask_dir is None else str(mask_dir))
    if folders.problem is not None:
        return replace(one, trouble=folders.problem)
    try:
        if mask_dir is None:
            n_images = len(find_photographs(image_dir, all_used=True))
            return replace(one, images=n_images, trouble="no folder of masks")
        samples, without_mask, without_image = match_files(image_dir, mask_dir)
        other_size, unreadable = _compare_sizes(one.name, samples)
    except InputError as error:
        return replace(one, trouble=str(error))
    n_images = len(samples) + len(without_mask)
    problems = {
        "images have no mask": without_mask,
        "masks have no image": without_image,
        "files are not images": unreadable,
    }
    troubles = [f"{len(n)} {what}: {shorten_list([*n])}" for what, n in problems.items() if n]
    trouble = next(iter(troubles), None if n_images else "no images")
    return replace(
        one,
        images=n_images,
        without_mask=without_mask,
        without_image=without_image,
        other_size=other_size,
        unreadable=unreadable,
        trouble=trouble,
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
        if one.image_dir is None:
            rows.append((one.name, one.url, f"missing, {one.expected}", "", "", ""))
            continue
        paths = [Path(path) for path in (one.image_dir, one.mask_dir) if path is not None]
        base = root.absolute()
        where = ", ".join(
            path.relative_to(base).as_posix() if path.is_relative_to(base) else str(path)
            for path in paths
        )
        if one.trouble and not (one.without_mask or one.without_image):  # those have columns
            where += f": {one.trouble}"
        counts = (one.without_mask, one.without_image, one.other_size)
        n_images = f"{one.images} of {one.expected}"
        rows.append((one.name, where, n_images, *(str(len(names) or "") for names in counts)))
    return Grid(headings, tuple(rows), n_text=2)


def render_report(inspections: Sequence[Inspection], root: Path, kind: Format) -> str:
    """Return the table for a document; for a program, all facts: in CSV lists of files as counts."""
    content = [asdict(inspection) for inspection in inspections]
    records = [
        {key: len(value) if isinstance(value, tuple) else value for key, value in facts.items()}
        for facts in content
    ]
    return render(report_grid(inspections, root), records, content, kind)

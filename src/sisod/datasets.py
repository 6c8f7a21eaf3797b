"""Data sets of images and masks, found by their folders."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sisod.errors import InputError
from sisod.pairs import files_by_name


@dataclass(frozen=True)
class Sample:
    """One image and its mask."""

    name: str
    image: Path
    mask: Path


@dataclass(frozen=True)
class Dataset:
    """Images and masks that belong together, sorted by name."""

    name: str
    image_dir: Path
    mask_dir: Path
    samples: tuple[Sample, ...]


def open_dataset(
    root: Path | str, *, masks: Path | str | None = None, prefer: Sequence[str] = ("DUTS-TR",)
) -> Dataset:
    """Return the data set of a folder, of a root that holds one of `prefer`, or of a folder pair."""
    base = Path(root)
    if masks is None:
        for name in prefer:
            if (base / name / "image").is_dir():
                base = base / name
        image_dir, mask_dir = base / "image", base / "mask"
    else:
        image_dir, mask_dir = base, Path(masks)
    images, truths = files_by_name(image_dir), files_by_name(mask_dir)
    if not images:
        raise InputError(f"{str(image_dir)!r} has no images")
    if images.keys() != truths.keys():
        raise InputError(f"{str(image_dir)!r} and {str(mask_dir)!r} do not hold the same names")
    samples = tuple(
        Sample(name, image_dir / images[name].path, mask_dir / truths[name].path)
        for name in sorted(images)
    )
    return Dataset(base.name, image_dir, mask_dir, samples)

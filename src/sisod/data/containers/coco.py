"""COCO files as roots: the images of an annotation file, their objects, and results as maps."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.common.arguments import short_repr
from sisod.common.exceptions import InputError, MissingExtraError, printable
from sisod.data.containers import is_coco
from sisod.data.containers.coco_file import (
    Annotation,
    CocoImage,
    CocoTruths,
    ColumnRuns,
    entries_stamp,
    load_results,
    load_truths,
    of_category,
    read_segmentation,
)
from sisod.data.files import StoredFile
from sisod.data.headers import check_size


@dataclass(frozen=True, eq=False)
class Instances:
    """The objects of one image: a label map, and the pixels that only crowd regions cover, if any."""

    labels: NDArray[Any]
    ignored: NDArray[np.bool_] | None


def list_images(root: str | Path) -> list[StoredFile]:
    """Return the images of an annotation file, sorted by path, like the files of a folder."""
    truths = load_truths(str(root), again=True)
    return [
        StoredFile(path, truths.stamp(image), is_image=True)
        for path, image in sorted(truths.images.items())
    ]


def list_results(root: str | Path, truths_root: str | Path) -> list[StoredFile]:
    """Return a prediction for every image of the annotation file; one without results is empty."""
    if not is_coco(truths_root):
        raise InputError(
            f"{str(root)!r} is a COCO result file, whose image ids are those of a COCO annotation "
            f"file; expected such a file as ground truth, got {str(truths_root)!r}"
        )
    results = load_results(str(root), again=True)
    truths = load_truths(str(truths_root), again=True)
    if unknown := results.keys() - {image.id for image in truths.images.values()}:
        raise InputError(
            f"{str(root)!r}: no image of {str(truths_root)!r} has the id "
            f"{short_repr(min(unknown, key=str))}; give the annotation file that the results are for"
        )
    return [
        StoredFile(path, entries_stamp(results.get(image.id, [])), is_image=True)
        for path, image in sorted(truths.images.items())
    ]


def read_instances(root: str | Path, path: str, category: str = "") -> Instances:
    """Return the objects of one image.

    Where objects overlap, the pixel belongs to the one with the smaller mask, or to the later annotation
    if both are equally large: no small object disappears below a large one.

    Args:
        root: the annotation file.
        path: `file_name` of the image.
        category: name or id of the category to read; all if it is empty.
    """
    truths = load_truths(str(root))
    image = _find_image(truths, path, pixel_bytes=4)
    entries = truths.annotations.get(image.id, [])
    chosen = of_category(entries, truths.category(category), truths.file)
    objects = [_mask(one, image, truths.file) for one in chosen if not one.iscrowd]
    crowds = [_mask(one, image, truths.file) for one in chosen if one.iscrowd]
    columns = np.zeros(image.height * image.width, np.uint8 if len(objects) < 256 else np.int32)
    areas = [mask.area for mask in objects]
    for index in sorted(range(len(objects)), key=lambda index: (-areas[index], index)):
        window, inside = objects[index].window(columns)
        np.copyto(window, index + 1, where=inside)
    labels = _rows(columns, image)
    if not any(mask.area for mask in crowds):
        return Instances(labels, None)
    covered = np.zeros(image.height * image.width, dtype=np.uint8)
    for mask in crowds:
        window, inside = mask.window(covered)
        window[inside] = 1
    return Instances(labels, (_rows(covered, image) != 0) & (labels == 0))


def read_results(
    root: str | Path, truths_root: str | Path, path: str, category: str = ""
) -> NDArray[np.float64]:
    """Return the map of one image: at every pixel the highest score of the results that cover it.

    Args:
        root: the result file.
        truths_root: the annotation file that the results are for.
        path: `file_name` of the image.
        category: name or id of the category to read; all if it is empty.
    """
    truths = load_truths(str(truths_root))
    image = _find_image(truths, path, pixel_bytes=8)
    entries = load_results(str(root)).get(image.id, [])
    columns = np.zeros(image.height * image.width)
    for one in of_category(entries, truths.category(category), str(root)):
        window, inside = _mask(one, image, str(root)).window(columns)
        np.maximum(window, one.score, out=window, where=inside)
    return np.ascontiguousarray(columns.reshape(image.width, image.height).T)


def find_category(root: str | Path, category: str) -> int | None:
    """Return the id of a category of an annotation file; None for all of them."""
    return load_truths(str(root)).category(category)


def count_crowds(root: str | Path, category: str = "") -> int:
    """Return the number of crowd regions in an annotation file."""
    truths = load_truths(str(root))
    number = truths.category(category)
    entries = (one for annotations in truths.annotations.values() for one in annotations)
    return sum(bool(one.iscrowd) and number in (None, one.category_id) for one in entries)


def _rows(columns: NDArray[Any], image: CocoImage) -> NDArray[Any]:
    return np.asarray(cv2.transpose(columns.reshape(image.width, image.height)))


def _find_image(truths: CocoTruths, path: str, *, pixel_bytes: int = 1) -> CocoImage:
    image = truths.images.get(path)
    if image is None:
        raise InputError(f"{truths.file!r} has no image {path!r} any more; it changed while it was read")
    check_size((image.height, image.width), pixel_bytes, f"{truths.file}: image {printable(path)}")
    return image


def _mask(one: Annotation, image: CocoImage, file: str) -> ColumnRuns:
    try:
        return read_segmentation(one.segmentation, image.height, image.width)
    except MissingExtraError:
        raise
    except ValueError as error:
        title = "a result" if one.id is None else f"annotation {short_repr(one.id)}"
        raise InputError(
            f"{file!r}: {title} of the image {printable(image.file_name)!r}: {error}"
        ) from None

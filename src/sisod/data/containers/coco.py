"""COCO files as roots: the images of an annotation file, their objects, and results as maps."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.common.arguments import shown
from sisod.common.errors import InputError, MissingExtraError, printable
from sisod.common.folders import is_url
from sisod.data.containers.coco_file import (
    Annotation,
    CocoImage,
    CocoTruths,
    entries_stamp,
    of_category,
    parsed_results,
    parsed_truths,
)
from sisod.data.containers.rle import ColumnRuns, read_segmentation
from sisod.data.headers import check_size
from sisod.data.stored_file import StoredFile


@dataclass(frozen=True, eq=False)
class Instances:
    """The objects of one image: a label map, and the pixels that only crowd regions cover, if any."""

    labels: NDArray[Any]
    ignored: NDArray[np.bool_] | None


def is_coco(root: str | Path) -> bool:
    """Tell whether a root is a COCO file.

    Example:
        >>> is_coco("annotations/instances_val2017.json"), is_coco("masks")
        (True, False)
    """
    return str(root).lower().endswith(".json") and (is_url(root) or not os.path.isdir(root))  # noqa: PTH112


def list_images(root: str | Path) -> list[StoredFile]:
    """Return the images of an annotation file, sorted by path, like the files of a folder."""
    truths = parsed_truths.newest(str(root))
    return [
        StoredFile(path, truths.stamp(truths.images[path]), is_image=True)
        for path in sorted(truths.images)
    ]


def image_stamp(root: str | Path, path: str, truths_root: str | Path | None = None) -> str:
    """Return the stamp of one image; with `truths_root`, of its results in a result file."""
    truths = parsed_truths.current(str(root if truths_root is None else truths_root))
    image = _find_image(truths, path)
    if truths_root is None:
        return truths.stamp(image)
    return entries_stamp(parsed_results.current(str(root)).get(image.id, []))


def list_results(root: str | Path, truths_root: str | Path) -> list[StoredFile]:
    """Return a prediction for every image of the annotation file; one without results is empty."""
    if not is_coco(truths_root):
        raise InputError(
            f"{str(root)!r} is a COCO result file, whose image ids are those of a COCO annotation "
            f"file; expected such a file as ground truth, got {str(truths_root)!r}"
        )
    results = parsed_results.newest(str(root))
    truths = parsed_truths.newest(str(truths_root))
    known = {image.id for image in truths.images.values()}
    for image, annotations in results.items():
        if image not in known:
            raise InputError(
                f"{str(root)!r}: {annotations[0].title}: no image of {str(truths_root)!r} has the id "
                f"{shown(image)}; give the annotation file that the results are for"
            )
    return [
        StoredFile(path, entries_stamp(results.get(truths.images[path].id, [])), is_image=True)
        for path in sorted(truths.images)
    ]


def read_instances(root: str | Path, path: str, category: str = "") -> Instances:
    """Return the objects of one image, of one category unless that is empty.

    Where objects overlap, the pixel belongs to the one with the smaller mask, or to the later annotation
    if both are equally large: no small object disappears below a large one.
    """
    truths = parsed_truths.current(str(root))
    image = _find_image(truths, path, pixel_bytes=4)
    annotations = truths.chosen(image, category)
    masks = [(one, _mask(one, image, truths.file)) for one in annotations]
    objects = [mask for one, mask in masks if not one.is_crowd]
    dtype = np.uint8 if len(objects) < 256 else np.int32
    columns = np.zeros(image.height * image.width, dtype=dtype)
    areas = [mask.area for mask in objects]
    for index in sorted(range(len(objects)), key=lambda index: (-areas[index], index)):
        if areas[index]:
            objects[index].paint(columns, index + 1)
    labels = _rows(columns, image)
    crowds = [mask for one, mask in masks if one.is_crowd and mask.area]
    if not crowds:
        return Instances(labels, None)
    covered = np.zeros(image.height * image.width, dtype=np.uint8)
    for mask in crowds:
        mask.paint(covered, 1)
    return Instances(labels, (_rows(covered, image) != 0) & (labels == 0))


def read_results(
    root: str | Path, truths_root: str | Path, path: str, category: str = ""
) -> NDArray[np.float64]:
    """Return the map of one image: at every pixel the highest score of the results that cover it."""
    truths, results = parsed_truths.current(str(truths_root)), parsed_results.current(str(root))
    image = _find_image(truths, path, pixel_bytes=8)
    columns = np.zeros(image.height * image.width)
    chosen = of_category(results.get(image.id, []), truths.category(category), str(root))
    for one in chosen:
        mask = _mask(one, image, str(root))
        if mask.area:
            mask.raise_to(columns, one.score)
    return np.ascontiguousarray(columns.reshape(image.width, image.height).T)


def find_category(root: str | Path, category: str) -> int:
    """Return the id of a category of an annotation file."""
    number = parsed_truths.current(str(root)).category(category)
    assert number is not None  # noqa: S101  (only without a category)
    return number


def count_crowds(root: str | Path, category: str = "") -> int:
    """Return the number of crowd regions in an annotation file."""
    return parsed_truths.current(str(root)).n_crowds(category)


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
        raise InputError(
            f"{file!r}: {one.title} of the image {printable(image.path)!r}: {error}"
        ) from None

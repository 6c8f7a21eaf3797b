"""Ground truths and predictions by what their values mean: masks, labels of objects, numbers of classes.

A folder of masks is the common case. With `labels`, every value but 0 is one object; with a category, a
file holds the numbers of classes and only that class is salient. A COCO file holds objects with their
categories, and needs neither.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sisod.common.arguments import shown
from sisod.common.errors import InputError, UsageError
from sisod.data.containers.coco import find_category, is_coco, read_instances, read_results
from sisod.data.images import (
    MAP_ARRAYS,
    TRUTH_ARRAYS,
    decode,
    read_array,
    read_map,
    to_map,
    to_mask,
    where,
)
from sisod.scoring.arrays import Map, as_map

_LABEL_ARRAYS = ("labels", "mask")
_LOSSY = (".jpg", ".jpeg")
_MOST_CLASS = 65535
_MOST_CLASSES = 128  # in one image; saliency maps of networks have more levels, class maps far fewer
_Read = Callable[..., NDArray[Any]]  # reads a file; takes the options of `decode`


@dataclass(frozen=True)
class Meaning:
    """What the values of ground truths mean.

    Attributes:
        labels: every value but 0 is the number of one object.
        category: number of the class in class maps, or name or number of a category of COCO; empty
            for masks, and for all categories of COCO.
    """

    labels: bool = False
    category: str = ""

    def __post_init__(self) -> None:
        if self.labels and self.category:
            raise UsageError(
                f"labels and a class, {shown(self.category)}, exclude each other: a file holds the "
                "numbers of objects or those of classes; a COCO file has both and needs no labels"
            )

    def settings(self) -> dict[str, Any]:
        """Return what is not the default, as `run.json` stores it."""
        given = {"labels": self.labels, "class": self.category}
        return {key: value for key, value in given.items() if value}


PLAIN = Meaning()


@dataclass(frozen=True, eq=False)
class Truth:
    """One ground truth.

    Attributes:
        array: the mask, or the array of its file, which has grey values.
        labels: number of the object at every pixel, 0 for none; None for connected components.
        ignored: pixels that are not scored; None if all are.
    """

    array: NDArray[Any]
    labels: NDArray[np.integer] | None = None
    ignored: NDArray[np.bool_] | None = None

    def mask(self, name: str, *, level: int) -> NDArray[np.bool_]:
        """Return the salient pixels; `name` is for messages."""
        return to_mask(self.array, name, level=level)


def read_truth(root: str | Path, path: str, meaning: Meaning = PLAIN) -> Truth:
    """Read one ground truth below a root."""
    if is_coco(root):
        instances = read_instances(root, path, meaning.category)
        return Truth(instances.labels != 0, instances.labels, instances.ignored)
    return _truth(functools.partial(read_array, root, path), where(root, path), meaning)


def decode_truth(data: bytes, name: str, meaning: Meaning = PLAIN) -> Truth:
    """Turn the content of a file into a ground truth; `name` is for messages."""
    return _truth(functools.partial(decode, data, name), name, meaning)


def read_prediction(
    root: str | Path,
    path: str,
    *,
    gt_root: str | Path,
    meaning: Meaning = PLAIN,
    class_maps: bool = False,
) -> Map:
    """Read one prediction below a root.

    Args:
        root: folder, container or URL of maps; or a COCO result file.
        path: of the file below it.
        gt_root: of the ground truths, whose COCO file says which image and which category an id means.
        meaning: of the ground truths.
        class_maps: whether the files hold the numbers of classes.
    """
    if is_coco(root):
        return read_results(root, gt_root, path, meaning.category)
    if not class_maps:
        return read_map(root, path)
    category = meaning.category
    number = find_category(gt_root, category) if is_coco(gt_root) else class_number(category)
    return _class_map(functools.partial(read_array, root, path), where(root, path), number, category)


def decode_prediction(data: bytes, name: str, meaning: Meaning = PLAIN) -> Map:
    """Turn the content of a file into a prediction; one with a category is a class map."""
    read = functools.partial(decode, data, name)
    if meaning.category:
        return _class_map(read, name, class_number(meaning.category), meaning.category)
    return to_map(read(arrays=MAP_ARRAYS), name)


def _truth(read: _Read, name: str, meaning: Meaning) -> Truth:
    if meaning.labels:
        labels = _numbers(read, name, _LABEL_ARRAYS, "labels of objects")
        return Truth(labels != 0, labels)
    if meaning.category:
        classes = _numbers(read, name, TRUTH_ARRAYS, "numbers of classes")
        return Truth(classes == class_number(meaning.category))
    return Truth(read())


def _class_map(read: _Read, name: str, number: int, category: str) -> Map:
    classes = _numbers(read, name, MAP_ARRAYS, "numbers of classes")
    n_values = _count_values(classes)
    if n_values > _MOST_CLASSES:
        raise InputError(
            f"{name!r} has {n_values} different values, as saliency maps have; expected a class map, of "
            f"at most {_MOST_CLASSES} classes; maps of the class {shown(category)} belong in a folder "
            f"{category!r} among the predictions"
        )
    return as_map(classes == number)


def _count_values(classes: NDArray[np.integer]) -> int:
    """Return how many different values an array has."""
    if classes.dtype in (np.uint8, np.uint16):  # twice as fast
        return int(np.count_nonzero(np.bincount(classes.ravel())))
    return len(np.unique(classes))


def check_category(gt_root: str | Path, category: str) -> None:
    """Refuse a class that the ground truths cannot have."""
    if not category:
        raise UsageError("the class is empty; expected a number of class maps, or a name of a COCO file")
    if is_coco(gt_root):
        find_category(gt_root, category)
    else:
        class_number(category)


def class_number(category: str) -> int:
    """Return the number of a class in class maps."""
    if not category.isascii() or not category.isdigit() or int(category) > _MOST_CLASS:
        raise UsageError(
            f"class {category!r} is not a number from 0 to {_MOST_CLASS}; class maps hold numbers, and "
            "names are for COCO files"
        )
    return int(category)


def _numbers(read: _Read, name: str, arrays: Sequence[str], what: str) -> NDArray[np.integer]:
    """Read a file of whole numbers."""
    if name.lower().endswith(_LOSSY):
        raise InputError(f"{name!r} is a JPEG file, which changes {what}; save them as PNG")
    numbers = read(arrays=arrays, indices=True)
    if numbers.dtype.kind == "b":
        return numbers.astype(np.uint8)
    if numbers.dtype.kind not in "iu" or numbers.size == 0:
        raise InputError(
            f"{name!r} has shape {numbers.shape} and dtype {numbers.dtype}; expected {what}, which are "
            "whole numbers"
        )
    if numbers.min() < 0:
        raise InputError(f"{name!r} holds {numbers.min()}; expected {what}, from 0 on")
    return numbers

"""Ground truths and predictions by what their values mean: masks, labels of objects, numbers of classes.

A folder of masks is the common case. With `labels`, every value but 0 is one object; with a category, a
file holds the numbers of classes and only that class is salient. A COCO file holds objects with their
categories, and needs neither.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sisod.common.arguments import short_repr
from sisod.common.exceptions import InputError, UsageError
from sisod.data.containers import is_coco
from sisod.data.images import TRUTH_ARRAYS, decode, display_path
from sisod.data.storage import read_bytes
from sisod.scoring.arrays import Map, as_map, as_mask

_LABEL_ARRAYS, _MAP_ARRAYS = ("labels", "mask"), ("pred",)  # in a .npz file, best first
_MOST_CLASS = 65535
_MOST_CLASSES = 128  # in one image; saliency maps of networks have more levels, class maps far fewer


@dataclass(frozen=True)
class TruthFormat:
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
                f"labels and a class, {short_repr(self.category)}, exclude each other: a file holds the "
                "numbers of objects or those of classes; a COCO file has both and needs no labels"
            )

    def settings(self) -> dict[str, Any]:
        """Return what is not the default, as `run.json` stores it."""
        given = {"labels": self.labels, "class": self.category}
        return {key: value for key, value in given.items() if value}


BINARY_MASK = TruthFormat()


@dataclass(frozen=True, eq=False)
class Truth:
    """One ground truth.

    Attributes:
        array: the mask, or the array of its file, which has grey values.
        labels: number of the object at every pixel, 0 for none; None for connected components.
        ignored: pixels that are not scored; None if all are.
        name: of the file, for messages.
    """

    array: NDArray[Any]
    labels: NDArray[np.integer] | None = None
    ignored: NDArray[np.bool_] | None = None
    name: str = "gt"

    def mask(self, *, level: int) -> NDArray[np.bool_]:
        """Return the salient pixels: of an array of grey values, those from an 8-bit level on."""
        try:
            return as_mask(self.array, level=level)
        except (ValueError, TypeError) as error:
            raise InputError(f"{self.name}: {error}") from error


def read_truth(root: str | Path, path: str, meaning: TruthFormat = BINARY_MASK) -> Truth:
    """Return one ground truth below a root.

    Args:
        root: folder, container or URL of masks; or a COCO annotation file.
        path: of the file below it.
        meaning: of its values.
    """
    if is_coco(root):
        from sisod.data.containers import coco

        labels, ignored = coco.read_instances(root, path, meaning.category)
        return Truth(labels != 0, labels, ignored)
    return decode_truth(read_bytes(root, path), display_path(root, path), meaning)


def decode_truth(data: bytes, name: str, meaning: TruthFormat = BINARY_MASK) -> Truth:
    """Return the content of a file as a ground truth.

    Args:
        data: the content.
        name: of the file, for messages.
        meaning: of its values.

    Example:
        Two objects that touch, as labels:

        >>> import cv2
        >>> _, data = cv2.imencode(".png", np.array([[0, 7, 9]], dtype=np.uint8))
        >>> truth = decode_truth(data.tobytes(), "im1.png", TruthFormat(labels=True))
        >>> truth.array.tolist(), truth.labels.tolist()
        ([[False, True, True]], [[0, 7, 9]])
    """
    if meaning.labels:
        labels = _decode_numbers(data, name, _LABEL_ARRAYS, "labels of objects")
        return Truth(labels != 0, labels)
    if meaning.category:
        classes = _decode_numbers(data, name, TRUTH_ARRAYS, "numbers of classes")
        return Truth(classes == class_number(meaning.category))
    return Truth(decode(data, name), name=name)


def read_prediction(
    root: str | Path,
    path: str,
    *,
    gt_root: str | Path = "",
    meaning: TruthFormat = BINARY_MASK,
    class_maps: bool = False,
) -> Map:
    """Return one prediction below a root.

    Args:
        root: folder, container or URL of maps; or a COCO result file.
        path: of the file below it.
        gt_root: of the ground truths, whose COCO file says which image and which category an id means.
        meaning: of the ground truths.
        class_maps: whether the files hold the numbers of classes.

    Returns:
        The map as it is stored: uint8, uint16, or floating in [0, 1].
    """
    if is_coco(root):
        from sisod.data.containers import coco

        return coco.read_results(root, gt_root, path, meaning.category)
    data, name = read_bytes(root, path), display_path(root, path)
    if class_maps:
        return _decode_class(data, name, check_category(gt_root, meaning.category), meaning.category)
    return decode_prediction(data, name)


def decode_prediction(data: bytes, name: str, meaning: TruthFormat = BINARY_MASK) -> Map:
    """Return the content of a file as a prediction; one with a category is a class map."""
    if meaning.category:
        return _decode_class(data, name, class_number(meaning.category), meaning.category)
    array = decode(data, name, arrays=_MAP_ARRAYS)
    try:
        return as_map(array)
    except (ValueError, TypeError) as error:
        raise InputError(f"{name}: {error}") from error


def _decode_class(data: bytes, name: str, number: int | None, category: str) -> Map:
    classes = _decode_numbers(data, name, _MAP_ARRAYS, "numbers of classes")
    is_small = classes.dtype in (np.uint8, np.uint16)  # then counting is twice as fast as sorting
    n_values = np.count_nonzero(np.bincount(classes.ravel())) if is_small else len(np.unique(classes))
    if n_values > _MOST_CLASSES:
        raise InputError(
            f"{name!r} has {n_values} different values, as saliency maps have; expected a class map, of "
            f"at most {_MOST_CLASSES} classes; maps of the class {short_repr(category)} belong in a "
            f"folder {category!r} among the predictions"
        )
    return as_map(classes == number)


def check_category(gt_root: str | Path, category: str) -> int | None:
    """Return the number of a class; raise if the ground truths cannot have it.

    Args:
        gt_root: of the ground truths, whose COCO file knows the names of categories.
        category: name or number of a category of COCO, else the number of the class.
    """
    if is_coco(gt_root) and category:
        from sisod.data.containers import coco

        return coco.find_category(gt_root, category)
    return class_number(category)


def class_number(category: str) -> int:
    """Return the number of a class in class maps.

    Example:
        >>> class_number("17")
        17
    """
    if not category.isascii() or not category.isdigit() or int(category) > _MOST_CLASS:
        raise UsageError(
            f"class {category!r} is not a number from 0 to {_MOST_CLASS}; class maps hold numbers, and "
            "names are for COCO files"
        )
    return int(category)


def _decode_numbers(data: bytes, name: str, arrays: Sequence[str], what: str) -> NDArray[np.integer]:
    numbers = decode(data, name, arrays=arrays, indices=True)
    if numbers.dtype.kind == "b":
        return numbers.astype(np.uint8)
    if numbers.dtype.kind not in "iu" or numbers.size == 0 or numbers.min() < 0:
        least = numbers.min() if numbers.size else "none"
        raise InputError(
            f"{name!r} has shape {numbers.shape}, dtype {numbers.dtype} and least value {least}; "
            f"expected {what}, which are integers >= 0"
        )
    return numbers

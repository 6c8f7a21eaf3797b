"""COCO files as roots: the images of an annotation file, their objects, and results as maps.

A file is decoded once in every process that reads from it; segmentations stay JSON until their image is
read. Run lengths are decoded here and not by pycocotools, whose decoder trusts the string that it is
given: a damaged one makes it read and write outside its memory. Polygons are checked and then drawn by
pycocotools, so that every mask is the one that other tools of COCO see, pixel by pixel.
"""

import hashlib
import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import cv2
import msgspec
import numpy as np
from numpy.typing import NDArray

from sisod.common.arguments import short_repr, unknown_name_message
from sisod.common.exceptions import InputError, MissingExtraError, printable, require
from sisod.common.output import is_safe_relative_path, is_url
from sisod.data.containers import is_coco
from sisod.data.files import StoredFile, file_state, read_file
from sisod.data.headers import check_size

Id = int | str
_LONGEST = 7  # characters of a number, of five bits each: more than the pixels of any image
_OUTSIDE = 1.0  # pixels by which a polygon may leave its image; pycocotools cuts it off there


class CocoImage(msgspec.Struct, frozen=True):
    """One image of an annotation file."""

    id: Id
    file_name: str
    height: Annotated[int, msgspec.Meta(ge=1)]
    width: Annotated[int, msgspec.Meta(ge=1)]


class Annotation(msgspec.Struct, frozen=True, kw_only=True):
    """One object, as the file describes it: its mask is not decoded yet."""

    image_id: Id
    segmentation: msgspec.Raw
    id: Id | None = None
    category_id: int | None = None
    iscrowd: bool | Literal[0, 1] = 0


class CocoResult(Annotation, frozen=True, kw_only=True):
    """One predicted object."""

    score: Annotated[float, msgspec.Meta(ge=0, le=1)]


Entry = TypeVar("Entry", bound=Annotation)


class _Category(msgspec.Struct, frozen=True):
    id: int
    name: str


class _AnnotationFile(msgspec.Struct):
    images: Annotated[list[CocoImage], msgspec.Meta(min_length=1)]
    annotations: list[Annotation]
    categories: list[_Category] = []


@dataclass(frozen=True, eq=False)
class CocoTruths:
    """An annotation file: images by path, annotations by the id of their image, names of categories."""

    file: str
    images: dict[str, CocoImage]
    annotations: dict[Id, list[Annotation]]
    categories: dict[int, str]

    def category(self, category: str) -> int | None:
        """Return the id of a category that is given by its name or its id; None if it is empty."""
        if not category:
            return None
        ids = [number for number, name in self.categories.items() if name == category]
        ids = ids or [number for number in self.categories if str(number) == category]
        if len(ids) != 1:
            message = unknown_name_message("class", category, sorted(self.categories.values()))
            if ids:
                numbers = ", ".join(map(str, ids))
                message = f"categories {numbers} are called {short_repr(category)}; choose one by its id"
            raise InputError(f"{self.file!r}: {message}")
        return ids[0]


def list_images(root: str | Path) -> list[StoredFile]:
    """Return the images of an annotation file, sorted by path, like the files of a folder.

    The stamp of an image differs once the image or its annotations changed.
    """
    truths = _load_truths(root, again=True)
    files = []
    for path, image in sorted(truths.images.items()):
        annotations = truths.annotations.get(image.id, [])
        names = [truths.categories.get(one.category_id or 0) for one in annotations]
        stamp = _digest(annotations, image.height, image.width, names)
        files.append(StoredFile(path, stamp, is_image=True))
    return files


def list_results(root: str | Path, truths_root: str | Path) -> list[StoredFile]:
    """Return a prediction for every image of the annotation file; one without results is empty."""
    if not is_coco(truths_root):
        raise InputError(
            f"{str(root)!r} is a COCO result file, whose image ids are those of a COCO annotation "
            f"file; expected such a file as ground truth, got {str(truths_root)!r}"
        )
    results, truths = _load_results(root, again=True), _load_truths(truths_root, again=True)
    if unknown := results.keys() - {image.id for image in truths.images.values()}:
        raise InputError(
            f"{str(root)!r}: no image of {str(truths_root)!r} has the id "
            f"{short_repr(min(unknown, key=str))}; give the annotation file that the results are for"
        )
    return [
        StoredFile(path, _digest(results.get(image.id, [])), is_image=True)
        for path, image in sorted(truths.images.items())
    ]


def _digest(annotations: Sequence[Annotation], *more: object) -> str:
    """Return a digest of annotations: other images of the file may change without changing it."""
    return hashlib.blake2b(msgspec.json.encode([annotations, more]), digest_size=8).hexdigest()


def read_instances(
    root: str | Path, path: str, category: str = ""
) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Return the objects of one image as a label map, and the pixels that only crowds cover, if any.

    Where objects overlap, the pixel belongs to the one with the smaller mask, or to the later annotation
    if both are equally large: no small object disappears below a large one.

    Args:
        root: the annotation file.
        path: `file_name` of the image.
        category: name or id of the category to read; all if it is empty.
    """
    truths = _load_truths(root)
    image = _find_image(truths, path, pixel_bytes=4)
    chosen = _of_category(truths.annotations.get(image.id, []), truths, category, truths.file)
    objects = [_mask(one, image, truths.file) for one in chosen if not one.iscrowd]
    crowds = [_mask(one, image, truths.file) for one in chosen if one.iscrowd]
    columns = np.zeros(image.height * image.width, np.uint8 if len(objects) < 256 else np.int32)
    areas = [mask[1::2].sum() for mask in objects]
    for index in sorted(range(len(objects)), key=lambda index: (-areas[index], index)):
        window, inside = _window(objects[index], columns)
        np.copyto(window, index + 1, where=inside)
    labels = _rows(columns, image)
    if not any(mask[1::2].any() for mask in crowds):
        return labels, None
    covered = np.zeros(image.height * image.width, dtype=np.uint8)
    for mask in crowds:
        window, inside = _window(mask, covered)
        window[inside] = 1
    return labels, (_rows(covered, image) != 0) & (labels == 0)


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
    truths = _load_truths(truths_root)
    image = _find_image(truths, path, pixel_bytes=8)
    columns = np.zeros(image.height * image.width)
    for one in _of_category(_load_results(root).get(image.id, []), truths, category, str(root)):
        window, inside = _window(_mask(one, image, str(root)), columns)
        np.maximum(window, one.score, out=window, where=inside)
    return np.ascontiguousarray(columns.reshape(image.width, image.height).T)


def find_category(root: str | Path, category: str) -> int | None:
    """Return the id of a category of an annotation file; None for all of them."""
    return _load_truths(root).category(category)


def count_crowds(root: str | Path, category: str = "") -> int:
    """Return the number of crowd regions in an annotation file."""
    truths = _load_truths(root)
    images = truths.annotations.values()
    chosen = (_of_category(entries, truths, category, truths.file) for entries in images)
    return sum(bool(one.iscrowd) for entries in chosen for one in entries)


def _of_category(
    annotations: Sequence[Entry], truths: CocoTruths, category: str, file: str
) -> list[Entry]:
    number = truths.category(category)
    if number is not None and any(one.category_id is None for one in annotations):
        raise InputError(f"{file!r} has entries without category_id; expected it to choose a class by")
    return [one for one in annotations if number in (None, one.category_id)]


def _rows(columns: NDArray[Any], image: CocoImage) -> NDArray[Any]:
    return np.asarray(cv2.transpose(columns.reshape(image.width, image.height)))


def _find_image(truths: CocoTruths, path: str, *, pixel_bytes: int) -> CocoImage:
    image = truths.images.get(path)
    if image is None:
        raise InputError(f"{truths.file!r} has no image {path!r} any more; it changed while it was read")
    check_size((image.height, image.width), pixel_bytes, f"{truths.file}: image {printable(path)}")
    return image


def _mask(one: Annotation, image: CocoImage, file: str) -> NDArray[np.int64]:
    try:
        return read_segmentation(one.segmentation, image.height, image.width)
    except ValueError as error:
        if isinstance(error, MissingExtraError):
            raise
        title = "a result" if one.id is None else f"annotation {short_repr(one.id)}"
        raise InputError(
            f"{file!r}: {title} of the image {printable(image.file_name)!r}: {error}"
        ) from None


# ---------------------------------------------------------------------------------------------- decoding

_lock = threading.Lock()  # threads that want the same file wait for the one that decodes it
_stamps: dict[str, str] = {}  # of files behind URLs


def _load_truths(file: str | Path, *, again: bool = False) -> CocoTruths:
    """Return an annotation file; one behind a URL is looked at again only if it is listed again."""
    with _lock:
        return _decode_truths(str(file), _stamp(str(file), again=again))


def _load_results(file: str | Path, *, again: bool = False) -> dict[Id, list[CocoResult]]:
    """Return the results of a result file by the id of their image."""
    with _lock:
        return _decode_results(str(file), _stamp(str(file), again=again))


def _stamp(file: str, *, again: bool) -> str:
    if again or not is_url(file) or file not in _stamps:
        _stamps[file] = file_state(file).stamp
    return _stamps[file]


@lru_cache(maxsize=4)
def _decode_truths(file: str, stamp: str) -> CocoTruths:  # noqa: ARG001  (another stamp is another file)
    content = _decode(file, _AnnotationFile, "annotation file, an object with images and annotations")
    images = {image.file_name: image for image in content.images}
    ids = {image.id for image in content.images}
    categories = {category.id: category.name for category in content.categories}
    annotations = _by_image(content.annotations)
    problem = ""
    if min(len(images), len(ids)) < len(content.images) or len(categories) < len(content.categories):
        problem = "two images or two categories have the same id or file_name"
    elif unsafe := [path for path in images if not is_safe_relative_path(path)]:
        problem = f"the file_name {short_repr(unsafe[0])} is not a relative path"
    elif unknown := annotations.keys() - ids:
        problem = f"no image has the image_id {short_repr(min(unknown, key=str))}"
    if problem:
        raise InputError(f"{file!r}: {problem}")
    return CocoTruths(file, images, annotations, categories)


@lru_cache(maxsize=4)
def _decode_results(file: str, stamp: str) -> dict[Id, list[CocoResult]]:  # noqa: ARG001
    what = "result file, a list of image_id, category_id, segmentation and score"
    return _by_image(_decode(file, list[CocoResult], what))


def _by_image(entries: Iterable[Entry]) -> dict[Id, list[Entry]]:
    found = defaultdict(list)
    for one in entries:
        found[one.image_id].append(one)
    return dict(found)


def _decode(file: str, kind: Any, what: str) -> Any:
    try:
        return msgspec.json.decode(read_file(file).removeprefix(b"\xef\xbb\xbf"), type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"{file!r} is not a COCO {what}: {printable(str(error))}") from None


# ------------------------------------------------------------------------------------------------ masks


class _RunLengths(msgspec.Struct):
    size: tuple[int, int]
    counts: str | list[Annotated[int, msgspec.Meta(ge=0, lt=1 << 40)]]


_Polygon = Annotated[list[float], msgspec.Meta(min_length=6)]
_SEGMENTATION: msgspec.json.Decoder[Any] = msgspec.json.Decoder(
    Annotated[list[_Polygon], msgspec.Meta(min_length=1)] | _RunLengths
)


def _window(counts: NDArray[np.int64], columns: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the part of an image from the first pixel of a mask to its last, and where the mask is.

    Args:
        counts: run lengths of the mask.
        columns: pixels of the image, one column after the other.
    """
    lengths = counts[1 : len(counts) // 2 * 2]  # from the first run inside to the last
    begin = int(counts[0])
    inside = np.arange(len(lengths)) % 2 == 0
    return columns[begin : begin + int(lengths.sum())], np.repeat(inside, lengths)


def read_segmentation(segmentation: bytes | msgspec.Raw, height: int, width: int) -> NDArray[np.int64]:
    """Return the mask of an annotation as the lengths of runs down its columns, one after the other.

    The runs are of pixels outside the mask, then inside, and so on.

    Args:
        segmentation: JSON of a list of polygons, or of run lengths with size and counts.
        height: of the image.
        width: of the image.

    Raises:
        ValueError: it is not valid.
    """
    content = _SEGMENTATION.decode(segmentation)  # its errors are ValueErrors
    if isinstance(content, list):
        counts = _draw_polygons(content, height, width)
    elif isinstance(content.counts, str):
        counts = decode_counts(content.counts.encode())
    else:
        counts = np.array(content.counts, dtype=np.int64)
    size = (height, width) if isinstance(content, list) else content.size
    n_pixels = int(counts.sum())
    if size != (height, width) or not len(counts) or counts.min() < 0 or n_pixels != height * width:
        raise ValueError(
            f"its run lengths are for an image of size {list(size)} and cover {n_pixels} pixels, or one "
            f"is negative; expected {height} x {width} = {height * width}"
        )
    return counts


def decode_counts(text: bytes) -> NDArray[np.int64]:
    """Return the run lengths of COCO's compressed string.

    Every character holds five bits of a number and a sixth bit if more follow; every number from the
    fourth on is the difference to the last but one.

    Raises:
        ValueError: the string is damaged.

    Example:
        >>> decode_counts(b"52204").tolist()
        [5, 2, 2, 2, 6]
    """
    codes = np.frombuffer(text, dtype=np.uint8).astype(np.int64) - 48
    last = np.flatnonzero(codes < 32)
    first = np.append(0, last[:-1] + 1)
    is_whole = len(codes) > 0 and codes.min() >= 0 and codes.max() < 64 and codes[-1] < 32
    if not is_whole or (lengths := last - first + 1).max() > _LONGEST:
        raise ValueError("the string of its counts is damaged")
    places = np.arange(len(codes)) - np.repeat(first, lengths)
    numbers = np.add.reduceat((codes & 31) << (5 * places), first)
    numbers -= np.where(codes[last] & 16, 1 << (5 * lengths), 0)  # the last bit is the sign
    for start in (1, 2):
        np.cumsum(numbers[start::2], out=numbers[start::2])
    return numbers


def _draw_polygons(polygons: Sequence[Sequence[float]], height: int, width: int) -> NDArray[np.int64]:
    for polygon in polygons:
        for values, most in ((polygon[0::2], width), (polygon[1::2], height)):
            if len(polygon) % 2 or min(values) < -_OUTSIDE or max(values) > most + _OUTSIDE:
                raise ValueError(
                    f"one of its polygons has {len(polygon)} numbers from {min(polygon):g} to "
                    f"{max(polygon):g}; expected x and y of points inside an image of {width} x {height}"
                )
    require("a COCO file with polygons", "pycocotools")
    from pycocotools import mask

    runs = mask.frPyObjects(polygons, height, width)
    return decode_counts(mask.merge(runs)["counts"] if len(runs) > 1 else runs[0]["counts"])

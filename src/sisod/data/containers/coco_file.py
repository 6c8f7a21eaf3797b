"""COCO's JSON files, decoded by the types below: annotation files, result files and their masks.

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
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from sisod.common.arguments import short_repr, unknown_name_message
from sisod.common.exceptions import InputError, printable, require
from sisod.common.output import is_safe_relative_path, is_url
from sisod.data.files import file_state, read_file

Id = int | str
Side = Annotated[int, msgspec.Meta(ge=1)]
_LONGEST = 7  # characters of a number, of five bits each: more than the pixels of any image
_OUTSIDE = 1.0  # pixels by which a polygon may leave its image; pycocotools cuts it off there


class CocoImage(msgspec.Struct, frozen=True):
    """One image of an annotation file."""

    id: Id
    file_name: str
    height: Side
    width: Side


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

    def stamp(self, image: CocoImage) -> str:
        """Return a string that differs once the image or its annotations changed."""
        annotations = self.annotations.get(image.id, [])
        names = [self.categories.get(one.category_id or 0) for one in annotations]
        return entries_stamp(annotations, image.height, image.width, names)


def entries_stamp(annotations: Sequence[Annotation], *more: object) -> str:
    """Return a digest of annotations: other images of the file may change without changing it."""
    return hashlib.blake2b(msgspec.json.encode([annotations, more]), digest_size=8).hexdigest()


def of_category(annotations: Sequence[Entry], category: int | None, file: str) -> list[Entry]:
    """Return the annotations of a category; all of them for None."""
    if category is not None and any(one.category_id is None for one in annotations):
        raise InputError(f"{file!r} has entries without category_id; expected it to choose a class by")
    return [one for one in annotations if category in (None, one.category_id)]


_lock = threading.Lock()  # threads that want the same file wait for the one that decodes it
_stamps: dict[str, str] = {}  # of files behind URLs


def load_truths(file: str, *, again: bool = False) -> CocoTruths:
    """Return an annotation file; one behind a URL is looked at again only if it is listed again."""
    with _lock:
        return _decode_truths(file, _stamp(file, again=again))


def load_results(file: str, *, again: bool = False) -> dict[Id, list[CocoResult]]:
    """Return the results of a result file by the id of their image."""
    with _lock:
        return _decode_results(file, _stamp(file, again=again))


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


@dataclass(frozen=True, eq=False)
class ColumnRuns:
    """Pixels of a mask as runs down its columns, one column after the other.

    `counts` are the lengths of the runs: pixels outside the mask, then inside, and so on.
    """

    counts: NDArray[np.int64]

    @property
    def area(self) -> int:
        """Pixels of the mask."""
        return int(self.counts[1::2].sum())

    def window(self, columns: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return the part of an image from the first pixel of the mask to its last, and where it is.

        Args:
            columns: pixels of the image, one column after the other.
        """
        lengths = self.counts[1 : len(self.counts) // 2 * 2]  # from the first run inside to the last
        begin = int(self.counts[0])
        inside = np.zeros(len(lengths), dtype=np.bool_)
        inside[::2] = True
        return columns[begin : begin + int(lengths.sum())], np.repeat(inside, lengths)


def read_segmentation(segmentation: bytes | msgspec.Raw, height: int, width: int) -> ColumnRuns:
    """Return the mask of an annotation in an image of this size.

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
    return ColumnRuns(counts)


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

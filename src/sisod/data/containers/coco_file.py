"""COCO's JSON files, decoded by the types below: annotation files and result files.

A file is decoded once in every process that reads from it; segmentations stay JSON until their image is
read. Whatever is wrong is one sentence with the file and the place in it.
"""

import hashlib
import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal

import msgspec

from sisod.common.arguments import short_repr, unknown_name_message
from sisod.common.exceptions import InputError, printable
from sisod.common.output import is_safe_relative_path, is_url
from sisod.data.urls import file_state, read_file

Id = int | str
Side = Annotated[int, msgspec.Meta(ge=1)]


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


def of_category(annotations: Iterable[Any], category: int | None, file: str) -> list[Any]:
    """Return the annotations of a category; all of them for None."""
    chosen = list(annotations)
    if category is not None and any(one.category_id is None for one in chosen):
        raise InputError(f"{file!r} has entries without category_id; expected it to choose a class by")
    return [one for one in chosen if category in (None, one.category_id)]


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
    if len({len(images), len(ids), len(content.images)}) > 1 or len(categories) < len(
        content.categories
    ):
        raise InputError(f"{file!r}: two images or two categories have the same id or file_name")
    if unsafe := [path for path in images if not is_safe_relative_path(path)]:
        raise InputError(f"{file!r}: the file_name {short_repr(unsafe[0])} is not a relative path")
    annotations = defaultdict(list)
    for one in content.annotations:
        annotations[one.image_id].append(one)
    if unknown := annotations.keys() - ids:
        raise InputError(f"{file!r}: no image has the image_id {short_repr(min(unknown, key=str))}")
    return CocoTruths(file, images, dict(annotations), categories)


@lru_cache(maxsize=4)
def _decode_results(file: str, stamp: str) -> dict[Id, list[CocoResult]]:  # noqa: ARG001
    what = "result file, a list of image_id, category_id, segmentation and score"
    results = defaultdict(list)
    for one in _decode(file, list[CocoResult], what):
        results[one.image_id].append(one)
    return dict(results)


def _decode(file: str, kind: Any, what: str) -> Any:
    try:
        return msgspec.json.decode(read_file(file).removeprefix(b"\xef\xbb\xbf"), type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"{file!r} is not a COCO {what}: {printable(str(error))}") from None

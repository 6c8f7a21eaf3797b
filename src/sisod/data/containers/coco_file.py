"""COCO's JSON files, parsed and checked: annotation files and result files.

A file is parsed once in every process that reads from it; masks stay as they are in the file until their
image is read. Nothing is trusted: whatever is wrong is one sentence with the file and the annotation.
"""

import errno
import hashlib
import json
import os
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sisod.common.arguments import shown, unknown_name_message
from sisod.common.errors import InputError, printable
from sisod.common.folders import is_url
from sisod.common.output import stays_inside
from sisod.data.containers.source import file_state, read_all
from sisod.data.stored_file import MOST_CONTENT

_KEPT = 4  # parsed files of a kind that a process keeps
_LARGEST = 1 << 31  # pixels of a side that is taken for a number at all

Id = int | str
Content = TypeVar("Content")


@dataclass(frozen=True, slots=True)
class CocoImage:
    """One image of an annotation file."""

    id: Id
    path: str
    height: int
    width: int


@dataclass(frozen=True, slots=True)
class Annotation:
    """One object, as the file describes it: its masks are not decoded yet.

    `title` names it in messages; `category` is None if the file does not say it.
    """

    title: str
    image: Id
    category: int | None
    segmentation: object
    is_crowd: bool
    score: float


@dataclass(frozen=True, eq=False)
class CocoTruths:
    """An annotation file: images by path, annotations by the id of their image, names of categories."""

    file: str
    images: dict[str, CocoImage]
    annotations: dict[Id, list[Annotation]]
    categories: dict[int, str]

    def chosen(self, image: CocoImage, category: str) -> list[Annotation]:
        """Return the annotations of an image, of one category unless that is empty."""
        return of_category(self.annotations.get(image.id, []), self.category(category), self.file)

    def category(self, category: str) -> int | None:
        """Return the id of a category that is given by its name or its id; None for all of them."""
        if not category:
            return None
        ids = [number for number, name in self.categories.items() if name == category]
        ids = ids or [number for number in self.categories if str(number) == category]
        if not self.categories:
            raise InputError(
                f"{self.file!r} has no categories; expected them to choose the class {shown(category)}"
            )
        if len(ids) > 1:
            numbers = ", ".join(map(str, ids))
            raise InputError(
                f"{self.file!r}: {len(ids)} categories are called {shown(category)}; choose one by its "
                f"id: {numbers}"
            )
        if not ids:
            names = sorted(self.categories.values())
            raise InputError(f"{self.file!r}: {unknown_name_message('class', category, names)}")
        return ids[0]

    def stamp(self, image: CocoImage) -> str:
        """Return a text that differs once the image or its annotations changed."""
        annotations = self.annotations.get(image.id, [])
        names = [self.categories.get(one.category or 0) for one in annotations]
        return entries_stamp(annotations, image.height, image.width, names)

    def n_crowds(self, category: str) -> int:
        """Return the number of crowd regions, of one category unless that is empty."""
        number = self.category(category)
        return sum(
            one.is_crowd and number in (None, one.category)
            for annotations in self.annotations.values()
            for one in annotations
        )


def entries_stamp(annotations: list[Annotation], *more: object) -> str:
    """Return a digest of annotations: other images of the file may change without changing it."""
    content = [(one.category, one.segmentation, one.is_crowd, one.score) for one in annotations]
    return hashlib.blake2b(json.dumps([content, *more]).encode(), digest_size=8).hexdigest()


def of_category(annotations: list[Annotation], category: int | None, file: str) -> list[Annotation]:
    """Return the annotations of a category; all of them for None."""
    if category is None:
        return annotations
    for one in annotations:
        if one.category is None:
            raise InputError(
                f"{file!r}: {one.title} has no category_id; expected one to choose a class by"
            )
    return [one for one in annotations if one.category == category]


class _ParsedFiles(Generic[Content]):
    """The parsed files that were read last."""

    def __init__(self, parse: Callable[[str], Content]) -> None:
        self._parse = parse
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[str, Content]] = OrderedDict()

    def newest(self, file: str) -> Content:
        """Return the content of a file as it is now."""
        try:
            stamp = file_state(file).stamp
        except OSError as error:
            raise InputError(f"{file!r} cannot be read: {error.strerror or error}") from None
        with self._lock:  # threads that want the same file wait for the one that parses it
            if file not in self._kept or self._kept[file][0] != stamp:
                self._kept[file] = stamp, self._parse(file)
            self._kept.move_to_end(file)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
            return self._kept[file][1]

    def current(self, file: str) -> Content:
        """Return the content of a file; one behind a URL is not asked again whether it changed."""
        kept = self._kept.get(file) if is_url(file) else None
        return self.newest(file) if kept is None else kept[1]


def _parse_truths(file: str) -> CocoTruths:
    content = _load(file)
    if isinstance(content, list):
        raise InputError(
            f"{file!r} is a list, as COCO result files are; expected an annotation file as ground "
            "truth, with images and annotations; give results before it, as predictions"
        )
    if not isinstance(content, dict) or not {"images", "annotations"} <= content.keys():
        raise InputError(
            f"{file!r} is not a COCO annotation file; expected an object with images and annotations"
        )
    images = _parse_images(file, content["images"])
    annotations: dict[Id, list[Annotation]] = defaultdict(list)
    known = {image.id for image in images.values()}
    ids: set[Id] = set()
    for title, entry in _entries(file, "annotation", content["annotations"]):
        if "id" in entry:
            _check_id(file, title, "id", entry["id"])
            if entry["id"] in ids:
                raise InputError(f"{file!r}: two annotations have the id {shown(entry['id'])}")
            ids.add(entry["id"])
        one = _parse_annotation(file, title, entry)
        if one.image not in known:
            raise InputError(f"{file!r}: {title}: no image has its image_id, {shown(one.image)}")
        annotations[one.image].append(one)
    categories = {}
    for title, entry in _entries(file, "category", content.get("categories", [])):
        number = _field(file, title, entry, "id", int)
        if number in categories:
            raise InputError(f"{file!r}: two categories have the id {number}")
        categories[number] = _field(file, title, entry, "name", str)
    return CocoTruths(file, images, dict(annotations), categories)


def _parse_images(file: str, entries: object) -> dict[str, CocoImage]:
    images: dict[str, CocoImage] = {}
    ids: set[Id] = set()
    for title, entry in _entries(file, "image", entries):
        number = _check_id(file, title, "id", entry.get("id"))
        path = _field(file, title, entry, "file_name", str)
        sides = [_field(file, title, entry, side, int) for side in ("height", "width")]
        if not all(0 < side < _LARGEST for side in sides):
            raise InputError(f"{file!r}: {title} has height and width {shown(sides)}; expected pixels")
        if not stays_inside(path):
            raise InputError(
                f"{file!r}: {title} has the file_name {shown(path)}; expected a relative path, which "
                "names the image"
            )
        if number in ids:
            raise InputError(f"{file!r}: two images have the id {shown(number)}")
        if path in images:
            raise InputError(f"{file!r}: two images have the file_name {shown(path)}")
        ids.add(number)
        images[path] = CocoImage(number, path, *sides)
    if not images:
        raise InputError(f"{file!r} has no images; expected at least one")
    return images


def _parse_results(file: str) -> dict[Id, list[Annotation]]:
    content = _load(file)
    if not isinstance(content, list):
        raise InputError(
            f"{file!r} is not a COCO result file; expected a list of results, each with image_id, "
            "category_id, segmentation and score"
        )
    results: dict[Id, list[Annotation]] = defaultdict(list)
    for title, entry in _entries(file, "result", content):
        one = _parse_annotation(file, title, entry, scored=True)
        results[one.image].append(one)
    return dict(results)


def _parse_annotation(
    file: str, title: str, entry: dict[str, Any], *, scored: bool = False
) -> Annotation:
    image = _check_id(file, title, "image_id", entry.get("image_id"))
    if "segmentation" not in entry:
        raise InputError(
            f"{file!r}: {title} has no segmentation; expected polygons or run lengths: boxes and key "
            "points have no mask"
        )
    category = None if "category_id" not in entry else _field(file, title, entry, "category_id", int)
    crowd: Any = entry.get("iscrowd", 0)
    score: Any = entry.get("score") if scored else 1.0
    if crowd not in (0, 1):
        raise InputError(f"{file!r}: {title} has iscrowd {shown(crowd)}; expected 0 or 1")
    if type(score) not in (int, float) or not 0 <= score <= 1:  # also false for NaN
        raise InputError(f"{file!r}: {title} has the score {shown(score)}; expected 0 to 1")
    return Annotation(title, image, category, entry["segmentation"], bool(crowd), float(score))


def _entries(file: str, what: str, entries: object) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give each entry of a list and its name in messages: its id, or its place counted from 0."""
    if not isinstance(entries, list):
        raise InputError(f"{file!r}: expected a list of {what} entries, got {shown(entries)}")
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise InputError(f"{file!r}: {what} number {index} is {shown(entry)}; expected an object")
        number = entry.get("id")
        titled = type(number) in (int, str) and what != "result"
        yield f"{what} {shown(number)}" if titled else f"{what} number {index}", entry


def _check_id(file: str, title: str, key: str, value: Any) -> Id:
    if type(value) not in (int, str):
        got = "which is missing" if value is None else f"got {shown(value)}"
        raise InputError(f"{file!r}: {title} needs {key}, a whole number or text, {got}")
    number: Id = value
    return number


def _field(file: str, title: str, entry: dict[str, Any], key: str, kind: type[Content]) -> Content:
    value = entry.get(key)
    if type(value) is not kind:
        got = "which is missing" if value is None else f"got {shown(value)}"
        noun = "a whole number" if kind is int else "text"
        raise InputError(f"{file!r}: {title} needs {key}, {noun}, {got}")
    checked: Content = value
    return checked


def _load(file: str) -> Any:
    try:
        return json.loads(_read(file))
    except OSError as error:
        raise InputError(f"{file!r} cannot be read: {error.strerror or error}") from None
    except RecursionError:
        raise InputError(f"{file!r} is not a COCO file: its lists are nested too deeply") from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{file!r} is not a JSON file: {printable(str(error))[:100]}") from None


def _read(file: str) -> bytes:
    if is_url(file):
        content: bytes = read_all(file)
        return content
    with open(file, "rb") as stream:  # noqa: PTH123
        if os.fstat(stream.fileno()).st_size > MOST_CONTENT:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        return stream.read()


parsed_truths = _ParsedFiles(_parse_truths)
parsed_results = _ParsedFiles(_parse_results)

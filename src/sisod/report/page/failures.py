"""Failures: the objects with the worst scores, cut out of the images as small pictures."""

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.analysis.groups import FOUND, group_of, size_edges, size_label
from sisod.common.errors import InputError
from sisod.common.progress import progress_bar
from sisod.evaluation.results import Picture, PixelFiles, Result
from sisod.report.page.charts import rounded

MAX_OBJECTS = 500
MAX_BYTES = 10_000_000  # of all pictures in base64; the page stays below 15 MB
_PICTURE_SIDE = 132  # pixels
_CROP_FACTOR = 2.4  # side of a crop over that of the frame, to show the surroundings
_MIN_CROP = 72  # pixels of the image
_WEBP_QUALITY = 55


@dataclass(frozen=True)
class Failure:
    """An object, and the methods for which it is among the worst."""

    dataset: str
    image: str
    index: int
    methods: tuple[str, ...]


def failure_data(
    results: Sequence[Result], image_roots: Mapping[str, Path], *, fetch: bool = False
) -> tuple[dict[str, Any], list[str]]:
    """Return the failures with their pictures for the page's script, and warnings."""
    methods = list(dict.fromkeys(result.method for result in results))
    tables = {(r.dataset, r.method): _ObjectRows(r) for r in results}
    chosen = choose_failures(results, min(MAX_OBJECTS, MAX_BYTES // (3000 * (len(methods) + 1))))
    cropper = _Cropper(results, image_roots, fetch=fetch)
    items: dict[Failure, dict[str, Any]] = {}
    with progress_bar("failures", len(chosen)) as advance:
        for failure in sorted(chosen, key=lambda f: (f.dataset, f.image)):  # each image is read once
            pictures, box = cropper.pictures(failure, methods, tables)
            items[failure] = _item(failure, tables, methods) | {"box": box, "pictures": pictures}
            advance(1)
    kept = list(_within_limit(items[failure] for failure in chosen))
    edges = size_edges("log")
    groups = [size_label(low, high) for low, high in pairwise(edges.tolist())]
    data = {"groups": groups, "items": kept, "left_out": len(chosen) - len(kept)}
    return data, cropper.notes()


def _within_limit(items: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The first items, as long as their pictures together stay below the limit."""
    used = 0
    for item in items:
        used += sum(len(text) for text in item["pictures"].values())
        if used > MAX_BYTES:
            return
        yield item


def choose_failures(results: Sequence[Result], count: int = MAX_OBJECTS) -> list[Failure]:
    """Return the worst objects, taken from each data set, method and size group in turn."""
    queues = [
        (result, iter(queue)) for result in results for queue in _worst_first(result) if len(queue)
    ]
    chosen: dict[tuple[str, str, int], list[str]] = {}
    while queues and len(chosen) < count:
        remaining = []
        for result, queue in queues:
            row = next(queue, None)
            if row is None or len(chosen) >= count:
                continue
            objects = result.evaluation.objects
            key = (result.dataset, str(objects["image"][row]), int(objects["index"][row]))
            chosen.setdefault(key, []).append(result.method)
            remaining.append((result, queue))
        queues = remaining
    return [Failure(*key, tuple(methods)) for key, methods in chosen.items()]


def _worst_first(result: Result) -> list[list[int]]:
    """Rows of the object table by size group, the lowest F first."""
    objects = result.evaluation.objects
    score = objects["f_mean"].to_numpy()
    group = group_of(objects["share"].to_numpy(), size_edges("log"))
    order = np.argsort(np.where(np.isnan(score), np.inf, score), kind="stable")
    order = order[~np.isnan(score[order])]
    return [order[group[order] == number].tolist() for number in np.unique(group[group >= 0])]


class _ObjectRows:
    """Rows of an object table by image and index."""

    def __init__(self, result: Result) -> None:
        objects = result.evaluation.objects
        keys = zip(objects["image"].to_list(), objects["index"].to_list(), strict=True)
        self.objects = objects
        self.index = {key: row for row, key in enumerate(keys)}

    def get(self, image: str, index: int) -> dict[str, Any] | None:
        row = self.index.get((image, index))
        return None if row is None else self.objects.row(row, named=True)


def _item(
    failure: Failure, tables: Mapping[tuple[str, str], _ObjectRows], methods: Sequence[str]
) -> dict[str, Any]:
    """The data of an object for the script; scores as [F mean, recall at 0.5] by method."""
    first = _object(failure, tables)
    scores = {}
    for number, method in enumerate(methods):
        rows = tables.get((failure.dataset, method))
        row = None if rows is None else rows.get(failure.image, failure.index)
        if row is not None:
            scores[number] = rounded((row["f_mean"], row["recall_binary"]))
    return {
        "dataset": failure.dataset,
        "image": failure.image,
        "index": failure.index,
        "share": first["share"],
        "group": int(group_of(np.array([first["share"]]), size_edges("log"))[0]),
        "worst_of": [methods.index(method) for method in failure.methods],
        "missed": [
            number for number, (_, recall) in scores.items() if recall is not None and recall < FOUND
        ],
        "scores": scores,
    }


def _object(failure: Failure, tables: Mapping[tuple[str, str], _ObjectRows]) -> dict[str, Any]:
    row = tables[failure.dataset, failure.methods[0]].get(failure.image, failure.index)
    assert row is not None  # noqa: S101  (it was chosen from this table)
    return row


class _Cropper:
    """Crops pictures out of files; those of the last image are cached."""

    def __init__(
        self, results: Sequence[Result], image_roots: Mapping[str, Path], *, fetch: bool
    ) -> None:
        self.files = {
            (r.dataset, r.method): PixelFiles(r.evaluation, image_roots.get(r.dataset), fetch)
            for r in results
        }
        self.cache: dict[tuple[str, str, str], Picture | None] = {}
        self.errors: list[str] = []

    def pictures(
        self, failure: Failure, methods: Sequence[str], tables: Mapping[tuple[str, str], _ObjectRows]
    ) -> tuple[dict[str, str], list[float]]:
        """Pictures in base64, "photo" (or mask) and maps by method; the frame as shares of a picture."""
        row = _object(failure, tables)
        evaluation = self.files[failure.dataset, failure.methods[0]].evaluation
        index = evaluation.images["image"].to_list().index(failure.image)
        shape = (int(evaluation.images["height"][index]), int(evaluation.images["width"][index]))
        window = crop_window(row, shape)
        pictures = {
            name: _encode(picture[window])
            for name, picture in self._sources(failure, methods, shape)
            if picture is not None
        }
        rows, columns = window
        height, width = rows.stop - rows.start, columns.stop - columns.start
        box = [
            (row["x0"] - columns.start) / width,
            (row["y0"] - rows.start) / height,
            (row["x1"] - row["x0"]) / width,
            (row["y1"] - row["y0"]) / height,
        ]
        return pictures, [round(value, 4) for value in box]

    def _sources(
        self, failure: Failure, methods: Sequence[str], shape: tuple[int, int]
    ) -> Iterator[tuple[str, Picture | None]]:
        image = (failure.dataset, failure.image)
        if not any(key[:2] == image for key in self.cache):
            self.cache = {}
        yield "photo", self._cached((*image, ""), partial(self._photo, failure, shape))
        for number, method in enumerate(methods):
            files = self.files.get((failure.dataset, method))
            if files is not None:
                read = partial(files.prediction, failure.image, shape)
                yield str(number), self._cached((*image, f"m{method}"), read)

    def _cached(self, key: tuple[str, str, str], read: Callable[[], Picture | None]) -> Picture | None:
        if key not in self.cache:
            try:
                self.cache[key] = read()
            except InputError as error:
                self.errors.append(str(error))
                self.cache[key] = None
        return self.cache[key]

    def _photo(self, failure: Failure, shape: tuple[int, int]) -> Picture | None:
        files = self.files[failure.dataset, failure.methods[0]]
        photo = files.image(failure.image)
        if photo is not None:
            return np.asarray(cv2.resize(photo, shape[::-1], interpolation=cv2.INTER_AREA), np.uint8)
        mask = files.mask(failure.image)
        return None if mask is None else mask.astype(np.uint8) * np.uint8(255)

    def notes(self) -> list[str]:
        """Warnings about files that were not found or read, without repetition."""
        missing = [note for files in self.files.values() for note in files.trouble]
        return list(dict.fromkeys([*missing, *self.errors]))


def crop_window(row: Mapping[str, Any], shape: tuple[int, int]) -> tuple[slice, slice]:
    """Return a square window around a frame, moved and cut to lie inside the image.

    Example:
        >>> crop_window({"y0": 0, "y1": 10, "x0": 90, "x1": 100}, (200, 100))
        (slice(0, 72, None), slice(28, 100, None))
    """
    side = round(
        max(_MIN_CROP, _CROP_FACTOR * (row["y1"] - row["y0"]), _CROP_FACTOR * (row["x1"] - row["x0"]))
    )
    slices = []
    for low, high, length in ((row["y0"], row["y1"], shape[0]), (row["x0"], row["x1"], shape[1])):
        size = min(side, length)
        start = min(max(0, round((low + high - size) / 2)), length - size)
        slices.append(slice(start, start + size))
    return slices[0], slices[1]


def _encode(picture: NDArray[np.uint8]) -> str:
    height, width = picture.shape[:2]
    scale = _PICTURE_SIDE / max(height, width)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    kind = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    small = cv2.resize(np.ascontiguousarray(picture), size, interpolation=kind)
    encoded, data = cv2.imencode(".webp", small, [cv2.IMWRITE_WEBP_QUALITY, _WEBP_QUALITY])
    if not encoded:
        raise InputError(f"a picture of shape {small.shape} cannot be written as WebP")
    return base64.b64encode(data.tobytes()).decode("ascii")

"""The objects that methods miss or serve worst, cut out of the images as small pictures."""

import base64
import math
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
from sisod.evaluation.results import Picture, PixelFiles, Result, datasets_of

MOST_OBJECTS = 500
MOST_BYTES = 10_000_000  # of pictures, as text; the whole page stays below 15 MB
_SIDE = 132  # pixels of a picture
_AROUND = 2.4  # sides of a frame that a picture shows, so that one sees where the object is
_LEAST = 72  # pixels of the image that a picture shows
_QUALITY = 55


@dataclass(frozen=True)
class Failure:
    """One object, and the methods for which it is among the worst."""

    dataset: str
    image: str
    index: int
    methods: tuple[str, ...]


def failure_data(
    results: Sequence[Result], image_roots: Mapping[str, Path], *, fetch: bool = False
) -> tuple[dict[str, Any], list[str]]:
    """Return the failures with their pictures for the page's script, and what went wrong."""
    methods = list(dict.fromkeys(result.method for result in results))
    tables = {(r.dataset, r.method): _Rows(r) for r in results}
    chosen = choose_failures(results, min(MOST_OBJECTS, MOST_BYTES // (3000 * (len(methods) + 1))))
    cutter = _Cutter(results, image_roots, fetch=fetch)
    made: dict[Failure, dict[str, Any]] = {}
    with progress_bar("failures", len(chosen)) as advance:
        for failure in sorted(chosen, key=lambda f: (f.dataset, f.image)):  # each image is read once
            pictures, box = cutter.pictures(failure, methods, tables)
            made[failure] = _item(failure, tables, methods) | {"box": box, "pictures": pictures}
            advance(1)
    items = list(_that_fit([made[failure] for failure in chosen]))
    edges = size_edges("log")
    groups = [size_label(low, high) for low, high in pairwise(edges.tolist())]
    data = {"groups": groups, "items": items, "left_out": len(chosen) - len(items)}
    return data, cutter.notes()


def _that_fit(items: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Give the first ones, whose pictures together are not too large for the page."""
    used = 0
    for item in items:
        used += sum(len(text) for text in item["pictures"].values())
        if used > MOST_BYTES:
            return
        yield item


def choose_failures(results: Sequence[Result], most: int = MOST_OBJECTS) -> list[Failure]:
    """Take the worst object of each data set, method and size group in turn, until there are enough."""
    queues = [
        (result, iter(queue)) for result in results for queue in _worst_first(result) if len(queue)
    ]
    found: dict[tuple[str, str, int], list[str]] = {}
    while queues and len(found) < most:
        left = []
        for result, queue in queues:
            row = next(queue, None)
            if row is None or len(found) >= most:
                continue
            objects = result.evaluation.objects
            key = (result.dataset, str(objects["image"][row]), int(objects["index"][row]))
            found.setdefault(key, []).append(result.method)
            left.append((result, queue))
        queues = left
    return [Failure(*key, tuple(methods)) for key, methods in found.items()]


def _worst_first(result: Result) -> list[list[int]]:
    """Rows of the object table by size group, those with the least F first."""
    objects = result.evaluation.objects
    score = objects["f_mean"].to_numpy()
    group = group_of(objects["share"].to_numpy(), size_edges("log"))
    order = np.argsort(np.where(np.isnan(score), np.inf, score), kind="stable")
    order = order[~np.isnan(score[order])]
    return [order[group[order] == number].tolist() for number in np.unique(group[group >= 0])]


class _Rows:
    """Rows of an object table by image and index."""

    def __init__(self, result: Result) -> None:
        objects = result.evaluation.objects
        keys = zip(objects["image"].to_list(), objects["index"].to_list(), strict=True)
        self.objects = objects
        self.places = {key: place for place, key in enumerate(keys)}

    def get(self, image: str, index: int) -> dict[str, Any] | None:
        place = self.places.get((image, index))
        return None if place is None else self.objects.row(place, named=True)


def _item(
    failure: Failure, tables: Mapping[tuple[str, str], _Rows], methods: Sequence[str]
) -> dict[str, Any]:
    """What the script needs to know of an object; scores as [F mean, recall at 0.5], by method."""
    first = _object(failure, tables)
    scores = {}
    for place, method in enumerate(methods):
        rows = tables.get((failure.dataset, method))
        row = None if rows is None else rows.get(failure.image, failure.index)
        if row is not None:
            values = (row["f_mean"], row["recall_binary"])
            scores[place] = [None if math.isnan(v) else round(v, 4) for v in values]
    return {
        "dataset": failure.dataset,
        "image": failure.image,
        "index": failure.index,
        "share": first["share"],
        "group": int(group_of(np.array([first["share"]]), size_edges("log"))[0]),
        "of": [methods.index(method) for method in failure.methods],
        "missed": [
            place for place, values in scores.items() if values[1] is not None and values[1] < FOUND
        ],
        "scores": scores,
    }


def _object(failure: Failure, tables: Mapping[tuple[str, str], _Rows]) -> dict[str, Any]:
    row = tables[failure.dataset, failure.methods[0]].get(failure.image, failure.index)
    assert row is not None  # noqa: S101  (it was chosen from this very table)
    return row


class _Cutter:
    """Cuts pictures out of files, the last image's kept open."""

    def __init__(
        self, results: Sequence[Result], image_roots: Mapping[str, Path], *, fetch: bool
    ) -> None:
        self.files = {
            (r.dataset, r.method): PixelFiles(r.evaluation, image_roots.get(r.dataset), fetch)
            for r in results
        }
        self.datasets = datasets_of(results)
        self.roots = image_roots
        self.open: dict[tuple[str, str, str], Picture | None] = {}
        self.broken: list[str] = []

    def pictures(
        self, failure: Failure, methods: Sequence[str], tables: Mapping[tuple[str, str], _Rows]
    ) -> tuple[dict[str, str], list[float]]:
        """Pictures in base64, "photo" (or the mask) and by method; the frame in shares of a picture."""
        row = _object(failure, tables)
        evaluation = self.files[failure.dataset, failure.methods[0]].evaluation
        place = evaluation.images["image"].to_list().index(failure.image)
        shape = (int(evaluation.images["height"][place]), int(evaluation.images["width"][place]))
        window = crop_window(row, shape)
        found = {}
        for name, picture in self._sources(failure, methods, shape):
            if picture is not None:
                found[name] = _encode(picture[window])
        rows, columns = window
        high, wide = rows.stop - rows.start, columns.stop - columns.start
        box = [
            (row["x0"] - columns.start) / wide,
            (row["y0"] - rows.start) / high,
            (row["x1"] - row["x0"]) / wide,
            (row["y1"] - row["y0"]) / high,
        ]
        return found, [round(value, 4) for value in box]

    def _sources(
        self, failure: Failure, methods: Sequence[str], shape: tuple[int, int]
    ) -> Iterator[tuple[str, Picture | None]]:
        here = (failure.dataset, failure.image)
        if not any(key[:2] == here for key in self.open):
            self.open = {}
        yield "photo", self._kept((*here, ""), partial(self._photo, failure, shape))
        for place, method in enumerate(methods):
            files = self.files.get((failure.dataset, method))
            if files is not None:
                read = partial(files.prediction, failure.image, shape)
                yield str(place), self._kept((*here, f"m{method}"), read)

    def _kept(self, key: tuple[str, str, str], read: Callable[[], Picture | None]) -> Picture | None:
        if key not in self.open:
            try:
                self.open[key] = read()
            except InputError as error:
                self.broken.append(str(error))
                self.open[key] = None
        return self.open[key]

    def _photo(self, failure: Failure, shape: tuple[int, int]) -> Picture | None:
        files = self.files[failure.dataset, failure.methods[0]]
        photo = files.image(failure.image)
        if photo is not None:
            return np.asarray(cv2.resize(photo, shape[::-1], interpolation=cv2.INTER_AREA), np.uint8)
        mask = files.mask(failure.image)
        return None if mask is None else mask.astype(np.uint8) * np.uint8(255)

    def notes(self) -> list[str]:
        """What could not be found or read, each once."""
        troubles = dict.fromkeys(t for files in self.files.values() for t in files.trouble)
        return [*troubles, *dict.fromkeys(self.broken)]


def crop_window(row: Mapping[str, Any], shape: tuple[int, int]) -> tuple[slice, slice]:
    """Return a square around a frame, moved into the image; all of a side that is too short for it.

    Example:
        >>> crop_window({"y0": 0, "y1": 10, "x0": 90, "x1": 100}, (200, 100))
        (slice(0, 72, None), slice(28, 100, None))
    """
    side = round(max(_LEAST, _AROUND * (row["y1"] - row["y0"]), _AROUND * (row["x1"] - row["x0"])))
    slices = []
    for low, high, length in ((row["y0"], row["y1"], shape[0]), (row["x0"], row["x1"], shape[1])):
        size = min(side, length)
        start = min(max(0, round((low + high - size) / 2)), length - size)
        slices.append(slice(start, start + size))
    return slices[0], slices[1]


def _encode(picture: NDArray[np.uint8]) -> str:
    height, width = picture.shape[:2]
    scale = _SIDE / max(height, width)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    kind = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    small = cv2.resize(np.ascontiguousarray(picture), size, interpolation=kind)
    done, data = cv2.imencode(".webp", small, [cv2.IMWRITE_WEBP_QUALITY, _QUALITY])
    if not done:
        raise InputError(f"a picture of shape {small.shape} cannot be written as WebP")
    return base64.b64encode(data.tobytes()).decode("ascii")

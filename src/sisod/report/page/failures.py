"""Failures: objects that are missed, false objects and the worst images, with pictures."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise, permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from sisod.analysis.groups import FOUND, group_of, size_edges, size_label
from sisod.common.progress import progress_bar
from sisod.evaluation.results import Result, datasets_of, methods_of
from sisod.report.page.charts import rounded
from sisod.report.page.pictures import SIDE, Cropper, Window, crop_window, expected_bytes
from sisod.scoring.metrics import METRICS

if TYPE_CHECKING:
    import polars as pl

MAX_ITEMS = 400
MAX_BYTES = 2_900_000  # of all pictures in base64: the page of five methods stays below 4 MB
MAX_FILES = 2200  # that are read, which takes about a millisecond each
_THREADS = 4  # that read files
Kind = Literal["object", "false", "image"]
# taken in turn: worst objects, false objects, worst images
_TURNS: tuple[Kind, ...] = ("object", "false", "object", "false", "image", "object", "false")
# the score that ranks whole images: the first that every result has
_IMAGE_SCORES = ("si_f_mean", "f_mean", "si_mae", "mae")

Key = tuple[str, int]  # image, and index of the object or of the predicted object; -1 for a whole image
Queue = tuple[Result, Iterator[Key]]


@dataclass(frozen=True)
class Failure:
    """Something to look at, and the methods for which it is among the worst.

    Attributes:
        kind: an object, a false object of one method, or a whole image.
        dataset: its name.
        image: name of the image.
        index: row number in the image's table of objects or of predicted objects; -1 for an image.
        methods: for which it was chosen.
    """

    kind: Kind
    dataset: str
    image: str
    index: int
    methods: tuple[str, ...]


def failure_data(
    results: Sequence[Result], image_roots: Mapping[str, Path], *, fetch: bool = False
) -> tuple[dict[str, Any], list[str]]:
    """Return the failures with their pictures for the page's script, and warnings."""
    methods = methods_of(results)
    tables = {(r.dataset, r.method): _Tables(r) for r in results}
    metric = _image_score(results)
    chosen = _affordable(
        _in_turns(
            {
                "object": choose_failures(results, MAX_ITEMS),
                "false": choose_false(results, MAX_ITEMS),
                "image": choose_images(results, metric, MAX_ITEMS),
            }
        ),
        tables,
        len(methods),
    )
    cropper = Cropper(results, image_roots, fetch=fetch)
    pictures = _pictures(chosen, tables, cropper)
    items = (_item(failure, tables, methods, metric) | pictures[failure] for failure in chosen)
    kept = list(_within_limit(items))
    edges = size_edges("log").tolist()
    data = {
        "groups": [size_label(low, high) for low, high in pairwise(edges)],
        "side": SIDE,
        "image_score": {"title": METRICS[metric].title, "better": METRICS[metric].better},
        "totals": {name: _totals(results, name, methods, metric) for name in datasets_of(results)},
        "items": kept,
        "left_out": len(chosen) - len(kept),
    }
    return data, cropper.notes()


def choose_failures(results: Sequence[Result], count: int = MAX_ITEMS) -> list[Failure]:
    """Return the worst objects, taken in turn from each data set, method and size group.

    With several methods, those that one finds and another misses have turns too.
    """
    queues: list[Queue] = []
    for result in results:
        objects = result.evaluation.objects
        queues += [(result, iter(keys)) for keys in _by_size(objects, objects["f_mean"].to_numpy())]
    for finder, loser in permutations(results, 2):
        if finder.dataset == loser.dataset:
            both = _found_and_missed(finder, loser)
            lead = both["f_mean"].to_numpy() - both["f_mean_right"].to_numpy()
            queues.append((loser, iter(_keys(both, _lowest_first(-lead)))))
    return _choose("object", queues, count)


def choose_false(results: Sequence[Result], count: int = MAX_ITEMS) -> list[Failure]:
    """Return false objects, the most confident first, from each data set, method and size group."""
    queues: list[Queue] = []
    for result in results:
        predicted = result.evaluation.predicted
        if predicted is not None:
            score = np.where(predicted["false"].to_numpy(), -predicted["mean"].to_numpy(), np.nan)
            queues += [(result, iter(group)) for group in _by_size(predicted, score)]
    chosen = _choose("false", queues, count)
    return [replace(failure, methods=(method,)) for failure in chosen for method in failure.methods]


def choose_images(results: Sequence[Result], metric: str, count: int = MAX_ITEMS) -> list[Failure]:
    """Return the images with the worst score, from each data set and method."""
    queues: list[Queue] = []
    for result in results:
        images = result.evaluation.images
        if metric in images.columns:
            sign = 1 if METRICS[metric].better == "up" else -1
            names = images["image"].gather(_lowest_first(sign * images[metric].to_numpy()))
            queues.append((result, iter([(name, -1) for name in names])))
    return _choose("image", queues, count)


def _choose(kind: Kind, queues: Sequence[Queue], count: int) -> list[Failure]:
    """Take from each queue in turn."""
    chosen: dict[tuple[str, str, int], dict[str, None]] = {}
    while queues and len(chosen) < count:
        remaining = []
        for result, queue in queues:
            key = next(queue, None)
            if key is None or len(chosen) >= count:
                continue
            chosen.setdefault((result.dataset, *key), {})[result.method] = None
            remaining.append((result, queue))
        queues = remaining
    return [Failure(kind, *key, tuple(methods)) for key, methods in chosen.items()]


def _in_turns(lists: Mapping[Kind, Sequence[Failure]]) -> Iterator[Failure]:
    queues = {kind: iter(failures) for kind, failures in lists.items()}
    while queues:
        for kind in _TURNS:
            failure = next(queues[kind], None) if kind in queues else None
            if failure is not None:
                yield failure
            else:
                queues.pop(kind, None)


def _affordable(
    failures: Iterable[Failure], tables: "Mapping[tuple[str, str], _Tables]", n_methods: int
) -> list[Failure]:
    """The first failures, as long as the page does not become too large, or reading takes too long."""
    chosen: list[Failure] = []
    images: set[tuple[str, str]] = set()
    size = 0
    for failure in failures:
        table = tables[failure.dataset, failure.methods[0]]
        images.add((failure.dataset, failure.image))
        size += expected_bytes(table.window(failure), n_methods)
        files = len(images) * (n_methods + 2)
        if len(chosen) >= MAX_ITEMS or (chosen and (size > MAX_BYTES or files > MAX_FILES)):
            break
        chosen.append(failure)
    return chosen


def _pictures(
    failures: Sequence[Failure], tables: "Mapping[tuple[str, str], _Tables]", cropper: Cropper
) -> dict[Failure, dict[str, Any]]:
    """Pictures of failures; each image is read once."""
    by_image: dict[tuple[str, str], list[Failure]] = {}
    for failure in failures:
        by_image.setdefault((failure.dataset, failure.image), []).append(failure)

    def crop(key: tuple[str, str]) -> list[dict[str, Any]]:
        group = by_image[key]
        windows = [tables[f.dataset, f.methods[0]].window(f) for f in group]
        return cropper.crop(*key, windows, tables[key[0], group[0].methods[0]].shape(key[1]))

    pictures: dict[Failure, dict[str, Any]] = {}
    with (
        progress_bar("failures", len(by_image)) as advance,
        ThreadPoolExecutor(_THREADS) as pool,  # decoding and encoding let other threads run
    ):
        for group, crops in zip(by_image.values(), pool.map(crop, by_image), strict=True):
            pictures |= dict(zip(group, crops, strict=True))
            advance(1)
    return pictures


def _within_limit(items: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The first items, as long as their pictures together stay below the limit."""
    used = 0
    for item in items:
        used += sum(len(text) for text in item["pictures"].values())
        if used > MAX_BYTES:
            return
        yield item


def _found_and_missed(finder: Result, loser: Result) -> "pl.DataFrame":
    """The rows of objects that one method finds and the other, on the right, misses."""
    columns = ["image", "index", "recall_binary", "f_mean", "share"]
    found, missed = (result.evaluation.objects.select(columns) for result in (finder, loser))
    return found.filter(found["recall_binary"] >= FOUND).join(
        missed.filter(missed["recall_binary"] < FOUND), on=["image", "index"], maintain_order="left"
    )


def _by_size(table: "pl.DataFrame", score: NDArray[np.float64]) -> list[list[Key]]:
    """Keys of the rows of a table by size group, the lowest score first; none where it is NaN."""
    group = group_of(table["share"].to_numpy(), size_edges("log"))
    order = _lowest_first(score)
    numbers = np.unique(group[order][group[order] >= 0])
    return [_keys(table, order[group[order] == number][:MAX_ITEMS]) for number in numbers]


def _keys(table: "pl.DataFrame", rows: NDArray[np.intp]) -> list[Key]:
    return list(zip(table["image"].gather(rows), table["index"].gather(rows), strict=True))


def _lowest_first(score: NDArray[np.float64]) -> NDArray[np.intp]:
    """Indices of the defined values, in increasing order."""
    order = np.argsort(score, kind="stable")  # NaN last
    return np.asarray(order[~np.isnan(score[order])])


class _Tables:
    """Rows of a result's tables by image and index."""

    def __init__(self, result: Result) -> None:
        evaluation = result.evaluation
        self.evaluation = evaluation
        self.images = {name: row for row, name in enumerate(evaluation.images["image"].to_list())}
        self.objects = _row_numbers(evaluation.objects)
        self.predicted = {} if evaluation.predicted is None else _row_numbers(evaluation.predicted)

    def shape(self, image: str) -> tuple[int, int]:
        images, row = self.evaluation.images, self.images[image]
        return int(images["height"][row]), int(images["width"][row])

    def window(self, failure: Failure) -> Window:
        """The part of the image that is shown."""
        height, width = shape = self.shape(failure.image)
        if failure.kind == "image":
            return slice(0, height), slice(0, width)
        return crop_window(self.row(failure) or {}, shape)

    def row(self, failure: Failure) -> dict[str, Any] | None:
        """The row of an object, or of a false object."""
        false = failure.kind == "false"
        numbers = self.predicted if false else self.objects
        table = self.evaluation.predicted if false else self.evaluation.objects
        number = numbers.get((failure.image, failure.index))
        return None if number is None or table is None else table.row(number, named=True)


def _row_numbers(table: Any) -> dict[Key, int]:
    keys = zip(table["image"].to_list(), table["index"].to_list(), strict=True)
    return {key: row for row, key in enumerate(keys)}


def _item(
    failure: Failure, tables: Mapping[tuple[str, str], _Tables], methods: Sequence[str], metric: str
) -> dict[str, Any]:
    """The data of a failure for the script, without its pictures."""
    table = tables[failure.dataset, failure.methods[0]]
    item: dict[str, Any] = {
        "kind": failure.kind,
        "dataset": failure.dataset,
        "image": failure.image,
        "index": failure.index,
        "shape": list(table.shape(failure.image)),
        "worst_of": [methods.index(method) for method in failure.methods],
    }
    results = {
        number: tables[failure.dataset, method]
        for number, method in enumerate(methods)
        if (failure.dataset, method) in tables
    }
    if failure.kind == "image":
        image_scores = {
            number: rounded([one.evaluation.images[metric][one.images[failure.image]]])
            for number, one in results.items()
            if failure.image in one.images and metric in one.evaluation.images.columns
        }
        return item | {"scores": image_scores}
    row = table.row(failure)
    assert row is not None  # noqa: S101  (it was chosen from this table)
    item |= {
        "frame": [row["x0"], row["y0"], row["x1"], row["y1"]],
        "box": _box_in_window(row, table.window(failure)),
        "share": row["share"],
        "group": int(group_of(np.array([row["share"]]), size_edges("log"))[0]),
    }
    if failure.kind == "false":
        others = {n: t for n, t in results.items() if n not in item["worst_of"]}
        also = [n for n, t in others.items() if _invents_at(t, failure.image, row)]
        return item | {"also": also, "mean": round(row["mean"], 4)}
    rows = {number: one.row(failure) for number, one in results.items()}
    scores = {n: rounded((r["f_mean"], r["recall_binary"])) for n, r in rows.items() if r is not None}
    missed = [n for n, (_, recall) in scores.items() if recall is not None and recall < FOUND]
    return item | {"scores": scores, "missed": missed}


def _invents_at(table: _Tables, image: str, row: Mapping[str, Any]) -> bool:
    """Say whether a method has a false object whose box overlaps that of a row."""
    predicted, number = table.evaluation.predicted, 0
    while predicted is not None and (at := table.predicted.get((image, number))) is not None:
        other = predicted.row(at, named=True)
        if (
            other["false"]
            and min(other["y1"], row["y1"]) > max(other["y0"], row["y0"])
            and min(other["x1"], row["x1"]) > max(other["x0"], row["x0"])
        ):
            return True
        number += 1
    return False


def _box_in_window(row: Mapping[str, Any], window: Window) -> list[float]:
    """Left, top, width and height of a box, as shares of a window."""
    rows, columns = window
    height, width = rows.stop - rows.start, columns.stop - columns.start
    box = [
        (row["x0"] - columns.start) / width,
        (row["y0"] - rows.start) / height,
        (row["x1"] - row["x0"]) / width,
        (row["y1"] - row["y0"]) / height,
    ]
    return [round(value, 4) for value in box]


def _image_score(results: Sequence[Result]) -> str:
    """The metric that ranks images."""
    columns = [set(result.evaluation.images.columns) for result in results]
    ranking = [key for key, metric in METRICS.items() if metric.better != "none"]
    candidates = (*_IMAGE_SCORES, *ranking)
    return next((key for key in candidates if all(key in names for names in columns)), "mae")


def _totals(
    results: Sequence[Result], dataset: str, methods: Sequence[str], metric: str
) -> dict[int, dict[str, Any]]:
    """How many failures of each list and method there are in the results of a data set.

    Numbers by size group of objects, of missed ones, of false ones and, for each other method, of those
    that only it finds; and the number of images with a score.
    """
    group = {methods.index(result.method): result for result in results if result.dataset == dataset}
    totals = {}
    for number, result in group.items():
        objects, predicted = result.evaluation.objects, result.evaluation.predicted
        others = {other: finder for other, finder in group.items() if other != number}
        totals[number] = {
            "objects": _count_sizes(objects),
            "missed": _count_sizes(objects.filter(objects["recall_binary"] < FOUND)),
            "false": [] if predicted is None else _count_sizes(predicted.filter(predicted["false"])),
            "differ": {o: _count_sizes(_found_and_missed(f, result)) for o, f in others.items()},
            "images": result.evaluation.defined.get(metric, 0),
        }
    return totals


def _count_sizes(table: "pl.DataFrame") -> list[int]:
    """Number of rows in each size group."""
    edges = size_edges("log")
    group = group_of(table["share"].to_numpy(), edges)
    return [int(count) for count in np.bincount(group[group >= 0], minlength=len(edges) - 1)]

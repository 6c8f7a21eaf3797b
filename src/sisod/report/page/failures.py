"""Failures: objects that are missed, false objects and the worst images, with pictures."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice, pairwise, permutations
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sisod.analysis.groups import FOUND, group_of, size_edges, size_label
from sisod.common.streams import progress_bar
from sisod.evaluation.result import Evaluation
from sisod.evaluation.results import Result, datasets_of, methods_of
from sisod.report.page.charts import rounded
from sisod.report.page.pictures import SIDE, Cropper, Window, crop_window
from sisod.scoring.metrics import METRICS

if TYPE_CHECKING:
    import polars as pl

MAX_ITEMS = 400
MAX_BYTES = 2_700_000  # of all pictures in base64: the page of five methods stays below 4 MB
MAX_FILES = 2200  # that are read, which takes about a millisecond each
_THREADS = 4  # that read files
Kind = Literal["object", "false", "image"]
# the score that ranks whole images: the first that every result has
_IMAGE_SCORES = ("si_f_mean", "f_mean", "si_mae", "mae")


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
    """Return the failures with their pictures for the page's script, and warnings.

    Args:
        results: saved results.
        image_roots: data set -> folder of its photographs.
        fetch: whether to read maps from URLs too.

    Returns:
        The names of `methods`, each run of several seeds by itself, and of the size `groups`, the
        longer `side` of pictures, the `image_score` that ranks images, the `totals` of each list in the
        results, `photos` of whole images by data set and name, and `items`: every failure with its
        scores, place and pictures; and sentences about files that cannot be shown.
    """
    methods = methods_of(results)
    metric = _image_score(results)
    rows = {(result.dataset, result.method): _Rows(result.evaluation, metric) for result in results}
    lists = (choose_objects(results), choose_false(results), choose_images(results, metric))
    # three objects and three false objects to an image
    turns = [
        (place / of, one)
        for of, members in zip((3, 3, 1), lists, strict=True)
        for place, one in enumerate(members)
    ]
    chosen = _readable((one for _, one in sorted(turns, key=itemgetter(0))), len(methods))
    cropper = Cropper(results, image_roots, fetch=fetch)
    pictures, wholes = _pictures(chosen, rows, cropper)
    kept: list[Failure] = []
    photos: dict[str, dict[str, Any]] = {name: {} for name in datasets_of(results)}
    used = 0
    for failure in chosen:
        of_dataset, whole = photos[failure.dataset], wholes[failure.dataset, failure.image]
        used += sum(map(len, pictures[failure]["pictures"].values()))
        used += len(whole["picture"]) if failure.image not in of_dataset else 0
        if used > MAX_BYTES:
            break
        kept.append(failure)
        of_dataset[failure.image] = whole
    data = {
        "methods": methods,
        "groups": [size_label(low, high) for low, high in pairwise(size_edges("log").tolist())],
        "side": SIDE,
        "image_score": {"title": METRICS[metric].title, "better": METRICS[metric].better},
        "totals": {name: _totals(results, name, methods, metric) for name in datasets_of(results)},
        "photos": photos,
        "items": [_item(failure, rows, methods) | pictures[failure] for failure in kept],
    }
    return data, cropper.notes()


def choose_objects(results: Sequence[Result], count: int = MAX_ITEMS) -> list[Failure]:
    """Return the worst objects, taken in turn from each data set, method, size group and error class.

    With several methods, those that one finds and another misses have turns too.

    Args:
        results: saved results.
        count: of failures, at most.
    """
    import polars as pl

    queues = [
        (result, part)
        for result in results
        for part in (
            *_by_size(result.evaluation.objects, pl.col("f_mean")),
            *_by_error(result.evaluation.objects),
        )
    ]
    for finder, loser in permutations(results, 2):
        if finder.dataset == loser.dataset:
            both = _found_and_missed(finder, loser)
            queues.append((loser, _lowest_first(both, pl.col("f_mean_right") - pl.col("f_mean"))))
    return _choose("object", queues, count)


def choose_false(results: Sequence[Result], count: int = MAX_ITEMS) -> list[Failure]:
    """Return false objects, the most confident first, from each data set, method and size group.

    Args:
        results: saved results; those without predicted objects add nothing.
        count: of failures, at most.
    """
    import polars as pl

    queues = [
        (result, part)
        for result in results
        if result.evaluation.predicted is not None
        for part in _by_size(result.evaluation.predicted.filter("false"), -pl.col("mean"))
    ]
    chosen = _choose("false", queues, count)
    return [replace(failure, methods=(method,)) for failure in chosen for method in failure.methods]


def choose_images(results: Sequence[Result], metric: str, count: int = MAX_ITEMS) -> list[Failure]:
    """Return the images with the worst score, from each data set and method.

    Args:
        results: saved results.
        metric: key of the score.
        count: of failures, at most.
    """
    import polars as pl

    sign = 1 if METRICS[metric].better == "up" else -1
    queues = [
        (result, _lowest_first(images.with_columns(index=-1), sign * pl.col(metric)))
        for result in results
        if metric in (images := result.evaluation.images).columns
    ]
    return _choose("image", queues, count)


def _by_size(table: "pl.DataFrame", score: "pl.Expr") -> "list[pl.DataFrame]":
    """The rows of each size group, the lowest score first."""
    import polars as pl

    group = pl.Series("group", group_of(table["share"].to_numpy(), size_edges("log")))
    ranked = _lowest_first(table.with_columns(group).filter(group >= 0), score)
    return ranked.sort("group", maintain_order=True).partition_by("group", maintain_order=True)


def _by_error(objects: "pl.DataFrame") -> "list[pl.DataFrame]":
    """The objects of each error class but the correct ones, the worst first; none without classes."""
    import polars as pl

    if "error" not in objects.columns:
        return []
    wrong = _lowest_first(objects.filter(pl.col("error") != "correct"), pl.col("f_mean"))
    return wrong.sort("error", maintain_order=True).partition_by("error", maintain_order=True)


def _lowest_first(table: "pl.DataFrame", score: "pl.Expr") -> "pl.DataFrame":
    """The rows in which a score is defined, in increasing order."""
    ranked = table.with_columns(score=score).sort("score", maintain_order=True)
    return ranked.filter(ranked["score"].is_not_nan())


def _choose(kind: Kind, queues: "Sequence[tuple[Result, pl.DataFrame]]", count: int) -> list[Failure]:
    """Take from each queue in turn."""
    import polars as pl

    key = ("dataset", "image", "index")
    parts = [
        table.select(
            "image", "index", dataset=pl.lit(result.dataset), method=pl.lit(result.method),
            turn=pl.int_range(pl.len()), queue=pl.lit(number),
        )
        for number, (result, table) in enumerate(queues)
    ]  # fmt: skip
    if not parts:
        return []
    taken = pl.concat(parts).sort("turn", "queue")
    n_before = pl.struct(key).is_first_distinct().cum_sum().shift(1, fill_value=0)
    chosen = taken.filter(n_before < count).group_by(key, maintain_order=True)
    rows = chosen.agg(pl.col("method").unique(maintain_order=True)).iter_rows()
    return [Failure(kind, name, image, index, tuple(methods)) for name, image, index, methods in rows]


class _Rows:
    """Rows of a result's tables: by image, by image and index, and false objects by image."""

    def __init__(self, evaluation: Evaluation, metric: str) -> None:
        box = ("image", "index", "x0", "y0", "x1", "y1", "share")
        names = [
            name for name in ("image", "height", "width", metric) if name in evaluation.images.columns
        ]
        self.images = evaluation.images.select(names).rows_by_key("image", named=True, unique=True)
        self.scores = {image: row[metric] for image, row in self.images.items() if metric in row}
        error = [name for name in evaluation.objects.columns if name == "error"]
        objects = evaluation.objects.select(*box, "f_mean", "recall_binary", *error)
        self.objects = objects.rows_by_key(["image", "index"], named=True, unique=True)
        self.false: dict[str, list[dict[str, Any]]] = {}
        if evaluation.predicted is not None:
            predicted = evaluation.predicted.filter("false").select(*box, "mean")
            self.false = predicted.rows_by_key("image", named=True)

    def shape(self, image: str) -> tuple[int, int]:
        return self.images[image]["height"], self.images[image]["width"]

    def row(self, failure: Failure) -> dict[str, Any]:
        """The row of an object, or of a false object."""
        if failure.kind == "object":
            return self.objects[failure.image, failure.index]
        return next(row for row in self.false[failure.image] if row["index"] == failure.index)

    def window(self, failure: Failure) -> Window:
        """The part of the image that is shown."""
        height, width = shape = self.shape(failure.image)
        if failure.kind == "image":
            return slice(0, height), slice(0, width)
        return crop_window(self.row(failure), shape)


Rows = Mapping[tuple[str, str], _Rows]  # of each data set and method


def _readable(failures: Iterable[Failure], n_methods: int) -> list[Failure]:
    """The first failures, as long as reading their files does not take too long."""
    chosen: list[Failure] = []
    images: set[tuple[str, str]] = set()
    for failure in islice(failures, MAX_ITEMS):
        images.add((failure.dataset, failure.image))
        if chosen and len(images) * (n_methods + 2) > MAX_FILES:
            break
        chosen.append(failure)
    return chosen


def _pictures(
    failures: Sequence[Failure], rows: Rows, cropper: Cropper
) -> tuple[dict[Failure, dict[str, Any]], dict[tuple[str, str], dict[str, Any]]]:
    """Pictures of failures, and of the whole images; each image is read once."""
    by_image: dict[tuple[str, str], list[Failure]] = {}
    for failure in failures:
        by_image.setdefault((failure.dataset, failure.image), []).append(failure)

    def crop(key: tuple[str, str]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        windows = [rows[one.dataset, one.methods[0]].window(one) for one in by_image[key]]
        first = by_image[key][0]
        return cropper.crop(*key, windows, rows[first.dataset, first.methods[0]].shape(first.image))

    pictures: dict[Failure, dict[str, Any]] = {}
    wholes: dict[tuple[str, str], dict[str, Any]] = {}
    with (
        progress_bar("failures", len(by_image)) as advance,
        ThreadPoolExecutor(_THREADS) as pool,  # decoding and encoding let other threads run
    ):
        for (key, group), (crops, whole) in zip(by_image.items(), pool.map(crop, by_image), strict=True):
            pictures |= dict(zip(group, crops, strict=True))
            wholes[key] = whole
            advance(1)
    return pictures, wholes


def _item(failure: Failure, rows: Rows, methods: Sequence[str]) -> dict[str, Any]:
    """The data of a failure for the script, without its pictures."""
    own = rows[failure.dataset, failure.methods[0]]
    down, across = own.window(failure)
    item: dict[str, Any] = {
        "kind": failure.kind,
        "dataset": failure.dataset,
        "image": failure.image,
        "index": failure.index,
        "shape": list(own.shape(failure.image)),
        "window": [across.start, down.start, across.stop, down.stop],
        "worst_of": [methods.index(method) for method in failure.methods],
    }
    keys = ((number, (failure.dataset, method)) for number, method in enumerate(methods))
    every = {number: rows[key] for number, key in keys if key in rows}
    if failure.kind == "image":
        known = {n: one.scores[failure.image] for n, one in every.items() if failure.image in one.scores}
        return item | {"scores": {number: rounded([score]) for number, score in known.items()}}
    row = own.row(failure)
    item |= {
        "frame": [row[end] for end in ("x0", "y0", "x1", "y1")],
        "share": row["share"],
        "group": int(group_of(np.array([row["share"]]), size_edges("log"))[0]),
    }
    if failure.kind == "false":
        others = {n: one.false.get(failure.image, ()) for n, one in every.items()}
        also = [n for n, boxes in others.items() if any(_overlap(box, row) for box in boxes)]
        also = [number for number in also if number not in item["worst_of"]]
        return item | {"also": also, "mean": round(row["mean"], 4)}
    found = {n: one.objects.get((failure.image, failure.index)) for n, one in every.items()}
    objects = {n: one for n, one in found.items() if one is not None}
    return item | {
        "scores": {n: rounded((one["f_mean"], one["recall_binary"])) for n, one in objects.items()},
        "missed": [n for n, one in objects.items() if one["recall_binary"] < FOUND],
        "errors": {n: one["error"] for n, one in objects.items() if "error" in one},
    }


def _overlap(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Say whether two boxes have a pixel in common."""
    return all(min(a[f"{x}1"], b[f"{x}1"]) > max(a[f"{x}0"], b[f"{x}0"]) for x in "xy")


def _found_and_missed(finder: Result, loser: Result) -> "pl.DataFrame":
    """The rows of objects that one method finds and the other, on the right, misses."""
    columns = ["image", "index", "recall_binary", "f_mean", "share"]
    found, missed = (result.evaluation.objects.select(columns) for result in (finder, loser))
    return found.filter(found["recall_binary"] >= FOUND).join(
        missed.filter(missed["recall_binary"] < FOUND), on=["image", "index"], maintain_order="left"
    )


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
    that only it finds; the number of images with a score; and objects of each error class by size.
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
            "errors": {part["error"][0]: _count_sizes(part) for part in _by_error(objects)},
        }
    return totals


def _count_sizes(table: "pl.DataFrame") -> list[int]:
    """Number of rows in each size group."""
    edges = size_edges("log")
    group = group_of(table["share"].to_numpy(), edges)
    return [int(count) for count in np.bincount(group[group >= 0], minlength=len(edges) - 1)]

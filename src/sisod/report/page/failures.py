"""Failures: objects that are missed, false objects and the worst images, with pictures."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import permutations
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sisod.analysis.groups import FOUND, group_of, size_columns, size_edges
from sisod.common.streams import progress_bar
from sisod.evaluation.result import Evaluation
from sisod.evaluation.results import Result, datasets_of, methods_of
from sisod.report.page.charts import rounded
from sisod.report.page.pictures import SIDE, Cropper, crop_window
from sisod.scoring.metrics import METRICS

if TYPE_CHECKING:
    import polars as pl

MAX_ITEMS = 400
MAX_BYTES = 2_700_000  # of all pictures in base64: the page of five methods stays below 4 MB
MAX_FILES = 2200  # that are read, which takes about a millisecond each
_THREADS = 4  # that read files
_BOX = ("x0", "y0", "x1", "y1")
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
        box: its bounding box, x0, y0, x1, y1.
        share: of the image that it covers.
        methods: for which it was chosen.
    """

    kind: Kind
    dataset: str
    image: str
    index: int
    box: tuple[int, int, int, int]
    share: float
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
        longer `side` of pictures, the `image_score` that ranks images, `photos` of whole images by data
        set and name, and `items`: every failure with its scores, place and pictures; and sentences
        about files that cannot be shown.
    """
    methods = methods_of(results)
    columns = [set(result.evaluation.images.columns) for result in results]
    metric = next((key for key in _IMAGE_SCORES if all(key in names for names in columns)), "mae")
    rows = {(result.dataset, result.method): _Rows(result.evaluation, metric) for result in results}
    lists = (choose_objects(results), choose_false(results), choose_images(results, metric))
    # three objects and three false objects to an image
    turns = [
        (place / of, one)
        for of, members in zip((3, 3, 1), lists, strict=True)
        for place, one in enumerate(members)
    ]
    # at worst every failure is in another image, of which photograph, mask and maps are read
    count = max(1, min(MAX_ITEMS, MAX_FILES // (len(methods) + 2)))
    chosen = [one for _, one in sorted(turns, key=itemgetter(0))][:count]
    cropper = Cropper(results, image_roots, fetch=fetch)
    pictures, wholes = _pictures(chosen, rows, cropper)
    items: list[dict[str, Any]] = []
    photos: dict[str, dict[str, Any]] = {name: {} for name in datasets_of(results)}
    used = 0
    for failure in chosen:
        of_dataset, whole = photos[failure.dataset], wholes[failure.dataset, failure.image]
        used += sum(map(len, pictures[failure]["pictures"].values()))
        used += len(whole["picture"]) if failure.image not in of_dataset else 0
        if used > MAX_BYTES:
            break
        items.append(_item(failure, rows, methods) | pictures[failure])
        of_dataset[failure.image] = whole
    data = {
        "methods": methods,
        "groups": size_columns(size_edges("log"))["group"],
        "side": SIDE,
        "image_score": {"title": METRICS[metric].title, "better": METRICS[metric].better},
        "photos": photos,
        "items": items,
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

    queues = []
    for result in results:
        objects = result.evaluation.objects
        parts = _by_size(objects, pl.col("f_mean"))
        if "error" in objects.columns:
            wrong = _lowest_first(objects.filter(pl.col("error") != "correct"), pl.col("f_mean"))
            parts += wrong.sort("error", maintain_order=True).partition_by("error", maintain_order=True)
        queues += [(result, part) for part in parts]
    recall = pl.col("recall_binary")
    for finder, loser in permutations(results, 2):
        if finder.dataset == loser.dataset:
            found, missed = (result.evaluation.objects for result in (finder, loser))
            both = missed.filter(recall < FOUND).join(
                found.filter(recall >= FOUND).select("image", "index", better="f_mean"),
                on=["image", "index"],
                maintain_order="right",
            )
            queues.append((loser, _lowest_first(both, pl.col("f_mean") - pl.col("better"))))
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
    return _choose("false", queues, count)


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
        (
            result,
            _lowest_first(
                images.with_columns(index=-1, x0=0, y0=0, x1="width", y1="height", share=1.0),
                sign * pl.col(metric),
            ),
        )
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


def _lowest_first(table: "pl.DataFrame", score: "pl.Expr") -> "pl.DataFrame":
    """The rows in which a score is defined, in increasing order."""
    ranked = table.with_columns(score=score).sort("score", maintain_order=True)
    return ranked.filter(ranked["score"].is_not_nan())


def _choose(kind: Kind, queues: "Sequence[tuple[Result, pl.DataFrame]]", count: int) -> list[Failure]:
    """Take from each queue in turn."""
    import polars as pl

    if not queues:
        return []
    parts = [
        table.select(
            "image", "index", "share", pl.concat_list(*_BOX).alias("box"),
            dataset=pl.lit(result.dataset), method=pl.lit(result.method),
            turn=pl.int_range(pl.len()), queue=pl.lit(number),
        )
        for number, (result, table) in enumerate(queues)
    ]  # fmt: skip
    # an object is the same one for every method, a false object is not
    key = ["dataset", "image", "index"] + ["method"] * (kind == "false")
    taken = pl.concat(parts, how="vertical_relaxed").sort("turn", "queue")
    chosen = taken.group_by(key, maintain_order=True).agg(
        pl.col("box", "share").first(), methods=pl.col("method").unique(maintain_order=True)
    )
    rows = chosen.head(count).select("dataset", "image", "index", "box", "share", "methods").iter_rows()
    return [
        Failure(kind, dataset, image, index, tuple(box), share, tuple(methods))
        for dataset, image, index, box, share, methods in rows
    ]


class _Rows:
    """Rows of a result's tables: by image, by image and index, and false objects by image."""

    def __init__(self, evaluation: Evaluation, metric: str) -> None:
        images, objects, predicted = evaluation.images, evaluation.objects, evaluation.predicted
        shapes = images.select("image", "height", "width").iter_rows()
        self.shapes = {image: (height, width) for image, height, width in shapes}
        has_score = metric in images.columns
        self.scores = dict(images.select("image", metric).iter_rows()) if has_score else {}
        error = [name for name in objects.columns if name == "error"]
        columns = objects.select("image", "index", "f_mean", "recall_binary", *error)
        self.objects = columns.rows_by_key(["image", "index"], named=True, unique=True)
        self.false: dict[str, list[dict[str, Any]]] = {}
        if predicted is not None:
            false = predicted.filter("false").select("image", "index", *_BOX, "mean")
            self.false = false.rows_by_key("image", named=True)


Rows = Mapping[tuple[str, str], _Rows]  # of each data set and method


def _pictures(
    failures: Sequence[Failure], rows: Rows, cropper: Cropper
) -> tuple[dict[Failure, dict[str, Any]], dict[tuple[str, str], dict[str, Any]]]:
    """Pictures of failures, and of the whole images; each image is read once."""
    by_image: dict[tuple[str, str], list[Failure]] = {}
    for failure in failures:
        by_image.setdefault((failure.dataset, failure.image), []).append(failure)

    def crop(group: Sequence[Failure]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        first = group[0]
        shape = rows[first.dataset, first.methods[0]].shapes[first.image]
        windows = [crop_window(failure.box, shape) for failure in group]
        return cropper.crop(first.dataset, first.image, windows, shape)

    pictures: dict[Failure, dict[str, Any]] = {}
    wholes: dict[tuple[str, str], dict[str, Any]] = {}
    with (
        progress_bar("failures", len(by_image)) as advance,
        ThreadPoolExecutor(_THREADS) as pool,  # decoding and encoding let other threads run
    ):
        done = zip(by_image.items(), pool.map(crop, by_image.values()), strict=True)
        for (key, group), (crops, whole) in done:
            pictures |= dict(zip(group, crops, strict=True))
            wholes[key] = whole
            advance(1)
    return pictures, wholes


def _item(failure: Failure, rows: Rows, methods: Sequence[str]) -> dict[str, Any]:
    """The data of a failure for the script, without its pictures."""
    every = {
        number: rows[failure.dataset, method]
        for number, method in enumerate(methods)
        if (failure.dataset, method) in rows
    }
    own = [methods.index(method) for method in failure.methods]
    shape = every[own[0]].shapes[failure.image]
    down, across = crop_window(failure.box, shape)
    item: dict[str, Any] = {
        "kind": failure.kind,
        "dataset": failure.dataset,
        "image": failure.image,
        "index": failure.index,
        "shape": shape,
        "window": [across.start, down.start, across.stop, down.stop],
        "worst_of": own,
    }
    if failure.kind == "image":
        known = {n: one.scores[failure.image] for n, one in every.items() if failure.image in one.scores}
        return item | {"scores": {n: rounded([score]) for n, score in known.items()}}
    (group,) = group_of(np.array([failure.share]), size_edges("log")).tolist()
    item |= {"frame": failure.box, "share": failure.share, "group": group}
    if failure.kind == "false":
        false = {number: one.false.get(failure.image, ()) for number, one in every.items()}
        (mean,) = (row["mean"] for row in false[own[0]] if row["index"] == failure.index)
        also = [n for n, boxes in false.items() if n not in own and _overlaps(failure.box, boxes)]
        return item | {"also": also, "mean": round(mean, 4)}
    found = {n: one.objects.get((failure.image, failure.index)) for n, one in every.items()}
    objects = {n: one for n, one in found.items() if one is not None}
    return item | {
        "scores": {n: rounded((one["f_mean"], one["recall_binary"])) for n, one in objects.items()},
        "missed": [n for n, one in objects.items() if one["recall_binary"] < FOUND],
        "errors": {n: one["error"] for n, one in objects.items() if "error" in one},
    }


def _overlaps(box: tuple[int, int, int, int], rows: Iterable[Mapping[str, Any]]) -> bool:
    """Tell whether a box has a pixel in common with one of several."""
    x0, y0, x1, y1 = box
    return any(row["x0"] < x1 and x0 < row["x1"] and row["y0"] < y1 and y0 < row["y1"] for row in rows)

"""The unit of work of every executor, of saving and of resuming: a batch of pairs, or a pair of shards.

A task gives images, each with two functions that read its files, and `score_task` turns them into the
bytes of Arrow tables. Nobody lists the images of all shards: whoever scores one reads both shards from
beginning to end and pairs their images by name.
"""

import functools
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from sisod.common.arguments import check_utf8
from sisod.common.exceptions import InputError, printable, shorten_list
from sisod.common.output import is_url
from sisod.common.processes import readable_memory_errors
from sisod.data.containers import is_shard, list_members, read_shard, split_root
from sisod.data.files import Shard, StoredFile, file_system, has_image_extension, is_hidden, url_errors
from sisod.data.images import display_path
from sisod.data.pairs import Pair, image_name, pair_files
from sisod.data.storage import list_shards, resolved_root
from sisod.data.truths import (
    BINARY_MASK,
    Truth,
    decode_prediction,
    decode_truth,
    read_prediction,
    read_truth,
)
from sisod.evaluation.request import Request
from sisod.evaluation.rows import Rows, diagnose_pair, pack
from sisod.scoring.arrays import Map, has_grey_area
from sisod.scoring.custom import CustomMetricError, register_metric
from sisod.scoring.engine import find_scorer, without_ignored
from sisod.scoring.scores import Scorer

BATCH = 32  # images; fixed, so that results do not depend on the number of processes
LEAST_SHARDS = 64  # of fewer, a machine with many cores would have too few tasks
FILES, EXTRA = "files", "extra"  # tables of a task: files of the images, predictions without one
_FILE_COLUMNS = ("image", "prediction", "prediction_stamp", "ground_truth", "ground_truth_stamp")


class PairReader(NamedTuple):
    """An image whose two files are read when they are needed, with their names for messages."""

    name: str
    pred: Callable[[], Map]
    gt: Callable[[], Truth]
    pred_label: str
    gt_label: str
    files: tuple[StoredFile, StoredFile] | None = None


@dataclass(frozen=True)
class PairBatch:
    """Pairs of files that are scored together."""

    index: int
    pairs: tuple[Pair, ...]
    extra: Sequence[str] = ()  # the pairing lists the predictions without a ground truth

    @property
    def size(self) -> int:
        """Number of images, for the progress bar."""
        return len(self.pairs)

    def digest(self) -> str:
        """Return a hash of names and stamps of the files."""
        return _hash((p.name, p.pred.path, p.pred.stamp, p.gt.path, p.gt.stamp) for p in self.pairs)

    def images(self, request: Request) -> Iterator[PairReader]:
        """Give the images."""
        pred_root, gt_root, meaning = request.pred_root, request.gt_root, request.meaning
        read_pred = functools.partial(
            read_prediction, gt_root=gt_root, meaning=meaning, class_maps=request.class_maps
        )
        for pair in self.pairs:
            yield PairReader(
                pair.name,
                functools.partial(read_pred, pred_root, pair.pred.path),
                functools.partial(read_truth, gt_root, pair.gt.path, meaning),
                display_path(pred_root, pair.pred.path),
                display_path(gt_root, pair.gt.path),
                (pair.pred, pair.gt),
            )


class ShardPair:
    """A shard of predictions and the shard with their ground truths.

    Predictions that come before their ground truth wait in memory: none if both have the same order.
    """

    def __init__(self, index: int, pred: Shard, gt: Shard) -> None:
        self.index, self.pred, self.gt = index, pred, gt
        self.extra: list[str] = []  # predictions without a ground truth, once all images were given
        self.size = 1  # its images are not known before they are read

    def digest(self) -> str:
        """Return a hash of names and stamps of both files."""
        return _hash([(shard.prefix, shard.stamp) for shard in (self.pred, self.gt)])

    def images(self, request: Request) -> Iterator[PairReader]:
        """Give the images in the order of the ground truths."""
        preds = _images(self.pred, request.pred_root, request.pred_suffix)
        waiting: dict[str, tuple[StoredFile, bytes]] = {}
        meaning = request.meaning
        pred_meaning = meaning if request.class_maps else BINARY_MASK
        for name, gt_file, gt_data in _images(self.gt, request.gt_root, request.gt_suffix):
            check_utf8(gt_file.path, f"{request.gt_root}: the file name")
            while name not in waiting:
                found = next(preds, None)
                if found is None:
                    raise InputError(self._missing_message(request))
                waiting[found[0]] = found[1:]
            pred_file, pred_data = waiting.pop(name)
            pred_label = display_path(request.pred_root, pred_file.path)
            gt_label = display_path(request.gt_root, gt_file.path)
            yield PairReader(
                name,
                functools.partial(decode_prediction, pred_data, pred_label, pred_meaning),
                functools.partial(decode_truth, gt_data, gt_label, meaning),
                pred_label,
                gt_label,
                # the stamp of an image is that of its shard
                (StoredFile(pred_file.path, self.pred.stamp), StoredFile(gt_file.path, self.gt.stamp)),
            )
        unused = [*waiting, *(name for name, _, _ in preds)]
        self.extra = [name.encode(errors="backslashreplace").decode() for name in unused]

    def _missing_message(self, request: Request) -> str:
        expected = _member_names(self.gt, request.gt_suffix)
        missing = sorted(expected - _member_names(self.pred, request.pred_suffix))
        return (
            f"{len(missing)} of {len(expected)} ground truths in {self.gt.file!r} have no prediction "
            f"in {self.pred.file!r} ({shorten_list(missing)}); use --allow-missing to pair the images "
            "of all shards by name and to score those that have a prediction"
        )


Task = PairBatch | ShardPair


@dataclass(frozen=True)
class TaskPlan:
    """All tasks of an evaluation, and images without a partner as far as they are known before."""

    tasks: tuple[Task, ...]
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()

    def digest(self) -> str:
        """Return a hash of everything that is read: other files, or changed ones, have another."""
        return _hash([task.digest() for task in self.tasks])


def _hash(content: Iterable[object]) -> str:
    return hashlib.sha256(repr(list(content)).encode(errors="surrogatepass")).hexdigest()[:16]


def make_plan(request: Request) -> TaskPlan:
    """List the files of both roots and divide them into tasks."""
    if shards := _pair_shards(request):
        return TaskPlan(shards)
    pairing = pair_files(
        request.pred_root,
        request.gt_root,
        pred_suffix=request.pred_suffix,
        gt_suffix=request.gt_suffix,
        names=request.names,
        allow_missing=request.allow_missing,
    )
    starts = range(0, len(pairing.pairs), BATCH)
    batches = (PairBatch(at // BATCH, pairing.pairs[at : at + BATCH]) for at in starts)
    return TaskPlan(tuple(batches), pairing.missing, pairing.extra)


def score_task(request: Request, task: Task) -> bytes:
    """Read and score the images of a task; return its tables as bytes, in any process."""
    import polars as pl

    for metric in request.custom:  # in another process they are not known yet
        register_metric(metric)
    scorer = find_scorer(request.protocol, request.keys, custom=request.custom)
    readers, parts, files = task.images(request), [], []
    with readable_memory_errors():
        while batch := list(islice(readers, BATCH)):
            parts.append(
                score_images(scorer, batch, level=request.protocol.gt_level, strict=request.strict)
            )
            for image in batch:
                if image.files is not None:
                    pred, gt = image.files
                    files.append((image.name, pred.path, pred.stamp, gt.path, gt.stamp))
    tables = Rows.joined(parts).to_tables() if parts else {}
    if files:
        tables[FILES] = pl.DataFrame(files, schema=list(_FILE_COLUMNS), orient="row")
    return pack(tables | {EXTRA: pl.DataFrame({"image": task.extra}, schema={"image": pl.String})})


def score_images(scorer: Scorer[Any], images: Iterable[PairReader], *, level: int, strict: bool) -> Rows:
    """Score images one after the other: the one loop of files, of shards and of tables.

    Args:
        scorer: the way of scoring.
        images: to be read.
        level: a pixel of the ground truth is salient at this value or above.
        strict: raise for predictions of another size instead of resizing them.
    """
    names: list[str] = []
    measured: list[Any] = []
    noticed: list[dict[str, bool]] = []
    for image in images:
        truth = image.gt()
        array = truth.array
        try:
            gt = scorer.ground_truth(array)
        except (ValueError, TypeError) as error:
            raise InputError(f"{image.gt_label}: {error}") from error
        is_grey = has_grey_area(array)  # while it is in the cache
        pred = image.pred()
        noticed.append(diagnose_pair(pred, array, is_grey=is_grey, level=level))
        if noticed[-1]["resized"] and strict:
            raise InputError(
                f"{image.pred_label} has shape {pred.shape} but its ground truth "
                f"{gt.shape}; resize the prediction, or leave out --strict"
            )
        try:
            if truth.ignored is not None:
                pred = without_ignored(pred, truth.ignored)
            measured.append(scorer.measure(pred, gt, labels=truth.labels))
        except CustomMetricError as error:
            raise InputError(f"{image.pred_label}: {error}") from error
        names.append(image.name)
    return Rows.from_scores(names, scorer.finish(measured), noticed)


# ----------------------------------------------------------------------------------------------- shards


def _pair_shards(request: Request) -> tuple[ShardPair, ...]:
    """Pair the shards of two containers by name; none if the images must be listed and paired instead.

    That is so if there are few shards, if their names differ, if the first ones do not hold the same
    images, and if only some images are scored.
    """
    roots = (request.gt_root, request.pred_root)
    if request.names is not None or request.allow_missing or not all(map(_begins_with_shard, roots)):
        return ()
    # resolved, for whoever reads the shards may have another working folder
    gts, preds = ({_key(shard): shard for shard in list_shards(resolved_root(root))} for root in roots)
    if len(gts) < LEAST_SHARDS or preds.keys() != gts.keys():
        return ()
    shards = tuple(ShardPair(index, preds[key], gts[key]) for index, key in enumerate(sorted(gts)))
    expected = _member_names(shards[0].gt, request.gt_suffix)
    if not expected or expected - _member_names(shards[0].pred, request.pred_suffix):
        return ()
    return shards


def _key(shard: Shard) -> str:
    """Return the path of a shard below its root, without the extension."""
    return shard.prefix.rstrip("/").rpartition(".")[0]


def _begins_with_shard(root: str) -> bool:
    """Tell from the first file in a folder whether it may hold shards; a full listing may take long."""
    base, _ = split_root(root)
    if is_shard(base):  # one file
        return False
    with url_errors(base):
        if is_url(base):
            system, path = file_system(base)
            walk = system.walk(path)
        else:
            walk = os.walk(base) if os.path.isdir(base) else iter(())  # noqa: PTH112  (any text)
        for _, _, files in walk:
            names = (name for name in files if is_shard(name) or has_image_extension(name))
            if first := next((name for name in names if not is_hidden(name)), ""):
                return is_shard(first)
    return False


def _member_names(shard: Shard, suffix: str) -> set[str]:
    names = (image_name(member, suffix) for member in list_members(shard))
    return {name for name in names if name is not None}


def _images(shard: Shard, root: str, suffix: str) -> Iterator[tuple[str, StoredFile, bytes]]:
    """Give the images of a shard with their names; raise if a name comes twice."""
    paths: dict[str, str] = {}
    try:
        for file, data in read_shard(shard):
            name = image_name(file, suffix)
            if name is None:
                continue
            if name in paths:
                raise InputError(
                    f"{root!r} has two files for the image {name!r}: {paths[name]!r} and {file.path!r}; "
                    "keep one of them"
                )
            paths[name] = file.path
            yield name, file, data
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{printable(shard.file)!r} cannot be read: {reason}") from error

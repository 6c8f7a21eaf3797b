"""Shards of containers as the unit of work: nobody lists the images of all shards, in any process.

A task is a shard of ground truths and the shard of predictions with the same name. Whoever scores it
reads both from beginning to end, pairs their images by name, and answers with the rows and the places of
the images. A root with fewer shards is listed and divided into batches of images, like a folder.
"""

import dataclasses
import functools
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sisod.common.arguments import check_utf8
from sisod.common.errors import InputError, printable, shorten_list
from sisod.common.folders import is_url
from sisod.data.containers import Shard, is_shard, list_members, read_shard, split_root
from sisod.data.images import where
from sisod.data.pairs import image_name
from sisod.data.storage import list_shards, resolved_root
from sisod.data.stored_file import StoredFile, has_image_extension, is_system_file
from sisod.data.truths import PLAIN, decode_prediction, decode_truth
from sisod.data.urls import file_system, url_errors
from sisod.evaluation.batches import BATCH, PairReader, score_batch, score_readers
from sisod.evaluation.request import Request
from sisod.evaluation.rows import Rows
from sisod.scoring.engine import find_scorer

if TYPE_CHECKING:
    import polars as pl

LEAST_SHARDS = 64  # of fewer, a machine with many cores would have too few tasks
N_EXTRA = 4  # names of predictions without a ground truth that are kept


@dataclass(frozen=True)
class ShardPair:
    """A shard of predictions and the shard with their ground truths."""

    index: int
    pred: Shard
    gt: Shard

    def message(self) -> dict[str, Any]:
        """Return plain data for the process that scores the shard."""
        return {"pred": dataclasses.asdict(self.pred), "gt": dataclasses.asdict(self.gt)}


@dataclass(frozen=True)
class ShardPairing:
    """All pairs of shards, in the order of the names of their files."""

    shards: tuple[ShardPair, ...]


def pair_shards(request: Request) -> ShardPairing | None:
    """Pair the shards of two containers by name; None if the images must be listed and paired instead.

    That is so if there are few shards, if their names differ, if the first ones do not hold the same
    images, and if only some images are scored.
    """
    if request.names is not None or request.allow_missing:
        return None
    roots = (request.gt_root, request.pred_root)
    if not all(map(_begins_with_shard, roots)):
        return None
    # resolved, for whoever reads the shards may have another working folder
    gts, preds = ({_key(shard): shard for shard in list_shards(resolved_root(root))} for root in roots)
    if len(gts) < LEAST_SHARDS or preds.keys() != gts.keys():
        return None
    shards = tuple(ShardPair(index, preds[key], gts[key]) for index, key in enumerate(sorted(gts)))
    first = shards[0]
    expected = _member_names(first.gt, request.gt_suffix)
    if not expected or expected - _member_names(first.pred, request.pred_suffix):
        return None
    return ShardPairing(shards)


def _key(shard: Shard) -> str:
    """Return the path of a shard below its root, without the extension."""
    return shard.prefix.rstrip("/").rpartition(".")[0]


def _begins_with_shard(root: str) -> bool:
    """Tell from the first file in a folder whether it may hold shards; a full listing may take long."""
    base, _ = split_root(root)
    if is_shard(base):  # one file
        return False
    if is_url(base):
        with url_errors(base):
            system, path = file_system(base)
            names = (name for _, _, files in system.walk(path) for name in files)
            first = next(filter(_is_content, names), "")
    else:
        first = _first_file(Path(base))
    return is_shard(first)


def _is_content(name: str) -> bool:
    return (is_shard(name) or has_image_extension(name)) and not is_system_file(name)


def _first_file(folder: Path) -> str:
    """Return the first image or shard in a folder or below, "" if there is none."""
    below = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    below.append(Path(entry.path))
                elif _is_content(entry.name):
                    return entry.name
    except (OSError, ValueError):  # whoever lists the folder says so
        return ""
    return next(filter(None, map(_first_file, sorted(below))), "")


def _member_names(shard: Shard, suffix: str) -> set[str]:
    names = (image_name(member, suffix) for member in list_members(shard))
    return {name for name in names if name is not None}


# scoring, in any process


def score_task(request: Request, message: Any) -> bytes:
    """Score a batch of pairs, or a pair of shards, of which a message tells."""
    if isinstance(message, dict):
        return score_shard(request, Shard(**message["pred"]), Shard(**message["gt"]))
    return score_batch(request, message).to_bytes()


def score_shard(request: Request, pred: Shard, gt: Shard) -> bytes:
    """Read and score the images of a shard; return the bytes of a `ShardAnswer`."""
    scorer = find_scorer(request.protocol, request.keys, custom=request.custom)
    shard = _PairedShard(request, pred, gt)
    readers, parts = shard.readers(), []
    while batch := list(islice(readers, BATCH)):
        parts.append(
            score_readers(scorer, batch, level=request.protocol.gt_level, strict=request.strict)
        )
    extra = shard.extra()
    rows = Rows.joined(parts) if parts else None
    answer = ShardAnswer(rows, shard.pred_paths, shard.gt_paths, len(extra), extra[:N_EXTRA])
    return answer.to_bytes()


class _PairedShard:
    """Reads two shards side by side and pairs their images.

    Predictions that come before their ground truth wait in memory: none if both have the same order.
    """

    def __init__(self, request: Request, pred: Shard, gt: Shard) -> None:
        self._request, self._pred, self._gt = request, pred, gt
        self._preds = self._images(pred, request.pred_root, request.pred_suffix)
        self._waiting: dict[str, tuple[StoredFile, bytes]] = {}
        self.pred_paths: list[str] = []
        self.gt_paths: list[str] = []

    def readers(self) -> Iterator[PairReader]:
        """Give the images in the order of the ground truths."""
        pred_root, gt_root = self._request.pred_root, self._request.gt_root
        meaning, class_maps = self._request.meaning, self._request.class_maps
        for name, gt_file, gt_data in self._images(self._gt, gt_root, self._request.gt_suffix):
            check_utf8(gt_file.path, f"{gt_root}: the file name")
            pred_file, pred_data = self._find(name)
            pred_label, gt_label = where(pred_root, pred_file.path), where(gt_root, gt_file.path)
            self.pred_paths.append(pred_file.path)
            self.gt_paths.append(gt_file.path)
            yield PairReader(
                name,
                functools.partial(
                    decode_prediction, pred_data, pred_label, meaning if class_maps else PLAIN
                ),
                functools.partial(decode_truth, gt_data, gt_label, meaning),
                pred_label,
                gt_label,
            )

    def extra(self) -> list[str]:
        """Return the predictions without a ground truth, after all ground truths were read."""
        rest = [name for name, _, _ in self._preds]
        return sorted(
            name.encode(errors="backslashreplace").decode() for name in (*self._waiting, *rest)
        )

    def _find(self, name: str) -> tuple[StoredFile, bytes]:
        while name not in self._waiting:
            try:
                other, file, data = next(self._preds)
            except StopIteration:
                raise InputError(self._missing_message()) from None
            self._waiting[other] = file, data
        return self._waiting.pop(name)

    def _missing_message(self) -> str:
        expected = _member_names(self._gt, self._request.gt_suffix)
        missing = sorted(expected - _member_names(self._pred, self._request.pred_suffix))
        return (
            f"{len(missing)} of {len(expected)} ground truths in {self._gt.file!r} have no prediction "
            f"in {self._pred.file!r} ({shorten_list(missing)}); use --allow-missing to pair the images "
            "of all shards by name and to score those that have a prediction"
        )

    def _images(self, shard: Shard, root: str, suffix: str) -> Iterator[tuple[str, StoredFile, bytes]]:
        """Give the images of a shard with their names; refuse a name that comes twice."""
        paths: dict[str, str] = {}
        for file, data in _read(shard):
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


def _read(shard: Shard) -> Iterator[tuple[StoredFile, bytes]]:
    try:
        yield from read_shard(shard)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{printable(shard.file)!r} cannot be read: {reason}") from error


# answers, in the process that collects them


@dataclass(frozen=True, eq=False)
class ShardAnswer:
    """The scores of a shard, and where its images are.

    `rows` is None for a shard without ground truths; `extra` are the first predictions without one.
    """

    rows: Rows | None
    predictions: list[str]
    ground_truths: list[str]
    n_extra: int
    extra: list[str]

    def to_bytes(self) -> bytes:
        """Return everything as bytes: a line of JSON, then the rows."""
        header = {key: value for key, value in vars(self).items() if key != "rows"}
        rows = b"" if self.rows is None else self.rows.to_bytes()
        return json.dumps(header).encode() + b"\n" + rows

    @classmethod
    def from_bytes(cls, data: bytes) -> "ShardAnswer":
        """Return the answer that `to_bytes` wrote."""
        line, _, rows = data.partition(b"\n")
        header: Mapping[str, Any] = json.loads(line)
        return cls(rows=Rows.from_bytes(rows) if rows else None, **header)

    def files(self, pair: ShardPair) -> "pl.DataFrame":
        """Return the table of files; the stamp of an image is that of its shard."""
        import polars as pl

        assert self.rows is not None  # noqa: S101
        return pl.DataFrame(
            {
                "image": list(self.rows.names),
                "prediction": self.predictions,
                "prediction_stamp": [pair.pred.stamp] * len(self.rows),
                "ground_truth": self.ground_truths,
                "ground_truth_stamp": [pair.gt.stamp] * len(self.rows),
            }
        )

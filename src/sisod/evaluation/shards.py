"""Pairs of shards as tasks: predictions and ground truths of a container of many shards.

Nobody lists the images of all shards: whoever scores a pair reads both shards from beginning to end and
pairs their images by name.
"""

import functools
from collections.abc import Iterator

from sisod.common.arguments import check_utf8
from sisod.common.exceptions import InputError, shorten_list
from sisod.data.containers import list_members, read_shard
from sisod.data.files import Shard, StoredFile, url_errors
from sisod.data.images import display_path
from sisod.data.pairs import image_name
from sisod.data.storage import list_shards, resolved_root
from sisod.data.truths import BINARY_MASK, decode_prediction, decode_truth
from sisod.evaluation.tasks import PairReader, Request, hash_of

LEAST_SHARDS = 64  # of fewer, a machine with many cores would have too few tasks


class ShardPair:
    """A shard of predictions and the shard with their ground truths.

    Predictions that come before their ground truth wait in memory: none if both have the same order.
    """

    def __init__(self, index: int, pred: Shard, gt: Shard) -> None:
        self.index, self.pred, self.gt = index, pred, gt
        self.extra: list[str] = []  # predictions without a ground truth, once all images were given
        self.size = 1  # its images are not known before they are read
        self.digest = hash_of([(shard.prefix, shard.stamp) for shard in (pred, gt)])

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


def pair_shards(request: Request) -> tuple[ShardPair, ...]:
    """Pair the shards of two containers by name; none if the images must be listed and paired instead.

    That is so if there are few shards, if their names differ, and if the first ones do not hold the same
    images.
    """
    roots = (request.gt_root, request.pred_root)
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


def _member_names(shard: Shard, suffix: str) -> set[str]:
    names = (image_name(member, suffix) for member in list_members(shard))
    return {name for name in names if name is not None}


def _images(shard: Shard, root: str, suffix: str) -> Iterator[tuple[str, StoredFile, bytes]]:
    """Give the images of a shard with their names; raise if a name comes twice."""
    paths: dict[str, str] = {}
    with url_errors(shard.file):
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

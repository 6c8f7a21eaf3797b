"""A batch of pairs of files -> its rows: the unit of work of every runner, of saving and of resuming."""

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from numpy.typing import NDArray

from sisod.common.errors import InputError
from sisod.data.images import where
from sisod.data.truths import Truth, read_prediction, read_truth
from sisod.evaluation.request import Request
from sisod.evaluation.rows import PixelFacts, Rows
from sisod.scoring.arrays import Map, has_grey_area
from sisod.scoring.custom import CustomMetricError
from sisod.scoring.engine import find_scorer, without_ignored
from sisod.scoring.scores import Scorer

Pairs = Sequence[Sequence[str]]  # each a name, the prediction's path, the ground truth's
BATCH = 32  # images; fixed, so that results do not depend on the number of processes


@dataclass(frozen=True)
class PairBatch:
    """Pairs that are scored together, and the stamps of the two files of each."""

    index: int
    pairs: Pairs
    stamps: Sequence[tuple[str, str]] = ()

    def message(self) -> Pairs:
        """Return plain data for the process that scores the batch."""
        return self.pairs


class PairReader(NamedTuple):
    """An image whose two files are read when they are needed, and their names for messages."""

    name: str
    pred: Callable[[], Map]
    gt: Callable[[], Truth]
    pred_label: str
    gt_label: str


def score_batch(request: Request, pairs: Pairs) -> Rows:
    """Read and score pairs."""
    pred_root, gt_root = request.pred_root, request.gt_root
    readers = (
        PairReader(
            name,
            functools.partial(
                read_prediction,
                pred_root,
                pred_path,
                gt_root=gt_root,
                meaning=request.meaning,
                class_maps=request.class_maps,
            ),
            functools.partial(read_truth, gt_root, gt_path, request.meaning),
            where(pred_root, pred_path),
            where(gt_root, gt_path),
        )
        for name, pred_path, gt_path in pairs
    )
    scorer = find_scorer(request.protocol, request.keys, custom=request.custom)
    return score_readers(scorer, readers, level=request.protocol.gt_level, strict=request.strict)


def score_readers(
    scorer: Scorer[Any], readers: Iterable[PairReader], *, level: int, strict: bool
) -> Rows:
    """Score images one after the other: the one loop of files, of shards and of tables.

    Args:
        scorer: the way of scoring.
        readers: the images.
        level: a pixel of the ground truth is salient from here on.
        strict: refuse predictions of another size instead of resizing them.
    """
    names: list[str] = []
    images: list[Any] = []
    facts: list[PixelFacts] = []
    for reader in readers:
        truth = reader.gt()
        array = truth.array
        gt = _ground_truth(scorer, array, reader.gt_label)
        is_grey = has_grey_area(array)  # while it is in the cache
        pred = reader.pred()
        facts.append(PixelFacts.from_arrays(pred, array, is_grey=is_grey, level=level))
        if facts[-1].resized and strict:
            raise InputError(
                f"{reader.pred_label} has shape {pred.shape} but its ground truth "
                f"{gt.shape}; resize the prediction, or leave out --strict"
            )
        try:
            if truth.ignored is not None:
                pred = without_ignored(pred, truth.ignored)
            images.append(scorer.measure(pred, gt, labels=truth.labels))
        except CustomMetricError as error:
            raise InputError(f"{reader.pred_label}: {error}") from error
        names.append(reader.name)
    return Rows.from_scores(names, scorer.finish(images), facts)


def _ground_truth(scorer: Scorer[Any], array: NDArray[Any], label: str) -> NDArray[Any]:
    try:
        return scorer.ground_truth(array)
    except (ValueError, TypeError) as error:
        raise InputError(f"{label}: {error}") from error

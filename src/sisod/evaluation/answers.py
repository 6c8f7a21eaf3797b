"""How the work of an evaluation is divided into tasks, and what their answers hold together."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from sisod.common.errors import InputError
from sisod.data.pairs import Pairing
from sisod.evaluation.batches import BATCH, PairBatch
from sisod.evaluation.result import file_table
from sisod.evaluation.rows import Rows, Totals
from sisod.evaluation.shards import N_EXTRA, ShardAnswer, ShardPair, ShardPairing

if TYPE_CHECKING:
    import polars as pl

Parsed = TypeVar("Parsed")
Task = PairBatch | ShardPair
AnyPairing = Pairing | ShardPairing
_GROUP = 64  # batches whose tables are made at a time: memory does not grow with the data set


def make_tasks(pairing: AnyPairing) -> Sequence[Task]:
    """Return the tasks: batches of pairs, or shards."""
    if isinstance(pairing, ShardPairing):
        return pairing.shards
    batches = []
    for start in range(0, len(pairing.pairs), BATCH):
        chosen = pairing.pairs[start : start + BATCH]
        paths = tuple((pair.name, pair.pred.path, pair.gt.path) for pair in chosen)
        stamps = tuple((pair.pred.stamp, pair.gt.stamp) for pair in chosen)
        batches.append(PairBatch(start // BATCH, paths, stamps))
    return batches


def count_items(tasks: Sequence[Task]) -> int:
    """Return the number of images, or of shards, whose images are not known before they are read."""
    return sum(1 if isinstance(task, ShardPair) else len(task.pairs) for task in tasks)


@dataclass(frozen=True)
class Unpaired:
    """Images without a partner: ground truths, the number of predictions, and the first of these."""

    missing: tuple[str, ...] = ()
    n_extra: int = 0
    extra: tuple[str, ...] = ()

    def plus(self, answer: ShardAnswer) -> "Unpaired":
        """Return the images without a partner in this and in a shard."""
        extra = tuple(sorted((*self.extra, *answer.extra))[:N_EXTRA])
        return dataclasses.replace(self, n_extra=self.n_extra + answer.n_extra, extra=extra)


class Answers:
    """Reads the answers of all tasks, in the order of the tasks.

    Attributes:
        totals: sums over all images, after the last part.
        unpaired: images without a partner, after the last part.
    """

    totals: Totals

    def __init__(self, pairing: AnyPairing) -> None:
        self._pairing = pairing
        self.unpaired = Unpaired()
        if isinstance(pairing, Pairing):
            self.unpaired = Unpaired(pairing.missing, len(pairing.extra), pairing.extra[:N_EXTRA])

    def parts(self, answers: Iterable[tuple[str, bytes]]) -> "Iterator[tuple[Rows, pl.DataFrame]]":
        """Give rows and the table of their files, group by group, from answers and their names."""
        totals: Totals | None = None
        groups = self._shards if isinstance(self._pairing, ShardPairing) else self._batches
        for rows, files in groups(answers):
            totals = rows.totals if totals is None else totals.plus(rows.totals)
            yield rows, files
        if totals is None:
            raise InputError("the shards hold no ground truths; expected image files in them")
        self.totals = totals

    def _batches(self, answers: Iterable[tuple[str, bytes]]) -> "Iterator[tuple[Rows, pl.DataFrame]]":
        assert isinstance(self._pairing, Pairing)  # noqa: S101
        remaining, pairs = iter(answers), iter(self._pairing.pairs)
        while group := list(islice(remaining, _GROUP)):
            rows = Rows.joined([_read(Rows.from_bytes, *answer) for answer in group])
            yield rows, file_table(list(islice(pairs, len(rows))))

    def _shards(self, answers: Iterable[tuple[str, bytes]]) -> "Iterator[tuple[Rows, pl.DataFrame]]":
        assert isinstance(self._pairing, ShardPairing)  # noqa: S101
        group: list[tuple[Rows, pl.DataFrame]] = []
        for pair, answer in zip(self._pairing.shards, answers, strict=True):
            shard = _read(ShardAnswer.from_bytes, *answer)
            self.unpaired = self.unpaired.plus(shard)
            if shard.rows is not None:
                group.append((shard.rows, shard.files(pair)))
            if sum(len(rows) for rows, _ in group) >= _GROUP * BATCH:
                yield _joined(group)
                group = []
        if group:
            yield _joined(group)


def _joined(group: "Sequence[tuple[Rows, pl.DataFrame]]") -> "tuple[Rows, pl.DataFrame]":
    import polars as pl

    return Rows.joined([rows for rows, _ in group]), pl.concat([files for _, files in group])


def _read(parse: Callable[[bytes], Parsed], name: str, data: bytes) -> Parsed:
    try:
        return parse(data)
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{name!r}, which holds the scores of a batch, is damaged; remove it and use --resume"
        ) from error

"""A batch of pairs of files -> its rows: the unit of work of every runner, of saving and of resuming."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from sisod.common.errors import InputError
from sisod.data.images import read_array, read_map, where
from sisod.evaluation.rows import Rows
from sisod.scoring.engine import find_scorer
from sisod.scoring.protocols import Protocol
from sisod.scoring.scores import Scorer

Pairs = Sequence[Sequence[str]]  # each a name, the prediction's path, the ground truth's
BATCH = 32  # images; fixed, so that results do not depend on the number of processes


@dataclass(frozen=True)
class Job:
    """The settings that all batches of an evaluation share; sent to other processes as JSON."""

    pred_root: str
    gt_root: str
    protocol: Protocol
    keys: tuple[str, ...]
    strict: bool

    def to_json(self) -> dict[str, Any]:
        """Return the job as plain data."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Job":
        """Return the job that `to_json` described."""
        protocol = Protocol(**data["protocol"])
        return cls(**(data | {"protocol": protocol, "keys": tuple(data["keys"])}))


@dataclass(frozen=True)
class Batch:
    """Pairs to score, the file for their rows, and the stamps of the files of each pair."""

    shard: Path
    pairs: Pairs
    stamps: Sequence[tuple[str, str]] = ()


def score_batch(job: Job, pairs: Pairs) -> Rows:
    """Read and score pairs."""
    scorer = find_scorer(job.protocol, job.keys)
    images: list[Any] = []
    resized: list[bool] = []
    for _, pred_path, gt_path in pairs:
        gt = _read_ground_truth(scorer, job.gt_root, gt_path)
        pred = read_map(job.pred_root, pred_path)
        resized.append(pred.shape != gt.shape)
        if resized[-1] and job.strict:
            raise InputError(
                f"{where(job.pred_root, pred_path)} has shape {pred.shape} but its ground truth "
                f"{gt.shape}; resize the prediction, or leave out --strict"
            )
        images.append(scorer.measure(pred, gt))
    names = [name for name, _, _ in pairs]
    return Rows.from_scores(names, scorer.finish(images), resized=resized)


def _read_ground_truth(scorer: Scorer[Any], root: str, path: str) -> NDArray[Any]:
    array = read_array(root, path)
    try:
        return scorer.ground_truth(array)
    except (ValueError, TypeError) as error:
        raise InputError(f"{where(root, path)}: {error}") from error

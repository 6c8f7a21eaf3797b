"""A batch of pairs -> its rows: the unit of work of every runner, of saving and of resuming."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from sisod.common.errors import InputError
from sisod.data.images import read_map, read_mask, where
from sisod.evaluation.rows import Rows
from sisod.scoring.arrays import Map
from sisod.scoring.curves import ImageStatistics
from sisod.scoring.engine import count_pair, score_counted
from sisod.scoring.official import OfficialImage, measure_official
from sisod.scoring.protocols import Protocol

Pairs = Sequence[Sequence[str]]  # each a name, the prediction's path, the ground truth's
BATCH = 32  # images; fixed, so that nothing depends on how many processes share the work


@dataclass(frozen=True)
class Job:
    """What all batches of an evaluation have in common; goes to other processes as JSON."""

    pred_root: str
    gt_root: str
    protocol: Protocol
    keys: tuple[str, ...]
    strict: bool

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Job":
        """Return the job that `to_json` described."""
        protocol = Protocol(**data["protocol"])
        return cls(**(data | {"protocol": protocol, "keys": tuple(data["keys"])}))


@dataclass(frozen=True)
class Batch:
    """Pairs still to be scored, the file that will hold their rows, and the stamps of both files."""

    shard: Path
    pairs: Pairs
    stamps: Sequence[tuple[str, str]] = ()


def score_batch(job: Job, pairs: Pairs) -> Rows:
    """Read and score pairs."""
    counted: list[ImageStatistics | OfficialImage] = []
    resized: list[bool] = []
    for _, pred_path, gt_path in pairs:
        gt = read_mask(job.gt_root, gt_path, level=job.protocol.gt_level)
        pred = read_map(job.pred_root, pred_path)
        resized.append(pred.shape != gt.shape)
        if resized[-1] and job.strict:
            raise InputError(
                f"{where(job.pred_root, pred_path)} has shape {pred.shape} but its ground truth "
                f"{gt.shape}; resize the prediction, or leave out --strict"
            )
        if job.protocol.released_code:  # which keeps the grey values, and resizes to a grid of its own
            counted.append(measure_official(pred, read_map(job.gt_root, gt_path)))
            continue
        if resized[-1]:
            pred = _resized(pred, gt.shape)
        counted.append(count_pair(pred, gt, protocol=job.protocol, keys=job.keys))
    scores = score_counted(counted, protocol=job.protocol, keys=job.keys)
    names = [name for name, _, _ in pairs]
    return Rows.from_scores(names, scores, resized=resized)


def _resized(pred: Map, shape: tuple[int, ...]) -> Map:
    found = np.asarray(cv2.resize(pred, shape[::-1], interpolation=cv2.INTER_LINEAR))
    # bilinear weights add up to one but for rounding
    return np.clip(found, 0, 1) if found.dtype.kind == "f" else found

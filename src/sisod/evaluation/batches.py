"""A batch of pairs of files -> its rows: the unit of work of every runner, of saving and of resuming."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from sisod.common.errors import InputError
from sisod.data.images import read_array, read_map, where
from sisod.evaluation.request import Request
from sisod.evaluation.rows import PixelFacts, Rows
from sisod.scoring.arrays import has_grey_area
from sisod.scoring.custom import CustomMetricError
from sisod.scoring.engine import find_scorer
from sisod.scoring.scores import Scorer

Pairs = Sequence[Sequence[str]]  # each a name, the prediction's path, the ground truth's
BATCH = 32  # images; fixed, so that results do not depend on the number of processes


@dataclass(frozen=True)
class PairBatch:
    """Pairs that are scored together, and the stamps of the two files of each."""

    index: int
    pairs: Pairs
    stamps: Sequence[tuple[str, str]] = ()


def score_batch(request: Request, pairs: Pairs) -> Rows:
    """Read and score pairs."""
    scorer = find_scorer(request.protocol, request.keys, custom=request.custom)
    images: list[Any] = []
    facts: list[PixelFacts] = []
    level = request.protocol.gt_level
    for _, pred_path, gt_path in pairs:
        array = read_array(request.gt_root, gt_path)
        gt = _ground_truth(scorer, array, request.gt_root, gt_path)
        is_grey = has_grey_area(array)  # while it is in the cache
        pred = read_map(request.pred_root, pred_path)
        facts.append(PixelFacts.from_arrays(pred, array, is_grey=is_grey, level=level))
        if facts[-1].resized and request.strict:
            raise InputError(
                f"{where(request.pred_root, pred_path)} has shape {pred.shape} but its ground truth "
                f"{gt.shape}; resize the prediction, or leave out --strict"
            )
        try:
            images.append(scorer.measure(pred, gt))
        except CustomMetricError as error:
            raise InputError(f"{where(request.pred_root, pred_path)}: {error}") from error
    names = [name for name, _, _ in pairs]
    return Rows.from_scores(names, scorer.finish(images), facts)


def _ground_truth(scorer: Scorer[Any], array: NDArray[Any], root: str, path: str) -> NDArray[Any]:
    try:
        return scorer.ground_truth(array)
    except (ValueError, TypeError) as error:
        raise InputError(f"{where(root, path)}: {error}") from error

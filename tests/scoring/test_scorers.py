"""The interface of a way of scoring: one scorer per protocol, the same two stages for all."""

import numpy as np
import pytest
from numpy.typing import NDArray

import sisod
from sisod.scoring.engine import find_scorer

Pair = tuple[NDArray[np.uint8], NDArray[np.uint8]]


def make_pairs() -> list[Pair]:
    """Masks with grey edges, one without an object; every prediction of its ground truth's shape."""
    rng = np.random.default_rng(3)
    pairs = []
    for index in range(4):
        gt = np.zeros((30, 40 + index), dtype=np.uint8)
        gt[3 : 9 + index, 4:12], gt[20, 30:33], gt[9 + index, 4:12] = 255, 255, 180
        if index == 3:
            gt[:] = 0
        noise = rng.integers(0, 90, gt.shape)
        pairs.append((np.clip(gt * 0.6 + noise, 0, 255).astype(np.uint8), gt))
    return pairs


@pytest.mark.parametrize("protocol", sisod.PROTOCOLS.values(), ids=lambda protocol: protocol.name)
def test_a_batch_has_the_scores_of_its_images(protocol: sisod.Protocol) -> None:
    scorer = find_scorer(protocol, None)
    measured = [scorer.measure(pred, scorer.ground_truth(gt)) for pred, gt in make_pairs()]
    scores = scorer.finish(measured)
    alone = [sisod.score(pred, gt, protocol=protocol) for pred, gt in make_pairs()]
    assert scores.keys == scorer.keys == tuple(alone[0])
    np.testing.assert_array_equal(scores.values, [list(values.values()) for values in alone])
    assert len(scores.objects["mae"]) == scores.n_objects.sum() >= 3

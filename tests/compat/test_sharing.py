"""Metrics share the counts of a pair, and never use those of another pair."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sisod.compat.pysodmetrics as drop_in
from sisod.compat import pairs
from sisod.compat.pairs import shared_pair

GT = np.zeros((20, 30), np.uint8)
GT[4:12, 5:20] = 255
PRED = np.clip(GT.astype(int) - 40 + np.arange(600).reshape(20, 30) % 37, 0, 255).astype(np.uint8)


def mae(pred: NDArray[Any], gt: NDArray[Any], *, normalize: bool = True) -> float:
    metric = drop_in.MAE()
    metric.step(pred, gt, normalize)
    return metric.maes[0]


def fresh_mae(pred: NDArray[Any], gt: NDArray[Any]) -> float:
    """Computed from the definition."""
    p = (pred - pred.min()) / (pred.max() - pred.min())
    return float(np.abs(p - (gt > 128)).mean())


def count_checks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows with every pair that is counted anew."""
    calls: list[int] = []
    create = pairs._normalized

    def counted(pred: NDArray[Any], gt: NDArray[Any]) -> pairs.CheckedPair:
        calls.append(1)
        return create(pred, gt)

    monkeypatch.setattr(pairs, "_normalized", counted)
    return calls


def test_all_metrics_of_a_pair_share_one_count(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count_checks(monkeypatch)
    handler = drop_in.IOUHandler(with_dynamic=True, with_adaptive=True)
    metrics: list[Any] = [
        *(drop_in.MAE(), drop_in.Fmeasure(), drop_in.Emeasure(), drop_in.Smeasure()),
        *(drop_in.WeightedFmeasure(), drop_in.FmeasureV2({"iou": handler}), drop_in.SizeInvarianceMAE()),
    ]
    first, second = PRED + np.uint8(0), PRED[::-1].copy()
    for pred in (first, second):
        for metric in metrics:
            metric.step(pred.copy(), GT)  # scripts load or convert the map for each metric
    assert len(calls) == 2


@pytest.mark.parametrize("pixel", [(0, 0), (19, 29), (7, 13)])
def test_one_changed_pixel_is_noticed(pixel: tuple[int, int]) -> None:
    pred, gt = PRED.copy(), GT.copy()
    assert mae(pred, gt) == pytest.approx(fresh_mae(pred, gt), abs=1e-12)
    pred[pixel] ^= 128
    assert mae(pred, gt) == pytest.approx(fresh_mae(pred, gt), abs=1e-12)
    gt[pixel] ^= 255
    assert mae(pred, gt) == pytest.approx(fresh_mae(pred, gt), abs=1e-12)


def test_a_change_between_two_metrics_does_not_reach_kept_counts() -> None:
    """Statistics that are computed later come from the copy, not from the changed array."""
    pred = PRED.copy()
    pair = shared_pair(pred, GT, normalize=True)
    pred[:] = 0
    assert pair.mae == pytest.approx(fresh_mae(PRED, GT), abs=1e-12)


def test_normalize_and_type_are_part_of_the_pair() -> None:
    ready, mask = PRED / 255, GT > 128
    assert mae(ready, mask, normalize=False) == pytest.approx(np.abs(ready - mask).mean(), abs=1e-12)
    assert mae(ready, mask) == pytest.approx(fresh_mae(ready, GT), abs=1e-12)
    # 0 and 1 are equal in both types, but not as grey values
    ones = np.eye(4, dtype=np.uint8)
    assert shared_pair(ones, GT[:4, :4], normalize=True) is not shared_pair(
        ones > 0, GT[:4, :4], normalize=True
    )

"""The choice of a loss follows the rule that benchmarks/evidence/plan.md states."""

import pytest

pytest.importorskip("lightning", reason="extra torch is not installed")

from benchmarks.evidence.choice import BASELINE, COLUMNS, Scores, choose
from benchmarks.evidence.runs import LOSSES, SEEDS

BASE = dict(zip(COLUMNS, (0.05, 0.1, 0.5, 0.2, 0.8, 0.5), strict=True))
SMALL = "object_f1_max_small"


def scores(**changes: dict[str, float]) -> dict[str, dict[str, float]]:
    """Every loss scores as the baseline but for the given changes; names have _ in place of -."""
    changed = {name.replace("_", "-"): values for name, values in changes.items()}
    return {f"{loss}@{seed}": BASE | changed.get(loss, {}) for loss in LOSSES for seed in SEEDS}


def test_the_candidate_with_the_best_small_objects_is_chosen() -> None:
    content = scores(cells_iou={SMALL: 0.6}, si_dice={SMALL: 0.7, "mae": 0.0521}, focal={SMALL: 0.55})
    assert choose(content).recommended == "cells-iou"
    assert "si-dice" not in choose(content).candidates


@pytest.mark.parametrize(
    ("key", "allowed", "too_much"),
    [("mae", 0.0519, 0.0521), ("object_f1_max", 0.7951, 0.7949), ("false_objects", 0.2399, 0.2401)],
)
def test_a_candidate_is_not_much_worse_than_the_baseline(
    key: str, allowed: float, too_much: float
) -> None:
    assert choose(scores(si_iou={SMALL: 0.6, key: allowed})).recommended == "si-iou"
    assert "si-iou" not in choose(scores(si_iou={SMALL: 0.6, key: too_much})).candidates


def test_without_a_lead_in_every_seed_a_plain_loss_is_recommended() -> None:
    content: Scores = scores(cells_iou={SMALL: 0.6}, plain_iou={"object_f1_max": 0.81})
    lost = dict(content) | {"cells-iou@1": BASE | {SMALL: 0.49}}
    assert choose(lost).recommended == "plain-iou"


def test_nothing_is_chosen_before_every_run_is_finished() -> None:
    content = scores(cells_iou={SMALL: 0.6})
    del content["focal@2"]
    assert (choose(content).recommended, choose(content).unfinished) == (None, ("focal@2",))
    assert choose({f"{BASELINE}@0": BASE}).candidates == (BASELINE,)

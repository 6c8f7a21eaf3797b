"""The choice of a loss follows the rule that benchmarks/evidence/plan.md states."""

import importlib
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.needs("torch", "lightning")]  # for the imports
SMALL = "object_f1_max_small"
BASE = {"mae": 0.05, "si_mae": 0.1, "object_recall_small": 0.5, "false_objects": 0.2}
BASE |= {"object_f1_max": 0.8, SMALL: 0.5}


def choose(content: dict[str, dict[str, float]]) -> Any:
    return importlib.import_module("benchmarks.evidence.choice").choose(content)


def scores(**changes: dict[str, float]) -> dict[str, dict[str, float]]:
    """Every loss scores as the baseline but for the given changes; names have _ in place of -."""
    runs = importlib.import_module("benchmarks.evidence.runs")
    changed = {name.replace("_", "-"): values for name, values in changes.items()}
    return {
        f"{loss}@{seed}": BASE | changed.get(loss, {}) for loss in runs.LOSSES for seed in runs.SEEDS
    }


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
    content = scores(cells_iou={SMALL: 0.6}, plain_iou={"object_f1_max": 0.81})
    lost = content | {"cells-iou@1": BASE | {SMALL: 0.49}}
    assert choose(lost).recommended == "plain-iou"


def test_nothing_is_chosen_before_every_run_is_finished() -> None:
    content = scores(cells_iou={SMALL: 0.6})
    del content["focal@2"]
    assert (choose(content).recommended, choose(content).unfinished) == (None, ("focal@2",))
    assert choose({"plain-dice@0": BASE}).candidates == ("plain-dice",)

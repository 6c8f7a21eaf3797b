"""Properties of every image: one object, symmetries, and where values are NaN."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import oracle
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import sisod
from sisod.scoring.metrics import find_metrics

pytestmark = pytest.mark.usefixtures("both_engines")

Mask = NDArray[np.bool_]
COUNTED = find_metrics(None)
DTYPES = ("uint8", "uint16", "float32", "float64", "bool")
many = settings(deadline=None, max_examples=100)


def random_mask(rng: np.random.Generator, shape: tuple[int, int], density: float) -> Mask:
    mask: Mask = rng.random(shape) < density
    y, x = rng.integers(shape[0]), rng.integers(shape[1])
    mask[y : y + 5, x : x + 4] = True
    return mask


def random_map(rng: np.random.Generator, shape: tuple[int, int], dtype: str) -> NDArray[Any]:
    grey = rng.integers(0, 256, shape).astype(np.uint8)
    maps: dict[str, NDArray[Any]] = {
        "uint8": grey,
        "uint16": rng.integers(0, 65536, shape).astype(np.uint16),
        "float32": rng.random(shape).astype(np.float32),
        "float64": rng.random(shape),
        "bool": grey > 128,
    }
    values = maps[dtype]
    if values.dtype.kind == "u" and values.max() == 1:  # which is warned about, as it should be
        values[values == 1] = 2
    return values


seeds = st.integers(0, 2**32)
shapes = st.tuples(st.integers(1, 30), st.integers(1, 30))
densities = st.sampled_from([0.0, 0.02, 0.1, 0.4, 0.95])


# ------------------------------------- Proposition 3.3, case 1 (the others: tests/paper/test_theory.py)


@many
@given(seeds, shapes, densities, st.sampled_from(DTYPES))
def test_one_frame_makes_si_mae_equal_mae(
    seed: int, shape: tuple[int, int], density: float, dtype: str
) -> None:
    rng = np.random.default_rng(seed)
    gt, pred = random_mask(rng, shape, density), random_map(rng, shape, dtype)
    parts = sisod.partition(gt, min_area=1.0)  # nothing is that large: the largest alone
    assert len(parts) == 1
    values = sisod.score(pred, gt, partition=parts)
    assert values["si_mae"] == values["mae"]  # to the last bit
    assert values["si_mse"] == values["mse"]
    assert values["si_accuracy_binary"] == pytest.approx(values["accuracy_binary"], abs=1e-15)


# ------------------------------------------------------------------------------------ symmetries


MOVES: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "upside down": lambda array: array[::-1],
    "mirrored": lambda array: array[:, ::-1],
    "turned": lambda array: np.rot90(array),
    "transposed": lambda array: array.T,
    "twice as large": lambda array: np.kron(array, np.ones((2, 2), array.dtype)),
    "five times as large": lambda array: np.kron(array, np.ones((5, 5), array.dtype)),
}


@pytest.mark.parametrize("move", MOVES)
@settings(deadline=None, max_examples=25)
@given(
    seed=seeds,
    shape=st.tuples(st.integers(1, 14), st.integers(1, 14)),
    density=densities,
    dtype=st.sampled_from(DTYPES),
)
def test_moving_and_enlarging_change_no_count_metric(
    move: str, seed: int, shape: tuple[int, int], density: float, dtype: str
) -> None:
    rng = np.random.default_rng(seed)
    gt, pred = random_mask(rng, shape, density), random_map(rng, shape, dtype)
    assume(pred.dtype.kind != "u" or pred.max() != 1)
    assume(oracle.adaptive_is_clear(oracle.probabilities(pred)))
    changed = MOVES[move](pred), MOVES[move](gt)
    enlarged = changed[1].size != gt.size
    # the plain E divides by HW - 1
    keys = [key for key in COUNTED if not (enlarged and key.startswith("e_"))]
    before, after = sisod.score(pred, gt), sisod.score(*changed)
    assert {k: after[k] for k in keys} == pytest.approx(
        {k: before[k] for k in keys}, abs=1e-12, nan_ok=True
    )
    frames, moved = sisod.partition(gt), sisod.partition(changed[1])
    assert len(frames) == len(moved)
    assert moved.alpha == pytest.approx(frames.alpha, rel=1e-15)


# ------------------------------------------------------------------------------------- undefined


NEED_NEGATIVES = ("auc", "specificity", "fpr", "ber", "kappa", "mba")
NEED_NO_OBJECT = ("mae", "mse", "accuracy", "specificity", "fpr", "e", "s", "hce")


def is_undefined(key: str, gt: Mask, frames: list[Mask]) -> bool:
    """The rule of docs/metrics.md on undefined values."""
    si = key.startswith("si_")
    family = key.removeprefix("si_").split("_")[0]
    if not gt.any():
        return family not in (("mae", "mse", "accuracy") if si else NEED_NO_OBJECT)
    if family not in NEED_NEGATIVES:
        return False
    return all(frame.all() for frame in frames) if si else bool(gt.all())


@many
@given(
    seed=seeds,
    shape=st.tuples(st.integers(1, 6), st.integers(1, 6)),
    density=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    dtype=st.sampled_from(DTYPES),
    flat=st.booleans(),
)
def test_nan_exactly_where_undefined(
    seed: int, shape: tuple[int, int], density: float, dtype: str, flat: bool
) -> None:
    """No warning of NumPy either: pytest turns them into errors."""
    rng = np.random.default_rng(seed)
    gt: Mask = rng.random(shape) < density
    pred = random_map(rng, shape, dtype)
    pred = np.full_like(pred, pred[0, 0]) if flat else pred
    assume(pred.dtype.kind != "u" or pred.max() != 1)
    values = sisod.score(pred, gt, metrics="all")
    frames = [gt[frame.window] for frame in sisod.partition(gt)]
    # what metrics of objects do is in test_objects.py
    pixels = {
        k: v for k, v in values.items() if sisod.METRICS[k].family.kind not in ("objects", "balanced")
    }
    undefined = {key for key, value in pixels.items() if math.isnan(value)}
    assert undefined == {key for key in pixels if is_undefined(key, gt, frames)}
    assert not any(math.isinf(value) for value in values.values())

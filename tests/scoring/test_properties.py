"""Properties of every image: the paper's propositions, symmetries, and where values are NaN."""

import math
from collections.abc import Callable
from dataclasses import dataclass
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


# ------------------------------------------------------------- Proposition 3.3, case 1: one object


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


# --------------------------------------------- two predictors that find the same number of pixels


@dataclass(frozen=True)
class Scene:
    """Objects in disjoint frames, smallest frame first, and their pixels."""

    labels: NDArray[np.int64]
    pixels: list[NDArray[np.int64]]
    areas: list[int]

    @property
    def gt(self) -> Mask:
        """Every object."""
        return self.labels > 0

    @property
    def partition(self) -> sisod.Partition:
        """One frame per object, connected or not."""
        return sisod.partition(labels=self.labels, min_area=0)

    def predicting(self, chosen: list[NDArray[np.int64]]) -> Mask:
        """Return the map that holds those pixels and nothing else."""
        mask = np.zeros(self.labels.shape, bool)
        for pixels in chosen:
            mask[tuple(pixels.T)] = True
        return mask

    def score(self, pred: Mask) -> dict[str, float]:
        """Return the count metrics with one frame per object."""
        return sisod.score(pred, self.gt, partition=self.partition)


def make_scene(sides: list[tuple[int, int]], rng: np.random.Generator, density: float) -> Scene:
    """Return boxes side by side with gaps; two corners are salient, so that the frame is the box."""
    sides = sorted(sides, key=lambda side: side[0] * side[1])
    height = max(side[0] for side in sides) + 2
    labels = np.zeros((height, sum(side[1] + 1 for side in sides) + 1), np.int64)
    left = 1
    for label, (high, wide) in enumerate(sides, start=1):
        box = labels[1 : 1 + high, left : left + wide]
        box[rng.random((high, wide)) < density] = label
        box[0, 0] = box[-1, -1] = label
        left += wide + 1
    pixels = [np.argwhere(labels == label) for label in range(1, len(sides) + 1)]
    return Scene(labels, pixels, [high * wide for high, wide in sides])


def part(pixels: NDArray[np.int64], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return rng.permutation(pixels)[:count]


box_sides = st.tuples(st.integers(1, 9), st.integers(1, 9))
fills = st.sampled_from([0.1, 0.5, 1.0])


@many
@given(st.lists(box_sides, min_size=2, max_size=2), seeds, fills, st.data())
def test_proposition_3_3_case_2(
    sides: list[tuple[int, int]], seed: int, fill: float, data: st.DataObject
) -> None:
    rng = np.random.default_rng(seed)
    scene = make_scene(sides, rng, fill)
    first, second = scene.pixels
    moved = data.draw(st.integers(1, min(len(first), len(second))))
    a = scene.score(scene.predicting([second]))
    b = scene.score(scene.predicting([part(second, len(second) - moved, rng), part(first, moved, rng)]))
    assert a["mae"] == b["mae"]
    weight = 2 + scene.partition.alpha
    gain = moved * (1 / scene.areas[0] - 1 / scene.areas[1]) / weight
    assert a["si_mae"] - b["si_mae"] == pytest.approx(gain, abs=1e-14)
    if scene.areas[0] < scene.areas[1]:
        assert a["si_mae"] > b["si_mae"]
    else:
        assert a["si_mae"] == pytest.approx(b["si_mae"], abs=1e-14)


@settings(deadline=None, max_examples=150)
@given(st.lists(box_sides, min_size=3, max_size=5), seeds, fills, st.data())
def test_extension_of_proposition_3_3(
    sides: list[tuple[int, int]], seed: int, fill: float, data: st.DataObject
) -> None:
    rng = np.random.default_rng(seed)
    scene = make_scene(sides, rng, fill)
    missed = data.draw(st.integers(1, len(sides) - 1))  # m of the paper
    detected = scene.pixels[missed:]
    small, large = np.concatenate(scene.pixels[:missed]), np.concatenate(detected)
    moved = data.draw(st.integers(1, min(len(small), len(large))))
    chosen = [part(large, len(large) - moved, rng), part(small, moved, rng)]
    a, f_b = scene.score(scene.predicting(detected)), scene.predicting(chosen)
    b = scene.score(f_b)
    assert a["mae"] == b["mae"]
    t = np.array([np.count_nonzero(f_b[tuple(pixels.T)]) for pixels in scene.pixels])
    areas = np.array(scene.areas)
    assert t.sum() == len(large)
    # the paper's condition suffices; so does, without it, a step in size between missed and found
    condition = areas[missed] > t.sum() / (t / areas).sum() + 1e-9
    if condition or areas[missed] > areas[missed - 1]:
        assert a["si_mae"] > b["si_mae"]
    else:
        assert a["si_mae"] >= b["si_mae"] - 1e-14


def test_the_condition_of_the_extension_is_met_by_a_case() -> None:
    """S = (4, 20, 30), t = (4, 20, 26): 50 / (1 + 1 + 26/30) = 17.4 < S_2 = 20."""
    rng = np.random.default_rng(0)
    scene = make_scene([(2, 2), (4, 5), (5, 6)], rng, 1.0)
    a = scene.score(scene.predicting(scene.pixels[1:]))
    b = scene.score(scene.predicting([*scene.pixels[:2], scene.pixels[2][:26]]))
    assert a["mae"] == b["mae"]
    # f_A misses one frame of three, f_B 4 pixels of 30
    weight = 3 + scene.partition.alpha
    assert a["si_mae"] == pytest.approx(1 / weight, abs=1e-15)
    assert b["si_mae"] == pytest.approx(4 / 30 / weight, abs=1e-15)


# ------------------------------------------------------ Proposition B.1, with its sign put right


@many
@given(st.lists(box_sides, min_size=2, max_size=2), seeds, fills, st.booleans(), st.data())
def test_proposition_b_1(
    sides: list[tuple[int, int]], seed: int, fill: float, swap: bool, data: st.DataObject
) -> None:
    """With beta 1 (dice): f_B wins if and only if |C_1| < (1 + 3 rho) |C_2|."""
    rng = np.random.default_rng(seed)
    scene = make_scene(sides, rng, fill)
    first, second = scene.pixels[::-1] if swap else scene.pixels
    moved = data.draw(st.integers(1, min(len(first), len(second))))
    a = scene.score(scene.predicting([second]))
    b = scene.score(scene.predicting([part(second, len(second) - moved, rng), part(first, moved, rng)]))
    assert a["dice_binary"] == b["dice_binary"]
    assert a["si_dice_binary"] == 0.5
    bound = 4 * len(second) - 3 * moved  # (1 + 3 rho) |C_2| in integers
    if len(first) < bound:
        assert b["si_dice_binary"] > a["si_dice_binary"]
    elif len(first) > bound:
        assert b["si_dice_binary"] < a["si_dice_binary"]
    else:
        assert b["si_dice_binary"] == pytest.approx(0.5, abs=1e-15)


def test_counter_example_to_proposition_b_1_as_printed() -> None:
    """|C_1| = 10, |C_2| = 1, rho = 0: f_B has 2 * 1 / (10 + 1) of C_1 and nothing of C_2."""
    scene = make_scene([(1, 1), (2, 5)], np.random.default_rng(0), 1.0)
    second, first = scene.pixels
    a, b = scene.score(scene.predicting([second])), scene.score(scene.predicting([first[:1]]))
    assert a["dice_binary"] == b["dice_binary"] == pytest.approx(2 / 12, abs=1e-15)
    assert a["si_dice_binary"] == 0.5
    assert b["si_dice_binary"] == pytest.approx(1 / 11, abs=1e-15)


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

"""Evaluator and Evaluation: merged parts, order, names, undefined values."""

import copy
import dataclasses
import functools
import itertools
import math
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import sisod
from sisod.data.scenes import make_scenes, sees_all_coarsely, sees_only_large
from sisod.scoring.engine import find_scorer
from sisod.scoring.metrics import find_metrics

Pair = tuple[str, NDArray[np.uint8], NDArray[np.uint8]]


def pairs() -> list[Pair]:
    """Made scenes with varied predictions, and an image without objects."""
    scenes = make_scenes(7, seed=5, shape=(48, 64))
    found: list[Pair] = [
        (s.name, (sees_all_coarsely if i % 2 else sees_only_large)(s), s.mask)
        for i, s in enumerate(scenes)
    ]
    return [*found, ("black", scenes[0].mask // 2, np.zeros((48, 64), dtype=np.uint8))]


PAIRS = pairs()


def gathered(chosen: list[Pair]) -> sisod.Evaluator:
    evaluator = sisod.Evaluator(metrics="all")
    for name, pred, gt in chosen:
        evaluator.update(pred, gt, name=name)
    return evaluator


WHOLE = gathered(PAIRS).result()


@given(st.permutations(range(len(PAIRS))), st.lists(st.integers(0, len(PAIRS)), min_size=1, max_size=3))
@settings(max_examples=15, deadline=None)
def test_merge_of_any_split_equals_the_whole(order: list[int], cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(PAIRS)]
    parts = [gathered([PAIRS[i] for i in order[a:b]]) for a, b in itertools.pairwise(edges)]
    merged = parts[0]
    for part in parts[1:]:
        merged.merge(part)
    result = merged.result()
    assert result.defined == WHOLE.defined
    np.testing.assert_array_equal(list(result.summary.values()), list(WHOLE.summary.values()))
    assert result.curves.equals(WHOLE.curves)
    assert result.images.sort("image").equals(WHOLE.images.sort("image"))
    assert result.objects.sort("image", "index").equals(WHOLE.objects.sort("image", "index"))


def test_threads_may_share_one(request: pytest.FixtureRequest) -> None:
    """Every image is there once, also while others are merged, pickled and summed up."""
    request.addfinalizer(functools.partial(sys.setswitchinterval, sys.getswitchinterval()))
    sys.setswitchinterval(1e-6)  # threads take turns as often as possible
    evaluator = sisod.Evaluator(metrics="mae")
    mask = np.eye(4, dtype=bool)

    def work(index: int) -> None:
        evaluator.update(mask, mask, name=str(index))
        if index % 40 == 7:
            other = sisod.Evaluator(metrics="mae")
            other.update(mask, mask, name=f"merged {index}")
            evaluator.merge(other)
            copied = pickle.loads(pickle.dumps(evaluator))  # noqa: S301  (our own)
            assert len(copied) == len(copied.result().images) == len(copied._known)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(400)))
        attempts = [threads.submit(evaluator.update, mask, mask, name="twice") for _ in range(8)]
        assert sum(attempt.exception() is None for attempt in attempts) == 1
    expected = {str(i) for i in range(400)} | {f"merged {i}" for i in range(7, 400, 40)} | {"twice"}
    names = evaluator.result().images["image"].to_list()
    assert len(names) == len(expected)
    assert set(names) == expected


def test_summary_is_the_mean_of_defined_images() -> None:
    rows = [sisod.score(pred, gt, metrics="all") for _, pred, gt in PAIRS]
    for key in ("mae", "si_mae", "si_f_mean", "f_max_image", "si_f_max_frame", "si_auc", "si_wf", "s"):
        values = [row[key] for row in rows if not math.isnan(row[key])]
        assert WHOLE.summary[key] == pytest.approx(np.mean(values), abs=1e-15)
        assert WHOLE.defined[key] == len(values)
    assert WHOLE.defined["mae"] == len(PAIRS)
    assert WHOLE.defined["f_mean"] == len(PAIRS) - 1  # not on the black one


def test_maxima_are_taken_of_the_mean_curve() -> None:
    curve = np.mean([np.array(row) for row in WHOLE.image_curves["si_f"].to_list()[:-1]], axis=0)
    assert WHOLE.summary["si_f_max"] == pytest.approx(np.nanmax(curve), abs=1e-6)  # float32 curves
    assert WHOLE.summary["si_f_max"] == WHOLE.curves["si_f"].fill_nan(None).max()
    assert WHOLE.summary["si_f_max"] < WHOLE.summary["si_f_max_image"] < WHOLE.summary["si_f_max_frame"]


def test_object_rows_average_to_the_image() -> None:
    means = WHOLE.objects.group_by("image").agg(pl.col("f_mean").mean()).sort("image")
    images = WHOLE.images.filter(pl.col("n_objects") > 0).sort("image")
    np.testing.assert_allclose(means["f_mean"], images["si_f_mean"], atol=1e-14)
    assert WHOLE.objects.columns == [
        "image", "index", "y0", "x0", "y1", "x1", "area", "share", "fill", "touches_border",
        "mae", "f_mean", "f_max", "auc", "iou_binary", "recall_binary", "biou", "error", "missed_pixels",
    ]  # fmt: skip


def test_names() -> None:
    evaluator = sisod.Evaluator(metrics="mae")
    mask = np.eye(3, dtype=bool)
    evaluator.update(mask, mask, name="x")
    with pytest.raises(ValueError, match="an image named 'x' was already scored"):
        evaluator.update(mask, mask, name="x")
    evaluator.update(mask, mask)
    assert len(evaluator) == 2
    assert evaluator.result().images["image"].to_list() == ["x", "000001"]
    with pytest.raises(ValueError, match="only another Evaluator"):
        evaluator.merge(evaluator)
    with pytest.raises(ValueError, match="both evaluators scored 'x'"):
        evaluator.merge(copy.deepcopy(evaluator))
    with pytest.raises(ValueError, match="same protocol and metrics"):
        evaluator.merge(sisod.Evaluator(metrics="mse"))


def test_nothing_scored_and_no_objects() -> None:
    evaluator = sisod.Evaluator()
    with pytest.raises(ValueError, match="nothing was scored"):
        evaluator.result()
    evaluator.update(np.zeros((4, 4)), np.zeros((4, 4), dtype=bool))
    result = evaluator.result()
    assert result.objects.is_empty()
    assert math.isnan(result.summary["si_f_max"])
    assert result.defined["si_f_max"] == 0


def test_a_protocol_of_ones_own_needs_its_own_name() -> None:
    mine = dataclasses.replace(sisod.PROTOCOLS["default"], connectivity=4)
    with pytest.raises(ValueError, match="give it a name of its own"):
        sisod.Evaluator(protocol=mine)
    assert sisod.Evaluator(protocol=dataclasses.replace(mine, name="mine")).protocol.connectivity == 4


def test_tiny_objects_are_counted_however_results_are_merged() -> None:
    speck, object_and_speck = np.zeros((2, 100, 100), dtype=bool)  # the least size is two pixels
    speck[10, 10] = object_and_speck[10, 10] = object_and_speck[40:60, 40:60] = True
    masks = [speck if place % 3 else object_and_speck for place in range(40)]  # folded once at 32
    counts = []
    for cut in (0, 7, 40):
        parts = sisod.Evaluator(metrics=["mae"]), sisod.Evaluator(metrics=["mae"])
        for place, mask in enumerate(masks):
            parts[place >= cut].update(mask, mask, name=str(place))
        run = parts[0].merge(parts[1]).result().run
        counts.append((run["kept_below_min_area"], run["objects"]))
    assert counts == [(26, 40)] * 3


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**32 - 1))
def test_images_scored_together_equal_images_scored_one_by_one(seed: int) -> None:
    """To the last bit, whatever else is in the batch: none, one or many frames, masks all salient."""
    rng = np.random.default_rng(seed)
    scorer = find_scorer(sisod.PROTOCOLS["default"], None)
    counted = []
    for share in rng.permutation([0.0, 0.02, 0.1, 0.3, 1.0]):
        gt = rng.random(rng.integers(1, 40, 2)) < share
        pred = rng.integers(0, 256, gt.shape).astype(np.uint8)
        counted.append(scorer.measure(pred, gt))
    together = scorer.finish(counted)
    alone = [scorer.finish([one]) for one in counted]
    np.testing.assert_array_equal(together.values, np.concatenate([one.values for one in alone]))
    np.testing.assert_array_equal(together.n_tiny, np.concatenate([one.n_tiny for one in alone]))
    np.testing.assert_array_equal(together.curves, np.concatenate([one.curves for one in alone]))
    for key, column in together.objects.items():
        np.testing.assert_array_equal(column, np.concatenate([one.objects[key] for one in alone]))


def test_numbers_of_nameless_images_are_no_name_of_another() -> None:
    gt = np.eye(4, dtype=bool)
    evaluator = sisod.Evaluator(metrics="mae")
    for name in (None, None, "000001", "000001_", None):
        evaluator.update(gt, gt, name=name)
    result = evaluator.result()
    assert result.images["image"].to_list() == ["000000", "000001__", "000001", "000001_", "000004"]
    assert result.objects["image"].unique().len() == 5


@pytest.mark.parametrize(
    ("name", "error", "text"),
    [
        ("\ud800", ValueError, "is not valid UTF-8"),
        (5, ValueError, "name must be text, got 5"),
    ],
)
def test_names_that_no_table_holds(name: Any, error: type[Exception], text: str) -> None:
    gt = np.eye(4, dtype=bool)
    evaluator = sisod.Evaluator(metrics="mae")
    with pytest.raises(error, match=text):
        evaluator.update(gt, gt, name=name)
    assert len(evaluator) == 0


# repr


def two_images(**options: Any) -> sisod.Evaluation:
    """One image without an object, on which most metrics are undefined, and a perfect one."""
    evaluator = sisod.Evaluator(**options)
    gt = np.zeros((9, 9), dtype=bool)
    evaluator.update(gt.astype(float), gt)
    gt[2:4, 3:6] = True
    evaluator.update(gt, gt)
    return evaluator.result()


def test_repr_is_a_short_table() -> None:
    result = two_images(metrics=["mae", "si_mae", "f_mean", "f_max", "e_mean"])
    assert repr(result) == (
        "Evaluation: 2 images, 1 object, protocol default\n"
        "  MAE ↓      0.0000\n"
        "  SI-MAE ↓   0.0000\n"
        "  F mean ↑   0.9965  (undefined on 1 image)\n"
        "  E mean ↑   1.0090\n"
        "  and 1 more metric in .summary"
    )
    assert str(result) == repr(result)


def test_repr_stays_short_and_names_what_was_scored(benchmark_root: Path) -> None:
    lines = repr(two_images(metrics="all")).splitlines()
    assert len(lines) == 11
    assert lines[-1] == f"  and {len(find_metrics('all')) - 9} more metrics in .summary"
    assert max(map(len, lines)) < 80
    result = sisod.Evaluation.load(benchmark_root / "results" / "mixed" / "Net+si")
    assert repr(result).startswith("Evaluation of 'Net+si': 14 images, ")

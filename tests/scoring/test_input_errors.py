"""Input validation: every error says what was passed, what was expected and what to do."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sisod

GT = np.eye(3, dtype=bool)
GREY = np.full((3, 3), 9, np.uint8)
masked_array: Any = np.ma.masked_array  # which has no types


def score(pred: Any, gt: Any = GT, **options: Any) -> dict[str, float]:
    return sisod.score(pred, gt, **options)


def cut(**options: Any) -> sisod.Partition:
    return sisod.partition(GT, **options)


EPS = np.finfo(np.float32).eps
MASKED = masked_array(GREY, GT)
# call, kind of error, and a pattern: what is wrong, and for some the whole sentence
REFUSED: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "shape": (
        lambda: score(np.zeros((300, 400)), np.zeros((400, 300), bool)),
        ValueError,
        r"^pred has shape \(300, 400\) but gt has shape \(400, 300\); "
        "resize the prediction to the ground truth$",
    ),
    "pred dtype": (lambda: score(GREY.astype(np.int32)), TypeError, "pred has dtype int32"),
    "gt dtype": (lambda: score(GREY, GT.astype(np.int64)), TypeError, "gt has dtype int64"),
    "pred over 1": (lambda: score(GREY / 4), ValueError, r"pred .*2\.25.*\[0, 1\]"),
    "pred over 1 by rounding": (lambda: score(np.full((3, 3), 1 + EPS)), ValueError, "clip it"),
    "pred below 0": (lambda: score(-(GREY / 255)), ValueError, "pred .*-0.03"),
    "pred NaN": (lambda: score(np.where(GT, np.nan, 0.5)), ValueError, "pred .*nan"),
    "gt over 1": (lambda: score(GREY, GREY / 4), ValueError, "gt .*2.25"),
    "gt NaN": (lambda: score(GREY, np.where(GT, np.nan, 0.5)), ValueError, "gt .*nan"),
    "gt 0/1": (lambda: score(GREY, GT.astype(np.uint8)), ValueError, "gt .*looks like 0/1; pass bool"),
    "pred masked": (lambda: score(MASKED), ValueError, r"pred is a masked array.*pred\.filled\(0\)"),
    "gt masked": (
        lambda: sisod.Evaluator().update(GREY, masked_array(GT, GT)),
        ValueError,
        "gt is a masked array",
    ),
    "labels masked": (lambda: sisod.partition(labels=MASKED), ValueError, "labels is a masked array"),
    "ragged": (lambda: score([[1.0, 0.5], [0.1]]), TypeError, "pred cannot be converted"),
    "pred 3-D": (lambda: score(np.zeros((3, 3, 3))), ValueError, r"pred has shape \(3, 3, 3\)"),
    "gt 3-D": (lambda: score(GREY, np.zeros((3, 3, 3), bool)), ValueError, r"gt has shape \(3, 3, 3\)"),
    "no pixels": (lambda: score(np.zeros((0, 3))), ValueError, r"pred has shape \(0, 3\)"),
    "connectivity": (lambda: cut(connectivity=1), ValueError, "^connectivity must be 4 or 8, got 1$"),
    "min_area share": (lambda: cut(min_area=1.5), ValueError, "min_area .*1.5"),
    "min_area negative": (lambda: cut(min_area=-3), ValueError, "min_area .*-3"),
    "min_area bool": (lambda: cut(min_area=True), ValueError, "min_area .*True"),
    "alpha name": (lambda: cut(alpha="sum"), ValueError, "alpha .*'sum'"),
    "alpha negative": (lambda: cut(alpha=-0.5), ValueError, "alpha .*-0.5"),
    "alpha of weights": (
        lambda: sisod.weight_map([[0, 0, 1, 1]], (2, 2), alpha=-1),
        ValueError,
        "alpha .*-1",
    ),
    "kind": (lambda: cut(kind="circles"), ValueError, "kind .*'circles'"),
    "gt and labels": (lambda: cut(labels=GT.astype(int)), TypeError, "either gt or labels"),
    "labels dtype": (lambda: sisod.partition(labels=GREY / 1), ValueError, "labels has dtype float64"),
    "labels negative": (lambda: sisod.partition(labels=-GT.astype(int)), ValueError, "labels .*-1"),
    "labels shape": (
        lambda: sisod.partition(labels=np.ones(3, int)),
        ValueError,
        "labels has dtype int64, shape",
    ),
    "partition of another": (
        lambda: score(GREY, partition=sisod.partition(np.ones((2, 3), bool))),
        ValueError,
        r"partition .*\(2, 3\).* gt has shape \(3, 3\)",
    ),
    "no partition": (lambda: score(GREY, partition=GREY), ValueError, "partition is array"),
    "metric": (lambda: score(GREY, metrics=["si_maee"]), ValueError, "'si_maee'; did you mean 'si_mae'"),
    "no metric": (lambda: score(GREY, metrics=[]), ValueError, "metrics is empty"),
    "metric of no name": (lambda: score(GREY, metrics=[3]), ValueError, r"metrics must be .*\[3\]"),
    "protocol": (lambda: score(GREY, protocol="papr"), ValueError, "'papr'; did you mean 'paper'"),
    "protocol's borrowed name": (
        lambda: score(GREY, protocol=sisod.Protocol("default", min_area=7)),
        ValueError,
        "'default'.* name of its own",
    ),
    "si_s on Voronoi": (
        lambda: score(GREY, partition=cut(kind="voronoi"), metrics="si_s"),
        ValueError,
        "si_s .*Voronoi",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_input(name: str) -> None:
    call, error, pattern = REFUSED[name]
    with pytest.raises(error, match=pattern) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_a_prediction_of_0_and_1_is_warned_about_and_scored(dtype: type) -> None:
    with pytest.warns(UserWarning, match="pred is an integer map whose maximum is 1.*looks like 0/1"):
        values = sisod.score(GT.astype(dtype), GT, metrics="mae")
    assert values == {"mae": 0.0}  # stretched from its extremes


def test_a_black_prediction_and_a_black_gt_are_not_0_and_1() -> None:
    black = np.zeros((3, 3), np.uint8)
    assert sisod.score(black, black, metrics="mae") == {"mae": 0.0}


PRED = np.random.default_rng(2).integers(0, 256, (12, 15), dtype=np.uint8)
SAME: dict[str, Callable[[Any], Any]] = {
    "read-only": lambda array: np.frombuffer(array.tobytes(), array.dtype).reshape(array.shape),
    "by columns": np.asfortranarray,
    "negative strides": lambda array: np.ascontiguousarray(array[::-1, ::-1])[::-1, ::-1],
    "every other column": lambda array: np.repeat(array, 2, axis=1)[:, ::2],
    "masked without masked pixels": masked_array,
    "polars": pl.DataFrame,
}


@pytest.mark.parametrize("kind", SAME)
def test_other_arrays_score_alike(kind: str) -> None:
    gt = PRED[::-1] >= 128
    same = SAME[kind]
    np.testing.assert_equal(
        sisod.score(same(PRED), same(gt), metrics="all"), sisod.score(PRED, gt, metrics="all")
    )


@pytest.mark.parametrize("dtype", ["u2", "f4", "f8"])
def test_big_endian_arrays_score_alike(dtype: str) -> None:
    gt = PRED[::-1] >= 128
    pred = (PRED * 257.0 if dtype == "u2" else PRED / 255).astype(dtype)
    np.testing.assert_equal(sisod.score(pred.astype(f">{dtype}"), gt), sisod.score(pred, gt))


def test_memory_maps_score_alike_and_are_not_modified(tmp_path: Path) -> None:
    gt = PRED[::-1] >= 128
    np.save(tmp_path / "pred.npy", PRED / 255)
    mapped = np.load(tmp_path / "pred.npy", mmap_mode="r+")
    np.testing.assert_equal(sisod.score(mapped, gt), sisod.score(PRED / 255, gt))
    np.testing.assert_array_equal(mapped, PRED / 255)


@pytest.mark.needs("torch")
def test_tensors_score_alike_or_raise_with_advice() -> None:
    torch = pytest.importorskip("torch")
    gt = PRED[::-1] >= 128
    pred = torch.from_numpy(PRED / 255)
    expected = sisod.score(PRED / 255, gt)
    np.testing.assert_equal(sisod.score(pred, torch.from_numpy(gt.copy())), expected)
    for odd in (pred.clone().requires_grad_(), pred.bfloat16()):
        with pytest.raises(
            TypeError, match=r"^pred cannot be converted .*pred\.detach\(\)\.float\(\)\.cpu"
        ):
            sisod.score(odd, gt)

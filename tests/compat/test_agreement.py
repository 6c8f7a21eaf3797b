"""The drop-in gives the numbers of PySODMetrics 1.6.2: on random, special and real maps."""

import os
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import py_sod_metrics
import pytest
from helpers.ellipse_scenes import ellipse_scene
from helpers.pysodmetrics_results import METRICS, assert_same, results
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import sisod.compat.pysodmetrics as drop_in

DATA = os.environ.get("SISOD_DATA")
Grey = NDArray[np.uint8]


SCENES = [ellipse_scene(seed, height=50 + seed, width=64 - 2 * seed) for seed in range(3)]
EVERY_METRIC = pytest.mark.parametrize("name", METRICS)
FRAMED = ("si_mae", "si_v2", "si_v2_overall")
# type of the map -> map, mask and normalize of a pair of grey values
TYPES: dict[str, Any] = {
    "uint8": lambda pred, gt: (pred, gt, True),
    "int32": lambda pred, gt: (pred.astype(np.int32), gt, True),
    "uint16": lambda pred, gt: (pred.astype(np.uint16) * 257, gt, True),
    "float32": lambda pred, gt: ((pred / 255).astype(np.float32), gt, True),
    "float64": lambda pred, gt: (pred.astype(np.float64), gt, True),
    "bool": lambda pred, gt: (pred > 100, gt, True),
    "float32, ready": lambda pred, gt: ((pred / 255).astype(np.float32), gt > 128, False),
    "float64, ready": lambda pred, gt: (pred / 255, gt > 128, False),
}


@EVERY_METRIC
@pytest.mark.parametrize("kind", TYPES)
def test_types_of_maps(name: str, kind: str) -> None:
    converted = [TYPES[kind](*pair) for pair in (SCENES if name != "msiou" else [(MAP, MASK)])]
    pairs, normalize = [pair[:2] for pair in converted], converted[0][2]
    ours, theirs = (results(module, name, pairs, normalize=normalize) for module in MODULES)
    assert_same(ours, theirs)


MODULES = (drop_in, py_sod_metrics)
BLACK = np.zeros((30, 40), np.uint8)
MAP, MASK = SCENES[0][0][:30, :40], SCENES[1][1][:30, :40]
SPECIAL = {
    "empty gt": (MAP, BLACK),
    "full gt": (MAP, BLACK + 255),
    "black map": (BLACK, MASK),
    "white map": (BLACK + 255, MASK),
    "grey map": (BLACK + 51, MASK),
    "black map, empty gt": (BLACK, BLACK),
    "white map, full gt": (BLACK + 255, BLACK + 255),
    "perfect map": (MASK, MASK),
    "inverse map": (255 - MASK, MASK),
    "gt around 128": (MAP, (120 + np.indices(MAP.shape).sum(axis=0) % 17).astype(np.uint8)),
    "twice the mean is a grey value": (np.resize([0, 0, 0, 170, 255], (30, 40)).astype(np.uint8), MASK),
    "not contiguous": (SCENES[2][0][::-2, ::2], SCENES[2][1][::-2, ::2]),
    "one row": (MAP[:1], MASK[12:13]),
}


@EVERY_METRIC
@pytest.mark.parametrize("case", SPECIAL)
def test_special_pairs(name: str, case: str) -> None:
    pred, gt = SPECIAL[case]
    if name in FRAMED and (gt > 128).all():
        pytest.skip("PySODMetrics raises; see test_differences.py")
    if name.startswith("sm") and not is_exact(pred, gt):
        pytest.skip("depends on rounding in PySODMetrics; see test_differences.py")
    ours, theirs = (results(module, name, [SPECIAL[case]]) for module in MODULES)
    assert_same(ours, theirs)


def is_exact(pred: NDArray[Any], gt: NDArray[Any]) -> bool:
    """Return whether S of PySODMetrics does not depend on the rounding of a mean.

    It does in a quadrant where both map and mask are constant; and it is NaN if a quadrant is empty.
    """
    mask = gt > 128 if gt.dtype != np.bool_ else gt
    if mask.all() or not mask.any():
        return True
    y, x = (int(centre) + 1 for centre in np.argwhere(mask).mean(axis=0).round())
    parts = [
        (rows, columns) for rows in (slice(y), slice(y, None)) for columns in (slice(x), slice(x, None))
    ]
    return all(
        mask[part].size and (np.ptp(mask[part].astype(int)) > 0 or np.ptp(pred[part]) > 0)
        for part in parts
    )


@st.composite
def random_pairs(draw: st.DrawFn) -> tuple[NDArray[Any], Grey]:
    """Few grey values and many ties; rectangles make targets of more than 50 pixels."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = draw(st.tuples(st.integers(2, 24), st.integers(2, 24)))
    salient, other = draw(st.sampled_from([(129, 128), (255, 0), (200, 127)]))
    share = draw(st.sampled_from([0.0, 0.05, 0.3, 0.5]))
    gt = np.where(rng.random(shape) < share, salient, other).astype(np.uint8)
    for _ in range(draw(st.integers(0, 3))):
        y, x, height, width = (int(rng.integers(0, 14)) for _ in range(4))
        gt[y : y + height, x : x + width] = draw(st.sampled_from([other, salient]))
    levels = draw(st.lists(st.integers(0, 255), min_size=1, max_size=8))
    pred = rng.choice(np.array(levels, np.uint8), shape)
    kind = draw(st.sampled_from(["uint8", "float32", "float64"]))
    return pred if kind == "uint8" else (pred / 255).astype(kind), gt


@given(pairs=st.lists(random_pairs(), min_size=1, max_size=2))
@settings(max_examples=25, deadline=None)
@pytest.mark.parametrize("name", [name for name in METRICS if not name.startswith(("cm", "msiou"))])
@pytest.mark.slow
def test_random_maps(name: str, pairs: list[tuple[NDArray[Any], Grey]]) -> None:
    if name.startswith("sm"):
        pairs = [pair for pair in pairs if is_exact(*pair)]
    if name in FRAMED:
        pairs = [(pred, gt) for pred, gt in pairs if not (gt > 128).all()]
    if not pairs:
        return
    ours, theirs = (results(module, name, pairs) for module in MODULES)
    if name == "si_mae" and np.isnan(theirs["/si_mae"]):  # a frame that covers the image
        assert 0 <= ours["/si_mae"] <= 1
    else:
        assert_same(ours, theirs)


@given(pair=random_pairs())
@settings(max_examples=12, deadline=None)
@pytest.mark.slow
def test_random_maps_of_the_costly_metrics(pair: tuple[NDArray[Any], Grey]) -> None:
    names = ["msiou", "msiou_levels"]
    points = np.argwhere(pair[1] > 128)
    if len(points) < 2 or np.linalg.matrix_rank(points - points[0]) == 2:
        names += ["cm", "cm_settings"]
    for name in names:
        ours, theirs = (results(module, name, [pair]) for module in MODULES)
        assert_same(ours, theirs)


def real_pairs() -> list[tuple[Grey, Grey]]:
    folder = Path(DATA or "") / "MSOD"
    pairs = []
    for path in sorted((folder / "mask").glob("*.png"))[::75]:
        gt = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
        pred = cv2.imread(str(folder / "prediction" / path.name), cv2.IMREAD_GRAYSCALE)
        assert gt is not None
        assert pred is not None
        resized = cv2.resize(pred, gt.shape[::-1], interpolation=cv2.INTER_LINEAR)
        pairs.append((np.asarray(resized, np.uint8), np.asarray(gt, np.uint8)))
    return pairs


@pytest.mark.skipif(DATA is None, reason="SISOD_DATA is unset: no real MSOD maps")
@pytest.mark.parametrize("name", [name for name in METRICS if not name.startswith("msiou")])
@pytest.mark.slow
def test_real_maps(name: str) -> None:
    pairs = real_pairs()
    assert len(pairs) >= 4
    ours, theirs = (results(module, name, pairs) for module in MODULES)
    assert_same(ours, theirs)

"""Boundaries against other people's tools.

Values of faster-coco-eval (boundary IoU), MONAI (normalised surface distance), PySODMetrics (human
correction effort) and a restated script (mean boundary accuracy) are stored in `boundary_golden.json`;
`tools/make_boundary_golden.py` says how each is called. PySODMetrics and scikit-image are also run here,
on many small masks. Where our definitions differ on purpose:

| case | tool | it says | we say |
|---|---|---|---|
| nothing salient | faster-coco-eval | 0 | NaN, as every IoU |
| nothing salient, something predicted | MONAI | 0 | NaN, as every overlap |
"""

import json
import os
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from helpers.object_maps import boundary_maps, digest
from hypothesis import given, settings
from hypothesis import strategies as st
from make_boundary_golden import GOLDEN_PATH, TOOLS, tool_values
from numpy.typing import NDArray

import sisod
from sisod.scoring.families.boundaries import skeleton

pytestmark = pytest.mark.usefixtures("both_engines")

Mask = NDArray[np.bool_]
GOLDEN: dict[str, Any] = json.loads(GOLDEN_PATH.read_text(encoding="utf-8"))
MAPS = boundary_maps()
DATA = os.environ.get("SISOD_DATA")
KEYS = ("biou", "si_biou", "mba", "hce", "nsd")


@pytest.mark.parametrize("name", MAPS)
def test_stored_values(name: str) -> None:
    pred, gt = MAPS[name]
    assert digest(pred, gt) == GOLDEN["digests"][name]
    theirs = {key: value for tool in TOOLS for key, value in GOLDEN["values"][tool][name].items()}
    if not gt.any():
        assert theirs["biou"] == 0
        assert theirs["nsd"] == (0 if pred.any() else None)
        theirs |= {"biou": None, "nsd": None}
    expected = {key: np.nan if value is None else value for key, value in theirs.items()}
    ours = sisod.score(pred, gt, metrics=KEYS, protocol="default+normalize=none+min_area=0")
    assert ours == pytest.approx(expected, abs=GOLDEN["tolerance"], nan_ok=True)


@pytest.mark.needs("py_sod_metrics")
@pytest.mark.parametrize("tool", ["pysodmetrics", "opencv-python-headless"])
def test_the_stored_values_equal_the_output_of_the_script(tool: str) -> None:
    assert tool_values(tool) == GOLDEN["values"][tool]


def their_effort(pred: NDArray[np.uint8], gt: Mask) -> float:
    import py_sod_metrics

    measure = py_sod_metrics.HumanCorrectionEffortMeasure()
    measure.step(pred, gt.astype(np.uint8) * 255)
    return float(measure.get_results()["hce"])


@st.composite
def blobs(draw: st.DrawFn, side: int) -> tuple[Mask, Mask]:
    """Return masks whose objects have all widths: smooth noise above a quantile."""
    height, width = draw(st.integers(1, side)), draw(st.integers(1, side))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    masks = []
    for _ in range(2):
        scale = draw(st.sampled_from([0.5, 1.0, 3.0, 6.0]))
        noise = np.asarray(cv2.GaussianBlur(rng.random((height, width)), (0, 0), scale))
        masks.append(np.asarray(noise >= np.quantile(noise, draw(st.sampled_from([0.1, 0.5, 0.8])))))
    return masks[0], masks[1]


@pytest.mark.needs("py_sod_metrics")
@settings(deadline=None, max_examples=80)
@given(blobs(60), st.sampled_from(["other", "eroded", "dilated", "grey"]))
def test_effort(pair: tuple[Mask, Mask], kind: str) -> None:
    gt, other = pair
    kernel = np.ones((3, 3), dtype=np.uint8)
    grey = gt.view(np.uint8) * np.uint8(255)
    pred = {
        "other": other.view(np.uint8) * np.uint8(255),
        "eroded": np.asarray(cv2.erode(grey, kernel, iterations=3)),
        "dilated": np.asarray(cv2.dilate(grey, kernel, iterations=6)),
        "grey": np.asarray(cv2.GaussianBlur(grey, (0, 0), 4.0)),
    }[kind].astype(np.uint8)
    assert sisod.score(pred, gt, metrics="hce")["hce"] == their_effort(pred, gt)


def their_skeleton(mask: Mask) -> Mask:
    from skimage import morphology

    skeletonize: Any = morphology.skeletonize  # it has no types
    return np.asarray(skeletonize(mask))


@pytest.mark.needs("skimage")
@settings(deadline=None, max_examples=120)
@given(blobs(40))
def test_skeleton(pair: tuple[Mask, Mask]) -> None:
    for mask in pair:
        np.testing.assert_array_equal(skeleton(mask), their_skeleton(mask))


@pytest.mark.needs("skimage")
def test_skeleton_of_every_neighbourhood() -> None:
    """A pixel with each of the 256 neighbourhoods, at the edge of the image and away from it."""
    for code in range(256):
        ring = [bool(code >> bit & 1) for bit in range(8)]
        mask = np.array([ring[:3], [ring[7], True, ring[3]], ring[6:3:-1]])
        for padded in (mask, np.pad(mask, 1), np.pad(mask, 1, mode="edge")):
            np.testing.assert_array_equal(skeleton(padded), their_skeleton(padded))


@pytest.mark.needs("py_sod_metrics")
@pytest.mark.skipif(DATA is None, reason="needs SISOD_DATA, the folder of the data sets")
def test_effort_on_real_maps() -> None:
    masks = sorted(Path(str(DATA), "MSOD", "mask").glob("*.png"))[:60:10]
    assert masks
    for path in masks:
        gt = np.asarray(cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)) >= 128
        pred = cv2.imread(str(path.parents[1] / "prediction" / path.name), cv2.IMREAD_GRAYSCALE)
        resized = np.asarray(cv2.resize(np.asarray(pred), gt.shape[::-1]), dtype=np.uint8)
        assert sisod.score(resized, gt, metrics="hce")["hce"] == their_effort(resized, gt)

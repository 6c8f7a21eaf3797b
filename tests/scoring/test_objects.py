"""Predicted objects: by hand, against sets of pixels, and what must hold for every map."""

import math
from typing import Any

import cv2
import numpy as np
import pytest
from helpers import object_oracle as oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import sisod
from sisod.common.exceptions import UsageError
from sisod.scoring.engine import find_scorer, score_pair
from sisod.scoring.metrics import METRICS, find_metrics
from sisod.scoring.protocols import PROTOCOLS, Protocol

pytestmark = pytest.mark.usefixtures("both_engines")

OBJECT_KEYS = [key for key, metric in METRICS.items() if metric.family.kind == "objects"]
BALANCED = ["bsi_iou_binary", "bsi_dice_binary", "bsi_f_binary"]
DATASET = [key for key in OBJECT_KEYS if not key.startswith("n_") and not METRICS[key].family.detections]


def scene() -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """A found, a missed, a merged, a split and a false object on 40 x 60 pixels."""
    gt = np.zeros((40, 60), dtype=bool)
    gt[2:10, 2:12] = True  # found: 80 pixels
    gt[2:6, 50:54] = True  # missed: 16
    gt[20:28, 2:8] = True  # merged with the next: 48
    gt[20:28, 12:18] = True  # 48
    gt[20:24, 30:50] = True  # split: 80
    p = np.zeros((40, 60))
    p[2:10, 2:12] = 0.9
    p[20:28, 2:18] = 0.8  # 128 pixels, 96 of them salient
    p[20:24, 30:38] = 0.7  # 32 of 32
    p[20:24, 40:50] = 0.7  # 40 of 40
    p[34:38, 20:28] = 0.6  # false: 32
    return p, gt


def test_scene_by_hand() -> None:
    p, gt = scene()
    values = sisod.score(p, gt, metrics="all", protocol=Protocol("plain", normalize="none"))
    # five objects; found are all but the missed one; five predicted objects, one of them false
    assert (values["n_predicted"], values["n_false"], values["n_found"]) == (5, 1, 4)
    assert values["object_recall"] == 4 / 5
    assert values["object_precision"] == 4 / 5  # the merged one is salient in 96 of 128 pixels
    assert values["object_f1"] == pytest.approx(4 / 5)
    assert values["false_objects"] == 1
    assert values["false_area"] == 32 / 2400
    # matches at IoU > 0.5: the found one (1), the larger half of the split one is 40 / 80, not above
    assert values["sq"] == 1
    assert values["rq"] == 1 / (1 + 4 / 2 + 4 / 2)
    assert values["pq"] == pytest.approx(0.2)
    # frames: 1, 0, 1, 1, and 72 of 80 pixels of the split one, nothing else predicted in its frame
    assert values["si_iou_binary"] == pytest.approx((1 + 0 + 1 + 1 + 0.9) / 5)
    assert values["bsi_iou_binary"] == pytest.approx((1 + 0 + 1 + 1 + 0.9) / 6)


def test_rows_by_hand() -> None:
    p, gt = scene()
    scores = score_pair(find_scorer(Protocol("plain", normalize="none"), None), p, gt)
    rows = scores.predicted
    assert rows["area"].tolist() == [80, 128, 32, 40, 32]
    # objects are numbered by top, then left: 0 found, 1 missed, 2 and 3 merged, 4 split
    assert rows["match"].tolist() == [0, 2, 4, 4, -1]  # of two equals, the lower index
    assert rows["iou"].tolist() == [1, 48 / 128, 32 / 80, 40 / 80, 0]
    assert rows["precision"].tolist() == [1, 96 / 128, 1, 1, 0]
    assert rows["false"].tolist() == [False, False, False, False, True]
    np.testing.assert_allclose(rows["mean"].astype(float), [0.9, 0.8, 0.7, 0.7, 0.6])
    assert rows["peak"].tolist() == [0.9, 0.8, 0.7, 0.7, 0.6]
    assert rows["touches_border"].tolist() == [False] * 5
    assert rows["share"].tolist() == [80 / 2400, 128 / 2400, 32 / 2400, 40 / 2400, 32 / 2400]


def test_curve_by_hand() -> None:
    p, gt = scene()
    scores = score_pair(find_scorer(Protocol("plain", normalize="none"), "object_ap"), p, gt)
    found = scores.object_counts["curve_found"][0]
    predicted = scores.object_counts["curve_predicted"][0]
    # thresholds at the logits 0, 0.5, ... are 0.5, 0.622, 0.731, 0.818, 0.881, 0.924: 0.6 is above 25
    # of 49, 0.7 above 26, 0.8 above 27, 0.9 above 29
    assert predicted.tolist() == [5] * 25 + [4] + [2] + [1] * 2 + [0] * 20
    assert found.tolist() == [4] * 26 + [3] + [1] * 2 + [0] * 20
    # recall 1/5 at precision 1, 3/5 at 1, 4/5 at 1 (four predicted, all precise)
    assert sisod.score(p, gt, metrics="object_ap", protocol=Protocol("n", normalize="none")) == {
        "object_ap": pytest.approx(0.8)
    }
    best = sisod.score(p, gt, metrics="object_f1_max", protocol=Protocol("n", normalize="none"))
    assert best["object_f1_max"] == pytest.approx(2 * 0.8 / 1.8)


@pytest.mark.parametrize("kind", ["uint16", "float32", "float64"])
def test_values_over_thresholds_see_what_lies_near_one(kind: str) -> None:
    """An object at logit 8, a false one at 6: both are above 0.997."""
    p, gt = np.full((20, 20), 1e-4), np.zeros((20, 20), dtype=bool)
    gt[2:6, 2:6] = True
    p[gt], p[12:16, 12:16] = 1 / (1 + math.exp(-8)), 1 / (1 + math.exp(-6))
    pred = (p * {"uint16": 65535}.get(kind, 1)).astype(kind)
    keys = ["object_f1", "object_f1_max", "object_ap"]
    values = sisod.score(pred, gt, metrics=keys, protocol=Protocol("n", normalize="none"))
    assert values == {"object_f1": pytest.approx(2 / 3), "object_f1_max": 1, "object_ap": 1}


@pytest.mark.parametrize("kind", ["uint8", "uint16", "float32", "float64"])
@pytest.mark.parametrize("normalize", ["none", "minmax"])
def test_middle_of_the_curve_is_the_binary_form(kind: str, normalize: Any) -> None:
    """Single pixels at one half and next to it."""
    largest = {"uint8": 255, "uint16": 65535}.get(kind)
    if largest is None:
        half = np.array(0.5, dtype=kind)
        values = [np.nextafter(half, half - half), half, np.nextafter(half, half + half)]
    else:
        values = [largest // 2 - 1, largest // 2, largest // 2 + 1, largest // 2 + 2]
    pred = np.zeros((3, 15), dtype=kind)
    pred[1, 1 : 2 * len(values) : 2] = values
    pred[1, -2] = largest or 1
    protocol = Protocol("n", normalize=normalize, min_area=0)
    counts = score_pair(find_scorer(protocol, "object_ap"), pred, pred > 0).object_counts
    assert counts["curve_predicted"][0, 24] == counts["predicted"][0]


@st.composite
def pairs(draw: st.DrawFn) -> tuple[NDArray[Any], NDArray[np.bool_], Protocol]:
    """Smooth random maps and masks of every dtype, and settings of a protocol."""
    height, width = draw(st.integers(1, 24)), draw(st.integers(1, 24))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def field() -> NDArray[np.float64]:
        noise = rng.random((height, width))
        smooth = cv2.GaussianBlur(noise, (0, 0), rng.uniform(0.3, 3))
        return np.asarray(np.clip((smooth - 0.5) * draw(st.sampled_from([1, 3, 50])) + 0.5, 0, 1))

    gt = field() > draw(st.sampled_from([0.3, 0.5, 0.55, 1.0]))
    p = field()
    if draw(st.booleans()):  # as networks end: most values near 0 and 1
        p = 1 / (1 + np.exp(30 * (0.5 - p)))
    p[0, 0] = max(p[0, 0], 0.1)  # an integer map whose maximum is 1 gives a warning
    kind = draw(st.sampled_from(["uint8", "uint16", "float32", "float64"]))
    scale = {"uint8": 255, "uint16": 65535}.get(kind, 1)
    protocol = Protocol(
        "drawn",
        connectivity=draw(st.sampled_from([4, 8])),
        min_area=draw(st.sampled_from([0, 0.0002, 0.02, 4, 10_000])),
        normalize=draw(st.sampled_from(["minmax", "none"])),
    )
    return (p * scale).astype(kind), gt, protocol


def unit(pred: NDArray[Any]) -> NDArray[np.float64]:
    scale = {"uint8": 255, "uint16": 65535}.get(pred.dtype.name, 1)
    return pred.astype(np.float64) / scale


def judge(pred: NDArray[Any], gt: NDArray[np.bool_], protocol: Protocol) -> oracle.Image:
    return oracle.judge(
        unit(pred),
        gt,
        connectivity=protocol.connectivity,
        min_area=protocol.min_area,
        normalize=protocol.normalize,
    )


@given(pairs())
@settings(max_examples=60, deadline=None)
def test_rows_and_counts_against_sets_of_pixels(
    drawn: tuple[NDArray[Any], NDArray[np.bool_], Protocol],
) -> None:
    pred, gt, protocol = drawn
    scores = score_pair(find_scorer(protocol, "all"), pred, gt)
    expected = judge(pred, gt, protocol)
    rows = scores.predicted
    assert len(rows["area"]) == len(expected.rows)
    for index, row in enumerate(expected.rows):
        assert tuple(rows[side][index] for side in ("y0", "x0", "y1", "x1")) == row["box"]
        for key in ("area", "share", "touches_border", "peak", "precision", "match", "iou", "false"):
            assert rows[key][index] == row[key], key
        assert rows["mean"][index] == pytest.approx(row["mean"], abs=1e-12)
    for key, value in expected.counts.items():
        assert scores.object_counts[key][0] == pytest.approx(value, abs=1e-12), key
    for step, counts in enumerate(expected.curve):
        for key, value in counts.items():
            assert scores.object_counts[f"curve_{key}"][0, step] == value, (step, key)
    for key, value in oracle.dataset_values([expected]).items():
        found = scores.values[0, scores.keys.index(key)]
        assert found == pytest.approx(value, abs=1e-9, nan_ok=True), key


@given(st.lists(pairs(), min_size=2, max_size=4))
@settings(max_examples=20, deadline=None)
def test_data_set_is_judged_from_sums(
    drawn: list[tuple[NDArray[Any], NDArray[np.bool_], Protocol]],
) -> None:
    protocol = drawn[0][2]
    scorer = find_scorer(protocol, DATASET)
    counts = [score_pair(scorer, pred, gt).object_counts for pred, gt, _ in drawn]
    sums = {key: sum(image[key][0] for image in counts) for key in counts[0]}
    expected = oracle.dataset_values([judge(pred, gt, protocol) for pred, gt, _ in drawn])
    for key in DATASET:
        value = float(METRICS[key].family.function({k: np.asarray(v) for k, v in sums.items()}))
        assert value == pytest.approx(expected[key], abs=1e-9, nan_ok=True), key


@given(pairs())
@settings(max_examples=60, deadline=None)
def test_without_false_objects_balanced_is_size_invariant(
    drawn: tuple[NDArray[Any], NDArray[np.bool_], Protocol],
) -> None:
    pred, gt, protocol = drawn
    values = sisod.score(pred, gt, protocol=protocol)
    for key in BALANCED:
        si = values[key.replace("bsi", "si")]
        if values["n_false"] == 0:
            assert values[key] == si or (math.isnan(values[key]) and math.isnan(si))
        elif math.isnan(si):  # nothing is salient
            assert values[key] == 0
        else:
            n_objects = len(protocol.partition(gt))
            expected = si * n_objects / (n_objects + values["n_false"])
            assert values[key] == pytest.approx(expected, abs=1e-12)


def test_a_false_object_changes_no_si_value_and_lowers_every_balanced_one() -> None:
    p, gt = scene()
    p[34:38, 20:28] = 0  # without the false object
    flooded = p.copy()
    flooded[32:36, 50:56] = 0.9
    before, after = sisod.score(p, gt), sisod.score(flooded, gt)
    composite = [
        key
        for key, metric in METRICS.items()
        if metric.size_invariant
        and not metric.family.separable
        and "adaptive" not in key
        and key in before
    ]
    assert len(composite) > 30
    for key in composite:
        assert before[key] == after[key] or math.isnan(before[key]), key
    for key in (*BALANCED, "object_precision", "object_f1", "pq", "rq"):
        assert after[key] < before[key], key
    assert after["n_false"] == before["n_false"] + 1
    flooded[32:36, 50:56] = 0
    assert repr(sisod.score(flooded, gt)) == repr(before)


@pytest.mark.parametrize("protocol", ["default", "paper", "pysodmetrics", "infrared", "cc"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (9, 1), (20, 30)])
@pytest.mark.parametrize("kind", ["uint8", "float64"])
def test_degenerate_pairs_are_defined_or_nan(protocol: str, shape: tuple[int, int], kind: str) -> None:
    masks = [np.zeros(shape, bool), np.ones(shape, bool), np.indices(shape).sum(axis=0) % 2 == 0]
    available = find_metrics("all", detections=PROTOCOLS[protocol].detections)
    keys = [*BALANCED, *(key for key in OBJECT_KEYS if key in available)]
    for gt in masks:
        for predicted in (*masks, gt):
            pred = predicted.astype(kind) * (255 if kind == "uint8" else 1)
            pred = pred.astype(kind)
            if kind == "uint8" and predicted.all():
                pred[:] = 200
            values = sisod.score(pred, gt, protocol=protocol, metrics=keys)
            assert not any(math.isinf(value) for value in values.values())
            if protocol == "pysodmetrics":  # at least 50 pixels: some of these have no predicted object
                continue
            if predicted is gt and gt.any():
                assert values["object_recall"] == values["object_precision"] == values["pq"] == 1
            if not gt.any() and predicted.any():
                assert values["n_false"] > 0
                assert all(values[key] == 0 for key in BALANCED)
                assert values["object_precision"] == values["pq"] == 0
            if not gt.any() and not predicted.any():
                assert all(math.isnan(values[key]) for key in (*BALANCED, "pq", "object_f1"))


def test_five_thousand_predicted_objects() -> None:
    pred = np.zeros((300, 400), dtype=np.uint8)
    pred[::4, ::6] = 255
    pred[1::4, ::6] = 200
    gt = np.zeros((300, 400), dtype=bool)
    gt[100:140, 100:160] = True
    keys = ["n_predicted", "n_false", "pd", "object_ap"]
    values = sisod.score(pred, gt, protocol="infrared", metrics=keys)
    inside = np.count_nonzero(gt[::4, ::6] | gt[1::4, ::6])
    assert values["n_predicted"] == 75 * 67
    assert values["n_false"] == 75 * 67 - inside


def test_min_area_above_everything_leaves_no_predicted_object() -> None:
    p, gt = scene()
    values = sisod.score(p, gt, protocol=Protocol("huge", min_area=10_000))
    assert values["n_predicted"] == 0
    assert math.isnan(values["object_precision"])
    assert values["n_found"] == 1  # of the truth the largest is kept
    assert values["rq"] == 0


def test_detections_take_the_first_free_object_that_is_near() -> None:
    gt = np.zeros((20, 40), dtype=bool)
    gt[5, 5] = gt[5, 9] = gt[15, 30] = True
    p = np.zeros((20, 40))
    p[5, 7] = 0.9  # two pixels from both: the first target takes it
    p[5, 11:13] = 0.9  # centroid 11.5, 2.5 from the second
    p[15, 33] = 0.9  # exactly 3 from the third: not nearer than 3
    values = sisod.score(p, gt, protocol="infrared", metrics=["pd", "fa", "niou", "iou_total"])
    assert values == {"pd": 2 / 3, "fa": 1 / 800, "niou": 0.0, "iou_total": 0.0}


def test_metrics_of_detections_belong_to_infrared() -> None:
    p, gt = scene()
    with pytest.raises(UsageError, match="only under the protocol 'infrared'"):
        sisod.score(p, gt, metrics="pd")
    assert "pd" not in sisod.score(p, gt, metrics="all")
    assert "pd" in sisod.score(p, gt, protocol="infrared")


def test_salient_pixels_outside_the_only_object_of_the_caller_are_nobodys() -> None:
    """Two salient squares, both predicted; of these the caller's labels call one an object."""
    gt = np.zeros((12, 24), dtype=bool)
    gt[2:8, 2:8] = gt[2:8, 14:20] = True
    labels = gt.astype(np.int32)
    labels[:, :12] = 0
    values = sisod.score(gt, gt, partition=sisod.partition(labels=labels))
    assert (values["n_predicted"], values["n_found"], values["n_false"]) == (2, 1, 0)
    assert values["pq"] == 1 / (1 + 1 / 2)  # one match of two predicted objects and one object

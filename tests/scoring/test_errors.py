"""The error breakdown: by hand, against a label for every pixel, and what must hold for every map."""

import json
from typing import Any

import cv2
import numpy as np
import pytest
from draw_errors import make_scene as scene
from helpers import error_oracle, object_oracle
from helpers.object_maps import object_maps
from hypothesis import example, given, settings
from hypothesis import strategies as st
from make_object_golden import GOLDEN_PATH
from numpy.typing import NDArray

import sisod
from sisod.scoring.counting.object_counts import ERROR_COUNTS, OBJECT_CLASSES
from sisod.scoring.engine import find_scorer, score_pair
from sisod.scoring.protocols import Protocol
from sisod.scoring.scores import Scores

pytestmark = pytest.mark.usefixtures("both_engines")

Mask = NDArray[np.bool_]
PLAIN = Protocol("plain", normalize="none", min_area=4)
MAPS = object_maps()


def scores_of(pred: NDArray[Any], gt: Mask, protocol: Protocol = PLAIN) -> Scores:
    return score_pair(find_scorer(protocol, None), pred, gt)


def errors_of(pred: NDArray[Any], gt: Mask, protocol: Protocol = PLAIN) -> list[str]:
    """The class of every object, by top, then left."""
    return [OBJECT_CLASSES[code] for code in scores_of(pred, gt, protocol).objects["error"].tolist()]


def counts_of(scores: Scores) -> dict[str, int]:
    """The counts of one image that are not 0."""
    return {
        key: int(scores.object_counts[key][0]) for key in ERROR_COUNTS if scores.object_counts[key][0]
    }


def test_scene_by_hand() -> None:
    p, gt = scene()  # docs/errors.md names every object
    scores = scores_of(p, gt)
    assert [OBJECT_CLASSES[code] for code in scores.objects["error"].tolist()] == [
        *("correct", "missed", "merged", "merged", "split", "spilled", "partly_found")
    ]
    assert scores.objects["missed_pixels"].tolist() == [8, 12, 0, 0, 16, 0, 40]
    # by top, then left; the one that spills over lies above the one that is partly found
    rows = scores.predicted
    assert rows["area"].tolist() == [72, 4, 112, 32, 32, 64, 96, 18]
    assert rows["holds"].tolist() == [1, 0, 2, 0, 0, 1, 1, 0]
    assert rows["spilled_pixels"].tolist() == [0, 0, 16, 0, 0, 48, 36, 18]
    assert counts_of(scores) == {
        "objects_correct": 1,
        "objects_partly_found": 1,
        "objects_spilled": 1,
        "objects_merged": 2,
        "objects_split": 1,
        "fn_missed": 12,
        "fn_split": 16,
        "fn_partly_found": 8 + 40,
        "fn_below_min_area": 1,
        "fp_merged": 16,
        "fp_spilled": 48 + 36,
        "fp_in_frame": 1,
        "fp_below_min_area": 1,
    }
    assert scores.object_counts["false_pixels"][0] == 18


def test_small_object_inside_a_correct_one_s_prediction_is_merged() -> None:
    gt, p = np.zeros((20, 40), dtype=bool), np.zeros((20, 40))
    gt[2:12, 2:12] = gt[5:8, 14:17] = True
    p[2:12, 2:17] = 1  # IoU 100 / 150 with the large one
    assert errors_of(p, gt) == ["correct", "merged"]


def test_two_pieces_of_exactly_half_are_a_split_object() -> None:
    gt, p = np.zeros((12, 24), dtype=bool), np.zeros((12, 24))
    gt[2:6, 2:18] = True
    p[2:6, 2:10] = 1
    assert errors_of(p, gt) == ["partly_found"]  # one piece of exactly one half, IoU 0.5 is no match
    p[2:6, 12:18] = 1
    assert errors_of(p, gt) == ["split"]
    p[2:6, 2:11] = 1  # now one piece holds more than half of it
    assert errors_of(p, gt) == ["correct"]


def test_pieces_too_small_to_be_predicted_objects_find_an_object_partly() -> None:
    gt, p = np.zeros((12, 24), dtype=bool), np.zeros((12, 24))
    gt[2:6, 2:14] = True
    p[2:6, 2:14:2] = 1  # six pieces of 4 pixels
    assert errors_of(p, gt, Protocol("five pixels", normalize="none", min_area=5)) == ["partly_found"]
    assert errors_of(p, gt) == ["split"]


def test_missed_goes_before_correct_where_another_object_lies_in_the_frame() -> None:
    gt, p = np.zeros((30, 30), dtype=bool), np.zeros((30, 30))
    gt[2:28, 2] = gt[27, 2:28] = True  # an L, its frame holds the block
    gt[4:20, 8:24] = True
    p[2:28, 2] = p[27, 2:28] = 1
    scores = scores_of(p, gt)
    # the L is a match of PQ, but most salient pixels of its frame are not predicted
    assert scores.object_counts["matched"][0] == 1
    assert errors_of(p, gt) == ["missed", "missed"]
    assert counts_of(scores) == {"fn_missed": 256}


def test_nothing_salient() -> None:
    gt, p = np.zeros((10, 20), dtype=bool), np.zeros((10, 20))
    p[2:5, 2:5] = p[8, 8] = 1
    scores = scores_of(p, gt)
    assert len(scores.objects["error"]) == 0
    assert counts_of(scores) == {"fp_below_min_area": 1}
    assert scores.object_counts["false_pixels"][0] == 9


def test_nothing_predicted() -> None:
    _, gt = scene()
    scores = scores_of(np.zeros(gt.shape), gt)
    assert set(scores.objects["error"].tolist()) == {OBJECT_CLASSES.index("missed")}
    assert counts_of(scores) == {"fn_missed": int(gt.sum()) - 1, "fn_below_min_area": 1}


def test_voronoi_regions_have_the_frames_of_their_objects() -> None:
    p, gt = scene()
    boxes = scores_of(p, gt)
    voronoi = scores_of(p, gt, Protocol("regions", kind="voronoi", normalize="none", min_area=4))
    # the region of the missed object holds no pixel of another, so all recalls are on the same side
    assert counts_of(voronoi) == counts_of(boxes)
    assert voronoi.objects["error"].tolist() == boxes.objects["error"].tolist()


def test_instances_that_touch_and_cover_other_pixels() -> None:
    gt = np.zeros((10, 24), dtype=bool)
    gt[2:8, 2:14] = True
    labels = np.zeros(gt.shape, dtype=np.int64)
    labels[2:8, 2:8], labels[2:8, 8:16] = 1, 2  # the second has two columns that are not salient
    labels[9, 20] = 3  # nothing of it is salient
    p = np.zeros(gt.shape)
    p[2:8, 2:9] = 1
    scores = score_pair(
        find_scorer(PLAIN, None), p, gt, partition=sisod.partition(labels=labels, min_area=0)
    )
    assert [OBJECT_CLASSES[code] for code in scores.objects["error"].tolist()] == [
        *("correct", "missed", "missed")
    ]
    assert scores.objects["missed_pixels"].tolist() == [0, 30, 0]
    assert counts_of(scores) == {"objects_correct": 1, "fn_missed": 30}


@st.composite
def pairs(draw: st.DrawFn) -> tuple[NDArray[Any], Mask, Protocol]:
    """Random blobs, and predictions that cover, break, grow, join or invent them."""
    height, width = draw(st.integers(1, 26)), draw(st.integers(1, 26))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def field() -> NDArray[np.float64]:
        noise = cv2.GaussianBlur(rng.random((height, width)), (0, 0), rng.uniform(0.3, 2.5))
        return np.asarray((noise - noise.mean()) / max(float(noise.std()), 1e-9))

    truth = field()
    gt = truth > draw(st.sampled_from([-0.5, 0.5, 1.0, 9.0]))
    mixed = draw(st.sampled_from([0.3, 0.8, 0.95])) * truth + 0.3 * field() + rng.normal(0, 0.5)
    p = 1 / (1 + np.exp(-4 * (mixed - draw(st.sampled_from([-0.3, 0.2, 0.5])))))
    protocol = Protocol(
        "drawn",
        kind=draw(st.sampled_from(["boxes", "boxes", "voronoi"])),
        connectivity=draw(st.sampled_from([4, 8])),
        min_area=draw(st.sampled_from([0, 0.0002, 0.02, 4])),
        normalize=draw(st.sampled_from(["minmax", "none"])),
    )
    kind = draw(st.sampled_from(["uint8", "uint16", "float64"]))
    scale = {"uint8": 255, "uint16": 65535}.get(kind, 1)
    return (p * scale).astype(kind), gt, protocol


def break_down(pred: NDArray[Any], gt: Mask, protocol: Protocol, scores: Scores) -> Any:
    scale = {"uint8": 255, "uint16": 65535}.get(pred.dtype.name, 1)
    objects = object_oracle.true_objects(gt, protocol.connectivity, protocol.min_area)
    p = object_oracle.stretched(pred.astype(np.float64) / scale, protocol.normalize)
    return error_oracle.break_down(
        p,
        gt,
        objects,
        connectivity=protocol.connectivity,
        min_area=protocol.min_area,
        recalls=scores.objects["recall_binary"].tolist(),  # `test_oracle` has its own opinion on these
    )


@given(pairs())
@example((*MAPS["random3"], PLAIN))  # more components than are counted in one pass
@settings(max_examples=120, deadline=None)
def test_against_a_label_for_every_pixel(drawn: tuple[NDArray[Any], Mask, Protocol]) -> None:
    pred, gt, protocol = drawn
    scores = scores_of(pred, gt, protocol)
    expected = break_down(pred, gt, protocol, scores)
    assert [OBJECT_CLASSES[code] for code in scores.objects["error"].tolist()] == expected.objects
    pixels = expected.counts()
    for key in ERROR_COUNTS:
        if key.startswith(("fn_", "fp_")):
            assert scores.object_counts[key][0] == pixels[key], key
    assert scores.object_counts["false_pixels"][0] == pixels["fp_false"]
    assert scores.object_counts["false"][0] == expected.n_false


@given(pairs())
@settings(max_examples=100, deadline=None)
def test_it_adds_up_exactly(drawn: tuple[NDArray[Any], Mask, Protocol]) -> None:
    pred, gt, protocol = drawn
    scores = scores_of(pred, gt, protocol)
    counts = {key: values[0] for key, values in scores.object_counts.items()}
    objects = sum(counts[key] for key in ERROR_COUNTS if key.startswith("objects_"))
    assert objects == counts["found"]
    assert objects + (counts["objects"] - counts["found"]) + counts["false"] == (
        len(scores.objects["error"]) + scores.predicted["false"].sum()
    )
    assert counts["objects_correct"] <= counts["matched"]
    misses = sum(counts[key] for key in ERROR_COUNTS if key.startswith("fn_"))
    false = sum(counts[key] for key in ERROR_COUNTS if key.startswith("fp_")) + counts["false_pixels"]
    assert misses == gt.sum() - counts["intersection"]
    assert false == counts["union"] - gt.sum()
    assert all(counts[key] >= 0 for key in ERROR_COUNTS)
    # what the two tables say of one object adds up to the counts of the image
    missed = scores.objects["error"] == OBJECT_CLASSES.index("missed")
    assert scores.objects["missed_pixels"][missed].sum() == counts["fn_missed"]
    rows: dict[str, Any] = scores.predicted
    assert rows["holds"].sum() <= len(missed)
    others = ~rows["false"] & (rows["holds"] < 2)
    assert rows["spilled_pixels"][others].sum() == counts["fp_spilled"]


@given(st.lists(pairs(), min_size=2, max_size=5))
@settings(max_examples=25, deadline=None)
def test_a_batch_gives_what_its_images_give(
    drawn: list[tuple[NDArray[Any], Mask, Protocol]],
) -> None:
    scorer = find_scorer(drawn[0][2], None)
    batch = scorer.finish([scorer.measure(pred, gt) for pred, gt, _ in drawn])
    single = [scorer.finish([scorer.measure(pred, gt)]) for pred, gt, _ in drawn]
    for key in ERROR_COUNTS:
        expected = np.concatenate([scores.object_counts[key] for scores in single])
        np.testing.assert_array_equal(batch.object_counts[key], expected, key)
    for key in ("error", "missed_pixels"):
        np.testing.assert_array_equal(
            batch.objects[key], np.concatenate([scores.objects[key] for scores in single])
        )


@pytest.mark.parametrize("name", MAPS)
def test_correct_objects_are_the_true_positives_of_panoptica(name: str) -> None:
    golden = json.loads(GOLDEN_PATH.read_text(encoding="utf-8"))["values"][name]
    protocol = Protocol("every component", min_area=0, normalize="none")
    scores = scores_of(*MAPS[name], protocol)
    rows: dict[str, Any] = scores.predicted
    matched = set(rows["match"][rows["iou"] > 0.5].tolist())
    missed = {index for index, code in enumerate(scores.objects["error"]) if code == 5}
    assert scores.object_counts["objects_correct"][0] == golden["tp"] - len(matched & missed)
    assert len(scores.objects["error"]) == golden["tp"] + golden["fn"]

"""Cases small enough to compute by hand; each comment derives its answer."""

import math
from typing import Any

import numpy as np
import pytest
from helpers.engine_scores import score_one
from helpers.mask_drawings import drawing
from numpy.typing import NDArray

import sisod
from sisod.scoring.metrics import find_metrics

pytestmark = pytest.mark.usefixtures("both_engines")

Mask = NDArray[np.bool_]
FORMS = ("mean", "max", "adaptive", "binary")
RAW = sisod.Protocol("raw", normalize="none")


# ------------------------------------------------------------------------------------ partition


def test_partition_of_a_drawing() -> None:
    gt = drawing(
        ".....##.",
        "##...##.",
        "#.......",
        ".#....#.",
        ".......#",
    )
    parts = sisod.partition(gt)
    # the square: rows 0..1, columns 5..6. On the left (2, 0) and (3, 1) touch by a corner, so the
    # component is rows 1..3, columns 0..1, 4 pixels. (3, 6) and (4, 7) also touch by a corner.
    assert parts.boxes.tolist() == [[0, 5, 2, 7], [1, 0, 4, 2], [3, 6, 5, 8]]
    assert parts.areas.tolist() == [4, 4, 2]
    assert parts.frame_areas.tolist() == [4, 6, 4]
    # 40 pixels, 14 of them framed
    assert np.count_nonzero(parts.background) == 26
    assert parts.alpha == 26 / 14
    assert len(parts) == 3
    # by edges alone the corners part: (3, 1), (3, 6) and (4, 7) stand by themselves
    four = sisod.partition(gt, connectivity=4)
    assert four.boxes.tolist() == [[0, 5, 2, 7], [1, 0, 3, 2], [3, 1, 4, 2], [3, 6, 4, 7], [4, 7, 5, 8]]


def test_alpha_where_frames_overlap() -> None:
    gt = drawing(
        "..#....",
        "..#.#..",
        "###.#..",
        "....#..",
        ".####..",
        ".......",
    )
    # boxes (0, 0, 3, 3) of 9 pixels and (1, 1, 5, 5) of 16; they share rows 1..2, columns 1..2:
    # 4 pixels. Framed 9 + 16 - 4 = 21 of 42, background 21.
    assert sisod.partition(gt).boxes.tolist() == [[0, 0, 3, 3], [1, 1, 5, 5]]
    assert sisod.partition(gt).alpha == 21 / 25
    assert sisod.partition(gt, alpha="union").alpha == 1.0
    assert sisod.partition(gt, alpha=0.5).alpha == 0.5
    # nothing predicted: box 1 holds its own 5 salient pixels; box 2 its own 7 and three of the
    # other's, (1, 2), (2, 1) and (2, 2), which are positives there too; the background none
    pred = np.zeros(gt.shape, np.uint8)
    values = sisod.score(pred, gt, metrics="mae,si_mae")
    assert values["mae"] == 12 / 42
    assert values["si_mae"] == pytest.approx((5 / 9 + 10 / 16) / (2 + 21 / 25), abs=1e-15)


def test_alpha_without_background_and_without_frames() -> None:
    assert sisod.partition(np.ones((2, 3), bool)).alpha == 0.0
    assert sisod.partition(np.ones((2, 3), bool), alpha=1).alpha == 0.0
    nothing = sisod.partition(np.zeros((2, 3), bool), alpha=0)
    assert nothing.alpha == 1.0
    assert nothing.boxes.shape == (0, 4)
    assert nothing.background.all()


def test_min_area() -> None:
    gt = np.zeros((10, 10), bool)  # of 100 pixels
    gt[0, 0] = True  # 1 pixel
    gt[5, 5:7] = True  # 2 pixels
    gt[8:, 8:] = True  # 4 pixels

    def areas(min_area: float) -> list[int]:
        return [frame.component_area for frame in sisod.partition(gt, min_area=min_area)]

    assert areas(0.0002) == [1, 2, 4]  # the default asks for 0.02 pixels
    assert areas(2) == [2, 4]  # an int is pixels, and 2 is not smaller than 2
    assert areas(0.02) == [2, 4]  # a float is a share: 0.02 * 100 = 2
    assert areas(0.03) == [4]
    assert areas(5) == [4]  # none is left: the largest
    assert areas(1) == [1, 2, 4]
    assert areas(1.0) == [4]  # the whole image is asked for; the largest is kept
    gt[0:2, 3:5] = True  # a second one of 4 pixels; its first pixel comes first
    assert sisod.partition(gt, min_area=5).boxes.tolist() == [[0, 3, 2, 5]]


def test_the_default_share_is_rounded_as_meant() -> None:
    gt = np.zeros((300, 400), bool)  # 0.0002 of 120,000 is 24, though not in floating point
    gt[10:14, 10:16] = True  # 24
    gt[100, 100:123] = True  # 23
    gt[200:220, 200:220] = True
    assert sisod.partition(gt).areas.tolist() == [24, 400]


def test_a_component_without_a_frame_stays_salient() -> None:
    gt = drawing("##..", "##..", "...#")
    parts = sisod.partition(gt, min_area=2)
    assert parts.boxes.tolist() == [[0, 0, 2, 2]]
    pred = gt.copy()
    pred[2, 3] = False
    # 1 of 8 background pixels wrong, alpha 8 / 4 = 2: (0 + 2 / 8) / (1 + 2) = 1 / 12, which with one
    # frame is the plain 1 / 12
    values = sisod.score(pred, gt, partition=parts)
    assert values["si_mae"] == values["mae"] == pytest.approx(1 / 12, abs=1e-16)
    assert values["si_f_binary"] == 1.0
    assert values["recall_binary"] == 4 / 5


def test_voronoi_by_hand() -> None:
    # columns 0 and 4; column 2 is as far from both and goes to the lower index
    parts = sisod.partition(drawing("#...#"), kind="voronoi")
    assert parts.regions is not None
    assert parts.regions.tolist() == [[0, 0, 0, 1, 1]]
    assert parts.frame_areas.tolist() == [3, 2]
    assert parts.alpha == 0.0
    assert not parts.background.any()
    # errors 0 and 1 in region 0, none in region 1: (1 / 3 + 0) / 2
    pred = np.array([[255, 255, 0, 0, 255]], np.uint8)
    assert sisod.score(pred, drawing("#...#"), partition=parts)["si_mae"] == pytest.approx(
        1 / 6, abs=1e-16
    )


def test_labels_by_hand() -> None:
    labels = np.array([[5, 5, 9, 0], [0, 5, 9, 9]])  # two instances that touch
    parts = sisod.partition(labels=labels)
    assert parts.boxes.tolist() == [[0, 0, 2, 2], [0, 2, 2, 4]]
    assert parts.areas.tolist() == [3, 3]
    # as a mask they are one component
    assert len(sisod.partition(labels > 0)) == 1


# -------------------------------------------------------------------------------------- metrics


ROW = drawing("##..#...")  # frames [0, 2) and [4, 5), background 5 pixels, alpha 5 / 3


def test_separable_metrics() -> None:
    pred = np.array([[1, 0.5, 0, 0.25, 0.25, 0, 0, 0]])
    values = sisod.score(pred, ROW)
    # errors 0 .5 | 0 .25 | .75 | 0 0 0
    assert values["mae"] == 1.5 / 8
    # frames .25 and .75, background .25 / 5: (1 + 5/3 * 1/20) / (2 + 5/3) = 13/12 * 3/11
    assert values["si_mae"] == pytest.approx(13 / 44, abs=1e-15)
    # squares 0 .25 | 0 .0625 | .5625 | 0 0 0
    assert values["mse"] == 0.875 / 8
    # (.125 + .5625 + 5/3 * .0625/5) / (11/3) = (17/24) * 3/11
    assert values["si_mse"] == pytest.approx(17 / 88, abs=1e-15)
    # p > .5 only at the first pixel: wrong at 1 and 4. Frames 1/2 and 0, background 1
    assert values["accuracy_binary"] == 6 / 8
    assert values["si_accuracy_binary"] == pytest.approx((1 / 2 + 0 + 5 / 3) / (11 / 3), abs=1e-15)


def test_a_missed_object_scores_zero() -> None:
    pred = np.array([[255, 255, 0, 0, 0, 0, 0, 0]], np.uint8)
    scores = score_one(pred, ROW, protocol=sisod.PROTOCOLS["default"], keys=find_metrics(None))
    # the first object is found at every t >= 1, F = 1; the other is not, F = 0
    assert scores.values["si_f_mean"] == 0.5
    assert scores.values["si_f_max"] == 0.5
    assert scores.values["si_f_max_frame"] == 0.5
    assert scores.objects["recall_binary"].tolist() == [1.0, 0.0]
    assert np.isnan(scores.curves["si_f"][0])
    # `paper` keeps t = 0, where both frames are wholly predicted and wholly salient: F = 1
    paper = sisod.score(pred, ROW, protocol="paper", metrics="si_f_mean,si_f_max")
    assert paper["si_f_mean"] == pytest.approx((255 * 0.5 + 1) / 256, abs=1e-15)
    assert paper["si_f_max"] == 1.0


def test_f_by_hand() -> None:
    # TP 1, FP 1, FN 2: precision 1/2, recall 1/3; F = 1.3 * 1/6 / (.15 + 1/3) = 1.3 / 2.9
    values = sisod.score(drawing("#...#..."), drawing("###....."))
    expected = {
        "precision_binary": 1 / 2,
        "recall_binary": 1 / 3,
        "f_binary": 1.3 / 2.9,
        "iou_binary": 1 / 4,
        "dice_binary": 2 / 5,
        "specificity_binary": 4 / 5,
        "fpr_binary": 1 / 5,
        "ber_binary": 1 - (1 / 3 + 4 / 5) / 2,
        "accuracy_binary": 5 / 8,
    }
    assert {key: values[key] for key in expected} == pytest.approx(expected, abs=1e-15)
    # the same at every t >= 1; at t = 0 all 8 are predicted: F = 1.3 * 3 / (.9 + 8)
    assert values["f_mean"] == pytest.approx((255 * 1.3 / 2.9 + 3.9 / 8.9) / 256, abs=1e-15)


def test_where_the_maximum_is_taken() -> None:
    first = drawing("##.##", "#..#.")
    # frame 1: object 255, the fourth pixel 204. F = 3.9 / 4.9 to t = 204, then 1.
    # frame 2: object 102, the fourth pixel 0. F = 1 to t = 102, then 0.
    first_pred = np.array([[255, 255, 0, 102, 102], [255, 204, 0, 102, 0]], np.uint8)
    one = sisod.score(first_pred, first)
    # the image, F = 1.3 TP / (.3 * 6 + predicted): TP 6 of 7 to 102, 3 of 4 to 204, 3 of 3
    assert one["f_max"] == one["f_max_image"] == pytest.approx(7.8 / 8.8, abs=1e-15)
    # means of the two frames: to 102 (3.9/4.9 + 1) / 2 = 44/49, to 204 39/98, then 1/2
    assert one["si_f_max"] == one["si_f_max_image"] == pytest.approx(44 / 49, abs=1e-15)
    assert one["si_f_max_frame"] == pytest.approx(1.0, abs=1e-15)
    assert one["si_f_mean"] == pytest.approx((102 * 44 / 49 + 102 * 39 / 98 + 51 / 2) / 255, abs=1e-14)
    # a second image, its one frame like frame 1: F = 3.9 / 4.9 to 204, then 1
    second = drawing("##.", "#..")
    second_pred = np.array([[255, 255, 0], [255, 204, 0]], np.uint8)
    evaluator = sisod.Evaluator()
    evaluator.update(first_pred, first, name="first")
    evaluator.update(second_pred, second, name="second")
    summary = evaluator.result().summary
    # the mean curve is (7.8/8.8 + 3.9/4.9) / 2 = .841, then .734, and at the end (3.9/4.8 + 1) / 2
    assert summary["f_max"] == pytest.approx(0.90625, abs=1e-15)
    assert summary["f_max_image"] == pytest.approx((7.8 / 8.8 + 1) / 2, abs=1e-15)
    # the mean of the frames' means: (44/49 + 39/49) / 2, then .597, then .75
    assert summary["si_f_max"] == pytest.approx(83 / 98, abs=1e-15)
    assert summary["si_f_max_image"] == pytest.approx((44 / 49 + 1) / 2, abs=1e-15)
    assert summary["si_f_max_frame"] == pytest.approx(1.0, abs=1e-15)


def test_auc_on_the_crop() -> None:
    gt = drawing("##..", "#...", "....", "....")
    pred = np.zeros((4, 4), np.uint8)
    pred[:2, :2] = [[255, 102], [51, 102]]
    values = sisod.score(pred, gt, metrics="auc,si_auc")
    # in the frame 255, 102, 51 against one 102: a win, a tie, a loss
    assert values["si_auc"] == 0.5
    # in the image 12 more negatives at 0, beaten by all three: (1.5 + 36) / (3 * 13)
    assert values["auc"] == pytest.approx(37.5 / 39, abs=1e-15)


def test_e_by_hand() -> None:
    values = sisod.score(drawing("#..."), drawing("##.."))
    # means 1/4 and 1/2. (3/4, 1/2): x = 12/13; (-1/4, 1/2): x = -4/5; (-1/4, -1/2) twice: x = 4/5
    total = (25 / 13) ** 2 / 4 + 0.2**2 / 4 + 2 * 1.8**2 / 4
    assert values["e_binary"] == pytest.approx(total / 3, abs=1e-15)  # over HW - 1
    # the frame is all salient: the predicted share
    assert values["si_e_binary"] == 0.5
    # a frame of two classes, 2 x 2 in a larger image: gt means 3/4, prediction 1/4 in the frame;
    # hit (3/4, 1/4): x = 3/5; two misses (-1/4, 1/4): x = -1, nothing; (-1/4, -3/4): x = 3/5
    gt, pred = drawing("##.", "#..", "..."), drawing("#..", "...", "...")
    assert sisod.score(pred, gt)["si_e_binary"] == pytest.approx(2 * 0.64 / 4, abs=1e-15)
    # nothing predicted wrong: (HW) / (HW - 1) for the image, 1 in the frame
    assert sisod.score(gt, gt)["e_binary"] == pytest.approx(9 / 8, abs=1e-15)
    assert sisod.score(gt, gt)["si_e_binary"] == 1.0


def test_kappa_by_hand() -> None:
    gt, pred = drawing("####......"), drawing("###.#.....")
    # TP 3, FP 1, FN 1, TN 5: agreement .8, by chance (4 * 4 + 6 * 6) / 100 = .52: .28 / .48
    assert sisod.score(pred, gt)["kappa_binary"] == pytest.approx(7 / 12, abs=1e-15)


def test_adaptive_threshold_is_the_image_s() -> None:
    # mean .18, threshold .36: both pixels of the frame. The frame's own, 2 * .9 capped at 1, has one
    pred = np.array([[1, 0.8, 0, 0, 0, 0, 0, 0, 0, 0]])
    assert sisod.score(pred, drawing("##........"))["si_recall_adaptive"] == 1.0


def test_binary_is_strict_and_adaptive_is_not() -> None:
    pred = np.array([[0.0, 0.5, 1.0, 0.5]])
    values = sisod.score(pred, drawing(".###"))
    assert values["recall_binary"] == pytest.approx(1 / 3)  # p > .5
    assert values["recall_adaptive"] == pytest.approx(1 / 3)  # 2 * mean = 1, p >= 1
    half = sisod.score(np.array([[0.0, 0.5, 0.5, 0.0]]), drawing(".##."), protocol=RAW)
    assert half["recall_adaptive"] == 1.0  # 2 * mean = .5, p >= .5
    assert half["recall_binary"] == 0.0


def test_normalisation() -> None:
    pred = np.array([[100, 150, 200]], np.uint8)
    gt = drawing(".##")
    # stretched: 0, .5, 1. As it is: 100/255, ...
    assert sisod.score(pred, gt)["mae"] == pytest.approx(0.5 / 3, abs=1e-15)
    raw = sisod.score(pred, gt, protocol=RAW)["mae"]
    assert raw == pytest.approx((100 + 105 + 55) / 255 / 3, abs=1e-15)
    # a constant map stays as it is
    assert sisod.score(np.full((1, 3), 51, np.uint8), gt)["mae"] == pytest.approx((0.2 + 1.6) / 3)


def test_perfect_prediction() -> None:
    gt = drawing("##....", "##..#.", "......")
    values = sisod.score(gt, gt, metrics="all")
    for key in ("s", "wf", "msiou", "auc", "si_f_mean", "si_f_max_frame", "kappa_binary", "si_wf"):
        assert values[key] == pytest.approx(1.0, abs=1e-12), key
    for key in ("mae", "mse", "si_mae", "si_mse", "fpr_binary", "ber_binary"):
        assert values[key] == 0.0, key


# ------------------------------------------------------------------------------------ undefined


def test_without_an_object() -> None:
    pred = np.array([[0.0, 0.2], [1.0, 0.2]])
    values = sisod.score(pred, np.zeros((2, 2), bool), metrics="all")
    expected = {
        "mae": 0.35,
        "si_mae": 0.35,
        "mse": 1.08 / 4,
        "si_mse": 1.08 / 4,
        "accuracy_binary": 0.75,
        "si_accuracy_binary": 0.75,
        "specificity_binary": 0.75,
        "fpr_binary": 0.25,
        "e_binary": 3 / 3,  # three pixels right, over HW - 1
        "s": 0.65,
        "hce": 0,  # what is as thin as one pixel needs no correction
    }
    assert {key: values[key] for key in expected} == pytest.approx(expected, abs=1e-15)
    families = ("accuracy", "specificity", "fpr", "e", "si_accuracy")
    defined = {"mae", "mse", "s", "hce", "si_mae", "si_mse"} | {
        f"{f}_{form}" for f in families for form in FORMS
    }
    # one predicted object, the pixel with p = 1; it is false, and there is nothing to find
    of_objects: dict[str, float] = {
        "n_predicted": 1,
        "n_false": 1,
        "n_found": 0,
        "object_precision": 0,
        "pq": 0,
        "rq": 0,
    }
    of_objects |= {f"bsi_{family}_binary": 0 for family in ("iou", "dice", "f")}
    of_objects |= {"false_objects": 1, "false_area": 0.25}
    assert {key: values[key] for key in of_objects} == of_objects
    defined |= set(of_objects)
    assert {key for key, value in values.items() if not math.isnan(value)} == defined
    for form in FORMS:
        assert values[f"si_accuracy_{form}"] == values[f"accuracy_{form}"]


def test_all_salient() -> None:
    pred = np.array([[0.0, 0.5], [1.0, 0.7]])
    values = sisod.score(pred, np.ones((2, 2), bool), metrics="all")
    families = ("specificity", "fpr", "ber", "kappa")
    undefined = {"auc"} | {f"{family}_{form}" for family in families for form in FORMS}
    undefined |= {f"si_{key}" for key in undefined} | {"mba"}
    # nothing is small, and the predicted half of the object is no match: an IoU of 1/2 is not above
    undefined |= {f"object_{key}_small" for key in ("recall", "precision", "f1", "f1_max")} | {"sq"}
    assert {key for key, value in values.items() if math.isnan(value)} == undefined
    assert values["s"] == values["si_s"] == pytest.approx(0.55, abs=1e-15)
    assert values["e_binary"] == pytest.approx(2 / 3, abs=1e-15)
    assert values["si_e_binary"] == 0.5


def test_an_undefined_frame_is_left_out() -> None:
    gt = drawing("##...", "#...#")  # the second frame is its one pixel: no negatives
    pred = np.array([[255, 102, 0, 0, 0], [51, 102, 0, 0, 0]], np.uint8)
    values = sisod.score(pred, gt)
    assert values["si_auc"] == 0.5  # a win, a tie, a loss, in the first alone
    assert values["si_specificity_binary"] == 1.0
    assert values["si_f_binary"] == pytest.approx(1.3 / (0.9 + 1) / 2, abs=1e-15)  # of both


# ---------------------------------------------------------------------------------------- input


@pytest.mark.parametrize(
    ("gt", "expected"),
    [
        (np.array([[127, 128, 255]], np.uint8), [False, True, True]),
        (np.array([[32767, 32768, 65535]], np.uint16), [False, True, True]),
        (np.array([[math.nextafter(0.5, 0), 0.5, 1.0]]), [False, True, True]),
        (np.array([[0.4, 0.5, 0.6]], np.float32), [False, True, True]),
    ],
)
def test_what_is_salient(gt: NDArray[Any], expected: list[bool]) -> None:
    pred = np.array([expected])
    assert sisod.score(pred, gt, metrics="mae") == {"mae": 0.0}
    assert sisod.partition(gt).boxes.tolist() == [[0, 1, 1, 3]]


def test_pysodmetrics_cuts_above_128() -> None:
    gt = np.array([[127, 128, 129]], np.uint8)
    pred = np.array([[0, 0, 255]], np.uint8)
    assert sisod.score(pred, gt, protocol="pysodmetrics", metrics="mae") == {"mae": 0.0}
    assert sisod.score(pred, gt, metrics="mae")["mae"] == pytest.approx(1 / 3)

"""Warnings about images that were probably not meant to be scored like this; silent otherwise."""

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from helpers.command_line import run
from numpy.typing import NDArray

import sisod
from sisod.evaluation.notes import undefined_notes
from sisod.scoring.arrays import has_grey_area

Picture = NDArray[Any]
SIDE = 40


def disk(value: int = 255) -> Picture:
    """Return a disk of one grey value, with hard edges."""
    picture = np.zeros((SIDE, SIDE), dtype=np.uint8)
    cv2.circle(picture, (20, 20), 12, value, -1)
    return picture


def saliency() -> Picture:
    """Return what a network predicts: a disk that fades out."""
    return np.asarray(cv2.GaussianBlur(disk(), (0, 0), 6))


def anti_aliased() -> Picture:
    """Return a disk with soft edges: drawn twice as large and reduced."""
    picture = np.zeros((2 * SIDE, 2 * SIDE), dtype=np.uint8)
    cv2.circle(picture, (40, 40), 23, 255, -1)
    return np.asarray(cv2.resize(picture, (SIDE, SIDE), interpolation=cv2.INTER_AREA))


def compressed() -> Picture:
    """Return a disk that was saved as a JPEG of low quality."""
    _, data = cv2.imencode(".jpg", disk(), [cv2.IMWRITE_JPEG_QUALITY, 60])
    return np.asarray(cv2.imdecode(data, cv2.IMREAD_GRAYSCALE))


def write(folder: str, *pictures: Picture) -> None:
    Path(folder).mkdir(exist_ok=True)
    for index, picture in enumerate(pictures):
        assert cv2.imwrite(f"{folder}/{index}.png", picture)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def evaluate(*options: str) -> tuple[list[str], dict[str, Any]]:
    """Score folder `pred` against folder `gt`; return the lines on standard error, and run.json."""
    result = run("evaluate", "A=pred", "gt", "--dataset", "D", "--out", "out", "--jobs", "1", *options)
    assert result.exit_code == 0, result.stderr
    record: dict[str, Any] = json.loads(Path("out/D/A/run.json").read_text(encoding="utf-8"))
    return result.stderr.splitlines(), record


def test_swapped_folders() -> None:
    write("gt", *[saliency()] * 10)
    write("pred", *[disk()] * 4, *[anti_aliased()] * 4, compressed(), saliency())
    lines, record = evaluate()
    assert lines == [
        "warning: predictions and ground truths look swapped: in 9 of 10 images the ground truth, in "
        "'gt', has grey areas and the prediction, in 'pred', has none; give the predictions first, the "
        "ground truths last"
    ]
    assert (record["grey_masks"], record["looks_swapped"]) == (10, 9)
    with pytest.warns(UserWarning, match="look swapped"):
        sisod.evaluate("pred", "gt", metrics="mae", jobs=1)


@pytest.mark.parametrize(
    ("pred", "gt", "warns"),
    [("MSOD/GT", "edn", True), ("edn", "MSOD/GT", False), ("a/mask", "b/masks", False)],
)
def test_swapped_folders_of_binary_maps(pred: str, gt: str, *, warns: bool) -> None:
    """Only the names of the folders tell them apart."""
    Path("MSOD").mkdir()
    for folder in (pred, gt):
        Path(folder).parent.mkdir(exist_ok=True)
        write(folder, disk())
    result = run("evaluate", f"A={pred}", gt, "--out", "out", "--jobs", "1", "--metrics", "mae")
    assert ("may be swapped" in result.stderr) == warns


@pytest.mark.parametrize("options", [(), ("--metrics", "mae"), ("--protocol", "official")])
def test_inverted_maps(options: tuple[str, ...]) -> None:
    black = np.zeros_like(disk())
    write("gt", *[disk()] * 4, black)  # on which the AUC is undefined
    write("pred", *[255 - saliency()] * 4, black)
    lines, record = evaluate(*options)
    assert [line for line in lines if "'pred' look inverted: in 4 of 5 images" in line]
    assert record["looks_inverted"] == 4
    write("pred", *[saliency()] * 2)
    lines, record = evaluate(*options, "--overwrite")
    assert "inverted" not in str(lines)
    assert record["looks_inverted"] == 2


@pytest.mark.parametrize("mask", [disk, anti_aliased, compressed])
def test_no_warning_of_sound_folders(mask: Any) -> None:
    black = np.zeros((SIDE, SIDE), dtype=np.uint8)  # one object among ground truths is enough
    write("gt", *[mask()] * 4, black)
    write("pred", disk(), anti_aliased(), compressed(), saliency(), black)
    lines, record = evaluate("--metrics", "mae,si_mae")
    assert lines == []
    assert (record["grey_masks"], record["emptied_masks"], record["looks_swapped"]) == (0, 0, 0)


def test_grey_masks() -> None:
    """Like those of PASCAL-S, which say how many people found an object salient."""
    write("gt", disk(), disk(200), disk(100), disk(90))
    write("pred", *[saliency()] * 4)
    lines, record = evaluate("--metrics", "mae,si_mae")
    sentence = (
        "3 of 4 ground truths in 'gt' have grey areas (values from 16 to 239 over 5 x 5 pixels or "
        "more); a pixel is salient from 128 on; 2 have no salient pixel then"
    )
    assert lines == [f"warning: {sentence}"]
    assert (record["grey_masks"], record["emptied_masks"], record["looks_swapped"]) == (3, 2, 0)
    stats = run("stats", "gt", "--format", "json")
    assert stats.stderr == f"{sentence}\n"
    content = json.loads(stats.stdout)
    assert (content["grey_masks"], content["emptied_masks"]) == (3, 2)
    write("gt", disk(200))
    lines, _ = evaluate("--protocol", "official", "--overwrite")
    assert lines[0].endswith("salient from 128 on, though their grey values are scored; 2 have no "
                             "salient pixel then")  # fmt: skip


def test_dark_masks_are_not_scored_as_empty_without_a_word() -> None:
    """A label map among masks: its values are too low for a grey area."""
    write("gt", disk(), disk(3), np.zeros_like(disk()))
    write("pred", *[saliency()] * 3)
    lines, record = evaluate("--metrics", "mae")
    assert lines == [
        "warning: 1 of 3 ground truths in 'gt' are not black but have no salient pixel (one from 128 "
        "on): make sure that these are masks; label maps need --label-maps, class maps --class"
    ]
    assert (record["grey_masks"], record["emptied_masks"]) == (0, 1)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.float32, np.float16])
def test_grey_areas_of_every_type(kind: Any) -> None:
    most = 1 if np.dtype(kind).kind == "f" else np.iinfo(kind).max
    for picture, expected in (
        (disk(), False),
        (disk(100), True),
        (anti_aliased(), False),
        (disk(12), False),  # nearly black
        (disk(245), False),  # nearly white
    ):
        array = (picture.astype(np.float64) / 255 * most).astype(kind)
        assert has_grey_area(array) == expected
    assert not has_grey_area(disk() > 0)


@pytest.mark.parametrize("top", range(12))
def test_no_area_of_five_pixels_is_missed(top: int) -> None:
    picture = np.zeros((17, 17), dtype=np.uint8)
    picture[top : top + 5, 11 - top : 16 - top] = 100
    assert has_grey_area(picture)
    picture[top + 2, 13 - top] = 255
    assert not has_grey_area(picture)


def test_undefined_metrics_are_grouped() -> None:
    a = ("D", "A", {"mae": 9, "auc": 7, "si_auc": 7, "si_mae": 9, "object_recall": 1}, 9)
    b = ("D", "B", {"mae": 9, "auc": 7, "si_auc": 7, "si_mae": 8, "object_recall": 1}, 9)
    c = ("E", "A", {"mae": 5, "auc": 5, "si_auc": 4, "si_mae": 5}, 5)
    keys = ["mae", "si_mae", "auc", "si_auc", "object_recall"]
    assert undefined_notes([a, b, c], keys) == [
        "D: AUC, SI-AUC undefined on 2 of 9 images, which are left out of the mean",
        "D (B): SI-MAE undefined on 1 of 9 images, which is left out of the mean",
        "E: SI-AUC undefined on 1 of 5 images, which is left out of the mean",
    ]
    assert undefined_notes([a], ["mae", "object_recall"]) == []
    keys = ["f_mean", "f_max", "f_binary", "iou_mean", "iou_max", "iou_binary", "precision_mean"]
    many = ("D", "A", dict.fromkeys(keys, 3) | {"auc": 0}, 4)
    assert undefined_notes([many], ["auc", *keys]) == [
        "D: AUC undefined on all 4 images",
        "D: F mean, F max, F binary, IoU mean, IoU max, IoU binary, ... (7 metrics) undefined on 1 of 4 "
        "images, which is left out of the mean",
    ]
    alone = ("", "A", {"auc": 0, "object_recall": 0}, 1)
    other = ("", "B", {"auc": 1, "object_recall": 1}, 1)
    line = "AUC, Object recall undefined on the only image"
    assert undefined_notes([alone], ["auc", "object_recall"]) == [line]
    assert undefined_notes([alone, other], ["auc", "object_recall"]) == [f"A: {line}"]


@pytest.mark.parametrize("protocol", ["default", "official"])
def test_ground_truths_without_an_object(protocol: str) -> None:
    write("gt", *[np.zeros((SIDE, SIDE), dtype=np.uint8)] * 2)
    write("pred", *[saliency()] * 2)
    lines, _ = evaluate("--metrics", "mae,auc", "--protocol", protocol)
    assert lines[0] == (
        "warning: no ground truth in 'gt' has a salient pixel (one from 128 on): make sure that these "
        "are masks; label maps need --label-maps, class maps --class"
    )
    if protocol == "default":
        assert lines[1:] == ["D: AUC undefined on all 2 images"]

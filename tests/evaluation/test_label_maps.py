"""Label maps, .npz files and COCO files of the same objects have the same numbers."""

import json
import tarfile
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from helpers.coco_files import annotation, image, label_scenes, plain_runs, write_coco, write_scenes
from helpers.command_line import run

import sisod
from sisod.common.exceptions import InputError, UsageError
from sisod.evaluation import shards
from sisod.evaluation.results import PixelFiles

pytestmark = pytest.mark.needs("pycocotools")

COUNT = 70  # images in three batches
METRICS = "mae,si_mae,si_f_mean,si_auc,pq,object_f1"
FORMATS = ("png", "npz", "compressed.json", "plain.json")


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same objects in every format, and maps of a method; read only."""
    return write_scenes(tmp_path_factory.mktemp("scenes") / "data", COUNT)


@pytest.fixture(scope="module")
def expected(scenes: Path) -> sisod.Evaluation:
    """The result of label PNGs, scored in this process."""
    return score(scenes, "png")


def score(scenes: Path, gt: str, **options: Any) -> sisod.Evaluation:
    labels = not gt.endswith(".json")
    chosen: dict[str, Any] = {"jobs": 1, "metrics": METRICS} | options
    return sisod.evaluate(scenes / "maps", scenes / gt, labels=labels, **chosen)


def check_same(result: sisod.Evaluation, expected: sisod.Evaluation) -> None:
    assert result.summary == expected.summary
    for table in ("images", "objects", "predicted", "counts"):
        assert getattr(result, table).equals(getattr(expected, table), null_equal=True), table


def test_objects_are_the_labels(scenes: Path, expected: sisod.Evaluation) -> None:
    keys = METRICS.split(",")
    rows = {row["image"]: row for row in expected.images.to_dicts()}
    for name, labels in list(label_scenes(COUNT).items())[:5]:
        pred = cv2.imread(str(scenes / f"maps/{name}.png"), cv2.IMREAD_UNCHANGED)
        assert pred is not None
        frames = sisod.partition(labels=labels)
        values = sisod.score(pred, labels > 0, metrics=keys, partition=frames)
        assert {key: rows[name][key] for key in keys} == values
        assert rows[name]["n_objects"] == len(np.unique(labels)) - 1
    n_labels = sum(len(np.unique(labels)) - 1 for labels in label_scenes(COUNT).values())
    assert expected.run["components"] == n_labels


@pytest.mark.parametrize("gt", FORMATS)
def test_every_format_has_the_same_numbers(gt: str, scenes: Path, expected: sisod.Evaluation) -> None:
    check_same(score(scenes, gt), expected)


def test_shards_have_the_same_numbers(
    scenes: Path, expected: sisod.Evaluation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "LEAST_SHARDS", 1)  # a shard is the unit of work
    for folder in ("png", "maps"):
        (tmp_path / folder).mkdir()
        with tarfile.open(tmp_path / folder / "0.tar", "w") as archive:
            for path in sorted((scenes / folder).iterdir()):
                archive.add(path, path.name)
    check_same(score(tmp_path, "png"), expected)
    with pytest.warns(UserWarning, match="predictions and ground truths are the same files, in"):
        one = sisod.evaluate(tmp_path / "png", tmp_path / "png", category=1000, jobs=1, metrics="mae")
    assert one.summary == {"mae": 0.0}  # class maps on both sides
    assert one.run["inputs"]["class_maps"] is True


def test_stats_and_frames_count_labels(scenes: Path, tmp_path: Path) -> None:
    counts = []
    for gt, *options in (("png", "--label-maps"), ("compressed.json",)):
        ended = run("stats", scenes / gt, *options, "--format", "json")
        assert ended.exit_code == 0, ended.stderr
        counts.append(json.loads(ended.stdout))
        out = tmp_path / gt
        ended = run("frames", scenes / gt, *options, "--out", out, "--format", "csv")
        assert ended.exit_code == 0, ended.stderr
        counts.append(ended.stdout)
    assert counts[0] == counts[2]
    assert counts[1] == counts[3]
    assert counts[0]["objects"] == sum(len(np.unique(one)) - 1 for one in label_scenes(COUNT).values())
    assert json.loads((tmp_path / "png/run.json").read_text(encoding="utf-8"))["labels"] is True


def test_crowds_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "maps").mkdir()
    mask, crowd = np.zeros((2, 24, 32), dtype=bool)
    mask[2:8, 2:8] = crowd[2:12, 6:20] = True
    entries = [
        annotation(1, 0, plain_runs(mask)),
        annotation(2, 0, plain_runs(crowd), iscrowd=1),
    ]
    cv2.imwrite(str(tmp_path / "maps/a.png"), (mask | crowd).astype(np.uint8) * 255)
    file = write_coco(tmp_path / "gt.json", [image(0, "a.jpg")], entries)
    result = sisod.evaluate(tmp_path / "maps", file, jobs=1, metrics="mae,si_mae,false_area")
    assert result.summary == {"mae": 0.0, "si_mae": 0.0, "false_area": 0.0}
    assert result.run["inputs"]["crowd_regions"] == 1
    small = cv2.resize((mask | crowd).astype(np.uint8) * 255, (16, 12), interpolation=cv2.INTER_NEAREST)
    cv2.imwrite(str(tmp_path / "maps/a.png"), small)
    with pytest.warns(UserWarning, match="another size"):
        resized = sisod.evaluate(tmp_path / "maps", file, jobs=1, metrics="mae,si_mae")
    assert resized.summary["mae"] < 0.03  # of 0.17 if the crowd counted


def test_results_as_predictions(scenes: Path, tmp_path: Path) -> None:
    truths = json.loads((scenes / "compressed.json").read_text(encoding="utf-8"))
    entries = [
        {key: entry[key] for key in ("image_id", "category_id", "segmentation")} | {"score": 0.75}
        for entry in truths["annotations"][::2]
    ]
    (tmp_path / "net.json").write_text(json.dumps(entries), encoding="utf-8")
    (tmp_path / "maps").mkdir()
    chosen = {(entry["image_id"], entry["segmentation"]["counts"]) for entry in entries}
    for number, (name, labels) in enumerate(label_scenes(COUNT).items()):
        pred = np.zeros(labels.shape)
        of_image = [entry for entry in truths["annotations"] if entry["image_id"] == number]
        for label, entry in zip(np.unique(labels[labels > 0]), of_image, strict=True):
            if (number, entry["segmentation"]["counts"]) in chosen:
                pred[labels == label] = 0.75
        np.savez(tmp_path / "maps" / name, pred=pred, mask=labels > 0)
    maps = sisod.evaluate(tmp_path / "maps", scenes / "plain.json", jobs=1, metrics=METRICS)
    options: dict[str, Any] = {"jobs": 2, "metrics": METRICS, "out": tmp_path / "out"}
    result = sisod.evaluate(tmp_path / "net.json", scenes / "compressed.json", **options)
    check_same(result, maps)
    assert PixelFiles(result).prediction("im000", (24, 32)) is not None


def test_labels_that_are_refused(scenes: Path, tmp_path: Path) -> None:
    for gt in ("png", "plain.json"):
        with pytest.raises(UsageError, match="the protocol 'official' finds the objects of a mask"):
            score(scenes, gt, protocol="official", metrics=None)
    for folder in ("gt", "maps"):
        (tmp_path / folder).mkdir()
    cv2.imwrite(str(tmp_path / "maps/a.png"), np.full((4, 6), 7, dtype=np.uint8))
    np.save(tmp_path / "floats.npy", np.full((4, 6), 0.5))
    np.savez(tmp_path / "negative.npz", np.full((4, 6), -2))
    cv2.imwrite(str(tmp_path / "lossy.jpg"), np.full((4, 6), 7, dtype=np.uint8))
    for file, text in {
        "floats.npy": "dtype float64 and least value 0.5; expected labels of objects",
        "negative.npz": "least value -2; expected labels of objects",
        "lossy.jpg": "is a JPEG or lossy WebP file, which changes numbers; save them as PNG",
    }.items():
        placed = (tmp_path / file).rename(tmp_path / "gt" / f"a{Path(file).suffix}")
        with pytest.raises(InputError, match=text):
            sisod.evaluate(tmp_path / "maps", tmp_path / "gt", labels=True, jobs=1)
        placed.unlink()

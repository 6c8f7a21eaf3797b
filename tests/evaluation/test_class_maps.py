"""Class maps and categories of COCO files: one data set for each class."""

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from helpers.coco_files import annotation, image, plain_runs, write_coco
from helpers.command_line import error_message, run
from helpers.image_files import png

import sisod
from sisod.common.exceptions import InputError

METRICS = "mae,si_mae,iou_binary"
PALETTE = bytes(range(90))  # thirty colours, none of them grey but by chance


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Class maps of three images, with a palette; predicted class maps; masks and maps of class 3."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(6)
    for folder in ("gt", "net", "mask3", "pred3", "probabilities/3"):
        Path(folder).mkdir(parents=True)
    images, entries = [], []
    for number, name in enumerate(("a", "b", "c")):
        classes = cv2.resize(rng.integers(0, 5, (4, 5), dtype=np.uint8), (32, 24), interpolation=0)
        predicted = np.where(rng.random((24, 32)) < 0.1, 3, classes).astype(np.uint8)
        Path(f"gt/{name}.png").write_bytes(png(classes, colour=3, palette=PALETTE))
        cv2.imwrite(f"net/{name}.png", predicted)
        cv2.imwrite(f"mask3/{name}.png", (classes == 3).astype(np.uint8) * 255)
        cv2.imwrite(f"pred3/{name}.png", (predicted == 3).astype(np.uint8) * 255)
        cv2.imwrite(f"probabilities/3/{name}.png", (predicted == 3).astype(np.uint8) * 200)
        images.append(image(number, f"{name}.jpg"))
        for value in (1, 3):
            _, parts = cv2.connectedComponents((classes == value).astype(np.uint8))
            entries += [
                annotation(0, number, plain_runs(parts == part), category_id=value)
                for part in range(1, int(parts.max()) + 1)
            ]
    entries = [entry | {"id": index} for index, entry in enumerate(entries)]
    write_coco(Path("coco.json"), images, entries, ("car", "road", "bird"))
    return tmp_path


@pytest.mark.usefixtures("folders")
def test_class_maps_are_masks_of_a_class() -> None:
    expected = sisod.evaluate("pred3", "mask3", jobs=1, metrics=METRICS)
    for category in (3, "3"):
        result = sisod.evaluate("net", "gt", category=category, jobs=1, metrics=METRICS)
        assert result.summary == expected.summary
        assert result.objects.equals(expected.objects)
        inputs = result.run["inputs"]
        assert (inputs["class"], inputs["class_maps"]) == ("3", True)
    result = sisod.evaluate("probabilities", "gt", category=3, jobs=1, metrics=METRICS)
    assert result.summary == expected.summary  # minmax stretches 200 to 255
    assert result.run["inputs"]["predictions"].endswith("3")
    assert "class_maps" not in result.run["inputs"]


@pytest.mark.usefixtures("folders")
def test_categories_of_coco_are_classes() -> None:
    expected = sisod.evaluate("pred3", "mask3", jobs=1, metrics=METRICS)
    for category in ("bird", "3"):
        text = f"the files in 'net' were read as class maps, since there is no folder '{category}'"
        with pytest.warns(UserWarning, match=text):
            result = sisod.evaluate("net", "coco.json", category=category, jobs=1, metrics=METRICS)
        assert result.summary == expected.summary
        assert result.objects.equals(expected.objects)


@pytest.mark.usefixtures("folders")
def test_every_class_is_a_data_set() -> None:
    ended = run("evaluate", "net", "gt", "--classes", "1,3", "--out", "out", "--metrics", METRICS)
    assert ended.exit_code == 0, ended.stderr
    folder = Path.cwd().name
    assert sorted(path.name for path in Path("out").iterdir()) == [f"{folder}-1", f"{folder}-3"]
    result = sisod.Evaluation.load(Path("out", f"{folder}-3", "net"))
    expected = sisod.evaluate("pred3", "mask3", jobs=1, metrics=METRICS)
    assert result.summary == expected.summary
    ended = run(
        "evaluate", "N=net", "coco.json", "--class", "bird", "--out", "out", "--metrics", METRICS
    )
    assert ended.exit_code == 0, ended.stderr
    assert sisod.Evaluation.load("out/coco-bird/N").summary == expected.summary
    shown = json.loads(run("stats", "gt", "--class", "3", "--format", "json").stdout)
    assert shown["objects"] == expected.run["components"]


REFUSED = {
    "1,,2": "classes must be different names or numbers",
    "1,1": "got '1,1'",
    "bird": "class 'bird' is not a number from 0 to 65535; class maps hold numbers, and names",
    "-1": "class '-1' is not a number",
    "../x": "class '../x' is not a number",
    "": "got ''",  # an unset variable of a shell must not score all classes
}


@pytest.mark.usefixtures("folders")
def test_classes_that_are_refused() -> None:
    for classes, text in REFUSED.items():
        ended = run("evaluate", "net", "gt", f"--classes={classes}", "--out", "out")
        assert text in error_message(ended, exit_codes=(1, 2))
    content = json.loads(Path("coco.json").read_text())
    content["categories"][1]["name"] = "bird"
    Path("twice.json").write_text(json.dumps(content))
    Path("none.json").write_text(json.dumps(content | {"categories": []}))
    for gt, category, labels, text in (
        ("coco.json", "brid", False, r"unknown class 'brid'; did you mean 'bird'\?"),
        ("coco.json", "", False, "class '' is not a number"),
        ("twice.json", "bird", False, "categories 2, 3 are called 'bird'; choose one by its id"),
        ("none.json", 3, False, "unknown class '3'; available: "),
        ("gt", 3, True, "labels and a class, '3', exclude each other"),
    ):
        with pytest.raises(InputError, match=text):
            sisod.evaluate("net", gt, category=category, labels=labels)
    np.save("net/a", np.full((24, 32), 0.5))
    Path("net/a.png").unlink()
    with pytest.raises(InputError, match=r"float64 .*; expected numbers of classes, which are integers"):
        sisod.evaluate("net", "gt", category=3, jobs=1)


@pytest.mark.usefixtures("folders")
def test_a_class_that_nothing_has_is_named() -> None:
    with pytest.warns(UserWarning, match="in 'gt' has a pixel of the class '9': make sure that it is"):
        sisod.evaluate("net", "gt", category=9, jobs=1, metrics="mae")
    write_coco(Path("empty.json"), [image(0, "a.jpg")], [])
    with (
        pytest.warns(UserWarning, match="no ground truth in 'empty.json' has an object: make sure"),
        pytest.warns(UserWarning, match="have no ground truth"),
    ):
        sisod.evaluate("net", "empty.json", jobs=1, metrics="mae")


@pytest.mark.usefixtures("folders")
def test_saliency_maps_are_not_read_as_class_maps() -> None:
    """Maps of one class are read from the folder of that class; elsewhere their levels are refused."""
    levels = np.arange(768).reshape(24, 32)
    text = r"'net/a.png' has 129 different values, .* belong in a folder '3' among the predictions"
    for picture in ((levels % 129).astype(np.uint8), (levels % 129 + 60000).astype(np.uint16)):
        cv2.imwrite("net/a.png", picture)
        with pytest.raises(InputError, match=text):
            sisod.evaluate("net", "gt", category=3, jobs=1)
    cv2.imwrite("net/a.png", (levels % 128).astype(np.uint8))  # as many classes as there may be
    assert sisod.evaluate("net", "gt", category=3, jobs=1, metrics="mae").summary["mae"] > 0
    Path("net/a.png").unlink()
    np.save("net/a.npy", levels)
    with pytest.raises(InputError, match=r"'net/a.npy' has 768 different values"):
        sisod.evaluate("net", "gt", category=3, jobs=1)
    cv2.imwrite("probabilities/3/a.png", (levels % 256).astype(np.uint8))
    sisod.evaluate("probabilities", "gt", category=3, jobs=1, metrics="mae")


@pytest.mark.usefixtures("folders")
def test_masks_are_not_read_as_class_maps_without_a_warning() -> None:
    ended = run("evaluate", "pred3", "gt", "--class", "3", "--out", "out", "--metrics", "mae")
    assert ended.exit_code == 0
    assert ended.stderr.startswith("warning: no prediction in 'pred3' has an object of the class '3'")
    assert ended.stderr.count("\n") == 1

"""COCO files that are damaged or made to do harm: one sentence with the file and the annotation."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.coco_files import SHAPE, annotation, image, plain_runs, runs, square, write_coco
from helpers.messages import check_one_sentence

from sisod.common.errors import InputError
from sisod.data.containers.coco import list_images, list_results, read_instances, read_results

MASK = np.eye(*SHAPE, dtype=bool)
GOOD = runs(MASK, "compressed")
TEXT = GOOD["counts"]
IMAGES = [image(0, "a.jpg"), image(1, "b.jpg")]

# segmentation of annotation 17 -> what is wrong with it
SEGMENTATIONS: dict[str, tuple[object, str]] = {
    "size of another image": (GOOD | {"size": [32, 24]}, "the size of its run lengths is [32, 24]"),
    "no size": ({"counts": TEXT}, "expected a list of polygons, or run lengths with size and counts"),
    "too few pixels": (GOOD | {"counts": [5, 5]}, "its run lengths cover 10 pixels"),
    "too many pixels": (GOOD | {"counts": [0, 1 << 30]}, "its run lengths cover 1073741824 pixels"),
    "negative run": (GOOD | {"counts": [-1, 769]}, "its counts are [-1, 769]"),
    "no runs": (GOOD | {"counts": []}, "its run lengths cover 0 pixels"),
    "runs of text": (GOOD | {"counts": ["5"]}, "expected text, or a list of whole numbers"),
    "runs of NaN": (GOOD | {"counts": [float("nan")]}, "expected text, or a list of whole numbers"),
    "text cut short": (GOOD | {"counts": TEXT[:-3]}, "its run lengths cover"),
    "text that goes on": (GOOD | {"counts": TEXT + "o"}, "the text of its counts is damaged"),
    "empty text": (GOOD | {"counts": ""}, "the text of its counts is damaged"),
    "other characters": (GOOD | {"counts": "\x00\u20ac"}, "the text of its counts is damaged"),
    "number too long": (GOOD | {"counts": "o" * 3000 + "0"}, "it holds a number that is too long"),
    "negative sum": (GOOD | {"counts": "O" * 3000}, "its run lengths cover"),
    "three numbers": ([[1, 2, 3]], "one of its polygons is 3 numbers; expected x, y of three points"),
    "four numbers": ([[1, 2, 3, 4]], "one of its polygons is 4 numbers"),
    "odd number": ([[1, 2, 3, 4, 5, 6, 7]], "one of its polygons is 7 numbers"),
    "not a list of lists": ([1, 2, 3, 4, 5, 6], "one of its polygons is 1; expected x, y"),
    "no polygon": ([], "its list of polygons is empty"),
    "NaN": ([[1, 2, 3, 4, 5, float("nan")]], "a coordinate that is not a finite number"),
    "infinity": ([[1, 2, 3, 4, 5, float("inf")]], "a coordinate that is not a finite number"),
    "a number of 400 digits": ([[1, 2, 3, 4, 5, 10**400]], "a coordinate that is not a finite number"),
    "text in a polygon": ([[1, 2, 3, 4, 5, "6"]], "a coordinate that is not a finite number"),
    "truth in a polygon": ([[1, 2, 3, 4, 5, True]], "a coordinate that is not a finite number"),
    "outside": (
        [square(40, 2, 50, 9)],
        "x of one of its polygons goes from 40 to 50, outside its image",
    ),
    "far outside": ([square(1, -9e8, 9, 9e8)], "y of one of its polygons goes from -9e+08 to 9e+08"),
    "null": (None, ""),
    "text": ("polygon", "its segmentation is 'polygon'"),
}


@pytest.mark.parametrize("case", SEGMENTATIONS)
def test_segmentations_that_are_refused(case: str, tmp_path: Path) -> None:
    segmentation, text = SEGMENTATIONS[case]
    entry = annotation(17, 0, segmentation)
    file = write_coco(tmp_path / "a.json", IMAGES, [annotation(16, 1, GOOD), entry])
    with pytest.raises(InputError) as caught:
        read_instances(file, "a.jpg")
    message = str(caught.value)
    check_one_sentence(message.replace(str(file), "a.json"))
    assert message.startswith(f"'{file}': annotation 17")
    assert text in message
    if segmentation is not None:  # what is sound is still read
        np.testing.assert_array_equal(read_instances(file, "b.jpg").labels != 0, MASK)


ENTRIES: dict[str, tuple[object, object, str]] = {
    "unknown image": (IMAGES, [annotation(17, 5, GOOD)], "annotation 17: no image has its image_id, 5"),
    "no image": (
        IMAGES,
        [annotation(17, 0, GOOD, image_id=None)],
        "annotation 17 needs image_id, a whole number or text, which is missing",
    ),
    "no segmentation": (IMAGES, [annotation(17, 0, None)], "annotation 17 has no segmentation"),
    "no id": (
        IMAGES,
        [annotation(1, 0, GOOD), annotation(17, 0, None, id=None)],
        "annotation number 1 has no segmentation",
    ),
    "an id twice": (
        IMAGES,
        [annotation(17, 0, GOOD), annotation(17, 1, GOOD)],
        "two annotations have the id 17",
    ),
    "a list as id": (IMAGES, [annotation(17, 0, GOOD, id=[1])], "annotation number 0 needs id"),
    "a number": (IMAGES, [17], "annotation number 0 is 17; expected an object"),
    "no list": (IMAGES, {"id": 1}, "expected a list of annotation entries, got {'id': 1}"),
    "odd crowd": (IMAGES, [annotation(17, 0, GOOD, iscrowd="no")], "annotation 17 has iscrowd 'no'"),
    "odd category": (
        IMAGES,
        [annotation(17, 0, GOOD, category_id="a")],
        "annotation 17 needs category_id",
    ),
    "an image twice": ([*IMAGES, image(0, "c.jpg")], [], "two images have the id 0"),
    "a name twice": ([*IMAGES, image(2, "a.jpg")], [], "two images have the file_name 'a.jpg'"),
    "no width": (
        [{"id": 1, "file_name": "a", "height": 4}],
        [],
        "image 1 needs width, a whole number, wh",
    ),
    "no name": (
        [{"id": 1, "height": 4, "width": 4}],
        [],
        "image 1 needs file_name, text, which is missi",
    ),
    "no pixels": ([image(1, "a", (0, 5))], [], "image 1 has height and width [0, 5]; expected pixels"),
    "a path out": (
        [image(1, "../a.jpg")],
        [],
        "image 1 has the file_name '../a.jpg'; expected a relativ",
    ),
    "an absolute path": ([image(1, "/a.jpg")], [], "image 1 has the file_name '/a.jpg'"),
    "no images": ([], [], "has no images; expected at least one"),
}


@pytest.mark.parametrize("case", ENTRIES)
def test_entries_that_are_refused(case: str, tmp_path: Path) -> None:
    images, annotations, text = ENTRIES[case]
    file = write_coco(tmp_path / "a.json", images, annotations)
    check_refused(file, text)


CONTENTS: dict[str, tuple[str | bytes, str]] = {
    "nothing": ("", "is not a JSON file: Expecting value"),
    "an image": (b"\x89PNG\r\n\x1a\n\xff\xfe", "is not a JSON file: "),
    "cut short": ('{"images": [', "is not a JSON file: "),
    "nested": ("[" * 200_000, "is not a COCO file: its lists are nested too deeply"),
    "a long number": ("9" * 6000, "is not a JSON file: "),
    "a number": ("17", "is not a COCO annotation file; expected an object with images and annotations"),
    "other keys": ('{"pictures": []}', "is not a COCO annotation file"),
}


@pytest.mark.parametrize("case", CONTENTS)
def test_contents_that_are_refused(case: str, tmp_path: Path) -> None:
    content, text = CONTENTS[case]
    file = tmp_path / "a.json"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    check_refused(file, text)


def check_refused(file: Path, text: str) -> None:
    with pytest.raises(InputError) as caught:
        list_images(file)
    message = str(caught.value)
    check_one_sentence(message.replace(str(file), "a.json"))
    assert message.startswith(f"'{file}'")
    assert text in message


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    check_refused(tmp_path / "a.json", "cannot be read: No such file or directory")


def test_a_size_of_gigabytes_takes_no_memory(tmp_path: Path) -> None:
    shape = 50_000, 50_000
    counts = {"size": list(shape), "counts": [0, shape[0] * shape[1]]}
    file = write_coco(tmp_path / "a.json", [image(0, "a.jpg", shape)], [annotation(17, 0, counts)])
    begin = time.perf_counter()
    with pytest.raises(
        InputError, match=r"image a.jpg' is 50000 x 50000 pixels; expected at most 268 mega"
    ):
        read_instances(file, "a.jpg")
    assert time.perf_counter() - begin < 1


RESULTS: dict[str, tuple[Any, str]] = {
    "an object": ({"annotations": []}, "is not a COCO result file; expected a list of results"),
    "no score": (
        [{"image_id": 0, "segmentation": GOOD}],
        "result number 0 has the score None; expected 0",
    ),
    "score above 1": (
        [{"image_id": 0, "segmentation": GOOD, "score": 2}],
        "result number 0 has the score 2",
    ),
    "NaN": ([{"image_id": 0, "segmentation": GOOD, "score": float("nan")}], "has the score nan"),
    "unknown image": (
        [{"image_id": 5, "segmentation": GOOD, "score": 1}],
        "result number 0: no image of",
    ),
    "a box": (
        [{"image_id": 0, "bbox": [1, 2, 3, 4], "score": 1}],
        "result number 0 has no segmentation",
    ),
    "other size": (
        [{"image_id": 0, "segmentation": plain_runs(MASK[:5]), "score": 1}],
        "result number 0 of the image 'a.jpg': the size of its run lengths is [5, 32]",
    ),
}


@pytest.mark.parametrize("case", RESULTS)
def test_results_that_are_refused(case: str, tmp_path: Path) -> None:
    content, text = RESULTS[case]
    truths = write_coco(tmp_path / "gt.json", IMAGES, [])
    file = tmp_path / "r.json"
    file.write_text(json.dumps(content), encoding="utf-8")

    def listed_and_read() -> None:
        list_results(file, truths)
        read_results(file, truths, "a.jpg")

    with pytest.raises(InputError) as caught:
        listed_and_read()
    assert str(caught.value).startswith(f"'{file}'")
    assert text in str(caught.value)

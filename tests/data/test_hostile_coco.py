"""COCO files that are damaged or made to do harm: one sentence with the file and what is wrong."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.coco_files import SHAPE, annotation, image, plain_runs, runs, square, write_coco
from helpers.messages import check_one_sentence

from sisod.common.exceptions import InputError
from sisod.data.containers.coco import list_images, list_results, read_instances, read_results

MASK = np.eye(*SHAPE, dtype=bool)
GOOD = runs(MASK, "compressed")
TEXT = GOOD["counts"]
IMAGES = [image(0, "a.jpg"), image(1, "b.jpg")]

# segmentation of annotation 17, and what the message says
SEGMENTATIONS: list[tuple[object, str]] = [
    (GOOD | {"size": [32, 24]}, "for an image of size [32, 24]"),
    (GOOD | {"counts": [5, 5]}, "cover 10 pixels"),
    (GOOD | {"counts": [-1, 769]}, "$.counts[0]"),
    (GOOD | {"counts": TEXT + "o"}, "string of its counts is damaged"),
    (GOOD | {"counts": "O" * 3000}, "or one is negative"),
    ([[1, 2, 3, 4, 5, 6, 7]], "has 7 numbers"),
    ([[1, 2, 3, 4, 5, "6"]], "$[0][5]"),
    ([square(40, 2, 50, 9)], "from 2 to 50; expected x and y of points inside an image of 32 x 24"),
]


@pytest.mark.parametrize(
    ("segmentation", "text"), SEGMENTATIONS, ids=[text for _, text in SEGMENTATIONS]
)
def test_segmentations(segmentation: object, text: str, tmp_path: Path) -> None:
    entries = [annotation(16, 1, GOOD), annotation(17, 0, segmentation)]
    file = write_coco(tmp_path / "a.json", IMAGES, entries)
    with pytest.raises(InputError) as caught:
        read_instances(file, "a.jpg")
    message = str(caught.value)
    check_one_sentence(message.replace(str(file), "a.json"))
    assert message.startswith(f"'{file}': annotation 17 of the image 'a.jpg': ")
    assert text in message
    np.testing.assert_array_equal(read_instances(file, "b.jpg")[0] != 0, MASK)  # still read


def entries(images: object, *annotations: object) -> bytes:
    """Return the content of an annotation file."""
    return json.dumps({"images": images, "annotations": list(annotations)}).encode()


CONTENTS: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "is not a COCO annotation file"),
    "nested": (b"[" * 200_000, "is not a COCO annotation file"),
    "nested segmentation": (b'{"annotations": [{"segmentation": ' + b"[" * 200_000, "recursion"),
    "a list": (b"[]", "expected `object`, got `array`"),
    "unknown image": (entries(IMAGES, annotation(17, 5, GOOD)), "no image has the image_id 5"),
    "NaN": (entries(IMAGES, annotation(17, 0, [[float("nan")] * 6])), "malformed"),
    "an image twice": (entries([*IMAGES, image(0, "c.jpg")]), "same id or file_name"),
    "no pixels": (entries([image(1, "a", (0, 5))]), "$.images[0].height"),
    "a path out": (entries([image(1, "../a.jpg")]), "'../a.jpg' is not a relative path"),
}


@pytest.mark.parametrize("case", CONTENTS)
def test_annotation_files(case: str, tmp_path: Path) -> None:
    content, text = CONTENTS[case]
    file = tmp_path / "a.json"
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        list_images(file)
    check_one_sentence(str(caught.value))
    assert str(caught.value).startswith(f"'{file}'")
    assert text.lower() in str(caught.value).lower()


def test_a_size_of_gigabytes_takes_no_memory(tmp_path: Path) -> None:
    shape = 50_000, 50_000
    counts = {"size": list(shape), "counts": [0, shape[0] * shape[1]]}
    file = write_coco(tmp_path / "a.json", [image(0, "a.jpg", shape)], [annotation(17, 0, counts)])
    begin = time.perf_counter()
    with pytest.raises(InputError, match=r"image a.jpg' is 50000 x 50000 pixels .* at most 268 mega"):
        read_instances(file, "a.jpg")
    assert time.perf_counter() - begin < 1


RESULT = {"image_id": 0, "segmentation": GOOD, "score": 1}
RESULTS: dict[str, tuple[Any, str]] = {
    "an object": ({"annotations": []}, "is not a COCO result file"),
    "score above 1": ([RESULT | {"score": 2}], "$[0].score"),
    "unknown image": ([RESULT | {"image_id": 5}], "has the id 5"),
    "other size": ([RESULT | {"segmentation": plain_runs(MASK[:5])}], "a result of the image 'a.jpg'"),
    "no category": ([RESULT], "without category_id"),
}


@pytest.mark.parametrize("case", RESULTS)
def test_result_files(case: str, tmp_path: Path) -> None:
    content, text = RESULTS[case]
    truths = write_coco(tmp_path / "gt.json", IMAGES, [])
    file = tmp_path / "r.json"
    file.write_text(json.dumps(content), encoding="utf-8")

    with pytest.raises(InputError) as caught:  # noqa: PT012
        list_results(file, truths)
        read_results(file, truths, "a.jpg", "cup" if case == "no category" else "")
    assert str(caught.value).startswith(f"'{file}'")
    assert text in str(caught.value)

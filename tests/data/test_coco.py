"""COCO files: masks against pycocotools, overlaps, crowds, classes and results."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.coco_files import SHAPE, annotation, image, plain_runs, runs, square, write_coco
from helpers.command_line import error_message, run
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from pycocotools import mask as coco

from sisod.common import exceptions
from sisod.common.exceptions import InputError
from sisod.data.containers.coco import (
    count_crowds,
    decode_counts,
    find_category,
    list_images,
    read_instances,
    read_results,
    read_segmentation,
)
from sisod.data.pairs import find_masks, pair_files

Mask = np.ndarray[Any, Any]


def box(y0: int, x0: int, y1: int, x1: int) -> Mask:
    mask = np.zeros(SHAPE, dtype=bool)
    mask[y0:y1, x0:x1] = True
    return mask


def painted(segmentation: object, height: int, width: int) -> Mask:
    counts = read_segmentation(json.dumps(segmentation).encode(), height, width)
    return np.repeat(np.arange(len(counts)) % 2 == 1, counts).reshape(width, height).T


@settings(max_examples=60, deadline=None)
@given(arrays.arrays(np.bool_, st.tuples(st.integers(1, 12), st.integers(1, 12))))
def test_run_lengths_are_those_of_pycocotools(mask: Mask) -> None:
    for kind in ("compressed", "plain"):
        np.testing.assert_array_equal(painted(runs(mask, kind), *mask.shape), mask)
    text = coco.encode(np.asfortranarray(mask.astype(np.uint8)))["counts"]
    assert decode_counts(text).tolist() == plain_runs(mask)["counts"]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(st.floats(0, 40), st.floats(0, 30)), min_size=3, max_size=7),
        min_size=1,
        max_size=3,
    )
)
def test_polygons_are_those_of_pycocotools(points: list[list[tuple[float, float]]]) -> None:
    polygons = [[value for point in polygon for value in point] for polygon in points]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its decoder calls NumPy in the old way
        expected = coco.decode(coco.merge(coco.frPyObjects(polygons, 30, 40)))
    np.testing.assert_array_equal(painted(polygons, 30, 40), expected)


def test_the_smaller_object_is_on_top(tmp_path: Path) -> None:
    large, small, later = box(2, 2, 12, 12), box(4, 4, 8, 8), box(6, 6, 10, 10)
    entries = [
        annotation(5, 0, runs(m, "plain")) | {"id": i} for i, m in enumerate((small, large, later))
    ]
    file = write_coco(tmp_path / "a.json", [image(0, "a.jpg")], entries)
    expected = np.zeros(SHAPE, dtype=int)
    expected[large], expected[small], expected[later] = 2, 1, 3  # of two equal ones, the later
    labels, ignored = read_instances(file, "a.jpg")
    np.testing.assert_array_equal(labels, expected)
    assert ignored is None
    assert labels.flags.c_contiguous


def test_crowds_are_ignored_pixels(tmp_path: Path) -> None:
    crowd = plain_runs(box(0, 0, 10, 10))
    entries = [
        annotation(1, 0, crowd, iscrowd=1),
        annotation(2, 0, [square(5, 5, 12, 12)]),
        annotation(3, 0, crowd, iscrowd=1, category_id=2),
    ]
    file = write_coco(tmp_path / "a.json", [image(0, "a.jpg")], entries)
    labels, ignored = read_instances(file, "a.jpg")
    assert ignored is not None
    np.testing.assert_array_equal(ignored, box(0, 0, 10, 10) & ~box(5, 5, 12, 12))
    np.testing.assert_array_equal(labels != 0, box(5, 5, 12, 12))
    assert (count_crowds(file), count_crowds(file, "cup"), count_crowds(file, "person")) == (2, 1, 1)


def test_more_objects_than_bytes_hold(tmp_path: Path) -> None:
    pixels = [box(y, x, y + 1, x + 1) for y in range(20) for x in range(15)]
    entries = [annotation(i, 0, plain_runs(pixel)) for i, pixel in enumerate(pixels)]
    file = write_coco(tmp_path / "a.json", [image(0, "a.jpg")], entries)
    assert len(np.unique(read_instances(file, "a.jpg")[0])) == 301


def test_classes_by_name_and_number(tmp_path: Path) -> None:
    entries = [
        annotation(1, 0, [square(0, 0, 4, 4)]),
        annotation(2, 0, [square(8, 8, 14, 14)], category_id=2),
    ]
    file = write_coco(tmp_path / "a.json", [image(0, "a.jpg")], entries)
    assert find_category(file, "person") == find_category(file, "2") == 2
    for category in ("person", "2"):
        labels, _ = read_instances(file, "a.jpg", category)
        np.testing.assert_array_equal(labels != 0, box(8, 8, 14, 14))
    with pytest.raises(InputError, match="unknown class 'persn'; did you mean 'person'") as caught:
        read_instances(file, "a.jpg", "persn")
    assert str(caught.value).startswith(f"'{file}': ")


def test_names_are_file_names_without_extension(tmp_path: Path) -> None:
    images = [image(9, "val/b.png"), image(7, "a.jpg"), image(8, "c.heic")]
    file = write_coco(tmp_path / "a.json", images, [])
    assert [one.path for one in list_images(file)] == ["a.jpg", "c.heic", "val/b.png"]
    assert list(find_masks(file)) == ["a", "c.heic", "val/b"]


def results_file(path: Path, *entries: tuple[int, Mask, float, int]) -> Path:
    """Write a result file: image, mask, score and class of every object."""
    keys = "image_id", "segmentation", "score", "category_id"
    packed = [(of, runs(mask, "compressed"), score, label) for of, mask, score, label in entries]
    path.write_text(json.dumps([dict(zip(keys, values, strict=True)) for values in packed]))
    return path


def test_a_map_is_the_highest_score(tmp_path: Path) -> None:
    truths = write_coco(tmp_path / "a.json", [image(0, "a.jpg"), image(1, "b.jpg")], [])
    low, high, other = box(0, 0, 6, 6), box(3, 3, 9, 9), box(8, 8, 12, 12)
    found = results_file(tmp_path / "r.json", (0, high, 0.9, 1), (0, low, 0.1, 1), (0, other, 1, 2))
    expected = np.zeros(SHAPE)
    expected[low], expected[high] = 0.1, 0.9
    np.testing.assert_array_equal(read_results(found, truths, "a.jpg", "cup"), expected)
    expected[other] = 1
    np.testing.assert_array_equal(read_results(found, truths, "a.jpg"), expected)
    assert not read_results(found, truths, "b.jpg").any()  # no results: an empty map, not a missing one
    pairing = pair_files(found, truths)
    assert [pair.name for pair in pairing.pairs] == ["a", "b"]
    assert (pairing.missing, pairing.extra) == ((), ())


def test_results_without_an_annotation_file(tmp_path: Path) -> None:
    found = results_file(tmp_path / "r.json", (0, box(0, 0, 6, 6), 0.5, 1))
    (tmp_path / "gt").mkdir()
    np.save(tmp_path / "gt/a", box(0, 0, 6, 6))
    with pytest.raises(InputError, match=r"r.json' is a COCO result file, whose image ids are those of"):
        pair_files(found, tmp_path / "gt")
    with pytest.raises(InputError, match=r"r.json' is not a COCO annotation file.* got `array`"):
        find_masks(found)


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exceptions, "is_missing", lambda module: module == "pycocotools")
    polygons = [annotation(1, 0, [square(0, 0, 4, 4)])]
    file = write_coco(tmp_path / "a.json", [image(0, "a.jpg")], polygons)
    with pytest.raises(InputError, match=r"polygons needs pycocotools; .* 'sisod\[coco\]'"):
        read_instances(file, "a.jpg")
    packed = [annotation(1, 0, plain_runs(box(0, 0, 4, 4)))]
    file = write_coco(tmp_path / "b.json", [image(0, "a.jpg")], packed)
    assert read_instances(file, "a.jpg")[0].sum() == 16


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    file = write_coco(tmp_path / "a.json", [image(0, "a.jpg")], [])
    assert not read_instances(file, "a.jpg")[0].any()
    write_coco(file, [image(0, "a.jpg")], [annotation(1, 0, plain_runs(box(0, 0, 4, 4)))])
    assert read_instances(file, "a.jpg")[0].any()
    write_coco(file, [image(0, "b.jpg")], [])
    with pytest.raises(InputError, match=r"has no image 'a.jpg' any more; it changed while it was read"):
        read_instances(file, "a.jpg")


def test_labels_beside_a_class(tmp_path: Path) -> None:
    file = write_coco(tmp_path / "a.json", [image(0, "a.jpg")], [])
    ended = run("stats", file, "--class", "cup", "--label-maps")
    message = error_message(ended, exit_codes=(2,))
    assert message.startswith("labels and a class, 'cup', exclude each other: a file holds the numbers")

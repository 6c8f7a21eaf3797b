"""The error breakdown of a result: by hand, sums over classes, groups and images."""

import numpy as np
import polars as pl
import pytest
from helpers.object_maps import object_maps
from numpy.typing import NDArray

import sisod
from sisod.analysis import error_breakdown
from sisod.analysis.error_breakdown import ERROR_CLASSES
from sisod.scoring.counting.object_counts import ERROR_COUNTS


def scene() -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """On 10 x 20 pixels: an object found but for a row, one missed, and a false one."""
    gt, p = np.zeros((10, 20), dtype=bool), np.zeros((10, 20))
    gt[1:5, 1:5] = gt[7:9, 1:4] = True
    p[1:4, 1:6] = 1  # 12 of 16 pixels, and 3 outside the frame
    p[6:9, 10:14] = 1
    return p, gt


MAPS = object_maps() | {"scene": scene()}
RAW = sisod.Protocol("raw", normalize="none", min_area=3)


def gathered(names: list[str], protocol: str | sisod.Protocol = RAW) -> sisod.Evaluation:
    evaluator = sisod.Evaluator(protocol=protocol)
    for name in names:
        evaluator.update(*MAPS[name], name=name)
    return evaluator.result()


WHOLE = gathered(list(MAPS))


def test_by_hand() -> None:
    table = error_breakdown(gathered(["scene"]))
    assert table["class"].to_list() == list(ERROR_CLASSES)
    rows = {row["class"]: row for row in table.iter_rows(named=True)}
    objects = {name: row["objects"] for name, row in rows.items() if row["objects"]}
    assert objects == {"correct": 1, "missed": 1, "false": 1}
    pixels = {name: row["pixels"] for name, row in rows.items() if row["pixels"]}
    assert pixels == {"partly_found": 4, "spilled": 3, "missed": 6, "false": 12}
    assert rows["missed"]["false_negatives"] == 6
    assert rows["missed"]["false_positives"] is None
    assert rows["false"]["object_share"] == pytest.approx(1 / 3)
    assert rows["false"]["pixel_share"] == 12 / 25
    assert rows["false"]["image_share"] == 12 / 200
    assert rows["correct"]["pixels"] is None  # its wrong pixels are of other classes
    assert rows["in_frame"]["objects"] is None


def test_by_size_by_hand() -> None:
    table = error_breakdown(gathered(["scene"]), by="size", groups=[0, 0.05, 1])  # 10 pixels
    assert table.columns[:4] == ["group", "low", "high", "class"]
    assert table["group"].to_list() == ["0-5 %"] * 8 + ["5-100 %"] * 8
    small, large = (table.filter(pl.col("group") == group) for group in ("0-5 %", "5-100 %"))

    def counts(part: pl.DataFrame, column: str) -> dict[str, int]:
        return {name: n for name, n in part.select("class", column).iter_rows() if n}

    assert counts(small, "objects") == {"missed": 1}
    assert counts(small, "pixels") == {"missed": 6}
    assert counts(large, "objects") == {"correct": 1, "false": 1}
    assert counts(large, "pixels") == {"partly_found": 4, "spilled": 3, "false": 12}
    assert large["object_share"].sum() == 1


def test_classes_add_up_to_the_whole() -> None:
    table = error_breakdown(WHOLE)
    counts = WHOLE.counts
    assert counts is not None
    assert table["objects"].sum() == (counts["objects"] + counts["false"]).sum()
    assert table["pixels"].sum() == (counts["union"] - counts["intersection"]).sum()
    columns = {"objects": "objects", "fn": "false_negatives", "fp": "false_positives"}
    for name in ERROR_COUNTS:  # counted without the tables of objects
        kind, of_class = name.split("_", 1)
        row = table.filter(pl.col("class") == of_class)
        assert row[columns[kind]].to_list() == [counts[name].sum()], name
    assert table["object_share"].sum() == pytest.approx(1)
    assert table["pixel_share"].sum() == pytest.approx(1)
    assert (table["objects"].drop_nulls() > 0).all()  # these maps have every class
    assert (table["pixels"].drop_nulls() > 0).all()


@pytest.mark.parametrize("groups", ["paper", "log", "quantile", [0, 0.2, 1]])
def test_size_groups_add_up_to_the_classes(groups: str | list[float]) -> None:
    whole = error_breakdown(WHOLE).head(-1)  # the last class has no size
    table = error_breakdown(WHOLE, by="size", groups=groups)
    columns = ("objects", "false_negatives", "false_positives", "pixels", "image_share")
    sums = table.group_by("class", maintain_order=True).agg(pl.col(columns).sum())
    for column in columns[:-1]:
        assert sums[column].to_list() == whole[column].fill_null(0).to_list(), column
    assert sums["image_share"].to_list() == pytest.approx(whole["image_share"].fill_null(0).to_list())


def test_other_protocols() -> None:
    official = gathered(["random1", "random2"], "official")
    assert "error" not in official.objects.columns
    voronoi = error_breakdown(gathered(list(MAPS), "cc"))
    assert voronoi["object_share"].sum() == pytest.approx(1)


def test_nothing_salient_and_nothing_predicted() -> None:
    table = error_breakdown(gathered(["both empty"]))
    assert table["objects"].sum() == table["pixels"].sum() == 0
    assert table["object_share"].drop_nulls().is_nan().all()
    assert (table["image_share"].drop_nulls() == 0).all()

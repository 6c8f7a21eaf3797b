"""Scores of tables of bytes: the bits of a run over folders, every kind of table, refused tables."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import polars as pl
import pytest
from helpers.paths import EXAMPLES
from helpers.results import assert_same_result

import sisod
from sisod.common.exceptions import InputError, UsageError
from sisod.data.scenes import make_scenes, sees_all_coarsely

COUNT = 40  # more than a batch
IMAGES = ("image", "height", "width", "n_objects", "alpha")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 small pairs, one prediction of another size and one in a .npy file."""
    root = tmp_path_factory.mktemp("pairs")
    for name in ("pred", "gt"):
        (root / name).mkdir()
    for index, scene in enumerate(make_scenes(COUNT, seed=3, shape=(48, 64))):
        coarse = sees_all_coarsely(scene)
        pred = cv2.resize(coarse, (32, 24)) if index == 7 else coarse
        if index == 9:
            np.save(root / "pred" / f"{scene.name}.npy", pred / np.float32(255))
        else:
            cv2.imwrite(str(root / "pred" / f"{scene.name}.png"), pred)
        cv2.imwrite(str(root / "gt" / f"{scene.name}.png"), scene.mask)
    return root


@pytest.fixture(scope="module")
def table(folder: Path) -> pl.DataFrame:
    preds, masks = (sorted((folder / name).iterdir()) for name in ("pred", "gt"))
    return pl.DataFrame(
        {
            "name": [path.stem for path in masks],
            "prediction": [path.read_bytes() for path in preds],
            "ground_truth": [path.read_bytes() for path in masks],
        }
    )


@pytest.fixture(scope="module")
def evaluated(folder: Path) -> sisod.Evaluation:
    with pytest.warns(UserWarning, match="1 prediction .* was resized"):
        return sisod.evaluate(folder / "pred", folder / "gt", jobs=1)


def test_the_scores_are_those_of_the_folders(table: pl.DataFrame, evaluated: sisod.Evaluation) -> None:
    scores = sisod.score_table(table)
    assert scores.equals(evaluated.images)
    assert scores.schema == evaluated.images.schema
    backward = sisod.score_table(table.reverse())  # rows keep their order
    assert backward.equals(evaluated.images.reverse())


@pytest.mark.parametrize("protocol", ["paper", "official"])
def test_protocol_and_metrics(table: pl.DataFrame, folder: Path, protocol: str) -> None:
    names = table["name"][:3].to_list()
    options: dict[str, Any] = {"protocol": protocol, "metrics": ["mae", "si_mae"]}
    expected = sisod.evaluate(folder / "pred", folder / "gt", names=names, jobs=1, **options)
    assert sisod.score_table(table[:3], **options).equals(expected.images)


def test_structs_of_hugging_face(table: pl.DataFrame, evaluated: sisod.Evaluation) -> None:
    columns = {
        name: [{"bytes": cell, "path": None} for cell in table[name]]
        for name in ("prediction", "ground_truth")
    }
    frame = pl.DataFrame(
        {"id": table["name"], "map": columns["prediction"], "mask": columns["ground_truth"]}
    )
    scores = sisod.score_table(frame, name="id", pred="map", gt="mask", metrics=["mae"])
    assert scores.equals(evaluated.images.select(*IMAGES, "mae"))


def test_a_dict_of_columns(table: pl.DataFrame, evaluated: sisod.Evaluation) -> None:
    """The batches of NumPy arrays that Ray makes by default."""
    columns = {name: np.array(table[name].to_list(), dtype=object) for name in table.columns}
    scores = sisod.score_table(columns, metrics=["mae"])
    assert isinstance(scores, dict)
    assert list(scores) == [*IMAGES, "mae"]
    assert scores["image"].tolist() == evaluated.images["image"].to_list()
    assert scores["mae"].tobytes() == evaluated.images["mae"].to_numpy().tobytes()


@pytest.mark.needs("pyarrow")
def test_pyarrow(table: pl.DataFrame, evaluated: sisod.Evaluation) -> None:
    import pyarrow as pa

    expected = evaluated.images.select(*IMAGES, "mae")
    arrow = table.to_arrow()
    scores = sisod.score_table(arrow, metrics=["mae"], details=True)
    assert isinstance(scores, pa.Table)
    assert pl.DataFrame(scores).drop("details").equals(expected)
    types = [str(scores.schema.field(name).type) for name in ("image", "height", "mae", "details")]
    assert types == ["string", "int64", "double", "binary"]  # which Spark knows
    (batch,) = arrow.combine_chunks().to_batches()
    row_scores = sisod.score_table(batch, metrics=["mae"])
    assert isinstance(row_scores, pa.RecordBatch)
    assert pl.DataFrame(row_scores).equals(expected)


def test_an_empty_table_has_the_same_columns(table: pl.DataFrame) -> None:
    for options in ({}, {"details": True}, {"protocol": "official", "metrics": ["mae"]}):
        empty, full = (sisod.score_table(rows, **options) for rows in (table[:0], table[:1]))
        assert empty.schema == full.schema
        assert empty.height == 0
    assert len(sisod.score_table({"name": [], "prediction": [], "ground_truth": []})["mae"]) == 0


@pytest.mark.needs("pyarrow")
def test_the_function_for_spark(table: pl.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa

    monkeypatch.syspath_prepend(EXAMPLES)
    import spark_scores

    batches = [*table.to_arrow().to_batches(max_chunksize=15), *table[:0].to_arrow().to_batches()]
    scores = list(spark_scores.score_batches(iter(batches)))
    assert all(isinstance(batch, pa.RecordBatch) for batch in scores)
    joined = pa.Table.from_batches(scores)
    assert pl.DataFrame(joined).equals(sisod.score_table(table, metrics="paper"))
    schema = spark_scores.score_schema()
    assert schema.startswith("image string, height bigint, width bigint, n_objects bigint, alpha double")
    assert len(schema.split(", ")) == joined.num_columns


# combined


def test_combined_scores_are_one_result(table: pl.DataFrame, evaluated: sisod.Evaluation) -> None:
    """However the images are divided and in whatever order: the bits of the folders."""
    shuffled = table.sample(fraction=1, shuffle=True, seed=1)
    parts = [sisod.score_table(shuffled[at : at + 11], details=True) for at in range(0, COUNT, 11)]
    rows = pl.concat(parts)
    for again in (reversed(parts), [rows[at : at + 7] for at in range(0, COUNT, 7)]):
        result = sisod.combine_scores(again)
        assert_same_result(result, evaluated)
    inputs = {"inputs", "digest"}
    assert result.run == {key: value for key, value in evaluated.run.items() if key not in inputs}


def test_what_cannot_be_combined(table: pl.DataFrame) -> None:
    scores = sisod.score_table(table[:4], metrics="mae", details=True)
    other = sisod.score_table(table[4:6], metrics="mae", protocol="paper", details=True)
    twice = sisod.score_table(table[:1], metrics="mae", details=True)
    broken = scores.with_columns(details=pl.lit(b"{}\n"))
    for tables, text in (
        ([], "there are no scores to combine"),
        ([scores.drop("details")], "a table of scores has no column 'details'"),
        ([scores[:2]], "the tables have 2 rows, but the details of 4 images, not the same"),
        ([scores, scores[1:]], "the tables have 7 rows, but the details of 4 images, not the same"),
        ([scores, twice], f"the image {table['name'][0]!r} was scored twice"),
        ([scores, other], "scores by different protocols or metrics cannot be combined"),
        ([broken], "a cell of the column 'details' is damaged, or of another version"),
    ):
        with pytest.raises(InputError, match=f"^{text}") as info:
            sisod.combine_scores(tables)
        assert "\n" not in str(info.value)


# refused tables


def changed(column: str, row: int, cell: object) -> Callable[[pl.DataFrame], pl.DataFrame]:
    def change(table: pl.DataFrame) -> pl.DataFrame:
        cells = table[column].to_list()
        cells[row] = cell
        return table.with_columns(pl.Series(column, cells))

    return change


COLOURS = cv2.imencode(".png", np.arange(48, dtype=np.uint8).reshape(4, 4, 3) * 5)[1].tobytes()
SMALL = cv2.imencode(".png", np.zeros((2, 2), dtype=np.uint8))[1].tobytes()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (changed("prediction", 17, b"GIF"), ("row 17", "scene017", "prediction", "not an image")),
        (changed("ground_truth", 35, b""), ("row 35", "scene035", "ground_truth", "not an image")),
        (changed("ground_truth", 2, COLOURS), ("row 2", "scene002", "ground_truth", "colour image")),
        (changed("prediction", 2, None), ("row 2", "'prediction' is null")),
        (changed("name", 3, None), ("row 3", "'name' is null")),
        (changed("prediction", 5, SMALL), ("row 5", "scene005", "prediction has shape (2, 2)")),
        (lambda table: table.drop("prediction"), ("no column 'prediction'", "say with pred=")),
        (lambda table: table.with_columns(prediction=pl.lit("a.png")), ("'prediction'", "String")),
        (lambda table: table.with_columns(name=pl.lit(1)), ("'name'", "Int32")),
    ],
)
def test_refused_tables(
    table: pl.DataFrame, change: Callable[[Any], Any], expected: tuple[str, ...]
) -> None:
    is_small = "scene005" in expected
    with pytest.raises(InputError) as info:
        sisod.score_table(
            change(table if is_small else table.with_columns(prediction="ground_truth")), strict=True
        )
    assert all(part in str(info.value) for part in expected)
    assert "\n" not in str(info.value)


# the example, on a small cluster of Ray on this machine

RAY = """
import sys
import ray_scores
ray_scores.main([]).save(sys.argv[1])
"""


@pytest.mark.slow
@pytest.mark.needs("ray", "pyarrow")
def test_ray(tmp_path: Path) -> None:
    from sisod.reproduction.demo import run_demo

    settings = {"PYTHONPATH": str(EXAMPLES), "RAY_USAGE_STATS_ENABLED": "0"}
    command = [sys.executable, "-c", RAY, str(tmp_path / "out")]
    env = os.environ | settings
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    run_demo(tmp_path / "demo", count=12)
    expected = sisod.evaluate(
        tmp_path / "demo" / "A", tmp_path / "demo" / "mask", metrics="paper", jobs=1
    )
    assert_same_result(sisod.Evaluation.load(tmp_path / "out"), expected)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda _: sisod.score_table([1, 2]), "batch must be a table of Arrow, polars or pyarrow"),
        (lambda table: sisod.score_table(table, details=1), "details must"),  # type: ignore[arg-type]
        (lambda table: sisod.combine_scores(table.to_dict(as_series=False)), "must be a table"),
    ],
)
def test_what_is_no_table(call: Callable[[Any], Any], text: str, table: pl.DataFrame) -> None:
    with pytest.raises(UsageError, match=text):
        call(table)

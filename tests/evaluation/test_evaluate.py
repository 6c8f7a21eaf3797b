"""`sisod evaluate` gives the engine's numbers, and a complete result or none."""

import json
import math
import shutil
from pathlib import Path

import cv2
import numpy as np
import polars as pl
import pytest
from helpers.evaluate_runs import FILES, evaluate, evaluate_refusal, finished, record, save_map
from helpers.folder_contents import content, names
from polars.testing import assert_frame_equal

import sisod
from sisod.common.exceptions import InputError

# the numbers


def test_equals_the_evaluator_bit_for_bit(three_batches: Path) -> None:
    evaluator = sisod.Evaluator(metrics="all")
    for path in sorted((three_batches / "MSOD" / "mask").iterdir()):
        pred = cv2.imread(str(three_batches / "B" / path.name), cv2.IMREAD_UNCHANGED)
        gt = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
        assert pred is not None
        assert gt is not None
        evaluator.update(pred, gt, name=path.stem)
    direct = evaluator.result()
    result = sisod.evaluate("B", "MSOD/mask", metrics="all", jobs=2)
    np.testing.assert_equal(result.summary, direct.summary)
    assert result.defined == direct.defined
    assert result.protocol == direct.protocol
    for name in ("images", "objects", "curves", "image_curves"):
        assert_frame_equal(getattr(result, name), getattr(direct, name), check_exact=True)
    assert direct.run.items() <= result.run.items()


def test_independent_of_the_number_of_jobs(three_batches: Path) -> None:
    for jobs in (1, 2, 3):
        finished(jobs=jobs, out=f"out{jobs}")
    first = content("out1")
    assert set(first) == {f"MSOD/A/{name}" for name in FILES}
    assert first == content("out2") == content("out3")
    assert names(three_batches) == ["A", "B", "MSOD", "out1", "out2", "out3"]
    assert names("out1") == ["MSOD"]
    assert names("out1/MSOD") == ["A"]


def test_a_batch_without_any_object(three_batches: Path) -> None:
    for path in sorted((three_batches / "MSOD" / "mask").iterdir())[:32]:
        assert cv2.imwrite(str(path), np.zeros((24, 32), np.uint8))
    finished()
    result = sisod.Evaluation.load("out/MSOD/A")
    assert (result.images["n_objects"] == 0).sum() >= 32
    assert result.objects.height == result.images["n_objects"].sum() > 0


def tables(folder: str) -> dict[str, bytes]:
    """Everything but run.json, which says how the folder was made."""
    return {name: data for name, data in content(folder).items() if name != "run.json"}


def test_files_and_loading(four_images: Path) -> None:
    finished("--metrics", "paper", "--protocol", "paper")
    result = sisod.Evaluation.load("out/MSOD/A")
    assert result.images["image"].to_list() == [f"scene00{i}" for i in range(4)]
    assert result.protocol == sisod.PROTOCOLS["paper"]
    assert result.image_curves.schema["f"] == pl.Array(pl.Float32, 256)
    assert (result.run["images"], result.run["objects"]) == (4, len(result.objects))
    inputs = result.run["inputs"]
    assert inputs["predictions"] == str(four_images / "A")
    assert inputs["ground_truths"] == str(four_images / "MSOD" / "mask")
    assert result.files is not None
    assert result.files["prediction"].to_list() == [f"scene00{i}.png" for i in range(4)]
    result.save("copy")
    assert tables("copy") == tables("out/MSOD/A")
    with pytest.raises(InputError, match=r"^'copy' exists already; use --overwrite"):
        result.save("copy")
    (four_images / "copy" / "stray").touch()
    result.save("copy", overwrite=True)
    assert set(content("copy")) == FILES


@pytest.mark.usefixtures("four_images")
def test_loading_what_is_not_whole() -> None:
    finished()
    for name in FILES:
        path = Path("out/MSOD/A", name)
        whole = path.read_bytes()
        for damaged in (None, b"", whole[:-9]):
            path.unlink() if damaged is None else path.write_bytes(damaged)
            with pytest.raises(InputError, match=r"^'out/MSOD/A' is not a result of 'sisod evaluate'"):
                sisod.Evaluation.load("out/MSOD/A")
        path.write_bytes(whole)


def test_all_black_ground_truths(four_images: Path) -> None:
    for path in (four_images / "MSOD" / "mask").iterdir():
        assert cv2.imwrite(str(path), np.zeros((24, 32), np.uint8))
    result = evaluate("--metrics", "mae,si_mae,f_mean,auc", "--format", "csv")
    assert result.exit_code == 0
    loaded = sisod.Evaluation.load("out/MSOD/A")
    mae = loaded.summary["mae"]
    assert loaded.summary["si_mae"] == mae > 0
    assert math.isnan(loaded.summary["f_mean"])
    assert loaded.defined == {"mae": 4, "si_mae": 4, "f_mean": 0, "auc": 0}
    assert loaded.run["undefined"] == {"f_mean": 4, "auc": 4}
    assert result.stdout.splitlines()[1] == f"MSOD,A,{mae},{mae},,"
    assert loaded.objects.height == 0
    assert loaded.objects.schema["touches_border"] == pl.Boolean


# what is there already


def test_existing_result(four_images: Path) -> None:
    finished("--metrics", "mae")
    before = content("out")
    text = "'out/MSOD/A' exists already; use --overwrite to replace it, or give another folder"
    assert evaluate_refusal("--metrics", "mae") == text
    assert content("out") == before
    finished("--metrics", "mae,mse")  # adds what is missing
    assert record()["metrics"] == ["mae", "mse"]
    assert set(content("out/MSOD/A")) == FILES
    assert evaluate_refusal("--metrics", "mse") == text
    assert evaluate_refusal("--metrics", "auc", "--min-area", "0") == text  # another result
    (four_images / "out" / "MSOD" / "A" / "stray").touch()
    finished("--metrics", "mse", "--overwrite")
    assert set(content("out/MSOD/A")) == FILES
    assert record()["metrics"] == ["mse"]
    assert names("out/MSOD") == ["A"]
    save_map("A/scene001.npy", np.full((24, 32), 2.0))
    evaluate_refusal("--overwrite")
    assert record()["metrics"] == ["mse"]  # a run that fails takes nothing away


def test_overwriting_never_takes_the_maps_themselves(four_images: Path) -> None:
    (four_images / "maps" / "MSOD").mkdir(parents=True)
    shutil.copytree("A", "maps/MSOD/A")
    before = content("maps")
    evaluate("--overwrite", preds=("maps/MSOD/A",), out="maps")
    assert before.items() <= content("maps").items()


@pytest.mark.usefixtures("four_images")
def test_output_that_cannot_be_written() -> None:
    Path("taken").touch()
    assert "cannot write below 'taken/MSOD': Not a directory" in evaluate_refusal(out="taken")


def test_calibration_of_the_maps_is_recorded(tmp_path: Path) -> None:
    for folder in ("maps", "mask"):
        (tmp_path / folder).mkdir()
        np.save(tmp_path / folder / "a.npy", np.eye(8, dtype=bool))
    for stored in ({"temperature": 0.9, "shift": -1.0}, None):
        written = {"sisod": "0.1.0", "kind": "prediction", "calibration": stored}
        (tmp_path / "maps/run.json").write_text(json.dumps(written))
        found = sisod.evaluate(tmp_path / "maps", tmp_path / "mask", jobs=1)
        assert found.run["inputs"].get("calibration") == stored

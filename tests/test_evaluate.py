"""`sisod evaluate`: the same numbers as the engine, whole or not at all, and resumable at any moment."""

import errno
import importlib
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from polars.testing import assert_frame_equal
from typer.testing import CliRunner, Result

import sisod
from sisod import files, runners
from sisod.cli import app
from sisod.errors import InputError
from sisod.scenes import make_scenes, sees_all_coarsely, sees_only_large

driver = importlib.import_module("sisod.evaluate")  # `sisod.evaluate` is the function

COUNT = 200  # seven batches of up to 32
FILES = {
    "curves.parquet",
    "dataset_curves.parquet",
    "images.parquet",
    "objects.parquet",
    "run.json",
    "summary.json",
}
MAIN = [sys.executable, "-c", "from sisod.cli import app; app()"]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two methods on one data set of tiny scenes; never written to."""
    root = tmp_path_factory.mktemp("made")
    for folder in ("A", "B", "MSOD/mask"):
        (root / folder).mkdir(parents=True)
    for scene in make_scenes(COUNT, seed=2, shape=(24, 32)):
        for folder, picture in (
            ("A", sees_only_large(scene)),
            ("B", sees_all_coarsely(scene)),
            ("MSOD/mask", scene.mask),
        ):
            assert cv2.imwrite(str(root / folder / f"{scene.name}.png"), picture)
    return root


@pytest.fixture
def work(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it to change, and to be in."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def few(work: Path) -> Path:
    """Only four images of it."""
    for path in work.rglob("scene*.png"):
        if path.stem > "scene003":
            path.unlink()
    return work


def run(*args: str, preds: tuple[str, ...] = ("A",), jobs: int = 1, out: str = "out") -> Result:
    options = [*preds, "MSOD/mask", "--out", out, "--jobs", str(jobs), *args]
    return CliRunner().invoke(app, ["evaluate", *options])


def finished(*args: str, **options: Any) -> str:
    """Run to the end; return what was said on standard error."""
    result = run(*args, **options)
    assert result.exit_code == 0, (result.stderr, result.exception)
    return result.stderr


def refusal(*args: str, **options: Any) -> str:
    """Run into an error that is told in one sentence; return it."""
    result = run(*args, **options)
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("error: ").rstrip("\n")


def content(folder: str | Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in Path(folder).rglob("*") if p.is_file()}


def shards(out: str = "out") -> list[str]:
    return sorted(path.name for path in Path(out, "MSOD", ".A.partial").glob("*.npz"))


def record(out: str = "out") -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(Path(out, "MSOD", "A", "run.json").read_text())
    return loaded


def save_map(path: str, array: NDArray[Any]) -> None:
    Path(path).with_suffix(".png").unlink(missing_ok=True)
    np.save(path, array)


# the numbers


def test_equals_the_evaluator_bit_for_bit(made: Path) -> None:
    evaluator = sisod.Evaluator(metrics="all")
    for path in sorted((made / "MSOD" / "mask").iterdir()):
        pred = cv2.imread(str(made / "B" / path.name), cv2.IMREAD_UNCHANGED)
        gt = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
        assert pred is not None
        assert gt is not None
        evaluator.update(pred, gt, name=path.stem)
    direct = evaluator.result()
    result = sisod.evaluate(made / "B", made / "MSOD" / "mask", metrics="all", jobs=2)
    np.testing.assert_equal(result.summary, direct.summary)
    assert result.defined == direct.defined
    assert result.protocol == direct.protocol
    for name in ("images", "objects", "curves", "image_curves"):
        assert_frame_equal(getattr(result, name), getattr(direct, name), check_exact=True)
    assert direct.run.items() <= result.run.items()


def test_independent_of_the_number_of_jobs(work: Path) -> None:
    for jobs in (1, 2, 3):
        finished(preds=("A", "B"), jobs=jobs, out=f"out{jobs}")
    first = content("out1")
    assert set(first) == {f"MSOD/{method}/{name}" for method in "AB" for name in FILES}
    assert first == content("out2") == content("out3")
    assert sorted(os.listdir(work)) == ["A", "B", "MSOD", "out1", "out2", "out3"]
    assert sorted(os.listdir("out1/MSOD")) == ["A", "B"]


def test_independent_of_how_tables_are_put_together(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in sorted((work / "MSOD" / "mask").iterdir())[:64]:
        assert cv2.imwrite(str(path), np.zeros((24, 32), np.uint8))  # two batches without any object
    finished(out="whole")
    monkeypatch.setattr(driver, "_GROUP", 1)
    for out in ("parts", "again"):
        finished(out=out)
    assert content("parts") == content("again")
    whole, parts = (sisod.Evaluation.load(f"{out}/MSOD/A") for out in ("whole", "parts"))
    for name in ("images", "objects", "curves", "image_curves"):
        assert_frame_equal(getattr(whole, name), getattr(parts, name), check_exact=True)
    assert record("whole") == record("parts")


def test_files_and_loading(few: Path) -> None:
    finished("--metrics", "paper", "--protocol", "paper")
    result = sisod.Evaluation.load("out/MSOD/A")
    assert result.images["image"].to_list() == [f"scene00{i}" for i in range(4)]
    assert result.protocol == sisod.PROTOCOLS["paper"]
    assert (
        result.image_curves.schema["f"]
        == result.image_curves.schema["si_f"]
        == pl.Array(pl.Float32, 256)
    )
    assert result.run["images"] == 4
    assert result.run["objects"] == len(result.objects)
    assert result.run["inputs"] == {
        "predictions": "A",
        "ground_truths": "MSOD/mask",
        "missing": [],
        "extra": 0,
    }
    result.save("copy")
    assert content("copy") == content("out/MSOD/A")
    with pytest.raises(InputError, match="^'copy' exists already; use --overwrite"):
        result.save("copy")
    (few / "copy" / "stray").touch()
    result.save("copy", overwrite=True)
    assert set(content("copy")) == FILES


@pytest.mark.parametrize("name", sorted(FILES))
def test_loading_what_is_not_whole(name: str, few: Path) -> None:
    finished()
    whole = (few / "out" / "MSOD" / "A" / name).read_bytes()
    for damaged in (None, b"", whole[:-9]):
        (few / "out" / "MSOD" / "A" / name).unlink(missing_ok=True)
        if damaged is not None:
            (few / "out" / "MSOD" / "A" / name).write_bytes(damaged)
        with pytest.raises(
            InputError, match=r"^'out/MSOD/A' is not a result of 'sisod evaluate' that can"
        ):
            sisod.Evaluation.load("out/MSOD/A")


# the inputs


def test_resized_is_counted_and_strict_refuses(few: Path) -> None:
    small = cv2.resize(np.full((24, 32), 9, np.uint8), (16, 12))
    small[3:6, 3:6] = 250
    for name in ("scene001", "scene003"):
        assert cv2.imwrite(f"A/{name}.png", small)
    text = "2 predictions in 'A' had another size than their ground truth and were resized"
    assert f"warning: {text}\n" in finished()
    assert record()["resized"] == 2
    mask = cv2.imread("MSOD/mask/scene001.png", cv2.IMREAD_UNCHANGED)
    assert mask is not None
    large = cv2.resize(small, (32, 24), interpolation=cv2.INTER_LINEAR)
    expected = sisod.score(large, mask, metrics=["mae"])["mae"]
    assert sisod.Evaluation.load("out/MSOD/A").images["mae"][1] == expected
    with pytest.warns(UserWarning, match=f"^{text}$"):
        sisod.evaluate("A", "MSOD/mask", jobs=1)
    assert refusal("--strict", out="strict") == (
        "A/scene001.png has shape (12, 16) but its ground truth (24, 32); "
        "resize the prediction, or leave out --strict"
    )


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble", "uint16", "bool"])
def test_every_kind_of_map_can_be_resized(dtype: str, few: Path) -> None:
    array = (np.indices((10, 14)).sum(axis=0) % 2).astype(dtype)
    save_map("A/scene000.npy", array * 65535 if dtype == "uint16" else array)
    assert "1 predictions in 'A' had another size" in finished()


def test_bilinear_weights_that_sum_to_more_than_one(few: Path) -> None:
    # 1 everywhere but a corner; in double precision OpenCV returns 1 + 2e-16 for some of these sizes
    for place, (height, width) in enumerate([(7, 11), (10, 23), (13, 47), (49, 58)]):
        array = np.ones((height, width))
        array[0, 0] = 0
        save_map(f"A/scene00{place}.npy", array)
    assert "4 predictions in 'A' had another size" in finished()


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (
            np.full((24, 32), 1.5),
            "A/scene001.npy: pred is a float array with values from 1.5 to 1.5; expected [0, 1]; "
            "apply the sigmoid to logits, or divide grey values by 255",
        ),
        (
            np.full((24, 32), np.nan),
            "A/scene001.npy: pred holds NaN pixels; expected values in [0, 1]; replace them first",
        ),
        (
            np.zeros((24, 32), np.int64),
            "A/scene001.npy: pred has dtype int64; expected uint8, uint16, bool or float in [0, 1]; "
            "convert it first, for example with pred.astype(np.uint8)",
        ),
        (np.zeros((0, 32)), "A/scene001.npy: pred has shape (0, 32); expected at least one pixel"),
    ],
)
def test_maps_that_are_refused(array: NDArray[Any], text: str, few: Path) -> None:
    save_map("A/scene001.npy", array)
    assert refusal() == text


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.eye(24, 32, dtype=np.uint8), "gt is an integer array whose maximum is 1"),
        (np.zeros((0, 32), bool), "gt has shape (0, 32); expected at least one pixel"),
        (np.full((24, 32), "a"), "gt has dtype"),
    ],
)
def test_ground_truths_that_are_refused(array: NDArray[Any], text: str, few: Path) -> None:
    save_map("MSOD/mask/scene001.npy", array)
    assert refusal().startswith(f"MSOD/mask/scene001.npy: {text}")


def test_maps_of_0_and_1_are_warned_about(few: Path) -> None:
    assert cv2.imwrite("A/scene002.png", np.eye(24, 32, dtype=np.uint8))
    text = "1 predictions in 'A' are integers with maximum 1: they look like 0/1 instead of 0/255"
    assert f"warning: {text}\n" in finished()
    assert record()["looks_binary"] == 1


def test_all_black_ground_truths(few: Path) -> None:
    for path in (few / "MSOD" / "mask").iterdir():
        assert cv2.imwrite(str(path), np.zeros((24, 32), np.uint8))
    result = run("--metrics", "mae,si_mae,f_mean,auc", "--format", "csv")
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


def test_half_of_the_maps(few: Path) -> None:
    for name in ("scene000", "scene002"):
        (few / "A" / f"{name}.png").unlink()
    (few / "A" / "other.png").touch()
    assert refusal() == (
        "2 of 4 ground truths have no prediction in 'A' (scene000, scene002); "
        "use --allow-missing to score the other 2"
    )
    assert not Path("out").exists()
    said = finished("--allow-missing")
    assert (
        "warning: 2 ground truths have no prediction in 'A' (scene000, scene002) and were left out\n"
    ) in said
    assert "warning: 1 files in 'A' have no ground truth (other) and were not scored\n" in said
    assert record()["inputs"]["missing"] == ["scene000", "scene002"]
    assert record()["images"] == 2


def test_suffixes_and_lists(few: Path) -> None:
    for path in sorted((few / "A").iterdir()):
        path.rename(path.with_name(f"{path.stem}_sal.png"))
    Path("names.txt").write_text("scene003\nscene001.png\n")
    finished("--pred-suffix", "_sal", "--list", "names.txt")
    assert sisod.Evaluation.load("out/MSOD/A").images["image"].to_list() == ["scene001", "scene003"]


def test_folder_whose_name_is_no_text(few: Path) -> None:
    odd = os.fsdecode(b"A\xff")
    shutil.copytree("A", odd)
    result = run(preds=(f"A={odd}",))
    assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)

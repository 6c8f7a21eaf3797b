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
def few(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same of only four images."""
    for path in made.rglob("scene00[0-3].png"):
        copy = tmp_path / path.relative_to(made)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    monkeypatch.chdir(tmp_path)
    return tmp_path


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


def names(folder: str | Path) -> list[str]:
    return sorted(path.name for path in Path(folder).iterdir())


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
    assert names(work) == ["A", "B", "MSOD", "out1", "out2", "out3"]
    assert names("out1") == ["MSOD"]
    assert names("out1/MSOD") == ["A", "B"]


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
    with pytest.raises(InputError, match=r"^'copy' exists already; use --overwrite"):
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


@pytest.mark.usefixtures("few")
def test_resized_is_counted_and_strict_refuses() -> None:
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


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble", "uint16", "bool"])
def test_every_kind_of_map_can_be_resized(dtype: str) -> None:
    array = (np.indices((10, 14)).sum(axis=0) % 2).astype(dtype)
    save_map("A/scene000.npy", array * 65535 if dtype == "uint16" else array)
    assert "1 predictions in 'A' had another size" in finished()


@pytest.mark.usefixtures("few")
def test_bilinear_weights_that_sum_to_more_than_one() -> None:
    array = np.ones((1, 5))  # of a single row in double precision OpenCV makes 1 + 3e-8
    array[0, 0] = 0
    assert cv2.resize(array, (32, 24)).max() > 1
    save_map("A/scene000.npy", array)
    assert "1 predictions in 'A' had another size" in finished()


@pytest.mark.usefixtures("few")
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
def test_maps_that_are_refused(array: NDArray[Any], text: str) -> None:
    save_map("A/scene001.npy", array)
    assert refusal() == text


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.eye(24, 32, dtype=np.uint8), "gt is an integer array whose maximum is 1"),
        (np.zeros((0, 32), bool), "gt has shape (0, 32); expected at least one pixel"),
        (np.full((24, 32), "a"), "gt has dtype"),
    ],
)
def test_ground_truths_that_are_refused(array: NDArray[Any], text: str) -> None:
    save_map("MSOD/mask/scene001.npy", array)
    assert refusal().startswith(f"MSOD/mask/scene001.npy: {text}")


@pytest.mark.usefixtures("few")
def test_maps_of_0_and_1_are_warned_about() -> None:
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


@pytest.mark.usefixtures("few")
def test_folder_whose_name_is_no_text() -> None:
    odd = os.fsdecode(b"A\xff")
    shutil.copytree("A", odd)
    result = run(preds=(f"A={odd}",))
    assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)


# what is there already


def test_existing_result(few: Path) -> None:
    finished("--metrics", "mae")
    before = content("out")
    text = "'out/MSOD/A' exists already; use --overwrite to replace it, or another --out"
    assert refusal("--metrics", "mse") == text
    assert content("out") == before
    (few / "out" / "MSOD" / "A" / "stray").touch()
    finished("--metrics", "mse", "--overwrite")
    assert set(content("out/MSOD/A")) == FILES
    assert record()["metrics"] == ["mse"]
    assert names("out/MSOD") == ["A"]
    save_map("A/scene001.npy", np.full((24, 32), 2.0))
    refusal("--overwrite")
    assert record()["metrics"] == ["mse"]  # a run that fails takes nothing away


def test_overwriting_never_takes_the_maps_themselves(few: Path) -> None:
    (few / "maps" / "MSOD").mkdir(parents=True)
    shutil.copytree("A", "maps/MSOD/A")
    before = content("maps")
    run("--overwrite", preds=("maps/MSOD/A",), out="maps")
    assert before.items() <= content("maps").items()


def test_output_that_cannot_be_written(few: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (few / "taken").touch()
    assert "cannot write below 'taken/MSOD': Not a directory" in refusal(out="taken")

    def mkdir(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", mkdir)
    assert "cannot write below 'out/MSOD': Permission denied" in refusal()


@pytest.mark.usefixtures("few")
def test_method_name_too_long_for_a_folder() -> None:
    assert "File name too long" in refusal(preds=(f"{'x' * 300}=A",))


# runs that end early


def test_unreadable_file_then_mended(work: Path) -> None:
    file = work / "A" / "scene100.png"
    whole = file.read_bytes()
    file.write_bytes(whole[:40])
    text = "'A/scene100.png' is not an image that can be read, or is cut short; replace the file"
    assert refusal() == text
    assert shards() == ["0000000.npz", "0000001.npz", "0000002.npz"]
    assert refusal() == (
        "an unfinished run was left in 'out/MSOD/.A.partial'; use --resume to go on with it, "
        "or --overwrite to begin again"
    )
    assert refusal("--resume", jobs=2) == text
    assert len(shards()) >= 3
    file.write_bytes(whole)
    finished("--resume")
    assert names("out/MSOD") == ["A"]
    finished(out="unbroken")
    assert content("out") == content("unbroken")


def test_resume_refuses_what_changed(work: Path) -> None:
    file = work / "A" / "scene100.png"
    file.write_bytes(b"")
    refusal("--metrics", "mae")
    use = "use the settings of the unfinished run, or --overwrite to begin again"

    def reason(*args: str, **options: Any) -> str:
        return refusal("--resume", *args, **options)

    assert reason("--metrics", "mse") == f'cannot resume: metrics changed from ["mae"] to ["mse"]; {use}'
    assert reason("--metrics", "mae", "--strict") == (
        f"cannot resume: strict changed from false to true; {use}"
    )
    assert reason("--metrics", "mae", "--protocol", "paper").startswith(
        'cannot resume: protocol changed from {"name": "default"'
    )
    assert reason("--metrics", "mae", preds=("A=B",)) == (
        f'cannot resume: predictions changed from "A" to "B"; {use}'
    )
    Path("names").write_text("scene000\nscene150\n")
    assert reason("--metrics", "mae", "--list", "names") == (
        f"cannot resume: there were {COUNT} images and there are 2, or their names changed; "
        "use --overwrite to begin again"
    )
    os.utime(work / "MSOD" / "mask" / "scene000.png", ns=(1, 1))
    shutil.copy("B/scene070.png", "A/scene070.png")
    assert reason("--metrics", "mae") == (
        "cannot resume: 2 images were scored and their files changed since (scene000, scene070); "
        "use --overwrite to begin again"
    )
    assert len(shards()) == 3
    shutil.copy("B/scene100.png", file)
    finished("--overwrite", "--metrics", "mae")
    assert names("out/MSOD") == ["A"]


def test_resuming_a_finished_run(few: Path) -> None:
    finished("--metrics", "mae")
    folder = few / "out" / "MSOD" / "A"
    before = {path: path.stat() for path in [folder, *folder.iterdir()]}
    finished("--resume", "--metrics", "mae")
    assert {path: path.stat() for path in before} == before
    text = (
        "'out/MSOD/A' holds the result of other settings or inputs; "
        "use --overwrite to replace it, or give another folder"
    )
    assert refusal("--resume", "--metrics", "mse") == text
    (few / "out" / "MSOD" / ".A.partial").mkdir()  # ended just before this was to be removed
    finished("--resume", "--metrics", "mae")
    assert names("out/MSOD") == ["A"]


def test_resuming_into_an_empty_folder(few: Path) -> None:
    (few / "out" / "MSOD" / "A").mkdir(parents=True)
    finished("--resume")
    assert set(content("out/MSOD/A")) == FILES


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


FULL = (
    "cannot write below 'out/MSOD': No space left on device; "
    "what was finished is kept, make room and use --resume"
)


@pytest.mark.parametrize("at", [0, 1, 4])
def test_full_disk(at: int, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert work.exists()
    real, calls = files.write_whole, iter(range(COUNT))

    def write(path: Path, data: bytes) -> None:
        return full() if next(calls) == at else real(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(driver, "write_whole", write)
        patch.setattr(runners, "write_whole", write)
        assert refusal() == FULL
    assert len(shards()) == max(0, at - 1)  # the first file is the plan
    finished("--resume")
    finished(out="unbroken")
    assert content("out") == content("unbroken")


@pytest.mark.usefixtures("few")
def test_full_disk_while_tables_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(*_: object) -> None:  # what polars raises then
        raise pl.exceptions.ComputeError(
            "parquet: underlying IO error: No space left on device (os error 28)"
        )

    with monkeypatch.context() as patch:
        patch.setattr(pl.DataFrame, "write_parquet", write)
        text = refusal()
    assert text.startswith("cannot write below 'out/MSOD': ")
    assert "No space left on device" in text
    assert shards() == ["0000000.npz"]
    finished("--resume")
    assert names("out/MSOD") == ["A"]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_files_that_cannot_grow(jobs: str, work: Path) -> None:
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000));"
        "from sisod.cli import app; app()"
    )
    command = [sys.executable, "-c", code, *evaluate_all(jobs)]
    ended = subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    assert ended.returncode == 1
    assert ended.stderr == (
        "error: cannot write below 'out/MSOD': File too large; "
        "what was finished is kept, make room and use --resume\n"
    )


def evaluate_all(jobs: str = "2") -> list[str]:
    return ["evaluate", "A", "MSOD/mask", "--out", "out", "--jobs", jobs, "--metrics", "all"]


def start(*args: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(  # noqa: S603
        [*MAIN, *evaluate_all(), *args], stdout=pipe, stderr=pipe, text=True, start_new_session=True
    )


def wait_for(what: Callable[[], object], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 60
    while not what() and process.poll() is None:
        assert time.monotonic() < end
        time.sleep(0.005)


def workers(process: subprocess.Popen[str]) -> list[int]:
    """Ids of the processes it started, from Linux's list of them."""
    lists = Path(f"/proc/{process.pid}/task").glob("*/children")
    return [int(child) for file in lists for child in file.read_text().split()]


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_killed_again_and_again(work: Path) -> None:
    chance = random.Random(3)  # noqa: S311
    places: list[Callable[[], object]] = [
        (work / "out" / "MSOD" / ".A.partial" / "plan.json").exists,
        lambda: len(shards()) >= 1,
        lambda: len(shards()) >= 3,
        lambda: len(shards()) >= 5,
        (work / "out" / "MSOD" / ".A.partial" / "result").exists,
        (work / "out" / "MSOD" / "A").exists,
    ]
    kills = 0
    for place in places:
        process = start("--resume")
        wait_for(place, process)
        time.sleep(chance.uniform(0, 0.05))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
        kills += process.returncode == -signal.SIGKILL
    assert kills >= 5
    process = start("--resume")
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert names("out/MSOD") == ["A"]
    finished("--metrics", "all", out="unbroken")
    assert content("out") == content("unbroken")


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the workers in Linux's /proc")
@pytest.mark.parametrize("who", ["worker killed", "ctrl-C"])
@pytest.mark.usefixtures("work")
def test_stopped(who: str) -> None:
    process = start()
    wait_for(lambda: shards() and len(workers(process)) == 2, process)
    pids = workers(process)
    if who == "ctrl-C":
        os.killpg(process.pid, signal.SIGINT)
    else:
        os.kill(pids[1], signal.SIGKILL)
    output, said = process.communicate(timeout=60)
    assert output == ""
    assert (process.returncode, said) == {
        "ctrl-C": (130, "stopped; what was finished is kept, go on with --resume\n"),
        "worker killed": (
            1,
            "error: a worker process ended with code -9; what was finished is kept, use --resume\n",
        ),
    }[who]
    assert all(gone(pid) for pid in pids)
    assert len(shards()) >= 1
    finished("--resume", "--metrics", "all")
    assert names("out/MSOD") == ["A"]


# the command


@pytest.mark.usefixtures("few")
def test_nothing_on_standard_error_but_warnings() -> None:
    assert finished() == ""
    assert finished("--format", "csv", out="csv") == ""


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["--metrics", "si_mea"], "unknown metric 'si_mea'; did you mean 'si_mae'? available: acc"),
        (["--protocol", "papr"], "unknown protocol 'papr'; did you mean 'paper'? available: default, p"),
        (["--jobs", "0"], "'--jobs'"),
        (["--format", "xml"], "'--format'"),
        (["--nonsense"], "No such option: --nonsense"),
        (["--resume", "--overwrite"], "--resume"),  # they contradict each other
    ],
)
def test_bad_usage(args: list[str], text: str) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert text in " ".join(result.stderr.replace("│", " ").split())
    assert not Path("out").exists()


def test_too_few_folders_is_bad_usage() -> None:
    result = CliRunner().invoke(app, ["evaluate", "A", "--out", "out"])
    assert result.exit_code == 2


def test_help_tells_the_defaults() -> None:
    said = " ".join(CliRunner().invoke(app, ["evaluate", "--help"]).stdout.replace("│", " ").split())
    assert "all cores" in said
    assert "from GT" in said

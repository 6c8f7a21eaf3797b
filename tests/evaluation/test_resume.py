"""`sisod evaluate` can be stopped at any moment, by anything, and resumed."""

import errno
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from helpers.evaluate_runs import FILES, MAIN, SOME, evaluate_refusal, finished, shards
from helpers.folder_contents import content, names
from helpers.platforms import posix_limits, posix_signals

from sisod.common import output as files
from sisod.evaluation import driver

# runs that end early


def test_unreadable_file_then_mended(three_batches: Path) -> None:
    file = three_batches / "A" / "scene066.png"
    whole = file.read_bytes()
    file.write_bytes(whole[:40])
    text = "'A/scene066.png' is not an image that can be read, or is cut short; replace the file"
    assert evaluate_refusal() == text
    assert [name.split(".")[0] for name in shards()] == ["0000000", "0000001"]
    assert evaluate_refusal() == (
        "a run into 'out/MSOD/.A.sisod-partial' is unfinished, or still at work; use --resume to go on "
        "with it, or --overwrite to begin again"
    )
    assert evaluate_refusal("--resume", jobs=2) == text
    assert len(shards()) >= 2
    file.write_bytes(whole)
    finished("--resume")
    assert names("out/MSOD") == ["A"]
    finished(out="unbroken")
    assert content("out") == content("unbroken")


def test_resume_refuses_what_changed(three_batches: Path) -> None:
    file = three_batches / "A" / "scene066.png"
    file.write_bytes(b"")
    evaluate_refusal("--metrics", "mae")
    use = "use the settings of the unfinished run, or --overwrite to begin again"

    def reason(*args: str, **options: Any) -> str:
        return evaluate_refusal("--resume", *args, **options)

    assert reason("--metrics", "mse") == f'cannot resume: metrics changed from ["mae"] to ["mse"]; {use}'
    assert reason("--metrics", "mae", "--strict") == (
        f"cannot resume: strict changed from false to true; {use}"
    )
    assert reason("--metrics", "mae", "--protocol", "paper").startswith(
        'cannot resume: protocol changed from {"name": "default"'
    )
    changed = reason("--metrics", "mae", preds=("A=B",))
    assert re.fullmatch(
        rf'cannot resume: predictions changed from .*/A" to .*/B"; {re.escape(use)}', changed
    )
    Path("names").write_text("scene000\nscene060\n")
    assert reason("--metrics", "mae", "--list", "names") == (
        f"cannot resume: there were {SOME} images and there are 2, or their names changed; "
        "use --overwrite to begin again"
    )
    os.utime(three_batches / "MSOD" / "mask" / "scene000.png", ns=(1, 1))
    shutil.copy("B/scene033.png", "A/scene033.png")
    assert reason("--metrics", "mae") == (
        "cannot resume: 2 images were scored and their files changed since (scene000, scene033); "
        "use --overwrite to begin again"
    )
    assert len(shards()) == 2
    shutil.copy("B/scene066.png", file)
    finished("--overwrite", "--metrics", "mae")
    assert names("out/MSOD") == ["A"]


def test_resuming_a_finished_run(four_images: Path) -> None:
    finished("--metrics", "mae")
    folder = four_images / "out" / "MSOD" / "A"
    before = {path: path.stat().st_mtime_ns for path in [folder, *folder.iterdir()]}
    finished("--resume", "--metrics", "mae")
    assert {path: path.stat().st_mtime_ns for path in before} == before
    text = (
        "'out/MSOD/A' holds the result of other settings or inputs; "
        "use --overwrite to replace it, or give another folder"
    )
    assert evaluate_refusal("--resume", "--metrics", "mse") == text
    (
        four_images / "out" / "MSOD" / ".A.sisod-partial"
    ).mkdir()  # ended just before this was to be removed
    finished("--resume", "--metrics", "mae")
    assert names("out/MSOD") == ["A"]


def test_work_that_was_damaged(three_batches: Path) -> None:
    """What a run kept of itself: its plan, and what was scored."""
    file = three_batches / "A" / "scene066.png"
    whole = file.read_bytes()
    file.write_bytes(b"")
    evaluate_refusal("--metrics", "mae")
    partial = Path("out/MSOD/.A.sisod-partial")
    plan = json.loads((partial / "plan.json").read_text(encoding="utf-8"))
    others: list[Any] = [None, 1, "x", [], [1], {}]
    damaged: list[Any] = [*others, *(plan | {key: value} for key in plan for value in others)]
    damaged += [{k: v for k, v in plan.items() if k != key} for key in plan]
    for one in damaged:
        (partial / "plan.json").write_text(json.dumps(one), encoding="utf-8", newline="\n")
        assert evaluate_refusal("--metrics", "mae", "--resume").startswith("cannot resume: ")
    (partial / "plan.json").write_text(json.dumps(plan), encoding="utf-8", newline="\n")
    file.write_bytes(whole)
    shard = partial / shards()[0]
    scored = shard.read_bytes()
    for data in (b"", b"{}\n", b"[]\n", scored[:-9]):
        shard.write_bytes(data)
        assert evaluate_refusal("--metrics", "mae", "--resume") == (
            f"'out/MSOD/.A.sisod-partial/{shard.name}', which holds the scores of a batch, is damaged; "
            "remove it and use --resume"
        )
    shard.unlink()
    finished("--metrics", "mae", "--resume")
    assert set(content("out/MSOD/A")) == FILES


def test_resuming_a_finished_run_whose_record_lacks_fields(four_images: Path) -> None:
    finished("--metrics", "mae")
    file = four_images / "out" / "MSOD" / "A" / "run.json"
    run = json.loads(file.read_text(encoding="utf-8"))
    for kept in ({"protocol", "digest"}, {"protocol", "digest", "inputs"}):
        left = {key: value for key, value in run.items() if key in kept}
        file.write_text(json.dumps(left | {"inputs": {}}), encoding="utf-8", newline="\n")
        assert finished("--metrics", "mae", "--resume") == ""
    for text in ("[]", "{", json.dumps(run | {"protocol": 1})):
        file.write_text(text, encoding="utf-8", newline="\n")
        assert evaluate_refusal("--metrics", "mae", "--resume").startswith(
            "'out/MSOD/A' holds the result of other"
        )


def test_resuming_into_an_empty_folder(four_images: Path) -> None:
    (four_images / "out" / "MSOD" / "A").mkdir(parents=True)
    finished("--resume")
    assert set(content("out/MSOD/A")) == FILES


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


FULL = (
    "cannot write below 'out/MSOD': No space left on device; "
    "what was finished is kept, make room and use --resume"
)


@pytest.mark.parametrize("at", [0, 1, 3])
def test_full_disk(at: int, three_batches: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert three_batches.exists()
    real, calls = files.write_atomically, itertools.count()

    def write(path: Path, data: bytes) -> None:
        return full() if next(calls) == at else real(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(driver, "write_atomically", write)
        assert evaluate_refusal() == FULL
    assert len(shards()) == max(0, at - 1)  # the first file is the plan
    finished("--resume")
    finished(out="unbroken")
    assert content("out") == content("unbroken")


@pytest.mark.usefixtures("four_images")
def test_full_disk_while_tables_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(*_: object) -> None:  # what polars raises then
        raise pl.exceptions.ComputeError(
            "parquet: underlying IO error: No space left on device (os error 28)"
        )

    with monkeypatch.context() as patch:
        patch.setattr(pl.DataFrame, "write_parquet", write)
        text = evaluate_refusal()
    assert text.startswith("cannot write below 'out/MSOD': ")
    assert "No space left on device" in text
    assert [name.split(".")[0] for name in shards()] == ["0000000"]
    finished("--resume")
    assert names("out/MSOD") == ["A"]


@posix_limits
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_files_that_cannot_grow(jobs: str, three_batches: Path) -> None:
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000));"
        "from sisod.cli import app; app()"
    )
    command = [sys.executable, "-c", code, *evaluate_all(jobs)]
    ended = subprocess.run(  # noqa: S603
        command, cwd=three_batches, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 1
    assert ended.stderr == (
        "error: cannot write below 'out/MSOD': File too large; "
        "what was finished is kept, make room and use --resume\n"
    )


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/task").exists(), reason="finds the workers in Linux's /proc"
)


def evaluate_all(jobs: str = "2") -> list[str]:
    return ["evaluate", "A", "MSOD/mask", "--out", "out", "--jobs", jobs, "--metrics", "all"]


def start(*args: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    # a shell lets what a script starts in the background ignore SIGINT, and every child inherits that
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return subprocess.Popen(  # noqa: S603
        [*MAIN, *evaluate_all(), *args], stdout=pipe, stderr=pipe, text=True, start_new_session=True
    )


def wait_for(what: Callable[[], object], process: subprocess.Popen[str] | None = None) -> None:
    end = time.monotonic() + 60
    while not what() and (process is None or process.poll() is None):
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


@posix_signals
@pytest.mark.usefixtures("ten_batches")
@pytest.mark.slow
def test_killed_again_and_again() -> None:
    partial = Path("out", "MSOD", ".A.sisod-partial")
    chance = random.Random(3)  # noqa: S311
    places: list[Callable[[], object]] = [
        (partial / "plan.json").exists,
        lambda: len(shards()) >= 1,
        lambda: len(shards()) >= 3,
        lambda: len(shards()) >= 5,
        (partial / "result").exists,
        Path("out", "MSOD", "A").exists,
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


@needs_proc
@pytest.mark.parametrize("who", ["worker killed", "ctrl-C"])
@pytest.mark.usefixtures("ten_batches")
@pytest.mark.slow
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


@needs_proc
@pytest.mark.usefixtures("ten_batches")
@pytest.mark.slow
def test_workers_of_a_killed_run_do_not_write_into_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    process = start()
    wait_for(lambda: shards() and len(workers(process)) == 2, process)
    pids = workers(process)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)  # as if their batches took long
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(driver, "_write_result", full)
            assert evaluate_refusal("--overwrite", "--metrics", "all", "--protocol", "paper") == FULL
        before = content("out")
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    wait_for(lambda: all(gone(pid) for pid in pids))
    assert content("out") == before


@pytest.mark.usefixtures("ten_batches")
@pytest.mark.slow
def test_a_second_run_into_the_same_folder() -> None:
    """Whatever it is asked for; the first one goes on undisturbed, and a kill frees the folder."""
    plan = Path("out", "MSOD", ".A.sisod-partial", "plan.json")
    first = start()
    wait_for(plan.exists, first)
    os.kill(first.pid, signal.SIGSTOP)  # as if its batches took long
    text = f"another sisod process (pid {first.pid}) is writing to 'out/MSOD/A'; "
    for option in ([], ["--resume"], ["--overwrite"]):
        assert (
            evaluate_refusal("--metrics", "all", *option) == text + "wait for it or give another folder"
        )
    os.kill(first.pid, signal.SIGCONT)
    _, said = first.communicate(timeout=60)
    undefined = "MSOD: Object precision small, Object F1 small undefined on all 320 images\n"
    assert (first.returncode, said) == (0, undefined)
    assert names("out/MSOD") == ["A"]
    second = start("--overwrite")
    wait_for(plan.exists, second)
    os.killpg(second.pid, signal.SIGKILL)
    second.communicate(timeout=60)
    finished("--resume", "--metrics", "all")
    assert names("out/MSOD") == ["A"]


SLOW = """
import os, pathlib, time

def slow(p, gt):
    pathlib.Path(f"worker-{os.getpid()}").touch()
    time.sleep(60)
    return 0.0
"""


@needs_proc
@pytest.mark.usefixtures("three_batches")
@pytest.mark.slow
def test_ctrl_c_does_not_wait_for_the_workers() -> None:
    """Once polars is imported, a signal does not interrupt a wait for threads any more."""
    Path("mine.py").write_text(SLOW)
    process = start("--metrics", "mine:slow")
    wait_for(lambda: len(list(Path().glob("worker-*"))) == 2, process)
    pids = workers(process)
    assert len(pids) == 2
    os.killpg(process.pid, signal.SIGINT)
    try:
        output, said = process.communicate(timeout=20)
    finally:
        process.kill()
    assert (process.returncode, output) == (130, "")
    assert said == "stopped; what was finished is kept, go on with --resume\n"
    assert all(gone(pid) for pid in pids)

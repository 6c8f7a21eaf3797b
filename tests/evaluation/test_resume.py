"""`sisod evaluate` can be stopped at any moment, by anything, and resumed."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.evaluate_runs import FILES, MAIN, evaluate_refusal, finished, shards
from helpers.folder_contents import content, names
from helpers.platforms import posix_signals

# runs that end early


def test_unreadable_file_then_mended(three_batches: Path) -> None:
    file = three_batches / "A" / "scene066.png"
    whole = file.read_bytes()
    file.write_bytes(whole[:40])
    text = "'A/scene066.png' is not an image that can be read, or is cut short; replace the file"
    assert evaluate_refusal() == text
    assert [name[:7] for name in shards()] == ["0000000", "0000001"]
    assert "'out/MSOD/A' is unfinished; use --resume to go on with it" in evaluate_refusal()
    assert evaluate_refusal("--resume", jobs=2) == text
    assert len(shards()) >= 2
    file.write_bytes(whole)
    shutil.copy("B/scene033.png", "A/scene033.png")  # scored, and changed since: scored again
    finished("--resume")
    assert names("out/MSOD") == ["A"]
    finished(out="unbroken")
    assert content("out") == content("unbroken")


def test_resume_refuses_other_settings(three_batches: Path) -> None:
    file = three_batches / "A" / "scene066.png"
    file.write_bytes(b"")
    evaluate_refusal("--metrics", "mae")
    for options, preds, what in (
        (["--metrics", "mse"], "A", "metrics was ['mae'] and is now ['mse']"),
        (["--metrics", "mae", "--strict"], "A", "strict was False and is now True"),
        (["--metrics", "mae", "--protocol", "paper"], "A", "protocol.name was 'default' and is now"),
        (["--metrics", "mae"], "A=B", "predictions was "),
    ):
        text = evaluate_refusal("--resume", *options, preds=(preds,))
        assert text.startswith(f"'out/MSOD/.A.sisod-partial' is another run: {what}")
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
    assert "is another run: metrics was" in evaluate_refusal("--resume", "--metrics", "mse")
    os.utime("A/scene000.png", ns=(1, 1))
    assert evaluate_refusal("--resume", "--metrics", "mae") == (
        "'out/MSOD/A' holds the result of other images or files; use --overwrite to replace it, or "
        "give another folder"
    )


def test_work_that_was_damaged(three_batches: Path) -> None:
    file = three_batches / "A" / "scene066.png"
    whole = file.read_bytes()
    file.write_bytes(b"")
    evaluate_refusal("--metrics", "mae")
    file.write_bytes(whole)
    shard = Path("out/MSOD/.A.sisod-partial/.parts", shards()[0])
    scored = shard.read_bytes()
    for data in (b"", b"{}\n", scored[:-9]):
        shard.write_bytes(data)
        text = f"{shard.name}' is damaged, or of another version; remove it"
        assert text in evaluate_refusal("--metrics", "mae", "--resume")
    shard.unlink()
    finished("--metrics", "mae", "--resume")
    assert set(content("out/MSOD/A")) == FILES


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
    """Ids of the workers it started, from Linux's list of processes; not of what watches over them."""
    lists = Path(f"/proc/{process.pid}/task").glob("*/children")
    children = [int(child) for file in lists for child in file.read_text().split()]
    lines = {pid: Path(f"/proc/{pid}/cmdline") for pid in children}
    return [pid for pid, line in lines.items() if line.exists() and b"popen_loky" in line.read_bytes()]


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
        (partial / "run.json").exists,
        lambda: len(shards()) >= 1,
        lambda: len(shards()) >= 3,
        lambda: len(shards()) >= 5,
        (partial / "summary.json").exists,
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
@pytest.mark.usefixtures("ten_batches")
@pytest.mark.slow
def test_a_worker_that_is_killed() -> None:
    process = start()
    wait_for(lambda: shards() and len(workers(process)) == 2, process)
    pids = workers(process)
    os.kill(pids[1], signal.SIGKILL)
    output, said = process.communicate(timeout=60)
    assert (process.returncode, output) == (1, "")
    assert said == (
        "error: a worker process ended (SIGKILL(-9)), perhaps killed by the system for want of "
        "memory; what was finished is kept, use --resume, with fewer --jobs\n"
    )
    assert all(gone(pid) for pid in pids)
    finished("--resume", "--metrics", "all")
    assert names("out/MSOD") == ["A"]


@needs_proc
@pytest.mark.usefixtures("ten_batches")
@pytest.mark.slow
def test_workers_end_with_a_killed_parent() -> None:
    process = start()
    wait_for(lambda: shards() and len(workers(process)) == 2, process)
    pids = workers(process)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    wait_for(lambda: all(gone(pid) for pid in pids))
    finished("--resume", "--metrics", "all")


NO_GUARD = """
import sisod
print("once")
print(sisod.evaluate("A", "MSOD/mask", metrics="mae", jobs=2).images.height)
"""


@pytest.mark.usefixtures("three_batches")
def test_a_script_without_a_guard() -> None:
    Path("script.py").write_text(NO_GUARD)
    ran = subprocess.run(
        [sys.executable, "script.py"], capture_output=True, text=True, timeout=120, check=False
    )
    assert (ran.returncode, ran.stdout.split()) == (0, ["once", "70"]), ran.stderr


SLOW = """
import os, pathlib, time

def slow(p, gt):
    if pathlib.Path("is-slow").exists():
        pathlib.Path(f"worker-{os.getpid()}").touch()
        time.sleep(60)
    return 0.0
"""


@needs_proc
@pytest.mark.usefixtures("three_batches")
@pytest.mark.slow
def test_ctrl_c_does_not_wait_for_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once polars is imported, a signal does not interrupt a wait for threads any more."""
    Path("mine.py").write_text(SLOW)
    Path("is-slow").touch()
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
    Path("is-slow").unlink()
    monkeypatch.syspath_prepend(".")
    finished("--resume", "--metrics", "all", "--metrics", "mine:slow")

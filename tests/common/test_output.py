"""Files are written atomically, inside their folder, by one process at a time."""

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from helpers.folder_contents import names
from helpers.platforms import forks, links, posix_modes, posix_names, windows

from sisod.common.exceptions import InputError
from sisod.common.output import (
    lock,
    output_path,
    remove_temporary,
    resolve_link,
    write_atomically,
    write_file,
    write_files,
    write_output,
)

pytestmark = pytest.mark.usefixtures("inside_tmp_path")


# what is written


@posix_modes
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_files_have_the_mode_that_the_umask_says(umask: int) -> None:
    before = os.umask(umask)
    try:
        write_atomically(Path("a"), b"1")
        write_files(Path("folder"), {"b": b"1"})
        write_output(Path("sub/c"), b"1")
        with write_file(Path("d")) as unfinished:
            unfinished.write_bytes(b"1")
            unfinished.chmod(0o600)  # as safetensors may
    finally:
        os.umask(before)
    for path in ("a", "folder/b", "sub/c", "d"):
        assert Path(path).stat().st_mode & 0o777 == 0o666 & ~umask
    assert Path("folder").stat().st_mode & 0o777 == 0o777 & ~umask


def test_files_of_a_folder_are_written_all_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(Path("figs"), {"a": b"old a", "b": b"old b"})
    real, calls = Path.write_bytes, iter((True, False))

    def full(path: Path, data: bytes) -> int:
        if next(calls):
            return real(path, data)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match="No space"):
            write_files(Path("figs"), {"a": b"new", "b": b"new"})
    Path("figs/folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_files(Path("figs"), {"a": b"new", "folder": b"new"})
    assert (Path("figs/a").read_bytes(), Path("figs/b").read_bytes()) == (b"old a", b"old b")
    assert names("figs") == ["a", "b", "folder"]


@links
def test_a_named_file_that_is_a_link_is_written_through() -> None:
    Path("real").mkdir()
    Path("link.pdf").symlink_to("real/figure.pdf")  # leads nowhere yet
    for content in (b"one", b"two"):
        write_output(Path("link.pdf"), content)
        assert Path("link.pdf").is_symlink()
        assert Path("real/figure.pdf").read_bytes() == content
    with write_file(Path("link.pdf")) as unfinished:
        unfinished.write_bytes(b"three")
    assert Path("real/figure.pdf").read_bytes() == b"three"
    Path("loop").symlink_to("loop")
    with pytest.raises(InputError, match="'loop' is a link to itself; remove it"):
        write_output(Path("loop"), b"1")
    assert names() == ["link.pdf", "loop", "real"]


def test_only_temporary_files_of_ours_are_removed() -> None:
    write_files(Path("out"), {"a": b"1", ".sisod-notes.tmp": b"mine", "sub/.hidden.tmp": b"mine"})
    Path("out/sub/.sisod-0123456789abcdef.tmp").write_bytes(b"half")
    Path("out/.sisod-0123456789abcdef.tmp").mkdir()
    remove_temporary(Path("out"))
    assert (names("out"), names("out/sub")) == ([".sisod-notes.tmp", "a", "sub"], [".hidden.tmp"])


# where it is written


INSIDE = ["a", "a/b", "..a", "a..", "a/..b", "C:a", "a\\b", "Ä/é"]
OUTSIDE = ["", ".", "..", "../a", "a/..", "a/../../b", "/a", "//a", "a//b", "a/", "./a", "a/./b", "a\0b"]


@posix_names
def test_names_that_stay_inside_and_names_that_lead_elsewhere() -> None:
    for name in INSIDE:
        assert output_path(Path("out"), name, ".png") == Path("out") / f"{name}.png"
    for name in OUTSIDE:
        with pytest.raises(InputError, match="does not lead to a place inside the output folder"):
            output_path(Path("out"), name)


@links
def test_a_linked_folder_inside_leads_elsewhere() -> None:
    Path("elsewhere").mkdir()
    Path("out").mkdir()
    Path("out/night").symlink_to("../elsewhere")
    with pytest.raises(InputError, match="'out/night' is a link that leads out of the output folder"):
        output_path(Path("out"), "night/deep/a")
    Path("linked").symlink_to("out")  # the folder itself is the user's choice
    assert output_path(Path("linked"), "day/a") == Path("linked/day/a")


def test_a_dot_is_a_folder_with_a_name(tmp_path: Path) -> None:
    assert resolve_link(Path()) == tmp_path.resolve()
    assert resolve_link(Path("x")) == Path("x")
    Path("x/y").mkdir(parents=True)
    assert resolve_link(Path("x/y/..")) == tmp_path.resolve() / "x"


# by whom


BUSY = r"^another sisod process is writing to 'out'; wait for it or give another folder$"


def test_a_second_writer_is_refused() -> None:
    with lock(Path("out")):
        assert names() == [".out.sisod-lock"]
        with pytest.raises(InputError, match=BUSY), lock(Path("out")):
            pytest.fail("two write")
        with lock(Path("other")):
            pass
    assert names() == []
    with pytest.raises(KeyError), lock(Path("out")):
        raise KeyError
    assert names() == []


HOLD = (
    "import sys; from pathlib import Path; from sisod.common.output import lock\n"
    "with lock(Path('out')):\n"
)


def holder(then: str) -> "subprocess.Popen[str]":
    """A process that has the lock when this returns."""
    code = f"{HOLD}    print('held', flush=True)\n    {then}"
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_the_lock_of_a_killed_process_is_gone() -> None:
    process = holder("sys.stdin.read()")
    with pytest.raises(InputError, match=BUSY), lock(Path("out")):
        pytest.fail("two write")
    process.kill()
    process.communicate()
    assert names() == [".out.sisod-lock"]  # what it left is no obstacle, and goes with the next
    with lock(Path("out")):
        pass
    assert names() == []


@forks
def test_the_lock_of_a_killed_process_is_gone_though_its_child_lives() -> None:
    """As the processes do that read images for a training."""
    fork = "if os.fork() == 0:\n        print(os.getpid(), flush=True)"
    process = holder(f"import os, time\n    {fork}\n    time.sleep(60)")
    assert process.stdout is not None
    child_pid = int(process.stdout.readline())
    try:
        process.kill()
        process.wait()
        os.kill(child_pid, 0)  # lives
        with lock(Path("out")):
            pass
    finally:
        os.kill(child_pid, signal.SIGKILL)
        process.communicate()


def test_many_writers_are_never_two_at_a_time() -> None:
    """Lock files are removed while others are about to lock them."""
    inside: list[int] = []
    most: list[int] = []

    def work() -> None:
        for _ in range(3):
            with lock(Path("out"), wait=True):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (len(most), max(most)) == (12, 1)


@pytest.mark.skipif(windows, reason="Windows locks in another way")
def test_a_disk_without_locks_is_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refuse)
    with lock(Path("out")), lock(Path("out")):
        pass


def test_somebody_elses_file_is_left_alone() -> None:
    Path(".out.sisod-lock").write_text("my shopping list")
    with lock(Path("out")):
        pass
    assert Path(".out.sisod-lock").read_text() == "my shopping list"

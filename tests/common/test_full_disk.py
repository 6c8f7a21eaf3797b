"""A full disk or a closed output: every command says so in one sentence, with exit code 1."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from helpers.command_line import error_message, run
from helpers.platforms import posix_signals
from helpers.writing_commands import COMMANDS, find, prepare, write_world

import sisod
from sisod.common.exceptions import InputError

pytestmark = pytest.mark.needs("torch", "lightning", "safetensors", "matplotlib", "jinja2", "onnxscript")
MAIN = [sys.executable, "-c", "from sisod.cli import app; app()"]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Inputs of every command; none of them is written to."""
    root = tmp_path_factory.mktemp("world")
    write_world(root)
    return root


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of sixteen pages."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    if mount is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    command = [mount, "-t", "tmpfs", "-o", "size=64k", "sisod-test", str(place)]
    if subprocess.run(command, capture_output=True, check=False).returncode:  # noqa: S603
        pytest.skip("no small disk may be mounted here")
    yield place
    subprocess.run([shutil.which("umount") or "umount", str(place)], check=True)  # noqa: S603


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("room", [0, 8])
@pytest.mark.slow
def test_full_disk(
    name: str, room: int, disk: Path, world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With nothing and 8 kilobytes left; small files may fit into that."""
    monkeypatch.chdir(world)
    prepare(name, lambda path, value: monkeypatch.setattr(*find(path), value))
    (disk / "taken").write_bytes(bytes((64 - room) * 1024))
    first = COMMANDS[name].out.split("/")[0]
    command, *words = COMMANDS[name].words
    failed = run(command, *(disk / word if word == first else word for word in words))
    if room and failed.exit_code == 0:
        return
    assert error_message(failed).startswith("cannot write ")
    assert "No space left on device" in failed.stderr
    whole = [path for path in disk.rglob("*") if path.is_file() and path.suffix in (".svg", ".html")]
    assert all(path.read_bytes().rstrip().endswith((b"</svg>", b"</html>")) for path in whole)


def test_saving_a_result_on_a_full_disk(disk: Path, world: Path) -> None:
    result = sisod.Evaluation.load(world / "results/MSOD/A")

    def save_often() -> None:
        for index in range(20):
            result.save(disk / str(index))

    with pytest.raises(InputError, match=r"cannot write below .*: No space left on device; make"):
        save_often()
    assert not [path.name for path in disk.iterdir() if path.name.startswith(".")]


STDOUT = {
    "evaluate csv": ["evaluate", "maps", "mask", "--out", "{out}", "--jobs", "1", "--format", "csv"],
    "stats": ["stats", "mask"],
    "datasets": ["datasets", "."],
    "plot": ["plot", "results", "--figure", "pr", "--out", "{out}/pr.svg"],
}


def said(name: str, out: Path, stdout: IO[bytes] | int, cwd: Path) -> tuple[int, str]:
    """Run a command with this standard output; return its exit code and standard error."""
    words = [word.replace("{out}", str(out)) for word in STDOUT[name]]
    ended = subprocess.run(  # noqa: S603
        [*MAIN, *words], stdout=stdout, stderr=subprocess.PIPE, text=True, cwd=cwd, check=False
    )
    return ended.returncode, ended.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("name", STDOUT)
@pytest.mark.slow
def test_output_that_takes_no_more(name: str, world: Path, tmp_path: Path) -> None:
    text = "error: cannot write to standard output: No space left on device\n"
    with Path("/dev/full").open("wb") as full:
        assert said(name, tmp_path / "out", full, world) == (1, text)


@posix_signals
def test_output_that_nobody_reads(world: Path, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        text = "error: cannot write to standard output: Broken pipe\n"
        assert said("evaluate csv", tmp_path / "out", writing, world) == (1, text)
    finally:
        os.close(writing)

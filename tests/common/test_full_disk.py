"""A full disk or a closed output: every command says so in one sentence, with exit code 1."""

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest
from helpers.platforms import posix_signals
from helpers.writing_commands import write_results

pytestmark = pytest.mark.needs("matplotlib")
MAIN = [sys.executable, "-c", "from sisod.cli import app; app()"]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Inputs of every command; none of them is written to."""
    root = tmp_path_factory.mktemp("world")
    write_results(root)
    return root


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

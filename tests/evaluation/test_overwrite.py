"""Every command that replaces output, under every failure: the old output is kept."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from helpers.command_line import error_message, run
from helpers.platforms import posix_limits, posix_signals
from helpers.writing_commands import COMMANDS, N_CALLS, after, prepare, write_world
from typer.testing import Result

from sisod.cli import app
from sisod.common.output import lock

pytestmark = pytest.mark.needs(
    "torch", "lightning", "safetensors", "matplotlib", "jinja2", "distributed", "fsspec", "onnxscript"
)
torch.set_num_threads(1)
SCRIPT = Path(__file__).parents[1] / "helpers" / "writing_commands.py"
BAD = [(name, bad) for name, command in COMMANDS.items() for bad in command.bad]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Inputs, and the old output of every command."""
    root = tmp_path_factory.mktemp("world")
    write_world(root)
    for name, command in COMMANDS.items():
        if command.real:
            folder = root / f"old {name}"
            shutil.copytree(root, folder, ignore=shutil.ignore_patterns("old*"))
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(folder)
                done = run(*command.words)
                assert done.exit_code == 0, (done.stderr, done.exception)
    return root


@pytest.fixture
def here(world: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """A copy of it to be in, for the command that the test is about."""
    name = request.getfixturevalue("name")
    old = world / f"old {name}"
    shutil.copytree(
        old if old.exists() else world, tmp_path / "here", ignore=shutil.ignore_patterns("old*")
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path / "here")
        prepare(name, patch)
        handler = signal.getsignal(signal.SIGINT)
        yield name
        signal.signal(signal.SIGINT, handler)  # Lightning turns it off


def run_command(name: str, *more: str) -> Result:
    return run(*COMMANDS[name].words, *more)


def state(name: str) -> dict[str, bytes]:
    """Every file of the output."""
    out = Path(COMMANDS[name].out)
    paths = [out] if out.is_file() else sorted(path for path in out.rglob("*") if path.is_file())
    assert paths
    return {str(path): path.read_bytes() for path in paths}


def beside(name: str) -> set[str]:
    return {path.name for path in Path(COMMANDS[name].out).parent.iterdir() if "sisod" in path.name}


def goes_on(name: str) -> set[str]:
    """What may be left for --resume."""
    out = Path(COMMANDS[name].out).name
    return {f".{out}.sisod-partial"} if name in ("evaluate", "predict", "train") else set()


@contextmanager
def unchanged(name: str, *, left: bool = False) -> Iterator[None]:
    before = state(name)
    yield
    assert state(name) == before
    assert beside(name) <= (goes_on(name) if left else set())


def test_the_table_has_every_command_with_overwrite() -> None:
    from typer.main import get_command

    commands = get_command(app).commands  # type: ignore[attr-defined]
    knowing = {
        name
        for name, command in commands.items()
        if any("--overwrite" in option.opts for option in command.params)
    }
    assert knowing <= COMMANDS.keys()
    assert {name for name, command in COMMANDS.items() if "--overwrite" in command.words} == knowing


@pytest.mark.parametrize(("name", "bad"), BAD, ids=[f"{name} {' '.join(bad)}" for name, bad in BAD])
@pytest.mark.slow
def test_bad_option(name: str, bad: tuple[str, ...], here: str) -> None:
    assert here == name
    with unchanged(name):  # refused before anything is written, so nothing is left either
        failed = run_command(name, *bad)
        assert failed.exit_code in (1, 2), (failed.output, failed.exception)
        assert isinstance(failed.exception, SystemExit)


@pytest.mark.parametrize("name", [name for name, command in COMMANDS.items() if command.broken])
def test_unreadable_input(name: str, here: str) -> None:
    path = Path(COMMANDS[here].broken or "")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with unchanged(name, left=True):
        failed = run_command(name)
        assert failed.exit_code == 1, (failed.output, failed.exception)
        assert failed.stderr.startswith("error: ")
    path.write_bytes(whole)
    before = state(name)
    done = run_command(name)  # what was left is no obstacle
    assert done.exit_code == 0, (done.output, done.exception)
    assert beside(name) == set()
    assert COMMANDS[name].real or state(name) != before


@posix_limits
@pytest.mark.parametrize("limit", [0, 300])
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.slow
def test_no_room(name: str, here: str, limit: int) -> None:
    """No file can grow beyond a limit, which is what a full disk does to a writer."""
    import resource

    assert here == name
    with unchanged(name, left=True):
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        try:
            failed = run_command(name)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert failed.exit_code == 1, (failed.output, failed.exception)
        assert failed.stderr.startswith("error: cannot write ")
        assert "File too large" in failed.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_interrupted(name: str, here: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    middle = COMMANDS[here].middle
    monkeypatch.setattr(middle, after(N_CALLS.get(name, 0), middle, interrupt))
    with unchanged(name, left=True):
        stopped = run_command(name)
        assert stopped.exit_code == 130, (stopped.output, stopped.exception)


@posix_signals
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.slow
def test_killed(name: str, here: str) -> None:
    command = [sys.executable, str(SCRIPT), here, *COMMANDS[name].words]
    before = state(name)
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, capture_output=True, check=False, env=environment)  # noqa: S603
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert state(name) == before
    done = run_command(name)
    assert done.exit_code == 0, (done.output, done.exception)
    assert all(left.endswith(".tmp") for left in beside(name))  # of a file; folders leave nothing


# by one process at a time, and over its own results only

FOLDERS = ("evaluate", "predict", "train", "frames", "demo", "plot")


@pytest.mark.parametrize("name", FOLDERS)
def test_another_process_is_writing(name: str, here: str) -> None:
    with unchanged(name), lock(Path(COMMANDS[here].out)):
        refused = run_command(name)
    text = f"another sisod process is writing to {COMMANDS[name].out!r}; "
    assert error_message(refused) == text + "wait for it or give another folder"

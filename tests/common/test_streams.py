"""Output never stops a command: closed or missing streams, terminals that lack characters."""

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.main import get_command

import sisod
from sisod.cli import app
from sisod.cli.shared import print_tables
from sisod.common.arguments import check_utf8
from sisod.common.streams import is_terminal, progress_bar, status, usable_streams

GT = np.zeros((24, 32), dtype=bool)
GT[2:12, 3:15] = GT[20:22, 28:30] = True
# an image, a method and a data set whose names few encodings have
NAMES = ("a", "größe", "大きさ")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("streams")
    for folder in ("data/mask", "A", "B"):
        (root / folder).mkdir(parents=True)
        for index, name in enumerate(NAMES):
            pred = GT if folder != "B" else np.roll(GT, 1 + index)
            np.save(root / folder / f"{name}.npy", pred)
    for maps, place in (("A", "größe/A"), ("B", "größe/B±"), ("A", "made/A"), ("B", "made/B")):
        out = root / "results" / place
        sisod.evaluate(root / maps, root / "data/mask", out=out, metrics="paper", jobs=1)
    return root


EVALUATE = ("evaluate", "größe=A", "大=B", "data/mask", "--dataset", "made", "--metrics", "paper")


def in_shell(redirections: str, *args: str, cwd: Path) -> "subprocess.CompletedProcess[bytes]":
    command = ["/bin/sh", "-c", f'exec "$@" {redirections}', "sh", sys.executable, "-m", "sisod", *args]
    return subprocess.run(  # noqa: S603
        command, cwd=cwd, capture_output=True, check=False, timeout=120
    )


@pytest.mark.slow
@pytest.mark.skipif(not Path("/bin/sh").exists(), reason="needs a shell to close streams")
@pytest.mark.parametrize("redirections", ["2>&-", ">&-", "<&- >&- 2>&-"])
def test_closed_streams_do_not_stop_an_evaluation(redirections: str, work: Path, tmp_path: Path) -> None:
    options = ("--metrics", "mae", "--out", str(tmp_path / "out"), "--jobs", "2")
    done = in_shell(redirections, *EVALUATE[:-2], *options, cwd=work)
    assert (done.returncode, done.stderr) == (0, b"")
    assert sisod.Evaluation.load(tmp_path / "out/made/größe").summary["mae"] == 0
    assert bool(done.stdout) == (">&-" not in redirections.replace("2>&-", "").split())
    for path in tmp_path.rglob("*"):  # nothing that was meant for the terminal went into a file
        assert path.is_dir() or b"\x1b" not in path.read_bytes()[:1]


class Terminal(io.TextIOWrapper):
    """A stream of another encoding, which keeps what was written."""

    def __init__(self, encoding: str) -> None:
        super().__init__(io.BytesIO(), encoding=encoding, errors="strict", write_through=True)

    def said(self) -> str:
        """Return it; typer itself takes ASCII for a mistake and writes UTF-8."""
        self.flush()
        buffer: Any = self.buffer
        return str(buffer.getvalue().decode("utf-8" if self.encoding == "ascii" else self.encoding))


COMMANDS = {
    "evaluate": [*EVALUATE, "--out", "OUT", "--jobs", "1"],
    "compare": ["compare", "results/größe/A", "results/größe/B±", "--resamples", "20"],
    "stats": ["stats", "data/mask"],
    "frames": ["frames", "data/mask", "--out", "OUT"],
    "datasets": ["datasets", "."],
    "demo": ["demo", "--quick", "--out", "OUT"],
    "help": ["evaluate", "--help"],
    "an error": ["stats", "größe"],
    "bad usage": ["compare", "--size"],
}


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.slow
def test_every_command_prints_in_every_encoding(
    name: str, encoding: str, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(work)
    streams = Terminal(encoding), Terminal(encoding)
    for stream, to in zip(streams, ("stdout", "stderr"), strict=True):
        monkeypatch.setattr(sys, to, stream)
    args = [str(tmp_path / "out") if arg == "OUT" else arg for arg in COMMANDS[name]]
    with pytest.raises(SystemExit) as ended:
        get_command(app).main(args)
    assert ended.value.code == {"an error": 1, "bad usage": 2}.get(name, 0)
    said = [stream.said() for stream in streams]
    assert "Traceback" not in said[1]
    assert said[1 if name in ("an error", "bad usage") else 0].strip()
    assert [stream.errors for stream in streams] == ["strict", "strict"]  # as they were


def test_characters_are_spelled_so_that_names_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal("ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    with usable_streams():
        sys.stdout.write("MAE ± 2 größe 大 \udcff")
    assert stream.said() == "MAE \\xb1 2 gr\\xf6\\xdfe \\u5927 \\udcff"


def test_streams_that_are_missing_or_closed_are_no_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    for stream in (None, closed):
        assert not is_terminal(stream)
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setattr(sys, "stdout", stream)
        with progress_bar("scoring", 3) as advance:
            advance(3)
        with status("loading"):
            pass
        with usable_streams():
            print_tables(lambda _: [])
            sys.stdout.write("nobody reads this")
        assert sys.stdout is stream


def test_a_note_is_shown_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for terminal in (True, False):
        stream = io.StringIO()
        monkeypatch.setattr(stream, "isatty", lambda terminal=terminal: terminal)
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setenv("TERM", "xterm")
        with status("loading [PyTorch]"):
            pass
        assert ("loading [PyTorch]" in stream.getvalue()) is terminal


def test_a_library_without_standard_error_scores(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    monkeypatch.setattr(sys, "stdout", None)
    result = sisod.evaluate(work / "A", work / "data/mask", metrics=["mae"], jobs=2)
    assert result.summary == {"mae": 0.0}


def test_a_name_that_only_the_locale_cannot_read_is_not_to_be_renamed() -> None:
    with pytest.raises(ValueError, match=r"rename the file$"):
        check_utf8("\udcff", "the file name")
    with pytest.raises(ValueError, match=r"set the environment variable PYTHONUTF8=1$"):
        check_utf8("gr\udcc3\udcb6", "the file name")

"""Other systems than Linux, as far as they can be imitated: encodings, names, line ends, calls."""

import ast
import ctypes
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import pytest

import sisod
from sisod.common.errors import InputError
from sisod.common.memory import keep_freed_memory
from sisod.common.output import write_json
from sisod.common.streams import usable_streams
from sisod.evaluation import benchmark, runners
from sisod.reproduction import demo

PACKAGE = Path(sisod.__file__).parent
TRANSLATED = {"write_text", "open", "fdopen"}  # \n becomes \r\n on Windows unless told otherwise


@cache
def trees() -> dict[str, ast.Module]:
    """Every module of the package, by its path."""
    return {
        path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def calls() -> Iterator[tuple[str, str, ast.Call]]:
    """Every call in the package: where, the function's last name, and the call."""
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
                yield f"{path}:{node.lineno}", name, node


def mode(call: ast.Call) -> str:
    """How a file is opened: the first short text among the arguments that can be a mode."""
    given = [*call.args, *(word.value for word in call.keywords if word.arg == "mode")]
    texts = [node.value for node in given if isinstance(node, ast.Constant)]
    return next((text for text in texts if isinstance(text, str) and set(text) <= set("rwxab+t")), "r")


# ------------------------------------------------------------------------------------ rules


def test_text_files_name_their_encoding_and_line_ends() -> None:
    faults = []
    for where, name, call in calls():
        given = {word.arg for word in call.keywords}
        if name in {"read_text", "write_text"}:
            named = "encoding" in given or len(call.args) > (name == "write_text")
            faults += [] if named else [f"{where}: {name} without encoding"]
        if name in {"open", "fdopen"} and "b" not in mode(call):
            faults += [] if "encoding" in given else [f"{where}: {name} without encoding"]
        writes = name == "write_text" or (name in TRANSLATED and set(mode(call)) & set("wxa"))
        if writes and "b" not in mode(call) and "newline" not in given:
            faults.append(f"{where}: {name} without newline")
        if (
            name in {"run", "Popen"}
            and given & {"text", "universal_newlines"}
            and "encoding" not in given
        ):
            faults.append(f"{where}: output decoded by the locale")
    others = ("reproduction/run.py", "data/numpy_files.py")  # an empty file; a member of an archive
    assert [fault for fault in faults if not fault.startswith(others)] == []


def test_calls_that_some_system_lacks() -> None:
    lacking = {"fork", "killpg", "setsid", "getuid", "symlink_to", "symlink", "mkfifo", "setrlimit"}
    assert [f"{where}: {name}" for where, name, _ in calls() if name in lacking] == []


def test_modules_that_some_system_lacks_are_imported_where_that_is_expected() -> None:
    """Inside `try`, so that their absence is an answer, or where the system is asked for first."""
    lacking = {"fcntl", "grp", "msvcrt", "pwd", "resource", "termios", "winreg"}
    outside = []
    for path, tree in trees().items():
        tried = {
            id(n)
            for t in ast.walk(tree)
            if isinstance(t, ast.Try)
            or (isinstance(t, ast.If) and "sys.platform" in ast.unparse(t.test))
            for n in ast.walk(t)
        }
        for node in ast.walk(tree):
            names = {alias.name for alias in node.names} if isinstance(node, ast.Import) else set()
            names |= {node.module or ""} if isinstance(node, ast.ImportFrom) else set()
            if names & lacking and id(node) not in tried:
                outside.append(f"{path}: {names & lacking}")
    assert outside == []


# ------------------------------------------------------------------------------------ line ends


@pytest.fixture
def windows_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text files as Windows writes them: CR and LF where no newline is named."""
    real = io.open

    def opened(file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
        given = dict(zip(("buffering", "encoding", "errors", "newline"), args, strict=False)) | options
        if "b" not in mode and set(mode) & set("wxa") and given.get("newline") is None:
            given["newline"] = "\r\n"
        return real(file, mode, **given)

    monkeypatch.setattr(io, "open", opened)  # pathlib looks it up there


@pytest.mark.usefixtures("windows_files")
def test_the_same_bytes_everywhere(tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text("a\n", encoding="utf-8")
    assert (tmp_path / "plain.txt").read_bytes() == b"a\r\n"  # the imitation works
    write_json(tmp_path / "run.json", {"é": 1})
    assert (tmp_path / "run.json").read_bytes() == '{\n  "é": 1\n}\n'.encode()
    assert b"\r" not in demo.run_demo(tmp_path / "demo", count=1).figure.read_bytes()


@pytest.mark.needs("lightning")
@pytest.mark.usefixtures("windows_files")
def test_the_same_lines_of_a_run_everywhere(tmp_path: Path) -> None:
    from sisod.training.run_folder import MetricsFile

    metrics = MetricsFile(tmp_path)
    metrics.begin(step=0)
    metrics.log_metrics({"loss": 0.5, "epoch": 0}, step=0)
    written = (tmp_path / "metrics.csv").read_bytes()
    assert (written.count(b"\n"), written.count(b"\r")) == (2, 0)


# ------------------------------------------------------------------------------------ output


def as_stdout(monkeypatch: pytest.MonkeyPatch, encoding: str, *, terminal: bool) -> io.BytesIO:
    class Stream(io.TextIOWrapper):
        def isatty(self) -> bool:
            return terminal

    buffer = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", Stream(buffer, encoding=encoding))
    return buffer


@pytest.mark.parametrize(
    ("windows", "terminal", "chosen", "expected"),
    [
        (True, False, False, "MAE ↓ é".encode()),
        (True, False, True, b"MAE v \xe9"),  # PYTHONIOENCODING is obeyed
        (True, True, False, b"MAE v \xe9"),
        (False, False, False, b"MAE v \xe9"),
    ],
)
def test_output_that_the_code_page_lacks(
    monkeypatch: pytest.MonkeyPatch, *, windows: bool, terminal: bool, chosen: bool, expected: bytes
) -> None:
    monkeypatch.delenv("PYTHONIOENCODING", raising=False)
    if chosen:
        monkeypatch.setenv("PYTHONIOENCODING", "cp1252")
    written = as_stdout(monkeypatch, "cp1252", terminal=terminal)
    with usable_streams(windows=windows):
        sys.stdout.write("MAE ↓ é")
        sys.stdout.flush()
    assert written.getvalue() == expected


def test_output_in_utf8_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    as_stdout(monkeypatch, "utf-8", terminal=False)
    with usable_streams(windows=True):
        assert sys.stdout.encoding == "utf-8"
    assert (sys.stdout.encoding, sys.stdout.errors) == ("utf-8", "strict")


@pytest.mark.slow
def test_command_in_a_poor_encoding(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sisod", "demo", "--quick", "--out", str(tmp_path)]
    done = subprocess.run(  # noqa: S603
        command, env=os.environ | {"PYTHONIOENCODING": "ascii"}, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"SI-MAE v" in done.stdout


# ------------------------------------------------------------------------------------ names


def check(*names: tuple[str, str], windows: bool = False) -> str:
    try:
        benchmark._check_names(names, windows=windows)
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "name",
    ["a?", "a:b", 'a"', "a<b", "a|b", "a\\b", "a.", "a ", "NUL", "con.txt", "Lpt1", "aux ", "a\tb"],
)
def test_names_that_windows_cannot_write(name: str) -> None:
    refused = f"method name {name!r} cannot name a folder on Windows; give it another"
    assert check(("MSOD", name), windows=True) == refused
    assert check((name, "EDN"), windows=True) == refused.replace("method", "data set")
    assert check(("MSOD", name)) == ""


@pytest.mark.parametrize(
    "name", ["EDN", "a.b", "connie", "com", "nul-1", "ours (2 epochs)", "图像", "a=b"]
)
def test_names_that_windows_can_write(name: str) -> None:
    assert check(("MSOD", name), windows=True) == ""


@pytest.mark.parametrize(("first", "second"), [("EDN", "edn"), ("Straße", "STRASSE"), ("é", "e\u0301")])
def test_names_that_share_a_folder_elsewhere(first: str, second: str) -> None:
    advice = "would share a folder on Windows and macOS, where case makes no difference"
    assert check(("MSOD", first), ("MSOD", second)).startswith(
        f"the methods {first!r} and {second!r} {advice}; give one"
    )
    assert check((first, "EDN"), (second, "ICON")).startswith(
        f"the data sets {first!r} and {second!r} {advice}; give one"
    )
    assert check(("MSOD", first), ("ECSSD", second)) == ""  # in folders of their own


def test_a_path_with_backslashes_is_not_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert benchmark.split_name("maps\\lr=0.1")[0] == "maps\\lr"
    monkeypatch.setattr(os, "sep", "\\")
    assert benchmark.split_name("maps\\lr=0.1")[1] == "maps\\lr=0.1"


# ------------------------------------------------------------------------------------ calls


def test_cores_where_the_system_does_not_say_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert runners.default_jobs() == 6
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert runners.default_jobs() == 1


@pytest.mark.needs("lightning")
def test_workers_of_the_loader_where_the_system_does_not_say_which(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from sisod.training import loaders

    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    for cores, workers in ((6, 6), (64, 8), (None, 1)):
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        assert loaders.default_workers() == workers


@pytest.mark.parametrize("error", [TypeError, OSError, AttributeError])
def test_another_c_library(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows has no library called None, macOS and musl have one without mallopt."""

    def absent(_: None) -> object:
        raise error

    monkeypatch.setattr(ctypes, "CDLL", absent)
    keep_freed_memory()


@pytest.mark.needs("lightning")
def test_loaders_can_be_sent_to_processes_that_are_not_forked(tmp_path: Path) -> None:
    """Windows, macOS and, from Python 3.14 on, Linux start workers afresh and send them everything."""
    from sisod.data.datasets import open_dataset
    from sisod.data.textured_scenes import write_scenes
    from sisod.training import loaders
    from sisod.training.recipe import find_recipe

    samples = open_dataset(write_scenes(tmp_path, 8, shape=(32, 32))).samples
    data = loaders.SaliencyData(find_recipe("tiny"), samples, samples, workers=1, labels=None)
    for loader in (data.train_dataloader(), data.val_dataloader()):
        for part in (loader.dataset, loader.collate_fn, loader.worker_init_fn):
            assert len(ForkingPickler.dumps(part)) > 0

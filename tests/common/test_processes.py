"""Child processes: what libraries print does no harm, nor do files in the current folder."""

import ast
import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import cv2
import pytest

import sisod
from sisod.common.exceptions import InputError
from sisod.common.processes import safe_children
from sisod.data.scenes import make_scenes, sees_all_coarsely

SOURCE = Path(sisod.__file__).parent
HOSTILE = ("cv2", "json", "numpy", "pickle", "polars", "selectors", "sitecustomize", "sisod", "typer")
# what the entry point `sisod` is: a script in a folder of its own, and not in the current one
ENTRY = """
import multiprocessing, sys, time
from sisod.common.processes import safe_children
from sisod.cli import app

if __name__ == "__main__":
    if sys.argv[1:] != ["spawn"]:
        app()
    with safe_children():
        process = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(0,))
        process.start()
    process.join()
    sys.exit(process.exitcode)
"""


@pytest.fixture
def maps(tmp_path: Path) -> Path:
    """Predictions and ground truths of 40 scenes: two batches, so that two processes have work."""
    for scene in make_scenes(40, shape=(24, 32)):
        for folder, picture in (("pred", sees_all_coarsely(scene)), ("gt", scene.mask)):
            (tmp_path / folder).mkdir(exist_ok=True)
            assert cv2.imwrite(str(tmp_path / folder / f"{scene.name}.png"), picture)
    return tmp_path


NOISY = """
import os

def noisy(p, gt):
    print("Python")
    os.write(1, b"C")
    return 0.0
"""


def test_what_a_worker_prints_is_no_result(maps: Path) -> None:
    (maps / "mine.py").write_text(NOISY)
    command = [sys.executable, "-m", "sisod", "evaluate", "pred", "gt", "--out", "out", "--jobs", "2"]
    done = subprocess.run(  # noqa: S603
        [*command, "--metrics", "mine:noisy", "--format", "json"],
        cwd=maps, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout)
    assert "Python" in done.stderr


def test_death_of_a_worker_is_reported(maps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (maps / "broken").mkdir()
    (maps / "broken" / "cv2.py").write_text("raise ImportError('no such library')")
    monkeypatch.syspath_prepend(maps / "broken")
    with pytest.raises(InputError, match=r"^a worker process ended.*; what was finished is kept"):
        sisod.evaluate(maps / "pred", maps / "gt", jobs=2)


# what lies in the current folder


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder whose files leave a trace when they are imported."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    for name in HOSTILE:
        trace = f"open({str(tmp_path / 'trace')!r}, 'a').write('{name} ')"
        (folder / f"{name}.py").write_text(f"{trace}\nraise SystemExit('hostile')\n")
    (tmp_path / "entry").mkdir()
    (tmp_path / "entry" / "entry.py").write_text(ENTRY)
    return folder


def run_there(folder: Path, *args: str) -> None:
    result = subprocess.run(  # noqa: S603
        [sys.executable, str(folder.parent / "entry" / "entry.py"), *args],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    trace = folder.parent / "trace"
    assert not trace.exists(), trace.read_text()
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
def test_evaluation_imports_nothing_of_the_current_folder(maps: Path, hostile: Path) -> None:
    run_there(
        hostile, "evaluate", "../pred", "../gt", "--jobs", "2", "--out", "../out", "--dataset", "D"
    )
    assert sisod.Evaluation.load(maps / "out" / "D" / "pred").images.height == 40


def test_spawned_process_imports_nothing_of_the_current_folder(hostile: Path) -> None:
    run_there(hostile, "spawn")


def test_hostile_folder_would_be_noticed(hostile: Path) -> None:
    subprocess.run([sys.executable, "-c", "import json"], cwd=hostile, check=False, capture_output=True)
    assert (hostile.parent / "trace").read_text() == "json "


def test_environment_is_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "mine")
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    before = dict(os.environ)
    with contextlib.suppress(KeyError), safe_children():
        during = dict(os.environ)
        raise KeyError
    assert during["PYTHONSAFEPATH"] == "1"
    assert str(SOURCE.parent) in during["PYTHONPATH"].split(os.pathsep)
    assert dict(os.environ) == before


def test_no_process_is_started_by_hand() -> None:
    """Processes come from executors and data loaders, under `safe_children`."""
    names = ("Popen", "run", "check_output", "check_call")
    started = [
        f"{path}:{node.lineno}"
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in {f"subprocess.{name}" for name in names}
    ]
    assert started == []

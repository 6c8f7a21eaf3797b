"""Child processes: what they print and files of the current folder do no harm; loaders can be sent."""

import contextlib
import json
import os
import subprocess
import sys
from multiprocessing.reduction import ForkingPickler
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
    with safe_children():
        process = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(0,))
        process.start()
    process.join()
    assert process.exitcode == 0
    app()
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
    (tmp_path / "entry.py").write_text(ENTRY)
    return folder


@pytest.mark.slow
def test_evaluation_imports_nothing_of_the_current_folder(maps: Path, hostile: Path) -> None:
    """Nor does a process that is spawned."""
    options = ["evaluate", "../pred", "../gt", "--jobs", "2", "--out", "../out", "--dataset", "D"]
    result = subprocess.run(  # noqa: S603
        [sys.executable, str(maps / "entry.py"), *options],
        cwd=hostile,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not (maps / "trace").exists(), (maps / "trace").read_text()
    assert result.returncode == 0, result.stderr
    assert sisod.Evaluation.load(maps / "out" / "D" / "pred").images.height == 40


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


@pytest.mark.needs("lightning")
def test_loaders_can_be_sent_to_processes_that_are_not_forked(tmp_path: Path) -> None:
    """Windows, macOS and, from Python 3.14 on, Linux start workers afresh and send them everything."""
    from sisod.data.datasets import open_dataset
    from sisod.data.scenes import write_scenes
    from sisod.training.data import TrainingSet, ValidationSet
    from sisod.training.loaders import make_loaders
    from sisod.training.recipe import find_recipe

    samples = open_dataset(write_scenes(tmp_path, 8, shape=(32, 32))).samples
    recipe = find_recipe("tiny")
    training, validation = TrainingSet(samples, recipe.data, seed=0), ValidationSet(samples, 32)
    for loader in make_loaders(recipe.train, training, validation, workers=1):
        assert loader is not None
        for part in (loader.dataset, loader.collate_fn, loader.worker_init_fn):
            assert len(ForkingPickler.dumps(part)) > 0

"""Made folders and calls of `sisod evaluate` for its tests."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import Result

from helpers.command_line import error_message, run
from helpers.platforms import slashes, windows
from sisod.data.scenes import make_scenes, sees_all_coarsely, sees_only_large

COUNT, SOME = 320, 70  # images: ten batches of 32, and three
FILES = {
    "curves.parquet",
    "dataset_curves.parquet",
    "files.parquet",
    "images.parquet",
    "objects.parquet",
    "run.json",
    "summary.json",
}
MAIN = [sys.executable, "-c", "from sisod.cli import app; app()"]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two methods on one data set of tiny scenes; never written to."""
    root = tmp_path_factory.mktemp("made")
    for folder in ("A", "B", "MSOD/mask"):
        (root / folder).mkdir(parents=True)
    for scene in make_scenes(COUNT, seed=2, shape=(24, 32)):
        for folder, picture in (
            ("A", sees_only_large(scene)),
            ("B", sees_all_coarsely(scene)),
            ("MSOD/mask", scene.mask),
        ):
            assert cv2.imwrite(str(root / folder / f"{scene.name}.png"), picture)
    return root


def copied(made: Path, target: Path, count: int) -> Path:
    for path in made.rglob("*.png"):
        if path.stem < f"scene{count:03d}":
            copy = target / path.relative_to(made)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
    return target


@pytest.fixture
def work(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three batches of it to change, and to be in."""
    monkeypatch.chdir(tmp_path)
    return copied(made, tmp_path, SOME)


@pytest.fixture
def many(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it, to be in but not to change."""
    monkeypatch.chdir(tmp_path)
    if windows:  # has no links for everybody
        shutil.copytree(made, tmp_path, dirs_exist_ok=True)
        return
    for name in ("A", "MSOD"):
        Path(name).symlink_to(made / name, target_is_directory=True)


@pytest.fixture
def few(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same of only four images."""
    monkeypatch.chdir(tmp_path)
    return copied(made, tmp_path, 4)


def evaluate(*args: str, preds: tuple[str, ...] = ("A",), jobs: int = 1, out: str = "out") -> Result:
    options = [*preds, "MSOD/mask", "--out", out, "--jobs", str(jobs), *args]
    return run("evaluate", *options)


def finished(*args: str, **options: Any) -> str:
    """Run to the end; return what was said on standard error."""
    result = evaluate(*args, **options)
    assert result.exit_code == 0, (result.stderr, result.exception)
    return slashes(result.stderr)


def evaluate_refusal(*args: str, **options: Any) -> str:
    """Run `sisod evaluate` with something that must be refused; return its error message."""
    result = evaluate(*args, **options)
    assert result.stdout == ""
    return error_message(result)


def content(folder: str | Path) -> dict[str, bytes]:
    return {
        p.relative_to(folder).as_posix(): p.read_bytes() for p in Path(folder).rglob("*") if p.is_file()
    }


def names(folder: str | Path) -> list[str]:
    return sorted(path.name for path in Path(folder).iterdir())


def shards(out: str = "out") -> list[str]:
    return sorted(path.name for path in Path(out, "MSOD", ".A.sisod-partial").glob("*.rows"))


def record(out: str = "out") -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(Path(out, "MSOD", "A", "run.json").read_text())
    return loaded


def save_map(path: str, array: NDArray[Any]) -> None:
    Path(path).with_suffix(".png").unlink(missing_ok=True)
    np.save(path, array)

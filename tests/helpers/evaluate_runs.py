"""Folders of synthetic maps, and runs of `sisod evaluate` on them."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import Result

from helpers.command_line import error_message, run
from helpers.platforms import slashes
from sisod.data.scenes import make_scenes, sees_all_coarsely, sees_only_large

COUNT, SOME = 320, 70  # images in ten batches of 32, and in three
FILES = {
    "counts.parquet",
    "curves.parquet",
    "dataset_curves.parquet",
    "files.parquet",
    "images.parquet",
    "objects.parquet",
    "predicted.parquet",
    "run.json",
    "summary.json",
}
MAIN = [sys.executable, "-c", "from sisod.cli import app; app()"]
# `sisod evaluate` that kills itself and its workers once the first batch is stored
KILLED = """
import os, signal
from sisod.cli import app
from sisod.evaluation import driver

write_atomically = driver.write_atomically

def write_and_kill(path, data):
    write_atomically(path, data)
    if path.suffix == ".rows":
        os.killpg(os.getpgrp(), signal.SIGKILL)

driver.write_atomically = write_and_kill
app()
"""


@pytest.fixture(scope="session")
def method_folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The maps of two methods and the ground truths of one data set, 320 tiny scenes; read only."""
    root = tmp_path_factory.mktemp("method_folders")
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


def copied(method_folders: Path, target: Path, count: int) -> Path:
    """Copy the first `count` images of every folder."""
    for path in method_folders.rglob("*.png"):
        if path.stem < f"scene{count:03d}":
            copy = target / path.relative_to(method_folders)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
    return target


def current_copy(count: int) -> Any:
    """Return a fixture: a copy of the first `count` images, which is the current folder."""

    @pytest.fixture
    def folder(method_folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.chdir(tmp_path)
        return copied(method_folders, tmp_path, count)

    return folder


four_images, three_batches, ten_batches = (current_copy(count) for count in (4, SOME, COUNT))


def evaluate(*args: str, preds: tuple[str, ...] = ("A",), jobs: int = 1, out: str = "out") -> Result:
    """Run `sisod evaluate` in a folder such as `four_images`."""
    options = [*preds, "MSOD/mask", "--out", out, "--jobs", str(jobs), *args]
    return run("evaluate", *options)


def finished(*args: str, **options: Any) -> str:
    """Run `sisod evaluate`, which must succeed; return its standard error."""
    result = evaluate(*args, **options)
    assert result.exit_code == 0, (result.stderr, result.exception)
    return slashes(result.stderr)


def evaluate_refusal(*args: str, **options: Any) -> str:
    """Run `sisod evaluate` with something that must be refused; return its error message."""
    result = evaluate(*args, **options)
    assert result.stdout == ""
    return error_message(result)


def kill_in_the_middle(*arguments: str) -> None:
    """Run `sisod evaluate`, all of whose processes are killed when one batch is stored."""
    ended = subprocess.run(  # noqa: S603
        [sys.executable, "-c", KILLED, "evaluate", *arguments],
        start_new_session=True,  # a group of processes of its own
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr


def shards(out: str = "out") -> list[str]:
    """Return the names of the files that an unfinished run has written."""
    return sorted(path.name for path in Path(out, "MSOD", ".A.sisod-partial", ".parts").glob("*.rows"))


def record(out: str = "out") -> dict[str, Any]:
    """Return the record of a finished run, run.json."""
    loaded: dict[str, Any] = json.loads(Path(out, "MSOD", "A", "run.json").read_text())
    return loaded


def save_map(path: str, array: NDArray[Any]) -> None:
    """Replace a PNG map by an array of the same name."""
    Path(path).with_suffix(".png").unlink(missing_ok=True)
    np.save(path, array)

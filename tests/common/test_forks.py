"""Polars would wait forever for its threads in a forked process: evaluating there is refused."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

# the child ends itself, by an alarm, if it waits for polars
START = """
import os, signal, sys, warnings
import numpy as np
import sisod
from sisod.common.errors import InputError

warnings.simplefilter("ignore")  # Python's own, of forking a process with threads

def in_child(*calls):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        for call in calls:
            try:
                call()
                print("works", flush=True)
            except InputError as error:
                print(error, flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0

def evaluator():
    evaluator = sisod.Evaluator(metrics=["mae", "si_mae"])
    evaluator.update(np.eye(4), np.eye(4, dtype=bool), name="a")
    return evaluator

def scored():
    return sisod.evaluate("A", "MSOD/mask", metrics=["mae", "si_mae"], jobs=1)
"""
REFUSED = (
    "this process was forked from one that had used polars, whose threads a fork does not copy, so "
    "tables would be waited for without end; start processes with multiprocessing.get_context('spawn')"
)


def run_code(code: str, folder: Path) -> list[str]:
    command = [sys.executable, "-c", START + code]
    ended = subprocess.run(  # noqa: S603
        command, cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def test_after_polars_was_used(four_images: Path) -> None:
    """What needs its threads is refused before any work; the rest, such as scoring, goes on."""
    code = """
from sisod.analysis.comparison import compare
from sisod.report.gallery import FigureRequest, draw
from sisod.evaluation.results import Result

result = sisod.evaluate("A", "MSOD/mask", metrics=["mae", "si_mae"], jobs=1, out="out")
in_child(
    scored,
    lambda: sisod.Evaluation.load("out"),
    lambda: result.save("copy"),
    lambda: draw("examples", FigureRequest([Result("D", "m", result)])),
)
in_child(
    lambda: evaluator().result(),
    lambda: compare(result, result, resamples=9).render("csv"),
    lambda: result._repr_html_(),
)
"""
    assert run_code(code, four_images) == [REFUSED] * 4 + ["works"] * 3
    assert not (four_images / "copy").exists()


def test_before_polars_was_used(four_images: Path) -> None:
    """Neither the import of polars nor scoring starts its threads; OpenCV's are not waited for."""
    code = """
import cv2
import polars
cv2.GaussianBlur(np.zeros((2000, 2000), np.uint8), (0, 0), 3)  # which starts its threads
evaluator().result()
for _ in range(6):
    in_child(scored)
scored()
in_child(scored)
sisod.evaluate("A", "MSOD/mask", metrics=["mae"], jobs=1, out="out")  # which starts them
in_child(lambda: in_child(scored))  # a child of the child
"""
    assert run_code(code, four_images) == ["works"] * 7 + [REFUSED, "works"]

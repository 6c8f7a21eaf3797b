"""Weighted F in strips and at large distances, and the memory of one image."""

import os
import sys
from subprocess import run
from typing import Any

import numpy as np
import pytest
from helpers.platforms import linux
from numpy.typing import NDArray

import sisod
from sisod.scoring import kernel
from sisod.scoring.families import weighted_f

pytestmark = pytest.mark.usefixtures("both_engines")


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_strips_and_margins_leave_the_values(dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    gt = rng.random((40, 30)) < 0.02
    gt[3:20, 4:17] = True
    pred: NDArray[Any] = rng.integers(7, 256, size=(40, 30)).astype(dtype)
    if dtype is np.float32:
        pred /= 255
    whole = sisod.score(pred, gt, metrics="wf,si_wf")
    for size in (1, 70, 400):
        monkeypatch.setattr(weighted_f, "_STRIP", size)
        assert sisod.score(pred, gt, metrics="wf,si_wf") == pytest.approx(whole, rel=1e-14, abs=0)


# in a process of its own, whose peak is of nothing else; a small map first, so that all is loaded
_MEMORY = """
import numpy as np, cv2, sisod
cv2.setNumThreads(1)

def peak():
    (line,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024

side = np.arange(2000) % 256
rows = side.astype(np.uint8)
pred = np.add.outer(rows, rows)
block = (np.arange(2000) // 400 % 2).astype(np.uint8)
gt = np.equal.outer(block, block)
score = lambda *maps: sisod.score(*maps, metrics="mae,f_max,s,wf,si_s,si_wf")
score(pred[:200, :200], gt[:200, :200])
before = peak()
score(pred, gt)
print((peak() - before) / gt.size)
"""


@linux
def test_memory_beside_the_maps() -> None:
    is_native = kernel.engine() == "native"
    environment = os.environ | {"SISOD_NATIVE": "1" if is_native else "0"}
    command = [sys.executable, "-c", _MEMORY]
    ended = run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603
    assert 1 < float(ended.stdout) <= (4 if is_native else 36)  # bytes a pixel


@pytest.mark.parametrize("shape", [(1, 50_000), (50_000, 1)])
def test_errors_at_distances_whose_square_is_beyond_32_bits(shape: tuple[int, int]) -> None:
    """An error weighs twice as much there, as at every large distance: 1 / (1 + 2) for one of them."""
    gt = np.zeros(shape, dtype=np.bool_)
    gt[0, 0] = True
    pred = gt.copy()
    pred[-1, -1] = True
    precision = 1 / 3
    expected = 2 * precision / (1 + precision)
    assert sisod.score(pred, gt, metrics="wf")["wf"] == pytest.approx(expected, abs=1e-12)

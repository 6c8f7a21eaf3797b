"""S and weighted F of 8-bit maps against many digits; strips; memory."""

import itertools
import sys
from decimal import Decimal, localcontext
from fractions import Fraction
from subprocess import run
from typing import Any

import numpy as np
import pytest
from helpers.platforms import linux
from numpy.typing import NDArray

import sisod
from sisod.scoring.families import weighted_f

Grey = NDArray[np.uint8]
Mask = NDArray[np.bool_]
Pixel = tuple[int, int]
_EPS = Fraction(float(np.spacing(1)))


def make_pair(seed: int) -> tuple[Grey, Mask]:
    rng = np.random.default_rng(seed)
    height, width = rng.integers(6, 15, size=2)
    gt = np.zeros((height, width), dtype=np.bool_)
    for _ in range(2):
        y, x = rng.integers(0, height - 3), rng.integers(0, width - 3)
        gt[y : y + rng.integers(1, 5), x : x + rng.integers(1, 5)] = True
    low, high = (3, 250) if seed % 2 else (0, 256)
    pred: Grey = rng.integers(low, high, size=(height, width), dtype=np.uint8)
    return pred, gt


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("normalize", ["minmax", "none"])
def test_values_of_grey_maps_are_nearly_the_exact_ones(seed: int, normalize: str) -> None:
    pred, gt = make_pair(seed)
    values = sisod.score(pred, gt, protocol=f"default+normalize={normalize}", metrics="s,wf")
    low, high = (int(pred.min()), int(pred.max())) if normalize == "minmax" else (0, 255)
    p = [[Fraction(int(grey) - low, high - low) for grey in row] for row in pred]
    assert values["s"] == pytest.approx(float(exact_s(p, gt)), rel=1e-15, abs=0)
    assert values["wf"] == pytest.approx(float(exact_weighted_f(p, gt)), rel=1e-15, abs=0)


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
    command = [sys.executable, "-c", _MEMORY]
    ended = run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert 4 < float(ended.stdout) <= 12  # bytes a pixel


def exact_s(p: list[list[Fraction]], gt: Mask) -> Fraction:
    height, width = gt.shape
    pixels = list(itertools.product(range(height), range(width)))
    salient = [pixel for pixel in pixels if gt[pixel]]
    others = [pixel for pixel in pixels if not gt[pixel]]
    y, x = (round(Fraction(sum(side), len(salient))) + 1 for side in zip(*salient, strict=True))
    share = Fraction(len(salient), gt.size)
    alike = share * _object_part([p[y][x] for y, x in salient])
    alike += (1 - share) * _object_part([1 - p[y][x] for y, x in others])
    regions = Fraction(0)
    for rows, columns in itertools.product((range(y), range(y, height)), (range(x), range(x, width))):
        part = [(p[i][j], Fraction(int(gt[i, j]))) for i in rows for j in columns]
        if part:
            regions += Fraction(len(part), gt.size) * _region_part(part)
    return max(Fraction(0), (alike + regions) / 2)


def _object_part(values: list[Fraction]) -> Fraction:
    mean = Fraction(sum(values), len(values))
    spread = sum((value - mean) ** 2 for value in values)
    deviation = _root(Fraction(spread, len(values) - 1)) if len(values) > 1 else Fraction(0)
    return 2 * mean / (mean * mean + 1 + deviation + _EPS)


def _region_part(part: list[tuple[Fraction, Fraction]]) -> Fraction:
    count = len(part)
    p_mean, g_mean = (Fraction(sum(side), count) for side in zip(*part, strict=True))
    p_spread = sum((p - p_mean) ** 2 for p, _ in part)
    g_spread = sum((g - g_mean) ** 2 for _, g in part)
    joint = sum((p - p_mean) * (g - g_mean) for p, g in part)
    divisor = count - 1 + _EPS
    numerator = 4 * p_mean * g_mean * joint / divisor
    denominator = (p_mean**2 + g_mean**2) * (p_spread + g_spread) / divisor
    if numerator:
        return numerator / (denominator + _EPS)
    return Fraction(int(denominator == 0))


def exact_weighted_f(p: list[list[Fraction]], gt: Mask) -> Fraction:
    height, width = gt.shape
    pixels = list(itertools.product(range(height), range(width)))
    salient = [pixel for pixel in pixels if gt[pixel]]
    moved = {}
    false = Fraction(0)
    for y, x in pixels:
        squared, nearest_x, nearest_y = min(((i - y) ** 2 + (j - x) ** 2, j, i) for i, j in salient)
        moved[y, x] = 1 - p[nearest_y][nearest_x]
        if not gt[y, x]:
            false += p[y][x] * (2 - _power(Fraction(1, 2), _root(Fraction(squared)) / 5))
    steps = list(itertools.product(range(-3, 4), repeat=2))
    kernel = {step: _power(_E, -Fraction(step[0] ** 2 + step[1] ** 2, 50)) for step in steps}
    total = sum(kernel.values())
    missed = Fraction(0)
    for y, x in salient:
        blurred = sum(kernel[dy, dx] * moved.get((y + dy, x + dx), 0) for dy, dx in steps) / total
        missed += min(1 - p[y][x], Fraction(blurred))
    recall = 1 - missed / len(salient)
    detected = len(salient) - missed
    precision = detected / (detected + false + _EPS)
    return 2 * recall * precision / (recall + precision + _EPS)


def _root(value: Fraction) -> Fraction:
    with localcontext() as context:
        context.prec = 40
        return Fraction((Decimal(value.numerator) / Decimal(value.denominator)).sqrt())


_E = Fraction(Decimal("2.718281828459045235360287471352662497757247093699959574967"))


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    with localcontext() as context:
        context.prec = 40
        number, power = (Decimal(v.numerator) / Decimal(v.denominator) for v in (base, exponent))
        return Fraction(number**power)


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

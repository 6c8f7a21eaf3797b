"""The compiled kernel gives the tables of the Python engine, and is safe.

That both engines are right is tested in the modules with the fixture `both_engines`.
"""

import dataclasses
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

import sisod
from sisod.scoring import kernel
from sisod.scoring.arrays import as_map
from sisod.scoring.engine import find_scorer
from sisod.scoring.scores import Scores

needs_kernel = pytest.mark.skipif(kernel.engine() == "python", reason="the kernel was not built")
Pair = tuple[NDArray[Any], NDArray[np.bool_]]
NOT_BITWISE = ("wf", "si_wf")  # the order of their sums is another
PROTOCOLS = [
    *(sisod.PROTOCOLS[name] for name in ("default", "paper", "pysodmetrics", "infrared", "cc")),
    dataclasses.replace(sisod.PROTOCOLS["default"], connectivity=4, min_area=3, alpha="union"),
    dataclasses.replace(sisod.PROTOCOLS["default"], kind="voronoi", min_area=0),
    dataclasses.replace(sisod.PROTOCOLS["default"], normalize="none", alpha=0.5, keep_ties=True),
]


def random_pair(seed: int, side: int = 70) -> Pair:
    """A smooth or noisy map of one of the five types, with a mask that has something to do with it."""
    rng = np.random.default_rng(seed)
    field = rng.random(rng.integers(1, side, 2))
    if seed % 3:
        field = np.asarray(cv2.GaussianBlur(field, (0, 0), float(rng.integers(1, 4))))
    gt = field > np.quantile(field, rng.random()) if seed % 7 else np.full(field.shape, seed % 2 == 1)
    noisy = 0.5 * field + 0.5 * rng.random(field.shape)
    p = np.clip((noisy - noisy.min()) / (np.ptp(noisy) + 1e-9) * rng.choice([1, 1.3]), 0, 1)
    grey = (p * 255).astype(np.uint8)
    return [grey, (p * 65535).astype(np.uint16), p, p.astype(np.float32), p > 0.5][seed % 5], gt


def scores_of(protocol: sisod.Protocol, metrics: str | None, pairs: list[Pair], engine: str) -> Scores:
    scorer = find_scorer(protocol, metrics)
    with kernel.use_engine(engine):
        return scorer.finish([scorer.measure(as_map(pred), gt) for pred, gt in pairs])


def assert_equal(one: Scores, other: Scores) -> None:
    """Every table to the last bit and of the same type; weighted F to 1e-12."""
    close = [key in NOT_BITWISE for key in one.keys]
    np.testing.assert_allclose(one.values[:, close], other.values[:, close], rtol=0, atol=1e-12)
    bitwise = np.logical_not(close)
    np.testing.assert_array_equal(one.values[:, bitwise], other.values[:, bitwise])
    for field in dataclasses.fields(Scores):
        first, second = getattr(one, field.name), getattr(other, field.name)
        if field.name in ("keys", "curve_names"):
            assert first == second
            continue
        columns = first if isinstance(first, dict) else {field.name: first}
        others = second if isinstance(second, dict) else {field.name: second}
        assert columns.keys() == others.keys()
        for name, column in columns.items():
            assert np.asarray(column).dtype == np.asarray(others[name]).dtype, name
            if name != "values":
                np.testing.assert_array_equal(column, others[name], err_msg=name)


@needs_kernel
@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: f"{protocol.name} {protocol.kind}")
@pytest.mark.parametrize("metrics", [None, "all"])
def test_tables_are_those_of_the_python_engine(protocol: sisod.Protocol, metrics: str | None) -> None:
    pairs = [random_pair(seed) for seed in range(100 if metrics is None else 35)]
    if metrics == "all" and protocol.kind == "boxes":
        pairs = [pair for pair in pairs if min(pair[1].shape) > 1]
    one, other = (scores_of(protocol, metrics, pairs, engine) for engine in ("native", "python"))
    assert_equal(one, other)


@needs_kernel
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("metrics", ["mae", "si_mae,s", "sod", "object_f1,si_f_max_frame"])
def test_score_of_one_image_is_that_of_a_batch(seed: int, metrics: str) -> None:
    pred, gt = random_pair(seed)
    values = []
    for engine in ("native", "python"):
        with kernel.use_engine(engine):
            values.append(sisod.score(pred, gt, metrics=metrics))
    assert values[0].keys() == values[1].keys()
    np.testing.assert_allclose(list(values[0].values()), list(values[1].values()), rtol=0, atol=1e-12)


def test_one_pixel_is_not_the_whole_image() -> None:
    """Protocols that are equal, since 1 equals 1.0, but are not the same."""
    pred, gt = many_objects(3)
    pixel, whole = (
        sisod.score(pred, gt, protocol=sisod.Protocol("own", min_area=least), metrics="si_f_mean")
        for least in (1, 1.0)
    )
    assert pixel != whole


def many_objects(n: int) -> Pair:
    rng = np.random.default_rng(n)
    gt = np.zeros((700, 900), dtype=np.bool_)
    corners = zip(rng.integers(0, 690, n), rng.integers(0, 890, n), strict=True)
    for y, x in corners:
        gt[y : y + rng.integers(1, 9), x : x + rng.integers(1, 9)] = True
    pred = np.asarray(cv2.GaussianBlur(gt.astype(np.uint8) * 255, (0, 0), 1.5))
    return pred, gt


def nested_frames() -> Pair:
    """Rings in rings: every frame lies in all those before it."""
    gt = np.zeros((200, 200), dtype=np.bool_)
    for margin in range(0, 100, 4):
        gt[margin : 200 - margin, margin : 200 - margin] = True
        gt[margin + 1 : 199 - margin, margin + 1 : 199 - margin] = False
    return np.random.default_rng(0).integers(0, 256, gt.shape).astype(np.uint8), gt


@needs_kernel
@pytest.mark.parametrize(
    "pair",
    [
        (np.zeros((1, 1), np.uint8), np.zeros((1, 1), np.bool_)),
        (np.full((1, 1), 255, np.uint8), np.ones((1, 1), np.bool_)),
        (np.zeros((1, 9), np.uint8), np.ones((1, 9), np.bool_)),
        (
            np.indices((64, 65)).sum(axis=0).astype(np.uint8) % 2 * 255,
            np.indices((64, 65)).sum(axis=0) % 2 > 0,
        ),
        many_objects(5000),
        nested_frames(),
    ],
    ids=["black pixel", "white pixel", "line", "checkerboard", "5000 objects", "nested"],
)
def test_extreme_images(pair: Pair) -> None:
    protocol = sisod.PROTOCOLS["paper"]
    assert_equal(
        scores_of(protocol, None, [pair], "native"), scores_of(protocol, None, [pair], "python")
    )


@needs_kernel
def test_what_the_kernel_hands_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fused pass takes 8-bit maps and boxes around components; all else is counted in Python."""
    pred, gt = many_objects(5)
    taken = []
    measure = kernel.measure

    def spy(*args: Any, **options: Any) -> Any:
        taken.append(args)
        return measure(*args, **options)

    monkeypatch.setattr(kernel, "measure", spy)

    def is_taken(pred: NDArray[Any], protocol: str | sisod.Protocol = "default", **options: Any) -> bool:
        taken.clear()
        find = sisod.PROTOCOLS[protocol] if isinstance(protocol, str) else protocol
        find_scorer(find, "mae").measure(as_map(pred), gt, **options)
        return bool(taken)

    default = sisod.PROTOCOLS["default"]
    assert is_taken(pred)
    assert is_taken(pred > 0)
    assert is_taken(pred, "paper")
    assert not is_taken(pred.astype(np.uint16))
    assert not is_taken(pred / 255)
    assert not is_taken(pred, "infrared")
    assert not is_taken(pred, "cc")
    assert not is_taken(pred, dataclasses.replace(default, keep_ties=True))
    assert not is_taken(pred, partition=sisod.partition(gt))
    assert not is_taken(pred, labels=gt.astype(np.int32))


@needs_kernel
def test_threads_score_as_one() -> None:
    pairs = [random_pair(seed) for seed in range(40)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda pair: sisod.score(*pair), pairs))
    np.testing.assert_equal(together, [sisod.score(*pair) for pair in pairs])


@needs_kernel
def test_arrays_that_do_not_fit_are_errors() -> None:
    from sisod.scoring import _native

    plane, boxes = np.zeros((4, 5), np.uint8), np.array([[0, 0, 4, 5]])
    with pytest.raises(ValueError, match="shape"):
        _native.measure(plane, plane[:3], 1, 8, True, True, True)
    with pytest.raises(ValueError, match="shape"):
        _native.measure(plane.astype(np.uint16), plane, 1, 8, True, True, True)
    with pytest.raises(ValueError, match="inside"):
        _native.moments(plane, plane, boxes + 1, 0)
    with pytest.raises(ValueError, match="below"):
        _native.count(np.full((4, 5), 300, np.uint16), plane, boxes, 258)
    rows, empty = np.zeros(2), np.zeros(0)
    for cut, errors in ((257, rows), (0, empty)):
        counts = np.zeros((2, 2, 256)), np.full(258, cut), errors, errors
        with pytest.raises(ValueError, match="a cut per threshold"):
            _native.values((*counts, *[empty] * 5), 0, 0, 1.0, 1.0)
    with pytest.raises(ValueError, match="int32"):
        _native.nearest(plane)
    with pytest.raises(ValueError, match="256 bytes"):
        _native.thin(plane, np.zeros(255, np.uint8))
    with pytest.raises(ValueError, match="tolerance"):
        _native.near(plane, plane, -1)
    with pytest.raises(ValueError, match="contiguous"):
        _native.measure(plane.T, plane.T, 1, 8, True, True, True)


@needs_kernel
def test_more_pixels_than_indices_are_refused_before_anything_is_allocated(tmp_path: Path) -> None:
    """A plane of 16 GB, and one with a side beyond 2^20: of files with holes, which take no space."""
    from sisod.scoring import _native

    file = tmp_path / "plane"
    with file.open("wb") as stream:
        stream.truncate(2**34)
    for shape in ((2**17, 2**17), (2, 2**20 + 1)):
        plane = np.memmap(file, np.uint8, "r", shape=shape)
        assert not kernel.is_usable(plane)
        with pytest.raises(ValueError, match="2\\^31 pixels"):
            _native.measure(plane, plane, 1, 8, True, True, True)
        with pytest.raises(ValueError, match="2\\^31 pixels"):
            _native.nearest(plane)


def test_a_kernel_of_older_sources_is_not_used() -> None:
    code = (
        "import sys, types; sys.modules['sisod.scoring._native'] = types.ModuleType('_native'); "
        "from sisod.scoring import kernel; print(kernel.engine())"
    )
    run = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "python", run.stderr


def test_switched_off_by_the_environment() -> None:
    code = "from sisod.scoring import kernel; print(kernel.engine())"
    environment = os.environ | {"SISOD_NATIVE": "0"}
    run = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "python", run.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="its compiler is not found by PATH")
def test_without_a_compiler_the_installation_succeeds(tmp_path: Path) -> None:
    pytest.importorskip("setuptools", reason="it is not needed once sisod is installed")
    root = Path(__file__).parents[2]
    if not (root / "src" / "native").is_dir():
        pytest.skip("the sources are not here")
    environment = {
        name: value for name, value in os.environ.items() if name not in ("CC", "SISOD_NATIVE")
    }
    run = subprocess.run(  # noqa: S603
        [sys.executable, "setup.py", "build_ext", "--build-lib", tmp_path, "--build-temp", tmp_path],
        env=environment | {"PATH": str(tmp_path)},
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "failed" in run.stderr
    assert not list(tmp_path.rglob("_native*"))


def test_built_where_there_is_a_compiler() -> None:
    if shutil.which("cc") is None or os.environ.get("SISOD_NATIVE") == "0":
        pytest.skip("no C compiler, or switched off")
    assert kernel.engine() == "native", "build it: python setup.py build_ext --inplace"

"""Agreement with outside tools: PySODMetrics 1.6.2 and scikit-learn, on synthetic and on real maps."""

import math
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import py_sod_metrics
import pytest
from helpers.ellipse_scenes import ellipse_scene
from helpers.engine_scores import Scored, score_one
from numpy.typing import NDArray
from py_sod_metrics.utils import get_adaptive_threshold
from sklearn.metrics import cohen_kappa_score, roc_auc_score

import sisod
from sisod.scoring.metrics import find_metrics

pytestmark = pytest.mark.usefixtures("both_engines")

DATA = os.environ.get("SISOD_DATA")
N_REAL = 12
HANDLERS = {
    "f": py_sod_metrics.FmeasureHandler,
    "precision": py_sod_metrics.PrecisionHandler,
    "recall": py_sod_metrics.RecallHandler,
    "iou": py_sod_metrics.IOUHandler,
    "dice": py_sod_metrics.DICEHandler,
    "specificity": py_sod_metrics.SpecificityHandler,
    "fpr": py_sod_metrics.FPRHandler,
    "ber": py_sod_metrics.BERHandler,
    "accuracy": py_sod_metrics.OverallAccuracyHandler,
}
FRAMED = ("f", "precision", "recall", "iou", "dice")  # where masking and cropping agree from t = 1 on


class Pair(NamedTuple):
    """A prediction, its boolean ground truth, and the same two in the form for PySODMetrics."""

    pred: NDArray[np.uint8]
    gt: NDArray[np.bool_]

    @property
    def grey_gt(self) -> NDArray[np.uint8]:
        """The ground truth as 0 and 255."""
        return self.gt.astype(np.uint8) * np.uint8(255)

    @property
    def p(self) -> NDArray[np.float64]:
        """The prediction stretched to [0, 1]."""
        p = self.pred / 255
        return np.asarray((p - p.min()) / (p.max() - p.min()))

    @property
    def levels(self) -> NDArray[np.uint8]:
        """Grey levels, floor(255 p)."""
        return (self.p * 255).astype(np.uint8)


@contextmanager
def ignore_warnings_of_pysodmetrics() -> Iterator[None]:
    """PySODMetrics calls deprecated functions and divides by zero; our code must not warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def synthetic_pair(seed: int) -> Pair:
    pred, gt = ellipse_scene(seed, height=60 + seed, width=80 - 2 * seed)
    return Pair(pred, gt > 0)


def real_names() -> list[str]:
    if DATA is None:
        return []
    names = sorted(path.stem for path in (Path(DATA) / "MSOD" / "mask").glob("*.png"))
    return names[:: max(len(names) // N_REAL, 1)][:N_REAL]


def real_pair(name: str) -> Pair:
    assert DATA is not None
    folder = Path(DATA) / "MSOD"
    mask = cv2.imread(str(folder / "mask" / f"{name}.png"), cv2.IMREAD_GRAYSCALE)
    pred = cv2.imread(str(folder / "prediction" / f"{name}.png"), cv2.IMREAD_GRAYSCALE)
    assert mask is not None
    assert pred is not None
    height, width = mask.shape
    pred = cv2.resize(pred, (width, height), interpolation=cv2.INTER_LINEAR)
    return Pair(np.asarray(pred, np.uint8), np.asarray(mask >= 128))


@cache
def find_pair(name: str) -> Pair:
    pair = (
        synthetic_pair(int(name.removeprefix("synthetic")))
        if name.startswith("synthetic")
        else real_pair(name)
    )
    assert 0 < np.count_nonzero(pair.gt) < pair.gt.size
    return pair


@cache
def ours(name: str, protocol: str = "default") -> Scored:
    pair = find_pair(name)
    keys = find_metrics("all")
    return score_one(pair.pred, pair.gt, protocol=sisod.PROTOCOLS[protocol], keys=keys)


SYNTHETIC = [f"synthetic{seed}" for seed in range(8)]
NAMES = SYNTHETIC + (
    real_names()
    or [pytest.param("", marks=pytest.mark.skip(reason="SISOD_DATA is unset: no real MSOD maps"))]  # type: ignore[list-item]
)
every_pair = pytest.mark.parametrize("name", NAMES)


def peer_results(metric: Any, pair: Pair) -> Any:
    with ignore_warnings_of_pysodmetrics():
        metric.step(pair.pred, pair.grey_gt)
        return metric.get_results()


def handlers(names: tuple[str, ...], *, beta2: float = 0.3) -> dict[str, Any]:
    created = {}
    for name in names:
        extra = {"beta": beta2} if name == "f" else {}
        created[name] = HANDLERS[name](with_dynamic=True, with_adaptive=True, with_binary=True, **extra)
    return created


@every_pair
def test_counted_metrics(name: str) -> None:
    theirs = peer_results(py_sod_metrics.FmeasureV2(handlers(tuple(HANDLERS))), find_pair(name))
    scores = ours(name)
    for family, result in theirs.items():
        curve = result["dynamic"][::-1]  # theirs begins at t = 255
        np.testing.assert_allclose(scores.curves[family], curve, rtol=0, atol=1e-12, err_msg=family)
        expected = {
            f"{family}_mean": curve.mean(),
            f"{family}_max": curve.max(),
            f"{family}_adaptive": result["adaptive"],
            f"{family}_binary": result["binary"],
        }
        assert {key: scores.values[key] for key in expected} == pytest.approx(expected, abs=1e-12)
    assert scores.values["f_max_image"] == scores.values["f_max"]


@every_pair
def test_mae_and_structure(name: str) -> None:
    pair, values = find_pair(name), ours(name).values
    expected = {
        "mae": peer_results(py_sod_metrics.MAE(), pair)["mae"],
        "s": peer_results(py_sod_metrics.Smeasure(), pair)["sm"],
        "wf": peer_results(py_sod_metrics.WeightedFmeasure(), pair)["wfm"],
    }
    assert {key: values[key] for key in expected} == pytest.approx(expected, abs=1e-9)


class WideMSIoU(py_sod_metrics.MSIoU):  # type: ignore[misc]
    """The class of PySODMetrics without float16 edge maps, which round counts above 2048."""

    def get_edge(self, mask: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return its edges in double precision."""
        return np.asarray(super().get_edge(mask), np.float64)


@every_pair
def test_multiscale_iou_in_double_precision(name: str) -> None:
    theirs = peer_results(WideMSIoU(False, False, with_binary=True), find_pair(name))["binary"]
    assert ours(name).values["msiou"] == pytest.approx(theirs, abs=1e-12)


def test_multiscale_iou_of_opposite_edges() -> None:
    """Two missing corners: opposite signs of Sobel cancel in the middle, so it is not an edge."""
    gt = np.array([[0, 1, 1], [1, 1, 1], [1, 1, 0]], np.bool_)
    pair = Pair(np.zeros((3, 3), np.uint8), gt)
    theirs = peer_results(py_sod_metrics.MSIoU(False, False, with_binary=True), pair)["binary"]
    assert sisod.score(pair.pred, gt, metrics="msiou")["msiou"] == pytest.approx(theirs, abs=1e-12)


@every_pair
def test_e_measure(name: str) -> None:
    pair, scores = find_pair(name), ours(name)
    metric = py_sod_metrics.Emeasure()
    result = peer_results(metric, pair)["em"]
    curve = result["curve"][::-1]
    np.testing.assert_allclose(scores.curves["e"], curve, rtol=0, atol=1e-9)
    # it takes >=, our binary form is p > 0.5
    binary = metric.cal_em_with_threshold(pair.p, pair.gt, math.nextafter(0.5, 1))
    expected = {
        "e_mean": curve.mean(),
        "e_max": curve.max(),
        "e_adaptive": result["adp"],
        "e_binary": binary,
    }
    assert {key: scores.values[key] for key in expected} == pytest.approx(expected, abs=1e-9)


def kappa(predicted: NDArray[np.bool_], gt: NDArray[np.bool_]) -> float:
    counts = [np.count_nonzero((predicted == p) & (gt == g)) for p in (0, 1) for g in (0, 1)]
    return float(cohen_kappa_score([0, 0, 1, 1], [0, 1, 0, 1], sample_weight=counts))


@every_pair
def test_kappa_is_that_of_sklearn(name: str) -> None:
    pair, scores = find_pair(name), ours(name)
    assert scores.values["kappa_binary"] == pytest.approx(kappa(pair.p > 0.5, pair.gt), abs=1e-12)
    adaptive = pair.p >= get_adaptive_threshold(pair.p)
    assert scores.values["kappa_adaptive"] == pytest.approx(kappa(adaptive, pair.gt), abs=1e-12)
    for t in (0, 1, 100, 254, 255):
        expected = kappa(pair.levels >= t, pair.gt)
        assert scores.curves["kappa"][t] == pytest.approx(expected, abs=1e-12), t


@every_pair
def test_auc_is_that_of_sklearn(name: str) -> None:
    pair, values = find_pair(name), ours(name).values
    levels = pair.levels
    expected = roc_auc_score(pair.gt.ravel(), levels.ravel())
    assert values["auc"] == pytest.approx(expected, abs=1e-12)
    cropped = [
        roc_auc_score(pair.gt[y0:y1, x0:x1].ravel(), levels[y0:y1, x0:x1].ravel())
        for y0, x0, y1, x1 in sisod.partition(pair.gt).boxes.tolist()
        if not pair.gt[y0:y1, x0:x1].all()
    ]
    assert cropped
    assert values["si_auc"] == pytest.approx(np.mean(cropped), abs=1e-12)


@every_pair
def test_size_invariant_f_of_pysodmetrics(name: str) -> None:
    metric = py_sod_metrics.SizeInvarianceFmeasureV2(handlers(FRAMED))
    theirs = peer_results(metric, find_pair(name))
    scores = ours(name, "pysodmetrics")
    for family, result in theirs.items():
        (by_frame,) = result["dynamic"]  # frames x 256, from t = 255 down
        assert len(by_frame) == len(scores.objects["area"])
        curve = by_frame.mean(axis=0)[::-1]
        si = f"si_{family}"
        np.testing.assert_allclose(scores.curves[si][1:], curve[1:], rtol=0, atol=1e-12, err_msg=si)
        assert np.isnan(scores.curves[si][0])
        assert scores.values[f"{si}_mean"] == pytest.approx(curve[1:].mean(), abs=1e-12)
        assert scores.values[f"{si}_max"] == pytest.approx(curve[1:].max(), abs=1e-12)
        assert scores.values[f"{si}_binary"] == pytest.approx(result["binary"], abs=1e-12)


@every_pair
def test_size_invariant_mae_of_pysodmetrics(name: str) -> None:
    theirs = peer_results(py_sod_metrics.SizeInvarianceMAE(), find_pair(name))["si_mae"]
    value = ours(name, "pysodmetrics").values["si_mae"]
    if math.isnan(theirs):  # frames that cover the image
        assert 0 <= value <= 1
        assert sisod.PROTOCOLS["pysodmetrics"].partition(find_pair(name).gt).alpha == 0
    else:
        assert value == pytest.approx(theirs, abs=1e-12)


def test_ties_for_the_largest_are_all_kept_as_pysodmetrics_does() -> None:
    gt = np.zeros((20, 30), np.bool_)
    gt[2:5, 2:9] = gt[10:13, 12:19] = gt[17, 25] = True  # 21, 21 and 1 pixels, all under 50
    pred = (np.arange(600).reshape(20, 30) % 251).astype(np.uint8)
    theirs = peer_results(py_sod_metrics.SizeInvarianceMAE(), Pair(pred, gt))["si_mae"]
    values = sisod.score(pred, gt, protocol="pysodmetrics", metrics="si_mae")
    assert len(sisod.PROTOCOLS["pysodmetrics"].partition(gt)) == 2
    assert values["si_mae"] == pytest.approx(theirs, abs=1e-12)

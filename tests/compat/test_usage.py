"""The drop-in is used as the documentation of PySODMetrics uses its classes; wrong input and names."""

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import py_sod_metrics
import pytest
from helpers.pysodmetrics_results import assert_same, flatten
from helpers.signatures import parameters

import sisod.compat.pysodmetrics as drop_in
from sisod.common.exceptions import UsageError

GREY = {"with_adaptive": True, "with_dynamic": True}
BY_IMAGE = {"with_adaptive": False, "with_dynamic": False, "with_binary": True, "sample_based": True}
OVERALL = BY_IMAGE | {"sample_based": False}
HANDLERS = {
    "pre": "PrecisionHandler",
    "rec": "RecallHandler",
    "iou": "IOUHandler",
    "dice": "DICEHandler",
    "spec": "SpecificityHandler",
    "ber": "BERHandler",
    "oa": "OverallAccuracyHandler",
    "fpr": "FPRHandler",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two folders of images of the same names; one map has another size than its mask."""
    rng = np.random.default_rng(0)
    for index, shape in enumerate([(40, 50), (30, 64), (33, 33)]):
        gt = np.zeros(shape, np.uint8)
        cv2.ellipse(gt, (shape[1] // 2, shape[0] // 2), (12, 8), 20.0 * index, 0, 360, 255, -1)
        noise = rng.normal(0, 25, shape)
        pred = np.clip(cv2.GaussianBlur(gt, (0, 0), 2).astype(float) + noise, 0, 255).astype(np.uint8)
        if index == 1:
            pred = cv2.resize(pred, None, fx=0.5, fy=0.5).astype(np.uint8)
        for name, image in (("masks", gt), ("preds", pred)):
            (tmp_path / name).mkdir(exist_ok=True)
            assert cv2.imwrite(str(tmp_path / name / f"{index}.png"), image)
    return tmp_path


def evaluate(module: Any, folder: Path) -> dict[str, Any]:
    """Score a folder with one object per metric, all fed in one loop; keywords as in the examples."""
    metrics = {
        "sm": module.Smeasure(),
        "wfm": module.WeightedFmeasure(),
        "mae": module.MAE(),
        "em": module.Emeasure(),
        "si_mae": module.SizeInvarianceMAE(),
        "cm": module.ContextMeasure(),
        "msiou": module.MSIoU(with_dynamic=False, with_adaptive=True, with_binary=True),
        "v2": module.FmeasureV2(
            metric_handlers={
                "fm": module.FmeasureHandler(**GREY, beta=0.3),
                "f1": module.FmeasureHandler(**GREY, beta=1),
                "sample_bif1": module.FmeasureHandler(**BY_IMAGE, beta=1),
                "overall_bif1": module.FmeasureHandler(**OVERALL, beta=1),
                **{name: getattr(module, kind)(**GREY) for name, kind in HANDLERS.items()},
                **{
                    f"overall_{name}": getattr(module, kind)(**OVERALL)
                    for name, kind in HANDLERS.items()
                },
            }
        ),
        "si_v2": module.SizeInvarianceFmeasureV2(
            metric_handlers={
                "si_fm": module.FmeasureHandler(beta=0.3, with_adaptive=True, with_dynamic=True),
                "si_pre": module.PrecisionHandler(
                    with_adaptive=False, with_dynamic=True, sample_based=True
                ),
            }
        ),
    }
    for mask_path in sorted((folder / "masks").iterdir()):
        mask = cv2.imread(str(mask_path), cv2.IMREAD_GRAYSCALE)
        pred = cv2.imread(str(folder / "preds" / mask_path.name), cv2.IMREAD_GRAYSCALE)
        assert mask is not None
        assert pred is not None
        if pred.shape != mask.shape:
            pred = cv2.resize(pred, dsize=mask.shape[::-1], interpolation=cv2.INTER_LINEAR)
        for metric in metrics.values():
            metric.step(pred=pred, gt=mask)
    return {name: metric.get_results() for name, metric in metrics.items()}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of PySODMetrics
def test_a_script_needs_only_another_import(folder: Path) -> None:
    ours, theirs = (evaluate(module, folder) for module in (drop_in, py_sod_metrics))
    assert_same(dict(flatten(ours)), dict(flatten(theirs)), tolerance=1e-9)


def test_a_handler_of_the_user() -> None:
    """Anything with the attributes of a handler, called with the four counts by name."""

    class FalseDiscovery:
        def __init__(self) -> None:
            self.dynamic_results: list[Any] | None = None
            self.adaptive_results: list[Any] | None = []
            self.binary_results = None
            self.sample_based = True

        def __call__(self, tp: Any, fp: Any, tn: Any, fn: Any) -> Any:  # noqa: ARG002
            return fp / (tp + fp)

    metric = drop_in.FmeasureV2({"fdr": FalseDiscovery()})
    metric.step(np.array([[0, 0, 255, 255]], np.uint8), np.array([[0, 0, 0, 255]], np.uint8))
    assert metric.get_results() == {"fdr": {"adaptive": 0.5}}


def test_names_and_signatures_are_those_of_pysodmetrics() -> None:
    exported = {name for name, value in vars(py_sod_metrics).items() if isinstance(value, type)}
    assert set(drop_in.__all__) == exported
    refused = {"CamouflageContextMeasure"}
    for name in exported - refused:
        ours, theirs = getattr(drop_in, name), getattr(py_sod_metrics, name)
        assert parameters(ours) == parameters(theirs), name
        if hasattr(theirs, "step"):
            assert parameters(ours.step) == parameters(theirs.step), name
    for name in ("TNRHandler", "TPRHandler", "SensitivityHandler"):
        assert getattr(drop_in, name).__name__ == getattr(py_sod_metrics, name).__name__


def test_lists_of_values_per_image_have_their_names() -> None:
    for name in (
        "MAE",
        "Smeasure",
        "WeightedFmeasure",
        "Emeasure",
        "ContextMeasure",
        "SizeInvarianceMAE",
    ):
        ours, theirs = getattr(drop_in, name)(), getattr(py_sod_metrics, name)()
        kept = {key for key, value in vars(theirs).items() if isinstance(value, list)}
        assert kept <= {key for key, value in vars(ours).items() if isinstance(value, list)}


GT = np.zeros((4, 5), np.uint8)
READY = np.zeros((4, 5), np.float32)


@pytest.mark.parametrize(
    ("pred", "gt", "normalize", "error", "text"),
    [
        (GT, GT[1:], True, ValueError, r"pred .*\(4, 5\) .* gt .*\(3, 5\)"),
        (GT[None], GT[None], True, ValueError, r"pred .* shape \(1, 4, 5\)"),
        (GT[:0], GT[:0], True, ValueError, "at least one pixel"),
        (GT.astype(complex), GT, True, ValueError, "pred has dtype complex128"),
        (READY, np.full((4, 5), np.nan), True, ValueError, "gt .*maximum nan"),
        (GT, GT > 0, False, TypeError, "pred has dtype uint8"),
        (READY, GT, False, TypeError, "gt uint8"),
        (READY + 2, GT > 0, False, ValueError, "pred has values from 2 to 2"),
        (READY * np.nan, GT > 0, False, ValueError, "pred has values from nan to nan"),
    ],
)
def test_wrong_input(pred: Any, gt: Any, normalize: bool, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        drop_in.MAE().step(pred, gt, normalize=normalize)


def test_wrong_settings() -> None:
    with pytest.raises(ValueError, match="FmeasureV2 has no handler"):
        drop_in.FmeasureV2().step(GT, GT)
    with pytest.raises(ValueError, match="num_levels must be at least 2, got 1"):
        drop_in.MSIoU(True, True, num_levels=1)
    with pytest.raises(ValueError, match=r"relax and epsilon are 3 and 2.0"):
        drop_in.HumanCorrectionEffortMeasure(relax=3)


def test_results_before_the_first_step_are_nan_with_a_warning() -> None:
    with pytest.warns(RuntimeWarning, match=r"before the first step\(\); the result is NaN"):
        assert np.isnan(drop_in.MAE().get_results()["mae"])


def test_what_is_not_provided_says_so() -> None:
    for arguments in ({}, {"beta2": 1.0, "gamma": 4}):  # at construction, before hours of scoring
        with pytest.raises(UsageError, match="CamouflageContextMeasure needs the photograph"):
            drop_in.CamouflageContextMeasure(**arguments)
    assert py_sod_metrics.CamouflageContextMeasure().scores == []  # the advice works

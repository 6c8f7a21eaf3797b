"""The public interface: names, signatures, the time of an import and what it must not load."""

import importlib
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.oracle import FAMILIES as CURVED
from helpers.signatures import parameter_names, parameters

import sisod
from sisod import analysis, paper
from sisod.scoring.metrics import find_metrics

IMPORTS_TORCH = (pytest.mark.slow, pytest.mark.needs("torch", "safetensors", "huggingface_hub"))
SMALL_TOO = {"object_recall", "object_precision", "object_f1"}
OBJECTS = {"n_predicted", "n_false", "n_found", "bsi_iou_binary", "bsi_dice_binary", "bsi_f_binary"} | (
    SMALL_TOO | {f"{key}_small" for key in SMALL_TOO} | {"false_objects", "false_area", "pq", "sq", "rq"}
)
OBJECT_CURVES = {"object_f1_max", "object_f1_max_small", "object_ap"}
DETECTIONS = {"pd", "fa", "niou", "iou_total"}
BOUNDARIES = {"biou", "si_biou", "mba", "hce", "nsd"}


def public_keys() -> set[str]:
    """The keys of DESIGN 4, written out by its own rule."""
    plain = {"mae", "mse", "auc", "s", "wf", "f_max_image"}
    plain |= {f"{name}_{form}" for name in CURVED for form in ("mean", "max", "adaptive", "binary")}
    return plain | {f"si_{key}" for key in plain} | {"msiou", "si_f_max_frame"}


@pytest.mark.parametrize(
    "name",
    [
        *("sisod", "sisod.analysis", "sisod.paper", "sisod.paper.theory", "sisod.compat.pysodmetrics"),
        *(pytest.param(f"sisod.{name}", marks=IMPORTS_TORCH) for name in ("losses", "networks")),
    ],
)
def test_every_public_name_exists_and_is_documented(name: str) -> None:
    module = importlib.import_module(name)
    for public in module.__all__:
        value = getattr(module, public)
        assert not callable(value) or inspect.getdoc(value), f"{name}.{public}"


def test_signatures_are_frozen() -> None:
    assert parameters(sisod.partition) == (
        "gt=None, labels=None, kind=boxes, connectivity=8, min_area=0.0002, alpha=ratio"
    )
    assert parameters(sisod.score) == "pred, gt, protocol=default, metrics=None, partition=None"
    assert parameters(sisod.score_table) == (
        "batch, name=name, pred=prediction, gt=ground_truth, protocol=default, metrics=None, "
        "strict=False, details=False"
    )
    assert parameters(sisod.combine_scores) == "tables"
    assert parameters(sisod.evaluate) == (
        "pred_dir, gt_dir, protocol=default, metrics=None, jobs=None, out=None, pred_suffix=, "
        "gt_suffix=, names=None, labels=False, category=None, allow_missing=False, strict=False, "
        "resume=False, overwrite=False, "
        "cluster=None"
    )
    assert parameters(sisod.evaluate_benchmark) == (
        "file, out, protocol=None, metrics=None, jobs=None, names=None, allow_missing=False, "
        "strict=False, resume=False, overwrite=False, cluster=None"
    )
    assert parameter_names(sisod.CustomMetric) == "function, key, title, direction, si, imported_as"
    assert parameters(sisod.register_metric) == "metric"
    assert parameters(sisod.Evaluator) == "protocol=default, metrics=None"
    assert parameters(sisod.Evaluator.update) == "self, pred, gt, name=None, partition=None"


def test_signatures_of_the_analysis_are_frozen() -> None:
    assert parameter_names(analysis.by_size) == "evaluation, groups"
    assert parameter_names(analysis.by_number) == "evaluation, metrics"
    assert parameter_names(analysis.error_breakdown) == "evaluation, by, groups"
    assert parameter_names(analysis.rank_changes) == "evaluations, keys"
    assert parameter_names(analysis.compare) == "a, b, metrics, resamples, seed, names"
    assert parameter_names(analysis.compare_many) == "evaluations, metrics, resamples, seed"
    assert parameter_names(analysis.bootstrap_intervals) == "evaluation, metrics, resamples, seed"
    assert parameter_names(paper.row) == "dataset, network, size_invariant"
    assert parameter_names(paper.against_paper) == "evaluation, published"


def test_keys_are_those_of_the_design() -> None:
    assert list(sisod.PROTOCOLS) == [
        *("default", "paper", "pysodmetrics", "infrared", "cc", "official", "official-metric")
    ]
    assert set(sisod.METRICS) == public_keys() | OBJECTS | OBJECT_CURVES | DETECTIONS | BOUNDARIES
    assert set(find_metrics("all")) == public_keys() | OBJECTS | OBJECT_CURVES | BOUNDARIES
    pixels = {"s", "wf", "msiou", "si_s", "si_wf"}
    assert set(find_metrics(None)) == (public_keys() - pixels) | OBJECTS
    assert set(find_metrics(None, detections=True)) == (public_keys() - pixels) | OBJECTS | DETECTIONS
    assert find_metrics("paper") == (
        "mae", "si_mae", "auc", "si_auc",
        "f_mean", "si_f_mean", "f_max_image", "si_f_max_frame", "e_mean",
    )  # fmt: skip
    assert find_metrics("dis") == ("s", "wf", "f_max", "e_mean", "mae", "hce", "biou", "mba")
    assert find_metrics("sod") == (
        "s", "wf", "e_mean", "e_max", "e_adaptive", "f_mean", "f_max", "f_adaptive", "mae",
    )  # fmt: skip


def test_direction_is_data() -> None:
    down = {key for key, metric in sisod.METRICS.items() if metric.direction == "down"}
    of_objects = {"n_false", "false_objects", "false_area", "fa"}
    names = {key.removeprefix("si_").split("_")[0] for key in down - of_objects}
    assert names >= {"mae", "mse", "fpr", "ber", "hce"}
    assert not names & {"f", "precision", "recall", "iou", "dice", "accuracy", "specificity", "kappa"}
    assert not names & {"e", "auc", "s", "wf", "msiou", "biou", "mba", "nsd"}
    assert of_objects <= down
    assert [k for k, metric in sisod.METRICS.items() if metric.direction == "none"] == ["n_predicted"]


@pytest.mark.slow
def test_import_is_light(tmp_path: Path) -> None:
    code = (
        # seconds of this process, whatever else the machine is doing
        "import sys, time; t = time.process_time(); import sisod; took = time.process_time() - t;"
        "heavy = {'torch', 'matplotlib', 'polars', 'scipy', 'typer'} & set(sys.modules);"
        "print(took, *heavy)"
    )
    # an installed package has its bytecode; the first run writes it, the others are measured
    env = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)  # noqa: S603
        for _ in range(3)
    ]
    assert [run.stdout.split()[1:] for run in runs] == [[]] * 3
    assert min(float(run.stdout.split()[0]) for run in runs[1:]) < 0.5

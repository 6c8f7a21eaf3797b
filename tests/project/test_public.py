"""The public interface: names, signatures, the time of an import and what it must not load."""

import subprocess
import sys

import pytest
from helpers.signatures import parameter_names, parameters

import sisod
from sisod import analysis, networks, paper
from sisod.analysis import comparison
from sisod.compat import pysodmetrics
from sisod.paper import theory
from sisod.scoring.metrics import find_metrics

CURVED = (
    "f",
    "precision",
    "recall",
    "iou",
    "dice",
    "specificity",
    "fpr",
    "ber",
    "kappa",
    "accuracy",
    "e",
)


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


def test_names_are_frozen() -> None:
    assert sorted(sisod.__all__) == [
        "CustomMetric",
        "Evaluation",
        "Evaluator",
        "Frame",
        "METRICS",
        "PROTOCOLS",
        "Partition",
        "Protocol",
        "__version__",
        "combine_scores",
        "evaluate",
        "evaluate_benchmark",
        "make_composite",
        "make_separable",
        "partition",
        "register_metric",
        "score",
        "score_table",
        "weight_map",
    ]
    assert all(hasattr(sisod, name) for name in sisod.__all__)


def test_names_of_the_theory_are_frozen() -> None:
    assert sorted(theory.__all__) == [
        "AucDecomposition",
        "Bound",
        "Decomposition",
        "PIXEL_LIPSCHITZ",
        "PredictorPair",
        "Reattention",
        "Shares",
        "Sides",
        "decompose",
        "decompose_auc",
        "dice_lipschitz",
        "f_limit",
        "generalization_bound",
        "next_frame_limit",
        "proposition_3_3",
        "proposition_4_1",
        "proposition_b_1",
        "salient_shares",
        "separable_lipschitz",
        "sharp_dice_lipschitz",
        "single_object",
        "squared_dice_lipschitz",
    ]
    assert all(hasattr(theory, name) for name in theory.__all__)


def test_names_of_the_drop_in_are_frozen() -> None:
    """The names that PySODMetrics 1.6.2 exports; tests/compat compares them with the package itself."""
    of_counts = (
        *("BER", "DICE", "FPR", "Fmeasure", "IOU", "Kappa", "OverallAccuracy", "Precision"),
        *("Recall", "Sensitivity", "Specificity", "TNR", "TPR"),
    )
    assert sorted(pysodmetrics.__all__) == sorted(
        [
            *(f"{name}Handler" for name in of_counts),
            "CamouflageContextMeasure",
            "ContextMeasure",
            "Emeasure",
            "Fmeasure",
            "FmeasureV2",
            "HumanCorrectionEffortMeasure",
            "MAE",
            "MSIoU",
            "SizeInvarianceFmeasureV2",
            "SizeInvarianceMAE",
            "Smeasure",
            "WeightedFmeasure",
        ]
    )
    assert all(hasattr(pysodmetrics, name) for name in pysodmetrics.__all__)


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


@pytest.mark.needs("torch", "safetensors", "huggingface_hub")
def test_networks_are_frozen() -> None:
    assert sorted(networks.__all__) == [
        "InputSpec",
        "Network",
        "create",
        "find",
        "from_pretrained",
        "load_published",
        "names",
        "wrap",
    ]
    assert all(hasattr(networks, name) for name in networks.__all__)
    assert parameter_names(networks.wrap) == (
        "module, size, mean, std, output, activation, normalize, channel"
    )


def test_analysis_is_frozen() -> None:
    assert sorted(analysis.__all__) == [
        "Comparison",
        "MaskStatistics",
        "RankChanges",
        "bootstrap_intervals",
        "by_number",
        "by_size",
        "compare",
        "compare_many",
        "error_breakdown",
        "found_curve",
        "kendall_tau",
        "mask_statistics",
        "object_curve",
        "predicted_by_size",
        "rank_changes",
        "size_bias",
        "size_edges",
    ]
    assert all(hasattr(analysis, name) for name in analysis.__all__)
    assert parameter_names(analysis.size_edges) == "kind, shares"
    assert parameter_names(analysis.by_size) == "evaluation, groups"
    assert parameter_names(analysis.by_number) == "evaluation, metrics"
    assert parameter_names(analysis.found_curve) == parameter_names(analysis.size_bias) == "evaluation"
    assert parameter_names(analysis.predicted_by_size) == "evaluation, groups"
    assert parameter_names(analysis.object_curve) == "evaluation"
    assert parameter_names(analysis.error_breakdown) == "evaluation, by, groups"
    assert parameter_names(analysis.rank_changes) == "evaluations, keys"
    assert parameter_names(comparison.compare) == "a, b, metrics, resamples, seed, names"
    assert parameter_names(comparison.compare_many) == "evaluations, metrics, resamples, seed"
    assert parameter_names(comparison.bootstrap_intervals) == "evaluation, metrics, resamples, seed"
    assert parameter_names(paper.row) == "dataset, network, size_invariant"
    assert parameter_names(paper.against_paper) == "evaluation, published"
    assert list(sisod.PROTOCOLS) == ["default", "paper", "pysodmetrics", "infrared", "cc", "official"]


def test_keys_are_those_of_the_design() -> None:
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
    assert names == {"mae", "mse", "fpr", "ber", "hce"}
    assert of_objects <= down
    assert [k for k, metric in sisod.METRICS.items() if metric.direction == "none"] == ["n_predicted"]


@pytest.mark.parametrize("wrong", ["si_maee", ["mae", "nope"]])
def test_unknown_metric_names_the_nearest(wrong: str | list[str]) -> None:
    with pytest.raises(ValueError, match=r"unknown metric '(si_maee'; did you mean 'si_mae'|nope')"):
        find_metrics(wrong)


def test_import_is_light() -> None:
    code = (
        # seconds of this process, whatever else the machine is doing
        "import sys, time; t = time.process_time(); import sisod; took = time.process_time() - t;"
        "heavy = {'torch', 'matplotlib', 'polars', 'scipy', 'typer'} & set(sys.modules);"
        "print(took, *heavy)"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
        for _ in range(3)
    ]
    assert [run.stdout.split()[1:] for run in runs] == [[]] * 3
    assert min(float(run.stdout.split()[0]) for run in runs) < 0.5

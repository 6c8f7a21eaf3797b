"""Write `tests/scoring/golden.json`: the scores that outside tools give to `synthetic_maps`.

Run it with the versions that `golden.json` names: `python tools/make_golden.py`.
"""

import importlib.metadata
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

GOLDEN_PATH = Path(__file__).parents[1] / "tests" / "scoring" / "golden.json"
FAMILIES = ("f", "precision", "recall", "iou", "dice", "specificity", "fpr", "ber", "accuracy")


def synthetic_maps() -> dict[str, tuple[NDArray[np.uint8], NDArray[np.bool_]]]:
    """Return predictions and ground truths by name, from formulas: no random numbers, no files."""
    y, x = np.mgrid[:24, :32]
    disc = (y - 9) ** 2 + (x - 10) ** 2 <= 36
    bar = (y >= 17) & (y < 21) & (x >= 19) & (x < 29)
    speck = (y == 2) & (x == 28)
    waves = (y * 37 + x * 101 + y * x * 7) % 256
    fades = np.clip(230 - 12 * np.abs(y - 10) - 9 * np.abs(x - 12), 4, None)
    split = np.where(x < 16, fades, 90 + (waves % 80))
    return {
        "waves": (waves.astype(np.uint8), disc),
        "fades": (fades.astype(np.uint8), disc | bar),
        "split": (split.astype(np.uint8), disc | bar | speck),
    }


def golden_values(pred: NDArray[np.uint8], gt: NDArray[np.bool_]) -> dict[str, float]:
    """Return the scores of one pair: kappa and AUC by scikit-learn, all others by PySODMetrics."""
    import py_sod_metrics as peer
    from sklearn.metrics import cohen_kappa_score, roc_auc_score

    def results(metric: Any) -> Any:
        metric.step(pred, gt.astype(np.uint8) * 255)
        return metric.get_results()

    def handlers(names: tuple[str, ...]) -> dict[str, Any]:
        kinds = {
            "f": peer.FmeasureHandler,
            "precision": peer.PrecisionHandler,
            "recall": peer.RecallHandler,
            "iou": peer.IOUHandler,
            "dice": peer.DICEHandler,
            "specificity": peer.SpecificityHandler,
            "fpr": peer.FPRHandler,
            "ber": peer.BERHandler,
            "accuracy": peer.OverallAccuracyHandler,
        }
        return {name: kinds[name](True, True, with_binary=True) for name in names}

    p = (pred / 255 - pred.min() / 255) / (pred.max() / 255 - pred.min() / 255)
    values = {
        "mae": results(peer.MAE())["mae"],
        "s": results(peer.Smeasure())["sm"],
        "wf": results(peer.WeightedFmeasure())["wfm"],
        "msiou": results(peer.MSIoU(False, False, with_binary=True))["binary"],
        "kappa_binary": cohen_kappa_score(gt.ravel(), p.ravel() > 0.5),
        "auc": roc_auc_score(gt.ravel(), (p.ravel() * 255).astype(np.uint8)),
        "pysodmetrics si_mae": results(peer.SizeInvarianceMAE())["si_mae"],
    }
    e = results(peer.Emeasure())["em"]
    values |= {"e_mean": e["curve"].mean(), "e_max": e["curve"].max(), "e_adaptive": e["adp"]}
    for name, result in results(peer.FmeasureV2(handlers(FAMILIES))).items():
        values[f"{name}_mean"] = result["dynamic"].mean()
        values[f"{name}_max"] = result["dynamic"].max()
        values[f"{name}_adaptive"] = result["adaptive"]
        values[f"{name}_binary"] = result["binary"]
    framed = results(peer.SizeInvarianceFmeasureV2(handlers(("f", "iou"))))
    for name, result in framed.items():
        curve = result["dynamic"][0].mean(axis=0)[:-1]  # from t = 255 down; without t = 0
        values[f"pysodmetrics si_{name}_mean"] = curve.mean()
        values[f"pysodmetrics si_{name}_max"] = curve.max()
    return {key: float(value) for key, value in values.items()}


def golden() -> dict[str, Any]:
    """Return the content of the file: how it was made, and the values."""
    tools = ("pysodmetrics", "scikit-learn", "numpy", "scipy", "scikit-image")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tools' own
        values = {name: golden_values(pred, gt) for name, (pred, gt) in synthetic_maps().items()}
    return {
        "command": "python tools/make_golden.py",
        "maps": "synthetic_maps() of tools/make_golden.py; boolean ground truth given as 0 and 255",
        "tools": {
            "kappa_binary, auc": "scikit-learn",
            "all others": "pysodmetrics",
            "prefix pysodmetrics": "its size-invariant classes; ours under that protocol, t >= 1",
        },
        "versions": {tool: importlib.metadata.version(tool) for tool in tools},
        "tolerance": 1e-9,
        "values": values,
    }


if __name__ == "__main__":
    GOLDEN_PATH.write_text(json.dumps(golden(), indent=1) + "\n", encoding="utf-8")

"""Write `tests/scoring/object_golden.json`: what outside tools say of objects on `helpers.object_maps`.

The tools need NumPy below 2, so they have an environment of their own:

    python -m venv witness
    witness/bin/python -m pip install panoptica==2.1.7 pyirstdmetrics==1.0.2 CCMetrics==0.0.3 'numpy<2'
    PYTHONPATH=tests witness/bin/python tools/make_object_golden.py [--data ROOT]

ROOT/MSOD has the folders mask and prediction; without --data the stored values of real maps are kept.

How each tool is called so that its definition is ours:

- pyirstdmetrics: as it is. It thresholds at p > 0.5, labels 8-connected, and wants a distance below 3.
- panoptica: it matches at IoU >= 0.5 by default, `strict_threshold=True` makes it > 0.5. By default
  SciPy labels two-dimensional input, 4-connected; the backend cc3d is 8-connected. Both are recorded.
  PQ is of one image; that of a data set is computed here, from sums of its TP, FP, FN and IoU.
- CCMetrics: one slice is a volume of depth 1, where 26-connected is 8-connected. A pixel equally near to
  several objects falls to whichever SciPy's distance transform names ("cc_dice"); the package's
  older `compute_voronoi_regions` gives it to the first object, as we do ("cc_dice first").
"""

import argparse
import importlib.metadata
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from helpers.object_maps import Map, Mask, digest, object_maps, resized

GOLDEN_PATH = Path(__file__).parents[1] / "tests" / "scoring" / "object_golden.json"
TOOLS = ("panoptica", "pyirstdmetrics", "CCMetrics", "numpy", "scipy", "scikit-image")
N_REAL = 20
Values = dict[str, float | None]


def golden(data: Path | None) -> dict[str, Any]:
    """Return the content of the file: how it was made, and the values."""
    maps = object_maps()
    random = {name: pair for name, pair in maps.items() if name.startswith("random")}
    real = real_maps(data / "MSOD") if data else {}
    return {
        "command": "PYTHONPATH=tests python tools/make_object_golden.py --data ROOT",
        "versions": {tool: importlib.metadata.version(tool) for tool in TOOLS},
        "tolerance": 1e-9,
        "digests": _stored("digests") | {name: digest(*pair) for name, pair in (maps | real).items()},
        "values": {name: image_values(*pair) for name, pair in maps.items()},
        "sums": {"random": set_values(random), "all": set_values(maps)},
        "real": {name: image_values(*pair) for name, pair in real.items()} if real else _stored("real"),
        "real sums": set_values(real) if real else _stored("real sums"),
    }


def real_maps(folder: Path) -> dict[str, tuple[Map, Mask]]:
    """Return the first pairs of MSOD where both files are grey; maps at the size of the mask."""
    from PIL import Image

    pairs: dict[str, tuple[Map, Mask]] = {}
    for path in sorted((folder / "mask").glob("*.png")):
        mask, pred = Image.open(path), Image.open(folder / "prediction" / path.name)
        if mask.mode == pred.mode == "L":
            gt = np.asarray(mask) >= 128
            pairs[path.name] = (resized(np.asarray(pred), gt.shape), gt)
        if len(pairs) == N_REAL:
            break
    return pairs


def image_values(pred: Map, gt: Mask) -> Values:
    """Return what the tools say of one image."""
    values = pyirstd_values({"": (pred, gt)}) | panoptica_values(pred, gt) | cc_values(pred, gt)
    return _as_json(values)


def set_values(maps: Mapping[str, tuple[Map, Mask]]) -> Values:
    """Return what the tools say of a data set."""
    values = pyirstd_values(maps)
    for prefix in ("", "4-connected "):
        images = [panoptica_values(pred, gt) for pred, gt in maps.values()]
        tp, fp, fn = (sum(image[prefix + key] for image in images) for key in ("tp", "fp", "fn"))
        matched_iou = sum(
            image[f"{prefix}sq"] * image[f"{prefix}tp"] for image in images if image[f"{prefix}tp"]
        )
        values[f"{prefix}rq"] = tp / (tp + fp / 2 + fn / 2)
        values[f"{prefix}sq"] = matched_iou / tp
        values[f"{prefix}pq"] = values[f"{prefix}sq"] * values[f"{prefix}rq"]
    return _as_json(values)


def pyirstd_values(maps: Mapping[str, tuple[Map, Mask]]) -> dict[str, float]:
    """Return Pd, Fa, nIoU and the IoU of summed counts."""
    import py_irstd_metrics as peer

    detections = peer.ProbabilityDetectionAndFalseAlarmRate()
    handlers = {
        "niou": peer.IoUHandler(with_dynamic=False, with_binary=True, sample_based=True),
        "iou_total": peer.IoUHandler(with_dynamic=False, with_binary=True, sample_based=False),
    }
    pixels = peer.CMMetrics(metric_handlers=handlers)
    for pred, gt in maps.values():
        detections.update(pred / 255, gt)
        pixels.update(pred / 255, gt)
    rates, scores = detections.get(), pixels.get()
    return {
        "pd": float(rates["probability_detection"][0]),
        "fa": float(rates["false_alarm"][0]),
        "niou": float(scores["niou"]["binary"]),
        "iou_total": float(scores["iou_total"]["binary"]),
    }


def panoptica_values(pred: Map, gt: Mask) -> dict[str, float]:
    """Return PQ, SQ, RQ and the counts: 8-connected, 4-connected, and with its own rule IoU >= 0.5."""
    from panoptica import (
        ConnectedComponentsInstanceApproximator,
        InputType,
        Metric,
        NaiveThresholdMatching,
        Panoptica_Evaluator,
    )
    from panoptica.utils.constants import CCABackend

    def evaluate(backend: Any, *, strict: bool) -> Any:
        evaluator = Panoptica_Evaluator(
            expected_input=InputType.SEMANTIC,
            instance_approximator=ConnectedComponentsInstanceApproximator(cca_backend=backend),
            instance_matcher=NaiveThresholdMatching(strict_threshold=strict),
            instance_metrics=[Metric.IOU],
            global_metrics=[],
        )
        binary = (pred > 127).astype(np.uint8)
        return evaluator.evaluate(binary, gt.astype(np.uint8), verbose=False)["ungrouped"]

    values = {}
    for prefix, backend in (("", CCABackend.cc3d), ("4-connected ", CCABackend.scipy)):
        result = evaluate(backend, strict=True)
        for key in ("pq", "sq", "rq", "tp", "fp", "fn"):
            values[prefix + key] = float(getattr(result, key))
    values["pq at least one half"] = float(evaluate(CCABackend.cc3d, strict=False).pq)
    return values


def cc_values(pred: Map, gt: Mask) -> dict[str, float]:
    """Return CC-Dice with both rules for pixels that are equally near to several objects."""
    from CCMetrics import CCDiceMetric
    from CCMetrics.space_separation import compute_voronoi_regions

    def one_hot(mask: Mask) -> Any:
        return np.stack([~mask, mask]).astype(np.float64)[None, :, None]

    values = {}
    for name, separate in (("cc_dice", None), ("cc_dice first", compute_voronoi_regions)):
        metric = CCDiceMetric(cc_reduction="patient")
        metric.space_separation = separate or metric.space_separation
        metric(y_pred=one_hot(pred > 127), y=one_hot(gt))
        values[name] = float(metric.cc_aggregate()[0])
    return values


def _as_json(values: Mapping[str, float]) -> Values:
    return {key: None if math.isnan(value) else value for key, value in values.items()}


def _stored(key: str) -> Any:
    return json.loads(GOLDEN_PATH.read_text(encoding="utf-8"))[key] if GOLDEN_PATH.exists() else {}


def main() -> None:
    """Read the arguments and write the file."""
    parser = argparse.ArgumentParser(description="Write the values of outside tools.")
    parser.add_argument("--data", type=Path, help="folder that has MSOD/mask and MSOD/prediction")
    content = golden(parser.parse_args().data)
    GOLDEN_PATH.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

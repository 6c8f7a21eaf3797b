"""Write `tests/scoring/boundary_golden.json`: what outside tools say of boundaries.

The maps are those of `helpers.object_maps`. The tools need different versions of NumPy, so each is run
in an environment of its own and replaces its own values:

    python -m pip install faster-coco-eval==1.8.0 scipy
    PYTHONPATH=tests python tools/make_boundary_golden.py faster-coco-eval
    python -m pip install pysodmetrics==1.6.2
    PYTHONPATH=tests python tools/make_boundary_golden.py pysodmetrics
    python -m pip install monai==1.6.1 scipy
    PYTHONPATH=tests python tools/make_boundary_golden.py monai
    python -m pip install opencv-python-headless
    PYTHONPATH=tests python tools/make_boundary_golden.py opencv-python-headless

How each tool is called so that its definition is ours (maps are not stretched, predicted is v > 127):

- faster-coco-eval: `rleToBoundary` of both masks, and `iou` of the two boundaries. "si_biou": the same
  on the box of each 8-connected component, then the mean.
- PySODMetrics: `HumanCorrectionEffortMeasure` as it is, `normalize=False`.
- MONAI: `compute_surface_dice`, threshold 2 % of the diagonal.
- opencv-python-headless: the published evaluation of mean boundary accuracy (Cheng et al., CVPR 2020) is
  a script; `restated_mba` says the same.
"""

import argparse
import importlib.metadata
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from helpers.object_maps import Mask, boundary_maps, digest

GOLDEN_PATH = Path(__file__).parents[1] / "tests" / "scoring" / "boundary_golden.json"


def boundary_values(pred: Mask, gt: Mask) -> dict[str, float]:
    """Return boundary IoU of the image, and its mean over the boxes of components."""
    from scipy import ndimage

    labels, _ = ndimage.label(gt, np.ones((3, 3)))
    windows = ndimage.find_objects(labels)
    frames = [_boundary_iou(pred[window], gt[window]) for window in windows]
    return {"biou": _boundary_iou(pred, gt), "si_biou": float(np.mean(frames)) if frames else math.nan}


def _boundary_iou(pred: Mask, gt: Mask) -> float:
    from faster_coco_eval.core import mask as masks

    pred_band, gt_band = (
        masks.rleToBoundary(masks.encode(np.asfortranarray(mask.astype(np.uint8))), 0.02)
        for mask in (pred, gt)
    )
    return float(masks.iou([pred_band], [gt_band], [False])[0][0])


def effort_values(pred: Mask, gt: Mask) -> dict[str, float]:
    """Return the human correction effort."""
    import py_sod_metrics

    measure = py_sod_metrics.HumanCorrectionEffortMeasure()
    measure.step(pred.astype(np.float64), gt, normalize=False)
    return {"hce": float(measure.get_results()["hce"])}


def surface_values(pred: Mask, gt: Mask) -> dict[str, float]:
    """Return the normalised surface distance."""
    import torch
    from monai.metrics import compute_surface_dice

    one_hot = (torch.from_numpy(np.stack([~mask, mask]))[None] for mask in (pred, gt))
    return {"nsd": float(compute_surface_dice(*one_hot, [0.02 * math.hypot(*gt.shape)])[0, 0])}


def restated_mba(pred: Mask, gt: Mask) -> dict[str, float]:
    """Return the mean boundary accuracy, by the steps of the published script."""
    import cv2

    height, width = gt.shape
    accuracies = []
    for step in range(5):
        radius = 1 + int(((width + height) / 300 - 1) / 5 * step)
        disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1))
        region = np.asarray(cv2.morphologyEx(gt.astype(np.uint8), cv2.MORPH_GRADIENT, disc)) > 0
        accuracies.append(np.mean(pred[region] == gt[region]) if region.any() else math.nan)
    return {"mba": float(np.mean(accuracies))}


TOOLS: dict[str, Callable[[Mask, Mask], dict[str, float]]] = {
    "faster-coco-eval": boundary_values,
    "pysodmetrics": effort_values,
    "monai": surface_values,
    "opencv-python-headless": restated_mba,
}


def tool_values(tool: str) -> dict[str, dict[str, float | None]]:
    """Return what a tool says of each pair; None for NaN."""
    pairs = boundary_maps()
    values = {name: TOOLS[tool](pred > 127, gt) for name, (pred, gt) in pairs.items()}
    return {
        name: {key: None if math.isnan(value) else value for key, value in row.items()}
        for name, row in values.items()
    }


def main() -> None:
    """Read the name of the tool, and replace its values in the file."""
    parser = argparse.ArgumentParser(description="Write the values of an outside tool.")
    parser.add_argument("tool", choices=TOOLS)
    tool = parser.parse_args().tool
    content: dict[str, Any] = {"versions": {}, "values": {}}
    if GOLDEN_PATH.exists():
        content = json.loads(GOLDEN_PATH.read_text(encoding="utf-8"))
    content |= {
        "command": "PYTHONPATH=tests python tools/make_boundary_golden.py TOOL",
        "tolerance": 1e-6,  # MONAI returns float32
        "digests": {name: digest(*pair) for name, pair in boundary_maps().items()},
    }
    content["versions"][tool] = importlib.metadata.version(tool)
    content["values"][tool] = tool_values(tool)
    GOLDEN_PATH.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

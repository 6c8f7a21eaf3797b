"""panoptica and pyirstdmetrics, timed in an interpreter of their own: they need NumPy below 2.

`benchmarks.speed.objects` starts `PYTHON object_peers.py MAPS`, where MAPS is an .npz file of uint8
predictions and ground truths, and writes lines "tool index". Each is answered with a line of JSON: the
seconds of that tool on that pair, and its values. Nothing of this project is imported here.
"""

import gc
import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np
import py_irstd_metrics
from numpy.typing import NDArray
from panoptica import (
    ConnectedComponentsInstanceApproximator,
    InputType,
    Metric,
    NaiveThresholdMatching,
    Panoptica_Evaluator,
)
from panoptica.utils.citation_reminder import disable_citation_reminder
from panoptica.utils.constants import CCABackend

Array = NDArray[Any]
PACKAGES = ("panoptica", "pyirstdmetrics", "numpy", "scipy", "scikit-image")


def panoptica_call() -> Callable[[Array, Array], dict[str, float]]:
    """Return the function that computes PQ, SQ and RQ: 8-connected, matches at IoU > 0.5."""
    evaluator = Panoptica_Evaluator(
        expected_input=InputType.SEMANTIC,
        instance_approximator=ConnectedComponentsInstanceApproximator(cca_backend=CCABackend.cc3d),
        instance_matcher=NaiveThresholdMatching(strict_threshold=True),
        instance_metrics=[Metric.IOU],
        global_metrics=[],
    )

    def call(pred: Array, gt: Array) -> dict[str, float]:
        binary = (pred > 127).astype(np.uint8)
        result = evaluator.evaluate(binary, (gt > 127).astype(np.uint8), verbose=False)["ungrouped"]
        return {"pq": result.pq, "sq": result.sq, "rq": result.rq}

    return call


def pyirstd_call(pred: Array, gt: Array) -> dict[str, float]:
    """Compute Pd, Fa and the IoU of one image."""
    detections = py_irstd_metrics.ProbabilityDetectionAndFalseAlarmRate()
    handler = py_irstd_metrics.IoUHandler(with_dynamic=False, with_binary=True)
    pixels = py_irstd_metrics.CMMetrics(metric_handlers={"niou": handler})
    p, mask = pred / 255, gt > 127
    detections.update(p, mask)
    pixels.update(p, mask)
    rates = detections.get()
    return {
        "pd": rates["probability_detection"][0],
        "fa": rates["false_alarm"][0],
        "niou": pixels.get()["niou"]["binary"],
    }


def main() -> None:
    """Say the versions, then answer until the input ends."""
    answers, sys.stdout = sys.stdout, sys.stderr  # what the tools print is no answer
    disable_citation_reminder()
    calls = {"panoptica": panoptica_call(), "pyirstdmetrics": pyirstd_call}
    with np.load(sys.argv[1]) as maps:
        preds, gts = maps["preds"], maps["gts"]
    print(json.dumps({name: version(name) for name in PACKAGES}), file=answers, flush=True)
    gc.disable()
    for line in sys.stdin:
        tool, index = line.split()
        start = time.perf_counter()
        values = calls[tool](preds[int(index)], gts[int(index)])
        seconds = time.perf_counter() - start
        content = {"seconds": seconds, "values": {key: float(value) for key, value in values.items()}}
        print(json.dumps(content), file=answers, flush=True)
        gc.collect()


if __name__ == "__main__":
    main()

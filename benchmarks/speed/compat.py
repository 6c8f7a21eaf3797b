"""Speed of the drop-in for PySODMetrics: processor time of the same script with either import line.

`python -m benchmarks.speed.compat` prints the table and writes `compat.json` and `compat.md` to
`benchmarks/results`; with `--quick` it measures less and writes nothing. The two packages take turns on
every map, on one thread. Both compute the same numbers, which is checked first.
"""

import os

# read when numpy is first imported
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import gc
import statistics
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from types import ModuleType
from typing import Any

import cv2
import numpy as np
import py_sod_metrics

from benchmarks.speed.synthetic_maps import Grey, Pair, make_pairs
from benchmarks.timing import duration, machine, markdown, progress, write_results
from sisod.compat import pysodmetrics

HEAD = ("metrics", "before: `py_sod_metrics`", "after: `sisod.compat.pysodmetrics`", "times faster")
MODULES: dict[str, ModuleType] = {"before": py_sod_metrics, "after": pysodmetrics}
_PACKAGES = ("sisod", "numpy", "opencv-python-headless", "scipy", "scikit-image", "pysodmetrics")
_HANDLERS = (
    *("FmeasureHandler", "PrecisionHandler", "RecallHandler", "IOUHandler", "DICEHandler"),
    *("OverallAccuracyHandler", "SpecificityHandler", "FPRHandler", "BERHandler", "KappaHandler"),
)
_FIVE = ("Smeasure", "WeightedFmeasure", "Emeasure", "Fmeasure", "MAE")


def five(module: Any) -> list[Any]:
    """Return the metrics of most tables."""
    return [getattr(module, name)() for name in _FIVE]


def handlers(module: Any) -> list[Any]:
    """Return the metrics of confusion matrices, in all forms."""
    return [module.FmeasureV2(_handlers(module))]


def size_invariant(module: Any) -> list[Any]:
    """Return the size-invariant metrics, in all forms."""
    return [module.SizeInvarianceMAE(), module.SizeInvarianceFmeasureV2(_handlers(module))]


def together(module: Any) -> list[Any]:
    """Return all metrics above, fed with the same arrays."""
    return [*five(module), *handlers(module), *size_invariant(module)]


def multiscale(module: Any) -> list[Any]:
    """Return multi-scale IoU, in all forms."""
    return [module.MSIoU(with_dynamic=True, with_adaptive=True, with_binary=True)]


def correction(module: Any) -> list[Any]:
    """Return the human correction effort."""
    return [module.HumanCorrectionEffortMeasure()]


def context(module: Any) -> list[Any]:
    """Return the context-measure."""
    return [module.ContextMeasure()]


@dataclass(frozen=True)
class Case:
    """A line of the table: a title, the metrics, and how much of the work is measured."""

    title: str
    metrics: Callable[[Any], list[Any]]
    share: float = 1.0


CASES = (
    Case("S, weighted F, E, F and MAE", five),
    Case("`FmeasureV2` with ten handlers", handlers),
    Case("`SizeInvarianceMAE`, `SizeInvarianceFmeasureV2` with ten handlers", size_invariant),
    Case("all of these", together),
    Case("`HumanCorrectionEffortMeasure`", correction, 0.5),
    Case("`ContextMeasure`", context, 0.5),
    Case("`MSIoU` at all thresholds", multiscale, 0.1),
)


@dataclass(frozen=True)
class Timing:
    """Seconds of the processor per map, and the number of maps and of repetitions."""

    title: str
    before: float
    after: float
    maps: int
    repetitions: int


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and unless quick write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few maps, nothing written")
    quick = parser.parse_args(arguments).quick
    cv2.setNumThreads(1)
    warnings.simplefilter("ignore")  # PySODMetrics calls deprecated functions
    pairs = make_pairs(1 if quick else 24)
    timings = [measure(case, pairs, repetitions=1 if quick else 7) for case in CASES]
    content = {"timings": [asdict(timing) for timing in timings], "machine": machine(_PACKAGES)}
    print(page(content), end="")
    if not quick:
        write_results("compat", content, page(content))


def measure(case: Case, pairs: Sequence[Pair], *, repetitions: int) -> Timing:
    """Return the mean over maps of the median seconds of either package."""
    progress(case.title)
    chosen = pairs[: max(1, round(case.share * len(pairs)))]
    rounds = max(1, round(case.share * repetitions))
    check_agreement(case, chosen[-1])
    medians: dict[str, list[float]] = {name: [] for name in MODULES}
    for index, pair in enumerate(chosen):
        seconds: dict[str, list[float]] = {name: [] for name in MODULES}
        for repetition in range(rounds):
            names = list(MODULES) if (index + repetition) % 2 else list(MODULES)[::-1]
            # another map in every round: the drop-in must not know it from the last one
            pred = pair.pred.copy()
            pred[0, 0] ^= 1 + repetition % 2
            for name in names:
                call = partial(step_all, case, MODULES[name], pred, pair.gt)
                seconds[name].append(processor_seconds(call))
        for name, values in seconds.items():
            medians[name].append(statistics.median(values))
    means = {name: statistics.fmean(values) for name, values in medians.items()}
    return Timing(case.title, means["before"], means["after"], len(chosen), rounds)


def step_all(case: Case, module: ModuleType, pred: Grey, gt: Grey) -> list[Any]:
    """Create the metrics and feed all of them with one pair."""
    metrics = case.metrics(module)
    for metric in metrics:
        metric.step(pred, gt)
    return metrics


def processor_seconds(call: Callable[[], object]) -> float:
    """Return the processor time of a call: others may use the machine."""
    gc.disable()
    try:
        start = time.process_time()
        call()
        return time.process_time() - start
    finally:
        gc.enable()


def check_agreement(case: Case, pair: Pair) -> None:
    """Make sure that both packages compute the same numbers; kappa of one is wrong."""
    results = []
    for module in MODULES.values():
        metrics = step_all(case, module, pair.pred, pair.gt)
        results.append([_numbers(metric.get_results()) for metric in metrics])
    for theirs, ours in zip(*results, strict=True):
        # float16 of PySODMetrics rounds the counts of multi-scale IoU
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6 if case.share > 0.2 else 1e-3)


def _numbers(content: Any) -> Any:
    if isinstance(content, dict):
        parts = [_numbers(value) for key, value in content.items() if key != "KappaHandler"]
        return np.concatenate(parts) if parts else np.empty(0)
    return (
        np.concatenate([np.ravel(value) for value in content])
        if isinstance(content, list)
        else np.ravel(content)
    )


def _handlers(module: Any) -> dict[str, Any]:
    return {
        name: getattr(module, name)(with_dynamic=True, with_adaptive=True, with_binary=True)
        for name in _HANDLERS
    }


def page(content: Mapping[str, Any]) -> str:
    """What compat.md says, from what compat.json holds."""
    timings = [Timing(**timing) for timing in content["timings"]]
    rows = [
        [
            timing.title,
            duration(timing.before),
            duration(timing.after),
            f"{timing.before / timing.after:.3g}",
        ]
        for timing in timings
    ]
    head = (
        "Made by `python -m benchmarks.speed.compat`: processor time per map of 300 x 400 with 1 to 8 "
        "objects, one thread."
    )
    return f"{head}\n\n{markdown(HEAD, rows)}\n"


if __name__ == "__main__":
    main()

"""sisod: metrics and losses that make segmentation fair to small objects.

Names are imported when they are first used, so that `import sisod` and `sisod --help` are quick.
"""

import importlib
from typing import TYPE_CHECKING, Any

from sisod.common import DRAWINGS
from sisod.common.version import __version__

if TYPE_CHECKING:
    from sisod.evaluation.benchmark import evaluate_benchmark
    from sisod.evaluation.driver import evaluate
    from sisod.evaluation.evaluator import Evaluator
    from sisod.evaluation.result import Evaluation
    from sisod.evaluation.tables import combine_scores, score_table
    from sisod.scoring.custom import CustomMetric, register_metric
    from sisod.scoring.engine import score
    from sisod.scoring.metrics import METRICS
    from sisod.scoring.partition import Frame, Partition, partition
    from sisod.scoring.protocols import PROTOCOLS, Protocol
    from sisod.scoring.size_invariant import make_composite, make_separable, weight_map

__all__ = [
    "METRICS",
    "PROTOCOLS",
    "CustomMetric",
    "Evaluation",
    "Evaluator",
    "Frame",
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

# name -> module, the same as above
_HOMES = {
    "CustomMetric": "scoring.custom",
    "Evaluation": "evaluation.result",
    "Evaluator": "evaluation.evaluator",
    "Frame": "scoring.partition",
    "METRICS": "scoring.metrics",
    "PROTOCOLS": "scoring.protocols",
    "Partition": "scoring.partition",
    "Protocol": "scoring.protocols",
    "combine_scores": "evaluation.tables",
    "evaluate": "evaluation.driver",
    "evaluate_benchmark": "evaluation.benchmark",
    "make_composite": "scoring.size_invariant",
    "make_separable": "scoring.size_invariant",
    "partition": "scoring.partition",
    "register_metric": "scoring.custom",
    "score": "scoring.engine",
    "score_table": "evaluation.tables",
    "weight_map": "scoring.size_invariant",
}


if not TYPE_CHECKING:  # a type checker must still see that a name does not exist

    def __getattr__(name: str):
        if name == "analysis":
            return importlib.import_module("sisod.analysis")
        if name not in _HOMES:
            raise AttributeError(f"module 'sisod' has no attribute {name!r}")
        value = getattr(importlib.import_module(f"sisod.{_HOMES[name]}"), name)
        globals()[name] = value  # found without this function from now on
        return value


def __dir__() -> list[str]:
    return [*__all__, "analysis"]


def _draw_comparison(*results: Any) -> Any:
    from sisod.report.drawing.forest import comparison_figure

    return comparison_figure(*results)


def _draw_evaluation(*results: Any, **options: Any) -> Any:
    from sisod.report.gallery import evaluation_figure

    return evaluation_figure(*results, **options)


DRAWINGS |= {"comparison": _draw_comparison, "evaluation": _draw_evaluation}

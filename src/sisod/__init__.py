"""sisod: metrics and losses that make segmentation fair to small objects."""

from typing import TYPE_CHECKING, Any

from sisod.analysis.comparison import Comparison
from sisod.common.version import __version__
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

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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


def _draw_evaluation(evaluation: Evaluation, *arguments: Any, **options: Any) -> "Figure":
    from sisod.report.notebook import evaluation_figure

    return evaluation_figure(evaluation, *arguments, **options)


def _draw_comparison(comparison: Comparison) -> "Figure":
    from sisod.report.drawing.forest import comparison_figure

    return comparison_figure(comparison)


# results draw themselves in a notebook, although figures are made of results
Evaluation.draw = _draw_evaluation
Comparison.draw = _draw_comparison

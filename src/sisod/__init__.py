"""sisod: metrics and losses that make segmentation fair to small objects."""

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

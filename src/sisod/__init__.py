"""sisod: metrics and losses that make segmentation fair to small objects."""

from sisod.evaluation.driver import evaluate
from sisod.evaluation.result import Evaluation
from sisod.evaluation.evaluator import Evaluator
from sisod.scoring.partition import Frame, Partition, partition
from sisod.scoring.metrics import METRICS
from sisod.scoring.protocols import PROTOCOLS, Protocol
from sisod.scoring.engine import score

__version__ = "0.1.0"

__all__ = [
    "METRICS",
    "PROTOCOLS",
    "Evaluation",
    "Evaluator",
    "Frame",
    "Partition",
    "Protocol",
    "__version__",
    "evaluate",
    "partition",
    "score",
]

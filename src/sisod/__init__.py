"""sisod: metrics and losses that make segmentation fair to small objects."""

from sisod.evaluate import evaluate
from sisod.evaluation import Evaluation
from sisod.evaluator import Evaluator
from sisod.frames import Frame, Partition, partition
from sisod.metrics import METRICS
from sisod.protocols import PROTOCOLS, Protocol
from sisod.scoring import score

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

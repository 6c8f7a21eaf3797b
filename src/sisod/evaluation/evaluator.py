"""Scores of pairs of arrays, collected one by one, merged, and turned into tables."""

import threading
from typing import Any

from numpy.typing import ArrayLike

from sisod.common.arguments import check_text, check_utf8, short_repr
from sisod.evaluation.result import Evaluation
from sisod.evaluation.rows import Rows, diagnose_pair
from sisod.scoring.arrays import as_array, has_grey_area, warn_binary
from sisod.scoring.custom import CustomMetricError, find_custom
from sisod.scoring.engine import find_scorer, score_pair
from sisod.scoring.metrics import MetricChoice
from sisod.scoring.partition import Partition
from sisod.scoring.protocols import Protocol, find_protocol

_FOLD = 32  # images; single rows hold all their curves, joined ones only the sums


class Evaluator:
    """Collects the scores of many images; threads may share one.

    Example:
        >>> import numpy as np
        >>> evaluator = Evaluator(metrics=["mae", "si_mae"])
        >>> gt = np.zeros((4, 4), dtype=bool)
        >>> gt[:2, :2] = True
        >>> evaluator.update(gt, gt, name="perfect")
        >>> evaluator.update(~gt, gt, name="inverted")
        >>> evaluator.result().summary
        {'mae': 0.5, 'si_mae': 0.5}
    """

    def __init__(self, *, protocol: str | Protocol = "default", metrics: MetricChoice = None) -> None:
        self.protocol = find_protocol(protocol)
        self._scorer = find_scorer(self.protocol, metrics)
        self.keys = self._scorer.keys
        self._custom = find_custom(self.keys)
        self._known: set[str] = set()
        self._parts: list[Rows] = []
        self._single = 0  # how many rows at the end of the parts are not joined yet
        self._lock = threading.Lock()  # for the three above; pairs are scored outside of it

    def __getstate__(self) -> dict[str, Any]:
        known, parts, single = self._state()
        return self.__dict__ | {"_known": known, "_parts": parts, "_single": single, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state | {"_lock": threading.Lock()}

    def _state(self) -> tuple[set[str], list[Rows], int]:
        """Return copies of names and parts, and the number of single rows, all of the same moment."""
        with self._lock:
            return self._known.copy(), self._parts.copy(), self._single

    def __len__(self) -> int:
        return sum(len(part) for part in self._state()[1])

    def update(
        self,
        pred: ArrayLike,
        gt: ArrayLike,
        *,
        name: str | None = None,
        partition: Partition | None = None,
    ) -> None:
        """Score one pair and keep the result; see `sisod.score` for what is accepted.

        Args:
            pred: the prediction.
            gt: the ground truth, of the same shape.
            name: of the image; without one it is numbered by its position, `000000`, `000001`, ...
            partition: frames of your own, never counted in `run["kept_below_min_area"]`.
        """
        if name is not None:
            check_text("name", name)
            check_utf8(name, "the name")
        try:
            scores = score_pair(self._scorer, pred, gt, partition=partition)
        except CustomMetricError as error:
            image = f"{len(self):06d}" if name is None else name
            raise CustomMetricError(f"image {image!r}: {error}") from error
        if scores.looks_binary[0]:
            warn_binary(name)
        truth = as_array(gt, "gt")
        facts = diagnose_pair(
            as_array(pred, "pred"), truth, is_grey=has_grey_area(truth), level=self.protocol.gt_level
        )
        rows = Rows.from_scores([name], scores, [facts])
        with self._lock:
            if name is not None:
                if name in self._known:
                    raise ValueError(f"an image named {name!r} was already scored; names must differ")
                self._known.add(name)
            self._parts.append(rows)
            self._single += 1
            if self._single == _FOLD:
                self._parts[-_FOLD:] = [Rows.joined(self._parts[-_FOLD:])]
                self._single = 0

    def merge(self, other: "Evaluator") -> "Evaluator":
        """Append the images of another evaluator, such as one of another process; return self.

        Args:
            other: of the same protocol and metrics; its images must have other names.
        """
        is_other = isinstance(other, Evaluator) and other is not self
        if not is_other or (other.protocol, other._scorer) != (self.protocol, self._scorer):
            raise ValueError(
                "only another Evaluator of the same protocol and metrics can be merged, got "
                f"{short_repr(other)}"
            )
        known, parts, _ = other._state()
        with self._lock:
            if shared := self._known & known:
                raise ValueError(f"both evaluators scored {min(shared)!r}; names must differ")
            self._known |= known
            self._parts += parts
            self._single = 0
        return self

    def rows(self) -> Rows:
        """Return the scores of all images so far, column-wise."""
        _, parts, _ = self._state()
        if not parts:
            raise ValueError("nothing was scored; call update(pred, gt) first")
        return Rows.joined(parts)

    def result(self) -> Evaluation:
        """Return the tables and the summary of everything scored so far.

        More images may follow; the result does not change with them.
        """
        return Evaluation.from_rows(self.rows(), self.protocol, custom=self._custom)

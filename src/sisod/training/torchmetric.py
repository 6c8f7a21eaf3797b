"""The evaluation engine in a training loop, as a torchmetrics metric that is exact under DDP."""

import dataclasses
import functools
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torchmetrics import Metric

from sisod.evaluation.rows import Sums, Totals
from sisod.scoring.engine import find_scorer, score_pair
from sisod.scoring.metrics import MetricChoice, is_custom
from sisod.scoring.protocols import Protocol, find_protocol
from sisod.scoring.scores import Scorer

_PARTS = ("high", "low", "n_defined")


class SizeInvariantScores(Metric):
    """Scores of a validation set, plain and size-invariant, by the engine of `sisod evaluate`.

    `update(preds, target)` takes a batch of maps, (B, 1, H, W) or (B, H, W): probabilities in [0, 1] and
    masks. `compute()` returns one value for each key, the same as a single process would, bit for bit.

    Args:
        metrics: as for `sisod.score`; by default those of the paper.
        protocol: conventions of scoring, by name or as a `Protocol`.
        kwargs: of `torchmetrics.Metric`.

    Example:
        >>> target = torch.zeros(2, 1, 4, 4)
        >>> target[:, :, :2, :2] = 1
        >>> scores = SizeInvariantScores(metrics=["mae", "si_mae"])
        >>> scores.update(target, target)
        >>> {key: float(value) for key, value in scores.compute().items()}
        {'mae': 0.0, 'si_mae': 0.0}
    """

    is_differentiable = False
    full_state_update = False

    def __init__(
        self, *, metrics: MetricChoice = "paper", protocol: str | Protocol = "default", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.protocol = find_protocol(protocol)
        self.scorer = find_scorer(self.protocol, metrics)
        self.keys = self.scorer.keys
        self._empty = _no_images(self.scorer, self.protocol)
        # not reduced by torchmetrics: compute adds the processes in double-double precision
        for part in _PARTS:
            zeros = torch.from_numpy(getattr(self._empty.sums, part).copy())
            self.add_state(part, zeros, dist_reduce_fx=None)
        self.n_images: Tensor
        self.add_state("n_images", torch.zeros(1, dtype=torch.int64), dist_reduce_fx=None)

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Score a batch."""
        if (
            preds.shape != target.shape
            or preds.ndim not in (3, 4)
            or (preds.ndim == 4 and preds.shape[1] != 1)
        ):
            raise ValueError(
                f"preds has shape {tuple(preds.shape)} and target {tuple(target.shape)}; "
                "expected the same (B, 1, H, W) or (B, H, W) for both"
            )
        for pred, gt in zip(_arrays(preds), _arrays(target), strict=True):
            totals = self._totals().plus(Totals.from_scores(score_pair(self.scorer, pred, gt)))
            for part in _PARTS:
                value = torch.from_numpy(np.ascontiguousarray(getattr(totals.sums, part)))
                setattr(self, part, value.to(self.device))
            self.n_images = self.n_images + 1

    def compute(self) -> dict[str, Tensor]:
        """Return every metric over all images of all processes."""
        if int(torch.as_tensor(self.n_images).sum()) == 0:
            raise ValueError("nothing was scored; call update(preds, target) first")
        summary = self._totals().summary()
        return {key: torch.tensor(value, dtype=torch.float64) for key, value in summary.items()}

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Draw the current values, or those given, as torchmetrics does."""
        return self._plot(val, ax)

    def _totals(self) -> Totals:
        """Return the sums over all processes; before a synchronisation, of this one only."""
        width = len(self._empty.sums.high)
        parts = [
            torch.as_tensor(getattr(self, part)).cpu().numpy().reshape(-1, width) for part in _PARTS
        ]
        processes = [Sums(*columns) for columns in zip(*parts, strict=True)]
        return dataclasses.replace(self._empty, sums=functools.reduce(Sums.plus, processes))


class SizeInvariantScore(SizeInvariantScores):
    """One score of a validation set, a scalar: `self.log("val", score)` in Lightning takes the metric.

    Several are a `torchmetrics.MetricCollection` of these, or `SizeInvariantScores` and `log_dict`.

    Args:
        metric: the score.
        protocol: as for `SizeInvariantScores`.
        kwargs: of `torchmetrics.Metric`.

    Example:
        >>> target = torch.zeros(2, 1, 4, 4)
        >>> target[:, :, :2, :2] = 1
        >>> score = SizeInvariantScore()
        >>> score.update(target, target)
        >>> score.compute()
        tensor(0.)
    """

    def __init__(
        self, metric: str = "si_mae", *, protocol: str | Protocol = "default", **kwargs: Any
    ) -> None:
        super().__init__(metrics=[metric], protocol=protocol, **kwargs)

    def compute(self) -> Tensor:  # type: ignore[override]
        """Return the score over all images of all processes, in float32."""
        (value,) = super().compute().values()
        return value.float()


def _no_images(scorer: Scorer[Any], protocol: Protocol) -> Totals:
    """Return the totals of no image: all that a scorer keeps, by the names in the scores of one pixel.

    Functions of the user may refuse one pixel, and add none of these names.
    """
    mask = np.ones((1, 1), dtype=bool)
    built_in = [key for key in scorer.keys if not is_custom(key)] or ["mae"]
    example = Totals.from_scores(score_pair(find_scorer(protocol, built_in), mask, mask))
    zeros = np.zeros(len(scorer.keys) + len(example.sums.high) - len(example.keys))
    sums = Sums(zeros, zeros, zeros.astype(np.int64))
    return dataclasses.replace(example, keys=scorer.keys, sums=sums)


def _arrays(batch: Tensor) -> Any:
    """Return the maps of a batch as a NumPy array, half precision as float32."""
    maps = batch.detach().flatten(0, -3)
    if maps.dtype in (torch.bfloat16, torch.float16):
        maps = maps.float()
    return maps.cpu().numpy()

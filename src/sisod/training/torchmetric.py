"""The evaluation engine in a training loop, as a torchmetrics metric that is exact under DDP."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torchmetrics import Metric

from sisod.evaluation.rows import Sums, Totals, join_counts
from sisod.scoring.engine import find_scorer, score_pair
from sisod.scoring.metrics import MetricChoice, is_custom
from sisod.scoring.protocols import Protocol, find_protocol
from sisod.scoring.scores import Scores

_PARTS = ("high", "low", "n_defined")


class SizeInvariantScores(Metric):
    """Scores of a validation set, plain and size-invariant, by the engine of `sisod evaluate`.

    `update(preds, target)` takes a batch of maps, (B, 1, H, W) or (B, H, W): probabilities in [0, 1] and
    masks. `compute()` returns one value for each key, the same as a single process would, bit for bit.

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
        example = _one_pixel(self.protocol, self.keys)
        self.curve_names = example.curve_names
        self.count_widths, _ = join_counts(example.object_counts, 1)
        # not reduced by torchmetrics: compute adds the processes in double-double precision
        for which, shape in self._shapes().items():
            for part in _PARTS:
                kind = torch.int64 if part == "n_defined" else torch.float64
                self.add_state(f"{which}_{part}", torch.zeros(shape, dtype=kind), dist_reduce_fx=None)
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
            scores = score_pair(self.scorer, pred, gt)
            self._store("values", self._load("values").plus(Sums.from_values(scores.values)))
            self._store("curves", self._load("curves").plus(Sums.from_values(scores.curves)))
            _, counts = join_counts(scores.object_counts, 1)
            self._store("counts", self._load("counts").plus(Sums.from_values(counts)))
            self.n_images = self.n_images + 1

    def compute(self) -> dict[str, Tensor]:
        """Return every metric over all images of all processes."""
        totals = Totals(
            keys=self.keys,
            curve_names=self.curve_names,
            values=self._load("values"),
            curves=self._load("curves"),
            count_widths=self.count_widths,
            counts=self._load("counts"),
        )
        if int(torch.as_tensor(self.n_images).sum()) == 0:
            raise ValueError("nothing was scored; call update(preds, target) first")
        return {key: torch.tensor(value, dtype=torch.float64) for key, value in totals.summary().items()}

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Draw the current values, or those given, as torchmetrics does."""
        return self._plot(val, ax)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {
            "values": (len(self.keys),),
            "curves": (len(self.curve_names), 256),
            "counts": (sum(self.count_widths.values()),),
        }

    def _load(self, which: str) -> Sums:
        """Return the sum over all processes; before a synchronisation, of this one only."""
        shape = self._shapes()[which]
        parts = [
            torch.as_tensor(getattr(self, f"{which}_{part}")).cpu().numpy().reshape(-1, *shape)
            for part in _PARTS
        ]
        sums_of_processes = [Sums(*columns) for columns in zip(*parts, strict=True)]
        total = sums_of_processes[0]
        for other in sums_of_processes[1:]:
            total = total.plus(other)
        return total

    def _store(self, which: str, sums: Sums) -> None:
        for part in _PARTS:
            value = torch.from_numpy(np.ascontiguousarray(getattr(sums, part)))
            setattr(self, f"{which}_{part}", value.to(self.device))


def _one_pixel(protocol: Protocol, keys: Sequence[str]) -> Scores:
    """Return the scores of a pair of one pixel, which have the names of everything a scorer keeps.

    Functions of the user may refuse one pixel, and add none of these names.
    """
    mask = np.ones((1, 1), dtype=bool)
    built_in = [key for key in keys if not is_custom(key)] or ["mae"]
    return score_pair(find_scorer(protocol, built_in), mask, mask)


def _arrays(batch: Tensor) -> Any:
    """Return the maps of a batch as a NumPy array, half precision as float32."""
    maps = batch.detach().flatten(0, -3)
    if maps.dtype in (torch.bfloat16, torch.float16):
        maps = maps.float()
    return maps.cpu().numpy()

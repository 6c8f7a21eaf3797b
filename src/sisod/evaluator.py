"""Rows -> summary: scores of many images gathered, merged, and turned into tables."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sisod.arrays import warn_binary
from sisod.frames import Partition
from sisod.histograms import LEVELS
from sisod.metrics import METRICS, find_metrics
from sisod.protocols import Protocol, find_protocol
from sisod.scoring import MetricChoice, Scores, score_pair

if TYPE_CHECKING:
    import polars as pl

Values = NDArray[np.float64]
IMAGE_CURVES = ("f", "si_f")  # kept for every image, so that intervals of maxima need no pixels


@dataclass(frozen=True, eq=False)
class CurveSums:
    """Sums of curves over images, in twice the digits of a float64.

    Each sum is an unevaluated pair high + low. The spare digits make it, once rounded, the same in
    whatever order and grouping images were added.
    """

    names: tuple[str, ...]
    high: Values
    low: Values
    n_defined: NDArray[np.int64]

    @classmethod
    def of(cls, scores: Scores) -> "CurveSums":
        """Return the sums over one image."""
        defined = ~np.isnan(scores.curve_values)
        high = np.where(defined, scores.curve_values, 0.0)
        return cls(scores.curve_names, high, np.zeros_like(high), defined.astype(np.int64))

    def plus(self, other: "CurveSums") -> "CurveSums":
        """Return the sums over the images of both."""
        total = self.high + other.high
        part = total - self.high
        lost = (self.high - (total - part)) + (other.high - part) + self.low + other.low
        high = total + lost
        return replace(
            self, high=high, low=lost - (high - total), n_defined=self.n_defined + other.n_defined
        )

    def means(self) -> dict[str, Values]:
        """Return the mean curves, NaN where no image defined them or the threshold is left out."""
        with np.errstate(invalid="ignore"):
            means = self.high / self.n_defined
        return dict(zip(self.names, means, strict=True))


class Evaluator:
    """Gathers the scores of many images.

    Example:
        >>> evaluator = Evaluator(metrics=["mae", "si_mae"])
        >>> gt = np.zeros((4, 4), dtype=bool)
        >>> gt[:2, :2] = True
        >>> evaluator.update(gt, gt, name="found")
        >>> evaluator.update(~gt, gt, name="inverted")
        >>> evaluator.result().summary
        {'mae': 0.5, 'si_mae': 0.5}
    """

    def __init__(self, *, protocol: str | Protocol = "default", metrics: MetricChoice = None) -> None:
        self.protocol = find_protocol(protocol)
        self.keys = find_metrics(metrics)
        self._names: list[str | None] = []
        self._known: set[str] = set()
        self._scores: list[Scores] = []
        self._sums: CurveSums | None = None

    def __len__(self) -> int:
        return len(self._scores)

    def update(
        self,
        pred: ArrayLike,
        gt: ArrayLike,
        *,
        name: str | None = None,
        partition: Partition | None = None,
    ) -> None:
        """Score one pair and keep the result; see `sisod.score` for what is accepted."""
        scores = score_pair(pred, gt, protocol=self.protocol, keys=self.keys, partition=partition)
        if scores.looks_binary:
            warn_binary(name)
        self._add(name, scores)

    def _add(self, name: str | None, scores: Scores) -> None:
        if name is not None:
            if name in self._known:
                raise ValueError(f"an image named {name!r} was already scored; names must differ")
            self._known.add(name)
        sums = CurveSums.of(scores)
        self._sums = sums if self._sums is None else self._sums.plus(sums)
        kept = [scores.curve_names.index(key) for key in IMAGE_CURVES]
        # the other curves live on in the sums only: memory stays small over many images
        self._scores.append(
            replace(
                scores,
                curve_names=IMAGE_CURVES,
                curve_values=scores.curve_values[kept].astype(np.float32),
            )
        )
        self._names.append(name)

    def merge(self, other: "Evaluator") -> "Evaluator":
        """Take over the images of another evaluator, after one's own; return self."""
        if (other.protocol, other.keys) != (self.protocol, self.keys):
            raise ValueError("evaluators differ in protocol or metrics; only equal ones can be merged")
        twice = self._known & other._known
        if twice:
            raise ValueError(f"both evaluators scored {min(twice)!r}; names must differ")
        self._names += other._names
        self._known |= other._known
        self._scores += other._scores
        if self._sums is None or other._sums is None:
            self._sums = self._sums or other._sums
        else:
            self._sums = self._sums.plus(other._sums)
        return self

    def result(self) -> "Evaluation":
        """Return the tables and the summary of everything scored so far."""
        if self._sums is None:
            raise ValueError("nothing was scored; call update(pred, gt) first")
        names = [f"{i:06d}" if name is None else name for i, name in enumerate(self._names)]
        images = _image_table(names, self._scores, self.keys)
        curves = self._sums.means()
        summary, defined = {}, {}
        for key in self.keys:
            if METRICS[key].form == "max":
                name = "si_" * METRICS[key].size_invariant + METRICS[key].family.key
                curve, n_images = (
                    curves[name],
                    int(self._sums.n_defined[self._sums.names.index(name), -1]),
                )
                summary[key], defined[key] = _maximum(curve), n_images
            else:
                summary[key], defined[key] = _mean(images[key].to_numpy())
        return Evaluation(
            summary=summary,
            defined=defined,
            images=images,
            objects=_object_table(names, self._scores),
            curves=_curve_table(curves),
            image_curves=_image_curve_table(names, self._scores),
            protocol=self.protocol,
        )


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The scores of a set of images.

    Attributes:
        summary: metric key -> value over the images: the mean of those where it is defined, or for
            `*_max` the maximum of the mean curve.
        defined: metric key -> on how many images it was defined.
        images: one row per image.
        objects: one row per frame.
        curves: the mean curves, one row per threshold.
        image_curves: F and SI-F curves of every image, in float32.
        protocol: the conventions used.
    """

    summary: dict[str, float]
    defined: dict[str, int]
    images: "pl.DataFrame"
    objects: "pl.DataFrame"
    curves: "pl.DataFrame"
    image_curves: "pl.DataFrame"
    protocol: Protocol


def _mean(values: Values) -> tuple[float, int]:
    defined = values[~np.isnan(values)]
    # exactly rounded, so it does not depend on the order of images
    return (math.fsum(defined) / len(defined) if len(defined) else math.nan), len(defined)


def _maximum(curve: Values) -> float:
    defined = curve[~np.isnan(curve)]
    return float(defined.max()) if len(defined) else math.nan


def _image_table(names: list[str], scores: Sequence[Scores], keys: Sequence[str]) -> "pl.DataFrame":
    import polars as pl

    columns: dict[str, Any] = {
        "image": names,
        "height": [s.shape[0] for s in scores],
        "width": [s.shape[1] for s in scores],
        "n_objects": [s.n_objects for s in scores],
        "alpha": [s.alpha for s in scores],
    }
    columns |= {key: np.array([s.values[key] for s in scores]) for key in keys}
    return pl.DataFrame(columns)


def _object_table(names: list[str], scores: Sequence[Scores]) -> "pl.DataFrame":
    import polars as pl

    n_objects = [s.n_objects for s in scores]
    index = [np.arange(n) for n in n_objects]
    columns: dict[str, Any] = {
        "image": np.repeat(np.array(names, dtype=object), n_objects).tolist(),
        "index": np.concatenate(index),
    }
    columns |= {key: np.concatenate([s.objects[key] for s in scores]) for key in scores[0].objects}
    return pl.DataFrame(columns, schema_overrides={"image": pl.String})


def _curve_table(curves: dict[str, Values]) -> "pl.DataFrame":
    import polars as pl

    return pl.DataFrame({"threshold": np.arange(LEVELS), **curves})


def _image_curve_table(names: list[str], scores: Sequence[Scores]) -> "pl.DataFrame":
    import polars as pl

    stacked = np.stack([s.curve_values for s in scores], axis=1)
    columns = dict(zip(IMAGE_CURVES, stacked, strict=True))
    return pl.DataFrame({"image": names, **columns})

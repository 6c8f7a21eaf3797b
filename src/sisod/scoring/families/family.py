"""One row of the table of metrics, and the pair of arrays that the metrics of pixels take."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sisod.scoring.arrays import Map, Mask, Normalize, Values, unit_values
from sisod.scoring.partition import Frame

Direction = Literal["up", "down", "none"]


@dataclass(frozen=True)
class Family:
    """One metric: a row of the table.

    Attributes:
        key: its key; of a curve, `key_mean`, `key_max`, `key_adaptive`, `key_binary`.
        title: as printed in papers.
        direction: whether higher or lower is better.
        function: see `kind`.
        kind: input and output of the function: `"error"` takes a histogram and returns sums of pixel
            errors, `"curve"` and `"scalar"` take counts, `"pixels"` takes pixels and frames,
            `"objects"` takes sums of counts of objects over the images of a set. `"balanced"` takes the
            size-invariant values of a curve's binary form, and the number of true and of false objects.
            `"custom"` is a metric of the user, which takes p and gt.
        separable: a mean over pixels (Eq. 7); all others are composite (Eq. 8).
        size_invariant: whether it has a size-invariant form.
        on_request: computed only if it is named, or with `"all"`.
        per_object: the values of its frames are a column of the object table, named by the key.
        detections: exists only under protocols that count detections.
        symbol: in LaTeX's math mode; empty if papers print the title.
        trivial_max: why the maximum over thresholds says nothing about a map; empty if it does.
    """

    key: str
    title: str
    direction: Direction
    function: Callable[..., Any]
    kind: Literal["error", "curve", "scalar", "pixels", "objects", "balanced", "custom"]
    separable: bool = False
    size_invariant: bool = True
    on_request: bool = False
    per_object: bool = False
    detections: bool = False
    symbol: str = ""
    trivial_max: str = ""

    @property
    def meaning(self) -> str:
        """What it measures: the first line of the function's documentation, without the full stop."""
        return (self.function.__doc__ or "").strip().partition("\n")[0].rstrip(".")


EPS = float(np.spacing(1))  # added where PySODMetrics adds it
WHOLE = (slice(None), slice(None))


@dataclass(frozen=True, eq=False)
class Pixels:
    """A checked prediction and its ground truth."""

    pred: Map
    gt: Mask
    normalize: Normalize

    def boxes(self, frames: Sequence[Frame]) -> NDArray[np.int64]:
        """Return y0, x0, y1, x1 of the image, then of the frames."""
        rows = [(frame.y0, frame.x0, frame.y1, frame.x1) for frame in frames]
        return np.array([(0, 0, *self.gt.shape), *rows], dtype=np.int64)

    def values(self) -> Values:
        """Return p, a new array that may be written to."""
        return unit_values(self.pred, normalize=self.normalize)

    @functools.cached_property
    def binary(self) -> Mask:
        """Where p > 0.5."""
        return self.values() > 0.5

    @functools.cached_property
    def levels(self) -> NDArray[Any]:
        """The values p times `range`: integers for an 8-bit map."""
        if self.pred.dtype == np.uint8:
            return self.pred - np.uint8(self.ends[0])
        return self.values()

    @property
    def range(self) -> int:
        """Factor of `levels`."""
        return self.ends[1] - self.ends[0] if self.pred.dtype == np.uint8 else 1

    @functools.cached_property
    def ends(self) -> tuple[int, int]:
        """The grey values of p = 0 and p = 1 in an 8-bit map."""
        low, high = int(self.pred.min()), int(self.pred.max())
        return (low, high) if self.normalize == "minmax" and low != high else (0, 255)

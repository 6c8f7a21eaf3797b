"""A checked pair of arrays, as the metrics that need pixels take it."""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sisod.scoring.arrays import Map, Mask, Normalize, Values, Window, grey_table, unit_values

EPS = float(np.spacing(1))  # added where PySODMetrics adds it
WHOLE = (slice(None), slice(None))


@dataclass(frozen=True, eq=False)
class Pixels:
    """A checked prediction and its ground truth."""

    pred: Map
    gt: Mask
    normalize: Normalize

    def values(self) -> Values:
        """Return p, a new array that may be written to."""
        return unit_values(self.pred, normalize=self.normalize)

    @functools.cached_property
    def binary(self) -> Mask:
        """Where p > 0.5."""
        if self.pred.dtype == np.uint8:  # the table rises
            low, high = map(int, self._extremes)
            table = grey_table(low, high, normalize=self.normalize)
            return np.asarray(self.pred >= int(np.searchsorted(table, 0.5, side="right")))
        return np.asarray(self.values() > 0.5)

    def levels(self, window: Window) -> NDArray[Any]:
        """Return p of a window times `range`: integers for an 8-bit map."""
        if self.pred.dtype == np.uint8:
            return self.pred[window] - np.uint8(self.ends[0]) if self.ends[0] else self.pred[window]
        return self._values_of(window)

    def missing_levels(self, window: Window) -> NDArray[Any]:
        """Return 1 - p of a window times `range`: integers for an 8-bit map."""
        if self.pred.dtype == np.uint8:
            return np.uint8(self.ends[1]) - self.pred[window]
        return 1 - self._values_of(window)

    @property
    def range(self) -> int:
        """Factor of `levels`."""
        return self.ends[1] - self.ends[0] if self.pred.dtype == np.uint8 else 1

    def _values_of(self, window: Window) -> Values:
        return unit_values(self.pred[window], normalize=self.normalize, ends=self._extremes)

    @functools.cached_property
    def ends(self) -> tuple[int, int]:
        """The grey values of p = 0 and p = 1 in an 8-bit map."""
        low, high = map(int, self._extremes)
        return (low, high) if self.normalize == "minmax" and low != high else (0, 255)

    @functools.cached_property
    def _extremes(self) -> tuple[Any, Any]:
        return self.pred.min(), self.pred.max()

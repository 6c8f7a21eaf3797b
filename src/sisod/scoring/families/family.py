"""One row of the table of metrics, of which all its keys follow."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

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

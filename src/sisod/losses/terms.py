"""The terms of a loss: a map of pixel losses, or a value per frame made of sums over it.

A *separable* term is a mean over pixels; a *region* term is anything else. Both are given as they
are for one part of an image; what makes the loss size-invariant is which parts it is taken over.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar, cast

import torch
from torch import Tensor
from torch.nn import functional

from sisod.protocols import unknown

EPS = 1e-7  # least denominator of a region term

PixelTerm = Callable[[Tensor, Tensor], Tensor]
BoxSum = Callable[[Tensor], Tensor]
RegionCall = Callable[[Tensor, Tensor, BoxSum], Tensor]
Term = str | PixelTerm | RegionCall
_Call = TypeVar("_Call", bound=Callable[..., Tensor])


class Sums(Protocol):
    """Sums over the frames of a batch, or over whole images."""

    def sum(self, values: Tensor, times: Tensor | None = None) -> Tensor:
        """Return, for each frame, the sum of a map, or of a map times a constant one or itself."""


# what depends on the ground truth alone is done once: gt, sums -> (p -> value per frame, which count)
Prepared = tuple[Callable[[Tensor], Tensor], Tensor]
RegionTerm = Callable[[Tensor, Sums], Prepared]


def region_term(function: _Call) -> _Call:
    """Mark a loss of your own as a region term: `function(p, g, box_sum)` returns a value per frame.

    `p` are probabilities and `g` the ground truth, both (B, H, W); `box_sum` turns any such map into its
    sums over every frame. Not marked, a callable is a separable term: `function(logits, gt)` returns a
    loss per pixel.

    Example:
        Tversky's index with misses weighing three times as much as false alarms:

        >>> @region_term
        ... def tversky(p, g, box_sum):
        ...     hits = box_sum(p * g)
        ...     return 1 - hits / (0.75 * box_sum(g) + 0.25 * box_sum(p))
    """
    function.is_region_term = True  # type: ignore[attr-defined]
    return function


def bce_from_logits(logits: Tensor, g: Tensor) -> Tensor:
    """Binary cross-entropy, exact for logits of any size."""
    return functional.binary_cross_entropy_with_logits(logits, g, reduction="none")


def bce_from_probs(p: Tensor, g: Tensor) -> Tensor:
    """Binary cross-entropy with logarithms held above -100, as PyTorch does."""
    return functional.binary_cross_entropy(p, g, reduction="none")


def mse(p: Tensor, g: Tensor) -> Tensor:
    """Squared error."""
    return (p - g).square()


def l1(p: Tensor, g: Tensor) -> Tensor:
    """Absolute error: its size-invariant form is SI-MAE."""
    return (p - g).abs()


def dice(g: Tensor, frames: Sums) -> Prepared:
    """1 - 2 sum pg / (sum p^2 + sum g^2); the paper's appendix lacks the "1 -"."""
    g_squared = frames.sum(g, times=g)

    def value(p: Tensor) -> Tensor:
        squares = frames.sum(p, times=p) + g_squared
        return 1 - 2 * frames.sum(p, times=g) / squares.clamp(min=EPS)

    return value, torch.ones_like(g_squared)


def iou(g: Tensor, frames: Sums) -> Prepared:
    """1 - sum pg / (sum p + sum g - sum pg)."""
    g_sum = frames.sum(g)

    def value(p: Tensor) -> Tensor:
        overlap = frames.sum(p, times=g)
        return 1 - overlap / (frames.sum(p) + g_sum - overlap).clamp(min=EPS)

    return value, torch.ones_like(g_sum)


def auc(g: Tensor, frames: Sums) -> Prepared:
    """The mean of (1 - (a - b))^2 over all pairs of a salient pixel a and another pixel b of a frame.

    With c = 1 - a that is m(c^2) + m(b^2) + 2 m(c) m(b), m the mean: sums over pixels instead of pairs,
    and nothing to cancel. A frame of one class has no pairs and does not count.
    """
    other = 1 - g
    n_salient, n_other = frames.sum(g), frames.sum(other)
    counts = ((n_salient > 0) & (n_other > 0)).to(g.dtype)
    n_salient, n_other = n_salient.clamp(min=EPS), n_other.clamp(min=EPS)

    def value(p: Tensor) -> Tensor:
        short = 1 - p
        short_of_one, above_zero = short * g, p * other
        squares = frames.sum(short_of_one * short) / n_salient + frames.sum(above_zero * p) / n_other
        means = (frames.sum(short_of_one) / n_salient) * (frames.sum(above_zero) / n_other)
        return counts * (squares + 2 * means)

    return value, counts


ON_PROBS: dict[str, PixelTerm] = {"mse": mse, "l1": l1}
REGION: dict[str, RegionTerm] = {"dice": dice, "iou": iou, "auc": auc}
NAMES = ("bce", *ON_PROBS, *REGION)
# the paper's appendix, "Optimization Details for Different Backbones"; GateNet and PoolNet may have any
# of bce, mse and l1 there, and have bce in the code of their authors
_NETWORKS = {
    "edn": ("bce", "dice"),
    "icon": ("bce", "iou"),
    "gatenet": ("bce",),
    "ldf": ("bce", "iou"),
    "poolnet": ("bce",),
}


@dataclass(frozen=True)
class Terms:
    """The terms of a loss, sorted by what they need, each with its weight.

    Attributes:
        given: separable terms of what the user gives, logits unless `from_probs`.
        on_probs: separable terms of probabilities.
        region: region terms, of probabilities.
        from_probs: whether the user gives probabilities.
    """

    given: tuple[tuple[float, PixelTerm], ...]
    on_probs: tuple[tuple[float, PixelTerm], ...]
    region: tuple[tuple[float, RegionTerm], ...]
    from_probs: bool

    def probs(self, given: Tensor) -> Tensor | None:
        """Return probabilities, or None if no term needs them."""
        if not (self.on_probs or self.region):
            return None
        return given if self.from_probs else given.sigmoid()

    def pixels(self, given: Tensor, p: Tensor | None, g: Tensor) -> Tensor | None:
        """Return the weighted sum of the separable terms, a map; None without any."""
        weighted = [(weight, term(given, g)) for weight, term in self.given]
        if p is not None:
            weighted += [(weight, term(p, g)) for weight, term in self.on_probs]
        # a product with 1 would cost a pass over the pixels
        maps = [map_ if weight == 1 else weight * map_ for weight, map_ in weighted]
        return sum(maps[1:], maps[0]) if maps else None


def find_terms(
    terms: Sequence[Term], *, weights: Sequence[float] | None = None, from_probs: bool = False
) -> Terms:
    """Sort terms by kind, or say which name is not known."""
    if not terms:
        raise ValueError(f"a loss needs at least one term; available: {', '.join(sorted(NAMES))}")
    if weights is not None and len(weights) != len(terms):
        raise ValueError(f"there are {len(terms)} terms but {len(weights)} weights; give one per term")
    given: list[tuple[float, PixelTerm]] = []
    on_probs: list[tuple[float, PixelTerm]] = []
    region: list[tuple[float, RegionTerm]] = []
    for term, weight in zip(terms, weights or [1.0] * len(terms), strict=True):
        if isinstance(term, str) and term not in NAMES:
            raise ValueError(unknown("term", term, NAMES))
        if isinstance(term, str) and term in REGION:
            region.append((weight, REGION[term]))
        elif isinstance(term, str) and term in ON_PROBS:
            on_probs.append((weight, ON_PROBS[term]))
        elif isinstance(term, str):
            given.append((weight, bce_from_probs if from_probs else bce_from_logits))
        elif getattr(term, "is_region_term", False):
            region.append((weight, partial(_marked, term)))
        else:
            given.append((weight, partial(_checked, term)))
    return Terms(tuple(given), tuple(on_probs), tuple(region), from_probs)


def network_terms(name: str) -> tuple[str, ...]:
    """Return the terms of the paper's loss for a network; LDF's are those of its mask maps.

    Example:
        >>> network_terms("edn")
        ('bce', 'dice')
    """
    if name not in _NETWORKS:
        raise ValueError(unknown("network", name, _NETWORKS))
    return _NETWORKS[name]


def _marked(call: Callable[..., Tensor], g: Tensor, frames: Sums) -> Prepared:
    """Give a marked callable the form of our own region terms."""
    counts = torch.ones_like(frames.sum(g))

    def value(p: Tensor) -> Tensor:
        values: object = call(p, g, frames.sum)
        _check_result(call, values, counts, "a value per frame")
        return cast("Tensor", values)

    return value, counts


def _checked(call: Callable[..., Tensor], given: Tensor, g: Tensor) -> Tensor:
    """Let a callable through whose result is a map, not a reduced number."""
    pixels: object = call(given, g)
    _check_result(call, pixels, g, "a loss per pixel")
    return cast("Tensor", pixels)


def _check_result(call: object, result: object, like: Tensor, what: str) -> None:
    if not isinstance(result, Tensor) or result.shape != like.shape:
        came = f"shape {tuple(result.shape)}" if isinstance(result, Tensor) else repr(result)
        raise ValueError(
            f"the term {getattr(call, '__name__', call)!r} returned {came}; expected {what}, shape "
            f"{tuple(like.shape)}; use reduction='none', or mark a region term with region_term"
        )

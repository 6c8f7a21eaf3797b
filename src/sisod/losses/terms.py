"""The terms of a loss: a map of pixel losses, or a value per frame made of sums over it.

A *separable* term is a mean over pixels; a *region* term is anything else. Both are given as they
are for one part of an image; what makes the loss size-invariant is which parts it is taken over.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar, cast

import torch
from torch import Tensor
from torch.nn import functional

from sisod.common.arguments import check_flag, check_known, check_number, shown

EPS = 1e-7  # least denominator of a region term

# prediction, gt, weight of every pixel -> the weighted sum, or the mean without weights
PixelTerm = Callable[[Tensor, Tensor, Tensor | None], Tensor]
# gt, frames -> (p -> value per frame), which frames count; what depends on gt alone is done once
Prepared = tuple[Callable[[Tensor], Tensor], Tensor]
RegionTerm = Callable[[Tensor, "Parts"], Prepared]
Term = str | Callable[..., Tensor]
_Call = TypeVar("_Call", bound=Callable[..., Tensor])
_T = TypeVar("_T")
Weighted = tuple[float, _T]


class Parts(Protocol):
    """The frames of a batch, or its whole images."""

    def sums(self, values: Tensor, *times: Tensor | None) -> tuple[Tensor, ...]:
        """Return, for each of `times`, the sums over each part of `values` times it; None is one."""

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum over each part of any map."""


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


def bce_from_logits(logits: Tensor, g: Tensor, weight: Tensor | None) -> Tensor:
    """Binary cross-entropy, exact for logits of any size."""
    reduction = "mean" if weight is None else "sum"
    return functional.binary_cross_entropy_with_logits(logits, g, weight=weight, reduction=reduction)


def bce_from_probs(p: Tensor, g: Tensor, weight: Tensor | None) -> Tensor:
    """Binary cross-entropy with logarithms held above -100, as PyTorch does."""
    return _mean(functional.binary_cross_entropy(p, g, reduction="none"), weight)


def mse(p: Tensor, g: Tensor, weight: Tensor | None) -> Tensor:
    """Squared error."""
    return _mean((p - g).square(), weight)


def l1(p: Tensor, g: Tensor, weight: Tensor | None) -> Tensor:
    """Absolute error: its size-invariant form is SI-MAE."""
    return _mean((p - g).abs(), weight)


def dice(g: Tensor, parts: Parts) -> Prepared:
    """1 - 2 sum pg / (sum p^2 + sum g^2); the paper's appendix lacks the "1 -"."""
    (g_squared,) = parts.sums(g, g)

    def value(p: Tensor) -> Tensor:
        overlap, p_squared = parts.sums(p, g, p)
        return 1 - 2 * overlap / (p_squared + g_squared).clamp(min=EPS)

    return value, torch.ones_like(g_squared)


def iou(g: Tensor, parts: Parts) -> Prepared:
    """1 - sum pg / (sum p + sum g - sum pg)."""
    g_sum = parts.sum(g)

    def value(p: Tensor) -> Tensor:
        overlap, p_sum = parts.sums(p, g, None)
        return 1 - overlap / (p_sum + g_sum - overlap).clamp(min=EPS)

    return value, torch.ones_like(g_sum)


def auc(g: Tensor, parts: Parts) -> Prepared:
    """The mean of (1 - (a - b))^2 over all pairs of a salient pixel a and another pixel b of a frame.

    With c = 1 - a that is m(c^2) + m(b^2) + 2 m(c) m(b), m the mean: sums over pixels instead of pairs,
    and nothing to cancel. A frame of one class has no pairs and does not count.
    """
    other = 1 - g
    n_salient, n_other = parts.sum(g), parts.sum(other)
    counts = ((n_salient > 0) & (n_other > 0)).to(g.dtype)
    n_salient, n_other = n_salient.clamp(min=EPS), n_other.clamp(min=EPS)

    def value(p: Tensor) -> Tensor:
        short = 1 - p
        short_of_one, above_zero = short * g, p * other
        squares = parts.sum(short_of_one * short) / n_salient + parts.sum(above_zero * p) / n_other
        means = (parts.sum(short_of_one) / n_salient) * (parts.sum(above_zero) / n_other)
        return counts * (squares + 2 * means)

    return value, counts


ON_PROBS: dict[str, PixelTerm] = {"mse": mse, "l1": l1}
REGION: dict[str, RegionTerm] = {"dice": dice, "iou": iou, "auc": auc}
NAMES = ("bce", *ON_PROBS, *REGION)
# the paper's appendix, "Optimization Details for Different Backbones"; GateNet and PoolNet may have any
# of bce, mse and l1 there, and have bce in the code of their authors
_PAPER_TERMS = {
    "edn": ("bce", "dice"),
    "icon": ("bce", "iou"),
    "gatenet": ("bce",),
    "ldf": ("bce", "iou"),
    "poolnet": ("bce",),
}
# what each output map of a network learns, for those of the paper that learn more than masks
_PAPER_TARGETS = {"ldf": ("mask", "body", "detail", "mask", "body", "detail")}


@dataclass(frozen=True)
class Terms:
    """The terms of a loss, sorted by what they need, each with its weight.

    Attributes:
        given: separable terms of what the user gives, logits unless `from_probs`.
        on_probs: separable terms of probabilities.
        region: region terms, of probabilities.
        from_probs: whether the user gives probabilities.
    """

    given: tuple[Weighted[PixelTerm], ...]
    on_probs: tuple[Weighted[PixelTerm], ...]
    region: tuple[Weighted[RegionTerm], ...]
    from_probs: bool

    @property
    def need_probs(self) -> bool:
        """Whether logits must go through the sigmoid."""
        return bool(self.on_probs or self.region) and not self.from_probs


def find_terms(
    terms: Sequence[Term], *, weights: Sequence[float] | None = None, from_probs: bool = False
) -> Terms:
    """Sort terms by kind, or say which name is not known."""
    if not terms:
        raise ValueError(f"a loss needs at least one term; available: {', '.join(sorted(NAMES))}")
    if isinstance(terms, str):
        raise ValueError(f"terms is the text {terms!r}; expected a list of terms like [{terms!r}]")
    check_flag("from_probs", from_probs)
    factors = [1.0] * len(terms) if weights is None else _factors(weights)
    if len(factors) != len(terms):
        raise ValueError(f"there are {len(terms)} terms but {len(factors)} weights; give one per term")
    given: list[Weighted[PixelTerm]] = []
    on_probs: list[Weighted[PixelTerm]] = []
    region: list[Weighted[RegionTerm]] = []
    for term, weight in zip(terms, factors, strict=True):
        _check_term(term)
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


def _factors(weights: object) -> list[float]:
    if isinstance(weights, str) or not isinstance(weights, Sequence):
        raise ValueError(f"weights must be a list of numbers, one per term, got {shown(weights)}")
    return [check_number("every weight", weight, least=-math.inf) for weight in weights]


def _check_term(term: object) -> None:
    if isinstance(term, str):
        check_known("term", term, NAMES)
    if not isinstance(term, str) and not callable(term):
        raise TypeError(f"a term is a name or a callable, got {term!r}; weights go into weights=")


def network_terms(name: str) -> tuple[str, ...]:
    """Return the terms of the paper's loss for the mask maps of a network.

    Example:
        >>> network_terms("edn")
        ('bce', 'dice')
    """
    check_known("network", name, _PAPER_TERMS)
    return _PAPER_TERMS[name]


def network_targets(name: str) -> tuple[str, ...]:
    """Return what each map of a network of the paper learns; empty if all maps learn the mask."""
    return _PAPER_TARGETS.get(name, ())


def _marked(call: Callable[..., Tensor], g: Tensor, parts: Parts) -> Prepared:
    """Give a marked callable the form of our own region terms."""
    counts = torch.ones_like(parts.sum(g))

    def value(p: Tensor) -> Tensor:
        values: object = call(p, g, parts.sum)
        _check_result(call, values, counts, "a value per frame")
        return cast("Tensor", values)

    return value, counts


def _checked(call: Callable[..., Tensor], given: Tensor, g: Tensor, weight: Tensor | None) -> Tensor:
    """Take the mean of a callable's result, which must be a map and not a reduced number."""
    pixels: object = call(given, g)
    _check_result(call, pixels, g, "a loss per pixel")
    return _mean(cast("Tensor", pixels), weight)


def _mean(pixels: Tensor, weight: Tensor | None) -> Tensor:
    return pixels.mean() if weight is None else (pixels * weight).sum()


def _check_result(call: object, result: object, like: Tensor, what: str) -> None:
    if not isinstance(result, Tensor) or result.shape != like.shape:
        came = f"shape {tuple(result.shape)}" if isinstance(result, Tensor) else repr(result)
        raise ValueError(
            f"the term {getattr(call, '__name__', call)!r} returned {came}; expected {what}, shape "
            f"{tuple(like.shape)}; use reduction='none', or mark a region term with region_term"
        )

"""The terms of a loss: a loss per pixel, or a value per frame computed from sums over the frame.

A *separable* term is a mean over pixels; a *region* term is anything else. Both are defined here for
any part of an image; taking them over frames instead of whole images makes the loss size-invariant.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar, cast

import torch
from torch import Tensor
from torch.nn import functional

from sisod.common.arguments import check_flag, check_known, check_number, short_repr
from sisod.losses.box_sums import Parts
from sisod.scoring.loss_options import TERM_NAMES, check_term_numbers, parse_term

EPS = 1e-7  # least denominator of a region term

# prediction, gt, weights -> weighted sum or mean; the plain mean if there are no weights
PixelTerm = Callable[[Tensor, Tensor, "PixelWeights | None"], Tensor]
# gt, frames -> (p -> value per frame), which frames count; what depends on gt alone is computed once
Prepared = tuple[Callable[[Tensor], Tensor], Tensor]
RegionTerm = Callable[[Tensor, Parts], Prepared]
Term = str | Callable[..., Tensor]
_Function = TypeVar("_Function", bound=Callable[..., Tensor])
_T = TypeVar("_T")
Weighted = tuple[float, _T]


class PixelWeights(NamedTuple):
    """The weight of every pixel, (B, H, W).

    Attributes:
        map: the weights.
        is_relative: the weights multiply those of the plain loss, so all 1 is exactly the plain loss, a
            mean over pixels; otherwise those of an image sum to 1.
    """

    map: Tensor
    is_relative: bool


def region_term(function: _Function) -> _Function:
    """Mark a loss of your own as a region term: `function(p, g, box_sum)` returns a value per frame.

    `p` are probabilities and `g` the ground truth, both (B, H, W); `box_sum` turns any such map into its
    sums over every frame, or other part. A callable without this mark is a separable term:
    `function(logits, gt)` returns a loss per pixel.

    Example:
        By how much the predicted area is wrong, relative to the true one:

        >>> @region_term
        ... def area_error(p, g, box_sum):
        ...     return (box_sum(p) - box_sum(g)).abs() / box_sum(g).clamp(min=1)
    """
    function.is_region_term = True  # type: ignore[attr-defined]
    return function


def dice(*, squared: bool = True) -> str:
    """Return the name of the Dice loss, a region term.

    Args:
        squared: 1 - 2 sum pg / (sum p^2 + sum g^2), as the paper prints it; False leaves the squares
            out, 1 - 2 sum pg / (sum p + sum g), as EDN's authors and the paper's released code do.

    Example:
        >>> dice()
        'dice'
        >>> dice(squared=False)  # in a recipe: terms = ["bce", "dice(squared=false)"]
        'dice(squared=false)'
    """
    check_flag("squared", squared)
    return "dice" if squared else "dice(squared=false)"


def tversky(a: float, b: float) -> str:
    """Return the name of Tversky's loss, 1 - TP / (TP + a FP + b FN), a region term.

    TP = sum pg, FP = sum p(1 - g), FN = sum (1 - p)g. With b above a, missed pixels weigh more than
    false alarms; 1 and 1 is `"iou"`, 0.5 and 0.5 is `dice(squared=False)`.

    Args:
        a: weight of false positives.
        b: weight of false negatives.

    Example:
        >>> tversky(0.3, 0.7)  # in a recipe: terms = ["bce", "tversky(0.3,0.7)"]
        'tversky(0.3,0.7)'
    """
    numbers = check_term_numbers("tversky", a, b)
    return f"tversky({numbers['a']!r},{numbers['b']!r})"


def focal(g: float) -> str:
    """Return the name of the focal loss, (1 - p_t)^g times binary cross-entropy, a separable term.

    p_t is the probability of the true class: p where the ground truth is 1, 1 - p where it is 0, and in
    proportion between. Both classes have the same weight.

    Args:
        g: exponent; 0 is `"bce"`, 2 is usual.

    Example:
        >>> focal(2)
        'focal(2.0)'
    """
    return f"focal({check_term_numbers('focal', g)['g']!r})"


def bce_from_logits(logits: Tensor, g: Tensor, weights: PixelWeights | None) -> Tensor:
    """Binary cross-entropy, numerically stable for logits of any size."""
    weight, is_mean = (None, True) if weights is None else weights
    reduction = "mean" if is_mean else "sum"
    return functional.binary_cross_entropy_with_logits(logits, g, weight=weight, reduction=reduction)


def bce_from_probs(p: Tensor, g: Tensor, weights: PixelWeights | None) -> Tensor:
    """Binary cross-entropy with logarithms clamped at -100, as PyTorch does."""
    return _reduce(functional.binary_cross_entropy(p, g, reduction="none"), weights)


def focal_from_logits(
    logits: Tensor, target: Tensor, weights: PixelWeights | None, *, g: float
) -> Tensor:
    """Binary cross-entropy times the g-th power of the probability of the wrong class."""
    pixels = functional.binary_cross_entropy_with_logits(logits, target, reduction="none")
    wrong = torch.lerp(logits.sigmoid(), (-logits).sigmoid(), target)  # 1 - p would lose digits
    return _reduce(pixels * _power(wrong, g), weights)


def focal_from_probs(p: Tensor, target: Tensor, weights: PixelWeights | None, *, g: float) -> Tensor:
    """The same of probabilities, with logarithms clamped at -100."""
    pixels = functional.binary_cross_entropy(p, target, reduction="none")
    return _reduce(pixels * _power(torch.lerp(p, 1 - p, target), g), weights)


def _power(values: Tensor, exponent: float) -> Tensor:
    # the derivative of a power below 1 is infinite at 0
    return values.clamp(min=torch.finfo(values.dtype).tiny) ** exponent


def mse(p: Tensor, g: Tensor, weights: PixelWeights | None) -> Tensor:
    """Squared error."""
    return _reduce((p - g).square(), weights)


def l1(p: Tensor, g: Tensor, weights: PixelWeights | None) -> Tensor:
    """Absolute error: its size-invariant form is SI-MAE."""
    return _reduce((p - g).abs(), weights)


def dice_loss(g: Tensor, parts: Parts) -> Prepared:
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


def tversky_loss(g: Tensor, parts: Parts, *, a: float, b: float) -> Prepared:
    """1 - TP / (TP + a FP + b FN), with TP = sum pg, FP = sum p - TP and FN = sum g - TP."""
    g_sum = parts.sum(g)

    def value(p: Tensor) -> Tensor:
        hits, p_sum = parts.sums(p, g, None)
        errors = a * (p_sum - hits) + b * (g_sum - hits)
        return 1 - hits / (hits + errors).clamp(min=EPS)

    return value, torch.ones_like(g_sum)


def auc(g: Tensor, parts: Parts) -> Prepared:
    """The mean of (1 - (a - b))^2 over all pairs of a positive pixel a and a negative one b of a frame.

    With c = 1 - a that is m(c^2) + m(b^2) + 2 m(c) m(b), m the mean: sums over pixels instead of pairs,
    and no cancellation. A frame of one class has no pairs and does not count.
    """
    negative = 1 - g
    n_positive, n_negative = parts.sum(g), parts.sum(negative)
    counts = ((n_positive > 0) & (n_negative > 0)).to(g.dtype)
    n_positive, n_negative = n_positive.clamp(min=EPS), n_negative.clamp(min=EPS)

    def value(p: Tensor) -> Tensor:
        q = 1 - p
        c, b = q * g, p * negative
        squares = parts.sum(c * q) / n_positive + parts.sum(b * p) / n_negative
        means = (parts.sum(c) / n_positive) * (parts.sum(b) / n_negative)
        return counts * (squares + 2 * means)

    return value, counts


# of logits, and of probabilities
ON_INPUT: dict[str, tuple[Callable[..., Tensor], Callable[..., Tensor]]] = {
    "bce": (bce_from_logits, bce_from_probs),
    "focal": (focal_from_logits, focal_from_probs),
}
ON_PROBS: dict[str, Callable[..., Tensor]] = {"mse": mse, "l1": l1}
REGION: dict[str, Callable[..., Prepared]] = {
    "dice": dice_loss,
    "iou": iou,
    "auc": auc,
    "tversky": tversky_loss,
}
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
    """The terms of a loss by what they are computed from, each with its weight.

    Attributes:
        on_input: separable terms of the input maps, which are logits unless `from_probs`.
        on_probs: separable terms of probabilities.
        region: region terms, of probabilities.
        from_probs: whether the input maps are probabilities.
    """

    on_input: tuple[Weighted[PixelTerm], ...]
    on_probs: tuple[Weighted[PixelTerm], ...]
    region: tuple[Weighted[RegionTerm], ...]
    from_probs: bool

    @property
    def need_probs(self) -> bool:
        """Whether logits must go through the sigmoid."""
        return bool(self.on_probs or self.region) and not self.from_probs


def sort_terms(
    terms: Sequence[Term], *, weights: Sequence[float] | None = None, from_probs: bool = False
) -> Terms:
    """Sort terms by kind; raise if a name is unknown."""
    if not terms:
        raise ValueError(f"a loss needs at least one term; available: {', '.join(sorted(TERM_NAMES))}")
    if isinstance(terms, str):
        raise ValueError(f"terms is the string {terms!r}; expected a list of terms like [{terms!r}]")
    check_flag("from_probs", from_probs)
    if isinstance(weights, str) or not isinstance(weights, Sequence | None):
        raise ValueError(f"weights must be a list of numbers, one per term, got {short_repr(weights)}")
    given = [1.0] * len(terms) if weights is None else weights
    factors = [check_number("every weight", weight, least=-math.inf) for weight in given]
    if len(factors) != len(terms):
        raise ValueError(f"there are {len(terms)} terms but {len(factors)} weights; give one per term")
    on_input: list[Weighted[PixelTerm]] = []
    on_probs: list[Weighted[PixelTerm]] = []
    region: list[Weighted[RegionTerm]] = []
    for term, weight in zip(terms, factors, strict=True):
        if isinstance(term, str):
            name, numbers = parse_term(term)
            if name in REGION:
                region.append((weight, partial(REGION[name], **numbers)))
            elif name in ON_PROBS:
                on_probs.append((weight, partial(ON_PROBS[name], **numbers)))
            else:
                on_input.append((weight, partial(ON_INPUT[name][from_probs], **numbers)))
        elif not callable(term):
            raise TypeError(f"a term is a name or a callable, got {term!r}; weights go into weights=")
        elif getattr(term, "is_region_term", False):
            region.append((weight, partial(_own_region_term, term)))
        else:
            on_input.append((weight, partial(_own_pixel_term, term)))
    return Terms(tuple(on_input), tuple(on_probs), tuple(region), from_probs)


def network_terms(name: str) -> tuple[str, ...]:
    """Return the terms that the paper gives the mask maps of a network.

    Example:
        >>> network_terms("edn")
        ('bce', 'dice')
    """
    check_known("network", name, _PAPER_TERMS)
    return _PAPER_TERMS[name]


def network_targets(name: str) -> tuple[str, ...]:
    """Return what each map of a network of the paper learns; empty if all maps learn the mask."""
    return _PAPER_TARGETS.get(name, ())


def _own_region_term(call: Callable[..., Tensor], g: Tensor, parts: Parts) -> Prepared:
    """Turn a callable marked with `region_term` into a region term."""
    counts = torch.ones_like(parts.sum(g))

    def value(p: Tensor) -> Tensor:
        values: object = call(p, g, parts.sum)
        _check_result(call, values, counts, "a value per frame")
        return cast("Tensor", values)

    return value, counts


def _own_pixel_term(
    call: Callable[..., Tensor], map_: Tensor, g: Tensor, weights: PixelWeights | None
) -> Tensor:
    """Turn a callable without the mark into a separable term; its result must be a map, not a number."""
    pixels: object = call(map_, g)
    _check_result(call, pixels, g, "a loss per pixel")
    return _reduce(cast("Tensor", pixels), weights)


def _reduce(pixels: Tensor, weights: PixelWeights | None) -> Tensor:
    if weights is None:
        return pixels.mean()
    weighted = pixels * weights.map
    return weighted.mean() if weights.is_relative else weighted.sum()


def _check_result(call: object, result: object, expected: Tensor, what: str) -> None:
    if not isinstance(result, Tensor) or result.shape != expected.shape:
        got = f"shape {tuple(result.shape)}" if isinstance(result, Tensor) else repr(result)
        raise ValueError(
            f"the term {getattr(call, '__name__', call)!r} returned {got}; expected {what}, shape "
            f"{tuple(expected.shape)}; use reduction='none', or mark a region term with region_term"
        )

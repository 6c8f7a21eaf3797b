"""The terms of a loss: a loss per pixel, or a value per frame computed from sums over the frame.

A *separable* term is a mean over pixels; a *region* term is anything else. Both are defined here for
any part of an image; taking them over frames instead of whole images makes the loss size-invariant.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

import torch
from torch import Tensor
from torch.nn import functional

from sisod.common.arguments import check_flag, check_number, short_repr
from sisod.losses.parts import Regions, can_use_custom_autograd
from sisod.scoring.loss_options import TERM_NAMES, Mode, check_term_numbers, parse_term

EPS = 1e-7  # least denominator of a region term

# prediction, truth -> loss per pixel
PixelTerm = Callable[[Tensor, Tensor], Tensor]
# parts -> (p -> value per part), which parts count; what depends on the truth alone is computed once
Prepared = tuple[Callable[[Tensor], Tensor], Tensor]
RegionTerm = Callable[[Regions], Prepared]
Term = str | Callable[..., Tensor]
_Function = TypeVar("_Function", bound=Callable[..., Tensor])
_T = TypeVar("_T")
Weighted = tuple[float, _T]


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


def bce_from_logits(logits: Tensor, g: Tensor) -> Tensor:
    """Binary cross-entropy, numerically stable for logits of any size."""
    return functional.binary_cross_entropy_with_logits(logits, g, reduction="none")


class WeightedBce(torch.autograd.Function):
    """The mean of weighted binary cross-entropy of logits, and their probabilities.

    Takes half the time of PyTorch's: the maps are read in blocks that stay in the processor's cache,
    and gradient and region terms share one sigmoid.
    """

    @staticmethod
    def forward(logits: Tensor, g: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Return both."""
        probs, total = torch.empty_like(logits, memory_format=torch.contiguous_format), 0.0
        for x, target, w, p in zip(*map(_blocks, (logits, g, weight, probs)), strict=True):
            torch.sigmoid(x, out=p)
            # max(x, 0) - x g + log(1 + e^-|x|)
            pixels = x.abs().neg_().exp_().log1p_().addcmul_(x, target, value=-1).add_(x.clamp(min=0))
            total += float(pixels.mul_(w).sum())
        return logits.new_tensor(total / logits.numel()), probs

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        """Keep what the gradient needs."""
        ctx.save_for_backward(*inputs[1:], output[1])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradient of the logits, which can be differentiated again if asked."""
        g, weight, p = ctx.saved_tensors
        of_mean, of_probs = gradients
        scale = of_mean / p.numel()
        if torch.is_grad_enabled() or not all(map(can_use_custom_autograd, gradients)):
            return of_probs * (1 - p) * p + (p - g) * weight * scale, None, None
        total, factor = torch.empty_like(p), float(scale)
        maps = map(_blocks, (total, of_probs, p, g, weight))
        for block, each, probs, target, w in zip(*maps, strict=True):
            torch.ops.aten.sigmoid_backward.grad_input(each, probs, grad_input=block)
            block.add_((probs - target).mul_(w), alpha=factor)
        return total, None, None


def _blocks(maps: Tensor) -> tuple[Tensor, ...]:
    """Return flattened maps in pieces that fit into the processor's cache."""
    return torch.split(maps.reshape(-1), 2**16)


def bce_from_probs(p: Tensor, g: Tensor) -> Tensor:
    """Binary cross-entropy with logarithms clamped at -100, as PyTorch does."""
    return functional.binary_cross_entropy(p, g, reduction="none")


def focal_from_logits(logits: Tensor, target: Tensor, *, g: float) -> Tensor:
    """Binary cross-entropy times the g-th power of the probability of the wrong class."""
    wrong = torch.lerp(logits.sigmoid(), (-logits).sigmoid(), target)  # 1 - p would lose digits
    return bce_from_logits(logits, target) * _power(wrong, g)


def focal_from_probs(p: Tensor, target: Tensor, *, g: float) -> Tensor:
    """The same of probabilities, with logarithms clamped at -100."""
    return bce_from_probs(p, target) * _power(torch.lerp(p, 1 - p, target), g)


def _power(values: Tensor, exponent: float) -> Tensor:
    # the derivative of a power below 1 is infinite at 0
    return values.clamp(min=torch.finfo(values.dtype).tiny) ** exponent


def mse(p: Tensor, g: Tensor) -> Tensor:
    """Squared error."""
    return (p - g).square()


def l1(p: Tensor, g: Tensor) -> Tensor:
    """Absolute error: its size-invariant form is SI-MAE."""
    return (p - g).abs()


def class_bce_from_logits(logits: Tensor, classes: Tensor) -> Tensor:
    """Cross-entropy of the softmax of maps of classes (B, C, ...)."""
    return functional.cross_entropy(logits, classes, reduction="none")


def class_bce_from_probs(p: Tensor, classes: Tensor) -> Tensor:
    """Cross-entropy of probabilities, with logarithms clamped at -100."""
    return -_of_class(p, classes).log().clamp(min=-100)


def class_focal_from_logits(logits: Tensor, classes: Tensor, *, g: float) -> Tensor:
    """Cross-entropy times the g-th power of the probability of all wrong classes."""
    pixels = class_bce_from_logits(logits, classes)
    return pixels * _power(-torch.expm1(-pixels), g)


def class_focal_from_probs(p: Tensor, classes: Tensor, *, g: float) -> Tensor:
    """The same of probabilities, with logarithms clamped at -100."""
    return class_bce_from_probs(p, classes) * _power(1 - _of_class(p, classes), g)


def class_mse(p: Tensor, classes: Tensor) -> Tensor:
    """Half the sum over classes of the squared error; of two classes that of either."""
    return (p.square().sum(dim=1) + 1) / 2 - _of_class(p, classes)


def class_l1(p: Tensor, classes: Tensor) -> Tensor:
    """Half the sum over classes of the absolute error, the probability of all wrong classes."""
    return 1 - _of_class(p, classes)


def _of_class(p: Tensor, classes: Tensor) -> Tensor:
    return p.gather(1, classes[:, None]).squeeze(1)


def dice_loss(parts: Regions) -> Prepared:
    """1 - 2 sum pg / (sum p^2 + sum g^2); the paper's appendix lacks the "1 -"."""
    g = parts.truth
    (g_squared,) = parts.sums(g, g)

    def value(p: Tensor) -> Tensor:
        overlap, p_squared = parts.sums(p, g, p)
        return 1 - 2 * overlap / (p_squared + g_squared).clamp(min=EPS)

    return value, parts.exists


def iou(parts: Regions) -> Prepared:
    """1 - sum pg / (sum p + sum g - sum pg)."""
    g = parts.truth
    (g_sum,) = parts.sums(g, None)

    def value(p: Tensor) -> Tensor:
        overlap, p_sum = parts.sums(p, g, None)
        return 1 - overlap / (p_sum + g_sum - overlap).clamp(min=EPS)

    return value, parts.exists


def tversky_loss(parts: Regions, *, a: float, b: float) -> Prepared:
    """1 - TP / (TP + a FP + b FN), with TP = sum pg, FP = sum p - TP and FN = sum g - TP."""
    g = parts.truth
    (g_sum,) = parts.sums(g, None)

    def value(p: Tensor) -> Tensor:
        hits, p_sum = parts.sums(p, g, None)
        errors = a * (p_sum - hits) + b * (g_sum - hits)
        return 1 - hits / (hits + errors).clamp(min=EPS)

    return value, parts.exists


def auc(parts: Regions) -> Prepared:
    """The mean of (1 - (a - b))^2 over all pairs of a positive pixel a and a negative one b of a part.

    With c = 1 - a that is m(c^2) + m(b^2) + 2 m(c) m(b), m the mean: sums over pixels instead of pairs,
    and no cancellation. A part of one class has no pairs and does not count.
    """
    g = parts.truth
    negative = (1 if parts.valid is None else parts.valid) - g
    (n_positive,), (n_negative,) = parts.sums(g, None), parts.sums(negative, None)
    counts = ((n_positive > 0) & (n_negative > 0)).to(g.dtype)
    n_positive, n_negative = n_positive.clamp(min=EPS), n_negative.clamp(min=EPS)

    def value(p: Tensor) -> Tensor:
        q = 1 - p
        c, b = q * g, p * negative
        sums = [parts.sums(map_, None)[0] for map_ in (c * q, b * p, c, b)]
        squares = sums[0] / n_positive + sums[1] / n_negative
        return counts * (squares + 2 * (sums[2] / n_positive) * (sums[3] / n_negative))

    return value, counts


# of logits and of probabilities, and the same of maps of classes
ON_INPUT: dict[str, tuple[Callable[..., Tensor], ...]] = {
    "bce": (bce_from_logits, bce_from_probs, class_bce_from_logits, class_bce_from_probs),
    "focal": (focal_from_logits, focal_from_probs, class_focal_from_logits, class_focal_from_probs),
}
# of one map, and of maps of classes
ON_PROBS: dict[str, tuple[Callable[..., Tensor], ...]] = {"mse": (mse, class_mse), "l1": (l1, class_l1)}
REGION: dict[str, Callable[..., Prepared]] = {
    "dice": dice_loss,
    "iou": iou,
    "auc": auc,
    "tversky": tversky_loss,
}


@dataclass(frozen=True)
class Terms:
    """The terms of a loss by what they are computed from, each with its weight.

    Attributes:
        on_input: separable terms of the input maps, which are logits unless `from_probs`.
        on_probs: separable terms of probabilities.
        region: region terms, of probabilities.
        from_probs: whether the input maps are probabilities.
        mode: says what the maps are.
    """

    on_input: tuple[Weighted[PixelTerm], ...]
    on_probs: tuple[Weighted[PixelTerm], ...]
    region: tuple[Weighted[RegionTerm], ...]
    from_probs: bool
    mode: Mode

    def probs(self, maps: Tensor) -> Tensor:
        """Return the probabilities of maps, if any term needs them."""
        if self.from_probs or not (self.on_probs or self.region):
            return maps
        return maps.softmax(dim=1) if self.mode == "multiclass" else maps.sigmoid()


def sort_terms(
    terms: Sequence[Term],
    *,
    weights: Sequence[float] | None = None,
    from_probs: bool = False,
    mode: Mode = "binary",
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
    is_multiclass = mode == "multiclass"
    for term, weight in zip(terms, factors, strict=True):
        if isinstance(term, str):
            name, numbers = parse_term(term)
            if name in REGION:
                region.append((weight, partial(REGION[name], **numbers)))
            elif name in ON_PROBS:
                on_probs.append((weight, ON_PROBS[name][is_multiclass]))
            else:
                function = ON_INPUT[name][2 * is_multiclass + from_probs]
                on_input.append((weight, partial(function, **numbers) if numbers else function))
        elif not callable(term):
            raise TypeError(f"a term is a name or a callable, got {term!r}; weights go into weights=")
        elif getattr(term, "is_region_term", False):
            region.append((weight, partial(_own_region_term, term)))
        else:
            on_input.append((weight, partial(_own_pixel_term, term)))
    return Terms(tuple(on_input), tuple(on_probs), tuple(region), from_probs, mode)


def _own_region_term(call: Callable[..., Tensor], parts: Regions) -> Prepared:
    """Turn a callable marked with `region_term` into a region term."""

    def value(p: Tensor) -> Tensor:
        values: object = call(p, parts.truth, parts.sum)
        _check_result(call, values, parts.exists, "a value per part")
        return cast("Tensor", values)

    return value, parts.exists


def _own_pixel_term(call: Callable[..., Tensor], map_: Tensor, truth: Tensor) -> Tensor:
    """Check the result of a callable without the mark: it must be a map, not a number."""
    pixels: object = call(map_, truth)
    _check_result(call, pixels, truth, "a loss per pixel")
    return cast("Tensor", pixels)


def _check_result(call: object, result: object, expected: Tensor, what: str) -> None:
    if not isinstance(result, Tensor) or result.shape != expected.shape:
        got = f"shape {tuple(result.shape)}" if isinstance(result, Tensor) else repr(result)
        raise ValueError(
            f"the term {getattr(call, '__name__', call)!r} returned {got}; expected {what}, shape "
            f"{tuple(expected.shape)}; use reduction='none', or mark a region term with region_term"
        )

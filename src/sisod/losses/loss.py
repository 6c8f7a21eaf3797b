"""The losses: the sum over frames of the paper's Eq. 16, and the plain mean that it replaces."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

from sisod.common.arguments import check_flag
from sisod.losses.box_sums import Frames, WholeImages, full_precision, make_frames
from sisod.losses.boxes import boxes_of, check_boxes
from sisod.losses.checks import Maps, as_planes
from sisod.losses.decoupled import DecoupledLoss
from sisod.losses.terms import Term, Terms, network_targets, network_terms, sort_terms
from sisod.losses.weight_maps import frame_weights
from sisod.scoring.partition import Alpha, check_alpha

_find_boxes: Callable[[Tensor], Tensor] = torch.compiler.disable(  # type: ignore[no-untyped-call]
    boxes_of, reason="components are found outside the graph; give boxes=boxes_of(gt) to the loss"
)


def size_invariant_loss(
    logits: Maps,
    gt: Tensor,
    boxes: Tensor | None = None,
    *,
    terms: Sequence[Term],
    alpha: Alpha = "ratio",
    normalize: bool = True,
    from_probs: bool = False,
    weights: Sequence[float] | None = None,
) -> Tensor:
    """Return the size-invariant loss of a batch; see `SizeInvariantLoss`.

    Example:
        An object of 16 pixels is found, one of a single pixel is missed:

        >>> gt = torch.zeros(1, 8, 8)
        >>> gt[0, :4, :4] = gt[0, 7, 7] = 1
        >>> p = gt.clone()
        >>> p[0, 7, 7] = 0
        >>> plain_loss(p, gt, terms=["l1"], from_probs=True)  # 1/64
        tensor(0.0156)
        >>> size_invariant_loss(p, gt, terms=["l1"], from_probs=True)  # 1 / (2 + 47/17)
        tensor(0.2099)
    """
    check_alpha(alpha)
    check_flag("normalize", normalize)
    sorted_terms = sort_terms(terms, weights=weights, from_probs=from_probs)
    return _size_invariant(logits, gt, boxes, sorted_terms, alpha=alpha, normalize=normalize)


def plain_loss(
    logits: Maps,
    gt: Tensor,
    *,
    terms: Sequence[Term],
    from_probs: bool = False,
    weights: Sequence[float] | None = None,
) -> Tensor:
    """Return the ordinary loss of a batch; see `PlainLoss`."""
    return _plain(logits, gt, sort_terms(terms, weights=weights, from_probs=from_probs))


class SizeInvariantLoss(nn.Module):
    """The loss in which every object has the same weight.

    For each image: a separable term (a mean over pixels) becomes (sum_k l_k + alpha l_back) over
    K + alpha, a region term its mean over the frames; then the mean over images. Side outputs are
    summed, each with the same frames. An image without objects has the plain separable loss and no
    region terms.

    Args:
        terms: `"bce"`, `"mse"`, `"l1"` (separable), `"dice"`, `"iou"`, `"auc"` (region), a callable
            `(logits, gt) -> loss per pixel`, or one marked with `region_term`.
        alpha: weight of the background: `"ratio"`, `"union"` or a number; see `sisod.partition`.
        normalize: divide by K + alpha, and region terms by K. False is Eq. 16 as printed, in which
            images with smaller objects have more weight; `docs/losses.md` says how much more.
        from_probs: `logits` are probabilities.
        weights: one per term; all 1 if not given.

    Call with `logits`, a tensor (B, 1, H, W) or (B, H, W) or a sequence of them; `gt` of the same shape
    with values in [0, 1]; and `boxes`, rows (image, y0, x0, y1, x1) as from `boxes_of`. Without `boxes`
    they are computed from `gt`, which for tensors on a device means waiting for it.

    Example:
        >>> loss = SizeInvariantLoss("bce", "dice")
        >>> gt = torch.zeros(2, 1, 16, 16)
        >>> gt[:, :, 2:6, 2:6] = gt[:, :, 12, 12] = 1
        >>> loss(torch.zeros(2, 1, 16, 16), gt, boxes_of(gt))  # p = 0.5: log 2, and Dice 0.2
        tensor(0.8931)
    """

    def __init__(
        self,
        *terms: Term,
        alpha: Alpha = "ratio",
        normalize: bool = True,
        from_probs: bool = False,
        weights: Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        check_alpha(alpha)
        check_flag("normalize", normalize)
        self.terms = sort_terms(terms, weights=weights, from_probs=from_probs)
        self.alpha = alpha
        self.normalize = normalize

    @classmethod
    def for_network(
        cls,
        name: str,
        *,
        alpha: Alpha = "ratio",
        normalize: bool = True,
        from_probs: bool = False,
    ) -> "SizeInvariantLoss | DecoupledLoss":
        """Return the loss that the paper trains one of its five networks with.

        For a network that learns body and detail too, `gt` is a mapping of mask, body and detail; only
        the mask maps get the size-invariant loss, see `DecoupledLoss`.
        """
        terms = network_terms(name)
        loss = cls(*terms, alpha=alpha, normalize=normalize, from_probs=from_probs)
        return _with_auxiliary_maps(loss, name, from_probs=from_probs)

    def forward(self, logits: Maps, gt: Tensor, boxes: Tensor | None = None) -> Tensor:
        """Return the loss of a batch, a scalar."""
        return _size_invariant(logits, gt, boxes, self.terms, alpha=self.alpha, normalize=self.normalize)


class PlainLoss(nn.Module):
    """The same terms over whole images, each a mean over its pixels; then the mean over images.

    Differs from `SizeInvariantLoss` in nothing else: it is called in the same way and ignores `boxes`.

    Example:
        >>> gt = torch.zeros(2, 1, 16, 16)
        >>> PlainLoss("bce")(torch.zeros(2, 1, 16, 16), gt)
        tensor(0.6931)
    """

    def __init__(
        self, *terms: Term, from_probs: bool = False, weights: Sequence[float] | None = None
    ) -> None:
        super().__init__()
        self.terms = sort_terms(terms, weights=weights, from_probs=from_probs)

    @classmethod
    def for_network(cls, name: str, *, from_probs: bool = False) -> "PlainLoss | DecoupledLoss":
        """Return the original loss of a network of the paper; see `SizeInvariantLoss.for_network`."""
        loss = cls(*network_terms(name), from_probs=from_probs)
        return _with_auxiliary_maps(loss, name, from_probs=from_probs)

    def forward(self, logits: Maps, gt: Tensor, boxes: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """Return the loss of a batch, a scalar."""
        return _plain(logits, gt, self.terms)


_Loss = TypeVar("_Loss", SizeInvariantLoss, PlainLoss)


def _with_auxiliary_maps(loss: _Loss, name: str, *, from_probs: bool) -> _Loss | DecoupledLoss:
    """Add the plain loss of the maps that are no masks, if the network has any."""
    targets = network_targets(name)
    return DecoupledLoss(loss, PlainLoss("bce", from_probs=from_probs), targets) if targets else loss


def _size_invariant(
    logits: Maps, gt: Tensor, boxes: Tensor | None, terms: Terms, *, alpha: Alpha, normalize: bool
) -> Tensor:
    maps, g = as_planes(logits, gt, from_probs=terms.from_probs)
    n_images, height, width = g.shape
    rows = _find_boxes(gt) if boxes is None else boxes
    check_boxes(rows, g.shape)
    with full_precision(g):
        frames = make_frames(rows, (n_images, height, width), reference=g)
        weight = frame_weights(frames, alpha=alpha, normalize=normalize)
        return _sum_terms(maps, g, terms, frames, weight, normalize=normalize)


def _plain(logits: Maps, gt: Tensor, terms: Terms) -> Tensor:
    maps, g = as_planes(logits, gt, from_probs=terms.from_probs)
    with full_precision(g):
        return _sum_terms(maps, g, terms, WholeImages(), None, normalize=True)


def _sum_terms(
    maps: Sequence[Tensor],
    g: Tensor,
    terms: Terms,
    parts: Frames | WholeImages,
    pixel_weight: Tensor | None,
    *,
    normalize: bool,
) -> Tensor:
    """Sum the terms of all side outputs, each with the same frames."""
    regions = []
    for factor, region in terms.region:
        value, counts = region(g, parts)
        shares = parts.shares(counts) if normalize else counts
        regions.append((value, shares * (factor / len(g))))
    losses = []
    divisor = 1 if pixel_weight is None else len(g)  # weighted terms are sums over images, not means
    for map_ in maps:
        p = map_.sigmoid() if terms.need_probs else map_
        losses += [factor / divisor * term(map_, g, pixel_weight) for factor, term in terms.on_input]
        losses += [factor / divisor * term(p, g, pixel_weight) for factor, term in terms.on_probs]
        losses += [(value(p) * shares).sum() for value, shares in regions]
    return sum(losses[1:], losses[0])

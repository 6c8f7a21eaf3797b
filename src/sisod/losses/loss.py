"""The losses: the size-invariant loss, also as the paper's Eq. 16 prints it, and the plain mean."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, nn

from sisod.losses.box_sums import WholeImages, make_frames, no_autocast, with_images
from sisod.losses.boxes import boxes_of, check_boxes
from sisod.losses.checks import Maps, as_planes
from sisod.losses.decoupled import DecoupledLoss
from sisod.losses.label_sums import are_whole_images, label_parts
from sisod.losses.labels import check_labels, labels_of
from sisod.losses.terms import (
    Parts,
    PixelWeights,
    Term,
    Terms,
    network_targets,
    network_terms,
    sort_terms,
)
from sisod.losses.weight_maps import frame_weights
from sisod.scoring.loss_options import PartKind, check_weighting
from sisod.scoring.partition import Alpha

_find_boxes: Callable[..., Tensor] = torch.compiler.disable(  # type: ignore[no-untyped-call]
    boxes_of, reason="components are found outside the graph; give boxes=boxes_of(gt) to the loss"
)
_find_labels: Callable[..., Tensor] = torch.compiler.disable(  # type: ignore[no-untyped-call]
    labels_of, reason="cells are found outside the graph; give boxes and labels to the loss"
)


@dataclass(frozen=True)
class Weighting:
    """How the parts of an image are weighed; see `SizeInvariantLoss`."""

    parts: PartKind = "boxes"
    alpha: Alpha = "ratio"
    normalize: bool = True
    image_weight: float = 0.0
    gamma: float = 1.0
    min_area: float = 0.0002
    connectivity: Literal[4, 8] = 8

    def __post_init__(self) -> None:
        check_weighting(**asdict(self))


def size_invariant_loss(
    logits: Maps,
    gt: Tensor,
    boxes: Tensor | None = None,
    labels: Tensor | None = None,
    *,
    terms: Sequence[Term],
    alpha: Alpha = "ratio",
    normalize: bool = True,
    parts: PartKind = "boxes",
    image_weight: float = 0.0,
    gamma: float = 1.0,
    min_area: float = 0.0002,
    connectivity: Literal[4, 8] = 8,
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
    weighting = Weighting(parts, alpha, normalize, image_weight, gamma, min_area, connectivity)
    sorted_terms = sort_terms(terms, weights=weights, from_probs=from_probs)
    return _size_invariant(logits, gt, boxes, labels, sorted_terms, weighting)


def plain_loss(
    logits: Maps,
    gt: Tensor,
    *,
    terms: Sequence[Term],
    from_probs: bool = False,
    weights: Sequence[float] | None = None,
) -> Tensor:
    """Return the plain loss of a batch; see `PlainLoss`."""
    return _plain(logits, gt, sort_terms(terms, weights=weights, from_probs=from_probs))


class SizeInvariantLoss(nn.Module):
    """The loss in which every object has the same weight.

    For each image: a separable term (a mean over pixels) becomes (sum_k l_k + alpha l_back) over
    K + alpha, a region term its mean over the frames; then the mean over images. Side outputs are
    summed, each with the same frames. An image without objects has the plain separable loss and no
    region terms. The paper's Eq. 16 does not divide, which is `normalize=False`.

    Args:
        terms: `"bce"`, `"mse"`, `"l1"`, `focal(g)` (separable), `"dice"`, `"iou"`, `"auc"`,
            `tversky(a, b)` (region), a callable `(logits, gt) -> loss per pixel`, or one marked with
            `region_term`.
        alpha: weight of the background: `"ratio"`, `"union"` or a number; see `sisod.partition`.
        parts: what the means are taken over. `"boxes"`, the paper's frames and the background between
            them; `"cells"`, every pixel in the cell of its nearest object, no background; `"blobs"`,
            each object with all pixels of no other object.
        image_weight: share w of the plain loss of the image in every term, (1 - w) x parts + w x image:
            1 is the plain loss. An image without objects has w times its plain region terms.
        gamma: weighs boxes in separable terms by S_k^(1 - gamma), and the background by K^(1 - gamma)
            alpha: 1 gives all boxes the same weight, 0 is the plain loss where none overlap.
        min_area: smaller components are no objects, as for `sisod.partition`.
        connectivity: of the components, 8 or 4.
        normalize: divide by K + alpha, and region terms by K. False is Eq. 16 as printed, in which
            images with smaller objects have more weight; `docs/losses.md` says how much more.
        from_probs: `logits` are probabilities.
        weights: one per term; all 1 if not given.

    Call with `logits`, a tensor (B, 1, H, W) or (B, H, W) or a sequence of them; `gt` of the same shape
    with values in [0, 1]; and `boxes`, rows (image, y0, x0, y1, x1) as from `boxes_of`, or, for cells
    and blobs, `labels` as from `labels_of`. If not given they are computed from `gt`, by `min_area` and
    `connectivity`, which for tensors on a device means waiting for it. Labels on a device are not read
    if the `boxes` are given too.

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
        parts: PartKind = "boxes",
        image_weight: float = 0.0,
        gamma: float = 1.0,
        min_area: float = 0.0002,
        connectivity: Literal[4, 8] = 8,
        from_probs: bool = False,
        weights: Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        self.weighting = Weighting(parts, alpha, normalize, image_weight, gamma, min_area, connectivity)
        self.terms = sort_terms(terms, weights=weights, from_probs=from_probs)
        self._description = _describe(
            terms, **asdict(self.weighting), from_probs=from_probs, weights=weights
        )

    def extra_repr(self) -> str:
        """Return terms and options for `repr`, and so for a printed model."""
        return self._description

    @classmethod
    def for_network(
        cls, name: str, *, from_probs: bool = False, **options: Any
    ) -> "SizeInvariantLoss | DecoupledLoss":
        """Return the loss with the terms that the paper gives one of its five networks.

        Args:
            name: `"edn"`, `"icon"`, `"gatenet"`, `"ldf"` or `"poolnet"`. LDF learns body and detail too:
                `gt` is a mapping of mask, body and detail, and only the mask maps get the
                size-invariant loss, see `DecoupledLoss`.
            from_probs: as for the class.
            options: of the class; `normalize=False` is the paper's Eq. 16 as printed.
        """
        loss = cls(*network_terms(name), from_probs=from_probs, **options)
        return _with_auxiliary_maps(loss, name, from_probs=from_probs)

    def forward(
        self, logits: Maps, gt: Tensor, boxes: Tensor | None = None, labels: Tensor | None = None
    ) -> Tensor:
        """Return the loss of a batch, a scalar."""
        return _size_invariant(logits, gt, boxes, labels, self.terms, self.weighting)


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
        self._description = _describe(terms, from_probs=from_probs, weights=weights)

    def extra_repr(self) -> str:
        """Return terms and options for `repr`, and so for a printed model."""
        return self._description

    @classmethod
    def for_network(cls, name: str, *, from_probs: bool = False) -> "PlainLoss | DecoupledLoss":
        """Return the original loss of a network of the paper; see `SizeInvariantLoss.for_network`."""
        loss = cls(*network_terms(name), from_probs=from_probs)
        return _with_auxiliary_maps(loss, name, from_probs=from_probs)

    def forward(
        self,
        logits: Maps,
        gt: Tensor,
        boxes: Tensor | None = None,  # noqa: ARG002
        labels: Tensor | None = None,  # noqa: ARG002
    ) -> Tensor:
        """Return the loss of a batch, a scalar."""
        return _plain(logits, gt, self.terms)


def _describe(terms: Sequence[Term], **options: object) -> str:
    """Return terms and options as they are written in a call; options at their default are left out."""
    names = [
        repr(term) if isinstance(term, str) else getattr(term, "__name__", type(term).__name__)
        for term in terms
    ]
    usual = {**asdict(Weighting()), "from_probs": False, "weights": None}
    given = [f"{name}={value!r}" for name, value in options.items() if value != usual[name]]
    return ", ".join([*names, *given])


_Loss = TypeVar("_Loss", SizeInvariantLoss, PlainLoss)


def _with_auxiliary_maps(loss: _Loss, name: str, *, from_probs: bool) -> _Loss | DecoupledLoss:
    """Add the plain loss of the maps that are no masks, if the network has any."""
    targets = network_targets(name)
    return DecoupledLoss(loss, PlainLoss("bce", from_probs=from_probs), targets) if targets else loss


def _size_invariant(
    logits: Maps,
    gt: Tensor,
    boxes: Tensor | None,
    labels: Tensor | None,
    terms: Terms,
    weighting: Weighting,
) -> Tensor:
    maps, g = as_planes(logits, gt, from_probs=terms.from_probs)
    objects = {"connectivity": weighting.connectivity, "min_area": weighting.min_area}
    with no_autocast(g):
        if weighting.image_weight == 1:
            parts, weights = None, None
        elif weighting.parts == "boxes":
            found = _find_boxes(gt, **objects) if boxes is None else boxes
            parts, weights = _boxes(g, found, weighting)
        else:
            found = _find_labels(gt, weighting.parts, **objects) if labels is None else labels
            parts, weights = _labelled(g, found, boxes, weighting)
        return _sum_terms(maps, g, terms, parts, weights, normalize=weighting.normalize)


def _boxes(g: Tensor, boxes: Tensor, weighting: Weighting) -> tuple[Parts, PixelWeights]:
    _, height, width = shape = g.shape[0], g.shape[1], g.shape[2]
    check_boxes(boxes, g.shape)
    frames = make_frames(boxes, shape, reference=g)
    weight = frame_weights(
        frames, alpha=weighting.alpha, normalize=weighting.normalize, gamma=weighting.gamma
    )
    if weighting.image_weight == 0:
        return frames, PixelWeights(weight, is_relative=False)
    relative = torch.lerp(weight * (height * width), torch.ones_like(weight), weighting.image_weight)
    both = make_frames(with_images(boxes, shape), shape, reference=g)
    return replace(both, image_weight=weighting.image_weight), PixelWeights(relative, is_relative=True)


def _labelled(
    g: Tensor, labels: Tensor, boxes: Tensor | None, weighting: Weighting
) -> tuple[Parts | None, PixelWeights | None]:
    assert weighting.parts != "boxes"  # noqa: S101  (for the type checker)
    planes = check_labels(labels, g.shape, weighting.parts)
    if boxes is not None:
        check_boxes(boxes, g.shape)
    if are_whole_images(planes, weighting.parts):
        return None, None
    parts = label_parts(
        planes, weighting.parts, reference=g, boxes=boxes, image_weight=weighting.image_weight
    )
    return parts, PixelWeights(parts.weights(), is_relative=True)


def _weighted_sum(values: Tensor, shares: Tensor) -> Tensor:
    """Return the sum over parts; a part without pixels has share 0, whatever a term gives for it."""
    return torch.where(shares != 0, values * shares, 0).sum()


def _plain(logits: Maps, gt: Tensor, terms: Terms) -> Tensor:
    maps, g = as_planes(logits, gt, from_probs=terms.from_probs)
    with no_autocast(g):
        return _sum_terms(maps, g, terms, None, None)


def _sum_terms(
    maps: Sequence[Tensor],
    g: Tensor,
    terms: Terms,
    parts: Parts | None,
    weights: PixelWeights | None,
    *,
    normalize: bool = True,
) -> Tensor:
    """Sum the terms of all side outputs, each with the same parts; None stands for whole images."""
    parts = WholeImages() if parts is None else parts
    regions = []
    for factor, region in terms.region:
        value, counts = region(g, parts)
        shares = parts.shares(counts) if normalize else counts
        regions.append((value, shares * (factor / len(g))))
    losses = []
    # weights that are not relative make sums over images, not means
    divisor = 1 if weights is None or weights.is_relative else len(g)
    for map_ in maps:
        p = map_.sigmoid() if terms.need_probs else map_
        losses += [factor / divisor * term(map_, g, weights) for factor, term in terms.on_input]
        losses += [factor / divisor * term(p, g, weights) for factor, term in terms.on_probs]
        losses += [_weighted_sum(value(p), shares) for value, shares in regions]
    return sum(losses[1:], losses[0])

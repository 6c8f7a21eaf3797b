"""The losses: size-invariant, balanced, plain; for masks, several classes and volumes."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, Literal, cast, get_args

import torch
from torch import Tensor, nn

from sisod.common.arguments import check_choice
from sisod.losses.checks import Maps, Target, read_batch, warn_if_empty
from sisod.losses.networks import paper_loss
from sisod.losses.objects import parts_in
from sisod.losses.parts import can_use_custom_autograd, no_autocast
from sisod.losses.terms import PixelTerm, Term, Terms, WeightedBce, bce_from_logits, sort_terms
from sisod.losses.weighting import weigh
from sisod.scoring.loss_options import (
    BALANCED_IMAGE_WEIGHT,
    BALANCED_PARTS,
    BALANCED_TERMS,
    Mode,
    PartKind,
    Weighting,
)
from sisod.scoring.partition import Alpha

Reduction = Literal["mean", "none"]
_find_parts: Callable[..., dict[str, Tensor]] = torch.compiler.disable(  # type: ignore[no-untyped-call]
    parts_in,
    reason="objects are found outside the graph; give the loss **parts_of(target, ...)",
)


class _TermLoss(nn.Module):
    """Terms over the parts of images."""

    def __init__(
        self,
        terms: Sequence[Term],
        weighting: Weighting,
        *,
        from_probs: bool,
        weights: Sequence[float] | None,
        reduction: Reduction,
    ) -> None:
        super().__init__()
        check_choice("reduction", reduction, get_args(Reduction))
        self.weighting = weighting
        self.reduction: Reduction = reduction
        self.terms = sort_terms(terms, weights=weights, from_probs=from_probs, mode=weighting.mode)
        names = [
            repr(term) if isinstance(term, str) else getattr(term, "__name__", type(term).__name__)
            for term in terms
        ]
        usual = Weighting(image_weight=1.0) if isinstance(self, PlainLoss) else Weighting()
        extra = {"from_probs": from_probs, "weights": weights, "reduction": reduction}
        defaults = {**asdict(usual), "from_probs": False, "weights": None, "reduction": "mean"}
        options = {**asdict(weighting), **extra}
        given = [f"{name}={value!r}" for name, value in options.items() if value != defaults[name]]
        self._description = ", ".join([*names, *given])

    def extra_repr(self) -> str:
        """Return terms and options for `repr`, and so for a printed model."""
        return self._description

    def forward(
        self,
        input: Maps,  # noqa: A002  (PyTorch's name)
        target: Tensor,
        boxes: Tensor | None = None,
        labels: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of a batch, a scalar; with `reduction="none"` one value per image."""
        weighting, terms = self.weighting, self.terms
        maps, truth = read_batch(
            input,
            target,
            mode=weighting.mode,
            ignore_index=weighting.ignore_index,
            from_probs=terms.from_probs,
        )
        if isinstance(self, PlainLoss) and not (terms.on_input or terms.on_probs):
            warn_if_empty(truth)
        with no_autocast(truth.truth):
            return _loss(maps, truth, boxes, labels, terms, weighting, self.reduction)


class SizeInvariantLoss(_TermLoss):
    """The loss in which every object of an image has the same weight.

    For each image: a separable term (a mean over pixels) becomes (sum_k l_k + alpha l_back) over
    K + alpha, a region term its mean over the frames of the objects; then the mean over images. Side
    outputs are summed, each with the same frames. An image without objects has the plain separable
    loss and no region terms.

    Call it like PyTorch's losses, `loss(input, target)`: logits and ground truth, or a sequence of side
    outputs as input. The objects are found in `target`; found in the data loader's workers (`WithParts`,
    `parts_of`), they are given too: `loss(input, target, boxes, labels)`.

    Args:
        terms: `"bce"`, `"mse"`, `"l1"`, `focal(g)` (separable), `"dice"`, `"iou"`, `"auc"`,
            `tversky(a, b)` (region), a callable `(input, target) -> loss per pixel`, or one marked with
            `region_term`.
        mode: `"binary"`: input (B, 1, H, W) or (B, H, W), target of the same shape, values in [0, 1].
            `"multilabel"`: (B, C, H, W) both, the mean over channels of the binary loss.
            `"multiclass"`: input (B, C, H, W), target integers (B, H, W), class 0 the background; an
            object is a component of one class, separable terms are those of the softmax, region terms
            are taken over the map of the object's class. Volumes have a depth before the height.
        ignore_index: value of target pixels that belong to no part and no sum.
        parts: what the means are taken over. `"boxes"`, the paper's frames and the background between
            them; `"cells"`, every pixel in the cell of its nearest object, no background.
        image_weight: share w of the plain loss of the image in every term, (1 - w) x parts + w x image.
        alpha: weight of the background: `"ratio"`, `"union"` or a number; see `sisod.partition`.
        min_area: smaller components are no objects, as for `sisod.partition`; 0 keeps all.
        connectivity: of the components, 8 (in volumes 26) or 4 (in volumes 6).
        from_probs: input are probabilities.
        weights: one per term; all 1 if not given.
        reduction: `"mean"`, or `"none"` for one value per image.
        check_parts: raise if given boxes do not fit the target, as boxes found before a flip.
        options: `normalize` and `gamma`, for the trials of `docs/losses.md`.

    Example:
        >>> loss = SizeInvariantLoss("bce", "dice")
        >>> gt = torch.zeros(2, 1, 16, 16)
        >>> gt[:, :, 2:6, 2:6] = gt[:, :, 12, 12] = 1
        >>> loss(torch.zeros(2, 1, 16, 16), gt)  # p = 0.5: log 2, and Dice 0.2
        tensor(0.8931)
        >>> classes = torch.tensor([[[0, 0, 7, 255]]])
        >>> loss = SizeInvariantLoss("bce", "dice", mode="multiclass", ignore_index=255)
        >>> loss(torch.zeros(1, 19, 1, 4), classes)  # p = 1/19: log 19, and Dice 1 - 2 p / (1 + p^2)
        tensor(3.8395)
    """

    def __init__(
        self,
        *terms: Term,
        mode: Mode = "binary",
        ignore_index: int | None = None,
        parts: PartKind = "boxes",
        image_weight: float = 0.0,
        alpha: Alpha = "ratio",
        min_area: float = 0.0002,
        connectivity: Literal[4, 8] = 8,
        from_probs: bool = False,
        weights: Sequence[float] | None = None,
        reduction: Reduction = "mean",
        check_parts: bool = True,
        **options: Any,
    ) -> None:
        weighting = Weighting(
            mode=mode,
            ignore_index=ignore_index,
            parts=parts,
            image_weight=image_weight,
            alpha=alpha,
            min_area=min_area,
            connectivity=connectivity,
            check_parts=check_parts,
            **options,
        )
        super().__init__(terms, weighting, from_probs=from_probs, weights=weights, reduction=reduction)

    @classmethod
    def for_network(cls, name: str, *, from_probs: bool = False, **options: Any) -> nn.Module:
        """Return the loss with the terms that the paper gives one of its five networks.

        Args:
            name: `"edn"`, `"icon"`, `"gatenet"`, `"ldf"` or `"poolnet"`. LDF learns body and detail too:
                `target` is a mapping of mask, body and detail, and only the mask maps get the
                size-invariant loss, see `DecoupledLoss`.
            from_probs: as for the class.
            options: of the class; `normalize=False` is the paper's Eq. 16 as printed.
        """
        plain_loss = partial(PlainLoss, from_probs=from_probs)
        return paper_loss(name, partial(cls, from_probs=from_probs, **options), plain_loss)


class BalancedLoss(SizeInvariantLoss):
    """The loss to begin with: small objects count, and so do false ones.

    Half of it is the mean over the cells of the objects, half the plain loss of the image, both of
    cross-entropy and Tversky's loss. It is called like `SizeInvariantLoss`.

    Args:
        options: `mode`, `ignore_index`, `min_area` and so on, as for `SizeInvariantLoss`.

    Example:
        >>> loss = BalancedLoss(mode="multiclass", ignore_index=255)
        >>> loss(torch.zeros(1, 3, 4, 4), torch.ones(1, 4, 4, dtype=torch.long))
        tensor(1.6819)
    """

    def __init__(self, **options: Any) -> None:
        given = {"parts": BALANCED_PARTS, "image_weight": BALANCED_IMAGE_WEIGHT, **options}
        super().__init__(*BALANCED_TERMS, **given)


class PlainLoss(_TermLoss):
    """The same terms over whole images, each a mean over its pixels; then the mean over images.

    Differs from `SizeInvariantLoss` in nothing else: it is called in the same way and ignores `boxes`
    and `labels`. In an image of several classes a region term is the mean over the classes that it has,
    without class 0. In an empty image the built-in region terms are 1 (AUC: 0), without a gradient.

    Args:
        terms: as for `SizeInvariantLoss`, and so are all others.
        mode: see there.
        ignore_index: see there.
        from_probs: see there.
        weights: see there.
        reduction: see there.

    Example:
        >>> gt = torch.zeros(2, 1, 16, 16)
        >>> PlainLoss("bce")(torch.zeros(2, 1, 16, 16), gt)
        tensor(0.6931)
    """

    def __init__(
        self,
        *terms: Term,
        mode: Mode = "binary",
        ignore_index: int | None = None,
        from_probs: bool = False,
        weights: Sequence[float] | None = None,
        reduction: Reduction = "mean",
    ) -> None:
        weighting = Weighting(mode=mode, ignore_index=ignore_index, image_weight=1.0)
        super().__init__(terms, weighting, from_probs=from_probs, weights=weights, reduction=reduction)

    @classmethod
    def for_network(cls, name: str, *, from_probs: bool = False) -> nn.Module:
        """Return the original loss of a network of the paper; see `SizeInvariantLoss.for_network`."""
        plain_loss = partial(cls, from_probs=from_probs)
        return paper_loss(name, plain_loss, plain_loss)


def size_invariant_loss(
    input: Maps,  # noqa: A002  (PyTorch's name)
    target: Tensor,
    boxes: Tensor | None = None,
    labels: Tensor | None = None,
    *,
    terms: Sequence[Term],
    **options: Any,
) -> Tensor:
    """Return the size-invariant loss of a batch; a function for `SizeInvariantLoss`.

    Args:
        input: as for a call of `SizeInvariantLoss`, and so are the next three.
        target: ground truth.
        boxes: from `boxes_of`.
        labels: from `labels_of`.
        terms: as for `SizeInvariantLoss`, and so are all options.
        options: `mode`, `parts`, `from_probs` and so on.

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
    loss: Tensor = SizeInvariantLoss(*terms, **options)(input, target, boxes, labels)
    return loss


def plain_loss(
    input: Maps,  # noqa: A002  (PyTorch's name)
    target: Tensor,
    *,
    terms: Sequence[Term],
    **options: Any,
) -> Tensor:
    """Return the plain loss of a batch; a function for `PlainLoss`.

    Args:
        input: as for a call of `PlainLoss`.
        target: ground truth.
        terms: as for `PlainLoss`, and so are all options.
        options: `mode`, `from_probs` and so on.

    Example:
        >>> plain_loss(torch.zeros(1, 4, 4), torch.zeros(1, 4, 4), terms=["bce"])  # log 2
        tensor(0.6931)
    """
    loss: Tensor = PlainLoss(*terms, **options)(input, target)
    return loss


def _loss(
    maps: Sequence[Tensor],
    target: Target,
    boxes: Tensor | None,
    labels: Tensor | None,
    terms: Terms,
    weighting: Weighting,
    reduction: Reduction,
) -> Tensor:
    """Sum the terms of all side outputs, each with the same parts."""
    check = weighting.check_parts
    needed = boxes if weighting.parts == "boxes" else labels
    if needed is None and weighting.image_weight < 1:
        found = _find_parts(target, weighting)
        boxes, labels, check = found["boxes"], found.get("labels"), False
    parts, weight = weigh(target, boxes, labels, weighting, check=check)
    n_planes = len(target.truth)
    regions = []
    for factor, region in terms.region:
        value, counts = region(parts)
        shares = parts.shares(counts, n_planes) if weighting.normalize else counts
        regions.append((value, shares * (factor / n_planes)))
    losses = []
    for map_ in maps:
        bce, p = _bce_and_probs(map_, target, weight, terms, reduction)
        for values, pixel_terms in ((map_, terms.on_input), (p, terms.on_probs)):
            for factor, term in pixel_terms:
                if bce is not None and term is bce_from_logits:
                    losses.append(factor * bce)
                else:
                    losses.append(factor * _mean(term, values, target.truth, weight, reduction))
        selected = parts.select(p) if regions else p
        for value, shares in regions:
            # a part without pixels has share 0, whatever a term gives for it
            each = torch.where(shares != 0, value(selected) * shares, 0)
            if reduction == "none":
                losses.append(each.new_zeros(n_planes).index_add(0, parts.plane, each) * n_planes)
            else:
                losses.append(each.sum())
    total = sum(losses[1:], losses[0])
    return total if reduction == "mean" else total.view(-1, target.channels).mean(dim=1)


def _bce_and_probs(
    map_: Tensor, target: Target, weight: Tensor | None, terms: Terms, reduction: Reduction
) -> tuple[Tensor | None, Tensor]:
    """Return the mean cross-entropy, if it is computed together with the probabilities, and these."""
    has_bce = any(term is bce_from_logits for _, term in terms.on_input)
    if not has_bce or weight is None or reduction == "none" or not can_use_custom_autograd(map_):
        return None, terms.probs(map_)
    return cast("tuple[Tensor, Tensor]", cast("Any", WeightedBce.apply)(map_, target.truth, weight))


def _mean(
    term: PixelTerm, values: Tensor, truth: Tensor, weight: Tensor | None, reduction: Reduction
) -> Tensor:
    """Return the mean of a separable term over all pixels, or over those of each plane."""
    if reduction == "mean" and term is bce_from_logits:  # in one pass
        return nn.functional.binary_cross_entropy_with_logits(values, truth, weight=weight)
    pixels = term(values, truth)
    weighted = pixels if weight is None else pixels * weight
    return weighted.mean() if reduction == "mean" else weighted.flatten(1).mean(dim=1)

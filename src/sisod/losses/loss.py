"""The losses: the size-invariant loss, also as the paper's Eq. 16 prints it, and the plain mean."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, nn

from sisod.losses.box_sums import WholeImages, no_autocast
from sisod.losses.checks import Maps, as_planes
from sisod.losses.objects import boxes_of, labels_of
from sisod.losses.terms import Term, Terms, network_targets, network_terms, sort_terms
from sisod.losses.weighting import Weighting, weigh_parts
from sisod.scoring.loss_options import PartKind
from sisod.scoring.partition import Alpha

_find_boxes: Callable[..., Tensor] = torch.compiler.disable(  # type: ignore[no-untyped-call]
    boxes_of, reason="components are found outside the graph; give boxes=boxes_of(gt) to the loss"
)
_find_labels: Callable[..., Tensor] = torch.compiler.disable(  # type: ignore[no-untyped-call]
    labels_of, reason="cells are found outside the graph; give boxes and labels to the loss"
)
_WHOLE_IMAGES = Weighting(image_weight=1.0)


def size_invariant_loss(
    logits: Maps,
    gt: Tensor,
    boxes: Tensor | None = None,
    labels: Tensor | None = None,
    *,
    terms: Sequence[Term],
    from_probs: bool = False,
    weights: Sequence[float] | None = None,
    **options: Any,
) -> Tensor:
    """Return the size-invariant loss of a batch, a scalar.

    Args:
        logits: as for a call of `SizeInvariantLoss`, and so are the next three.
        gt: ground truth.
        boxes: from `boxes_of`.
        labels: from `labels_of`.
        terms: as for `SizeInvariantLoss`, and so are all other arguments.
        from_probs: `logits` are probabilities.
        weights: of the terms.
        options: `parts`, `alpha`, `image_weight` and so on.

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
    sorted_terms = sort_terms(terms, weights=weights, from_probs=from_probs)
    return _loss(logits, gt, boxes, labels, sorted_terms, Weighting(**options))


def plain_loss(
    logits: Maps,
    gt: Tensor,
    *,
    terms: Sequence[Term],
    from_probs: bool = False,
    weights: Sequence[float] | None = None,
) -> Tensor:
    """Return the plain loss of a batch, a scalar.

    Args:
        logits: as for a call of `PlainLoss`.
        gt: ground truth of the same shape.
        terms: as for `SizeInvariantLoss`, and so are the next two.
        from_probs: `logits` are probabilities.
        weights: of the terms.

    Example:
        >>> plain_loss(torch.zeros(1, 4, 4), torch.zeros(1, 4, 4), terms=["bce"])  # log 2
        tensor(0.6931)
    """
    sorted_terms = sort_terms(terms, weights=weights, from_probs=from_probs)
    return _loss(logits, gt, None, None, sorted_terms, _WHOLE_IMAGES)


class _TermLoss(nn.Module):
    """Terms over the parts of images."""

    def __init__(
        self,
        terms: Sequence[Term],
        weighting: Weighting,
        *,
        from_probs: bool,
        weights: Sequence[float] | None,
    ) -> None:
        super().__init__()
        self.weighting = weighting
        self.terms = sort_terms(terms, weights=weights, from_probs=from_probs)
        names = [
            repr(term) if isinstance(term, str) else getattr(term, "__name__", type(term).__name__)
            for term in terms
        ]
        usual = _WHOLE_IMAGES if isinstance(self, PlainLoss) else Weighting()
        options = {**asdict(weighting), "from_probs": from_probs, "weights": weights}
        defaults = {**asdict(usual), "from_probs": False, "weights": None}
        given = [f"{name}={value!r}" for name, value in options.items() if value != defaults[name]]
        self._description = ", ".join([*names, *given])

    def extra_repr(self) -> str:
        """Return terms and options for `repr`, and so for a printed model."""
        return self._description

    def forward(
        self, logits: Maps, gt: Tensor, boxes: Tensor | None = None, labels: Tensor | None = None
    ) -> Tensor:
        """Return the loss of a batch, a scalar."""
        return _loss(logits, gt, boxes, labels, self.terms, self.weighting)


class SizeInvariantLoss(_TermLoss):
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
        weighting = Weighting(parts, alpha, normalize, image_weight, gamma, min_area, connectivity)
        super().__init__(terms, weighting, from_probs=from_probs, weights=weights)

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


class PlainLoss(_TermLoss):
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
        super().__init__(terms, _WHOLE_IMAGES, from_probs=from_probs, weights=weights)

    @classmethod
    def for_network(cls, name: str, *, from_probs: bool = False) -> "PlainLoss | DecoupledLoss":
        """Return the original loss of a network of the paper; see `SizeInvariantLoss.for_network`."""
        loss = cls(*network_terms(name), from_probs=from_probs)
        return _with_auxiliary_maps(loss, name, from_probs=from_probs)


class DecoupledLoss(nn.Module):
    """The sum of the losses of all output maps, divided by the number of mask maps.

    A network that decouples its labels predicts, in every pass, a mask and auxiliary maps such as body
    and detail. Only masks hold objects to weigh alike: auxiliary labels are distances, and the paper
    does not mention them, so they keep the loss of the network's own paper, and so does the mean over
    passes.

    Args:
        mask_loss: of the mask maps, called with `boxes` and, if there are any, `labels`.
        auxiliary_loss: of all other maps.
        targets: what each map of the network learns, such as mask, body, detail, in the order of its
            output.

    Call with `logits`, the sequence of maps or a mapping from target to maps; `gt`, a mapping from
    target to labels; and `boxes` and `labels` of the mask, as for `SizeInvariantLoss`.
    """

    def __init__(self, mask_loss: nn.Module, auxiliary_loss: nn.Module, targets: Sequence[str]) -> None:
        super().__init__()
        self.mask_loss = mask_loss
        self.auxiliary_loss = auxiliary_loss
        self.targets = tuple(targets)

    def forward(
        self,
        logits: Mapping[str, Maps] | Sequence[Tensor],
        gt: Mapping[str, Tensor],
        boxes: Tensor | None = None,
        labels: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of a batch, a scalar."""
        kinds = tuple(dict.fromkeys(self.targets))
        maps = logits if isinstance(logits, Mapping) else self._group_by_target(logits)
        for name, mapping in (("logits", maps), ("gt", gt)):
            if not isinstance(mapping, Mapping) or set(mapping) != set(kinds):
                given = sorted(mapping) if isinstance(mapping, Mapping) else type(mapping).__name__
                raise ValueError(f"{name} is {given}; expected a mapping of {', '.join(kinds)}")
        found = {} if labels is None else {"labels": labels}  # a loss of your own may not take them
        total: Tensor = self.mask_loss(maps["mask"], gt["mask"], boxes, **found)
        for kind in kinds:
            if kind != "mask":
                total = total + self.auxiliary_loss(maps[kind], gt[kind])
        return total / self.targets.count("mask")

    def _group_by_target(self, logits: Sequence[Tensor]) -> dict[str, Maps]:
        if len(logits) != len(self.targets):
            raise ValueError(
                f"logits are {len(logits)} maps; expected {len(self.targets)} "
                f"({', '.join(self.targets)}), or a mapping from each of these names to its maps"
            )
        grouped: dict[str, list[Tensor]] = {}
        for target, map_ in zip(self.targets, logits, strict=True):
            grouped.setdefault(target, []).append(map_)
        return dict(grouped)


_AnyLoss = TypeVar("_AnyLoss", SizeInvariantLoss, PlainLoss)


def _with_auxiliary_maps(loss: _AnyLoss, name: str, *, from_probs: bool) -> _AnyLoss | DecoupledLoss:
    """Add the plain loss of the maps that are no masks, if the network has any."""
    targets = network_targets(name)
    return DecoupledLoss(loss, PlainLoss("bce", from_probs=from_probs), targets) if targets else loss


def _loss(
    logits: Maps,
    gt: Tensor,
    boxes: Tensor | None,
    labels: Tensor | None,
    terms: Terms,
    weighting: Weighting,
) -> Tensor:
    """Sum the terms of all side outputs, each with the same parts."""
    maps, g = as_planes(logits, gt, from_probs=terms.from_probs)
    objects = {"connectivity": weighting.connectivity, "min_area": weighting.min_area}
    with no_autocast(g):
        if weighting.image_weight < 1:
            if weighting.parts == "boxes" and boxes is None:
                boxes = _find_boxes(gt, **objects)
            elif weighting.parts != "boxes" and labels is None:
                labels = _find_labels(gt, weighting.parts, **objects)
        found, weights = weigh_parts(g, boxes, labels, weighting)
        parts = WholeImages() if found is None else found
        regions = []
        for factor, region in terms.region:
            value, counts = region(g, parts)
            shares = parts.shares(counts) if weighting.normalize else counts
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


def _weighted_sum(values: Tensor, shares: Tensor) -> Tensor:
    """Return the sum over parts; a part without pixels has share 0, whatever a term gives for it."""
    return torch.where(shares != 0, values * shares, 0).sum()

"""Parts of the images of a batch, and the weight of every pixel that makes a mean size-invariant."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from sisod.common.arguments import check_int
from sisod.common.exceptions import UsageError
from sisod.losses.box_sums import Frames, Parts, make_frames, with_images
from sisod.losses.label_sums import are_whole_images, label_parts
from sisod.losses.objects import check_boxes, check_labels
from sisod.losses.terms import PixelWeights
from sisod.scoring.loss_options import PartKind, check_weighting
from sisod.scoring.partition import Alpha


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


def weigh_parts(
    g: Tensor, boxes: Tensor | None, labels: Tensor | None, weighting: Weighting
) -> tuple[Parts | None, PixelWeights | None]:
    """Return the parts of a batch and the weights of its pixels; None for whole images."""
    if weighting.image_weight == 1:
        return None, None
    if weighting.parts == "boxes":
        if boxes is None:
            raise UsageError("boxes is None but parts is 'boxes'; give boxes=boxes_of(gt)")
        check_boxes(boxes, g.shape)
        return _boxes(g, boxes, weighting)
    if labels is None:
        kind = weighting.parts
        raise UsageError(f"labels is None but parts is {kind!r}; give labels=labels_of(gt, {kind!r})")
    return _labelled(g, labels, boxes, weighting)


def _boxes(g: Tensor, boxes: Tensor, weighting: Weighting) -> tuple[Parts, PixelWeights]:
    _, height, width = shape = g.shape[0], g.shape[1], g.shape[2]
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


def weight_map(
    boxes: Tensor | None, shape: Sequence[int], *, labels: Tensor | None = None, **options: Any
) -> Tensor:
    """Return the weights that make any per-pixel loss size-invariant: `(weight * loss).sum() / B`.

    Every frame adds 1/S_k to each of its pixels, so overlapping frames add up; a pixel in no frame has
    alpha/S_back. In cells and blobs a pixel has the sum of 1/(K S_k) over the parts that it is in.
    `sisod.scoring.size_invariant.weight_map` does the same for the boxes of one image in NumPy.

    Args:
        boxes: rows (image, y0, x0, y1, x1), as from `boxes_of`; None for cells and blobs.
        shape: (B, H, W) or (B, 1, H, W), for example `logits.shape`; the result has it too.
        labels: of cells or blobs, as from `labels_of`.
        options: `alpha`, `parts`, `normalize`, `image_weight` and `gamma` as for `SizeInvariantLoss`;
            with `normalize` the weights of an image sum to one.

    Example:
        >>> boxes = torch.tensor([[0, 0, 0, 2, 2], [0, 0, 3, 1, 4]])
        >>> weight_map(boxes, (1, 2, 4), normalize=False)
        tensor([[[0.2500, 0.2500, 0.2000, 1.0000],
                 [0.2500, 0.2500, 0.2000, 0.2000]]])
        >>> labels = torch.tensor([[[0, 0, 0, 1], [0, 0, 0, 1]]])  # cells of 6 and of 2 pixels
        >>> weight_map(None, (1, 2, 4), parts="cells", labels=labels)
        tensor([[[0.0833, 0.0833, 0.0833, 0.2500],
                 [0.0833, 0.0833, 0.0833, 0.2500]]])
    """
    weighting = Weighting(**options)
    if len(shape) not in (3, 4) or (len(shape) == 4 and shape[1] != 1):
        raise ValueError(f"shape is {tuple(shape)}; expected (B, H, W) or (B, 1, H, W)")
    for side in shape:
        check_int("every side of shape", side, least=1)
    given = boxes if labels is None else labels
    g = torch.zeros((shape[0], *shape[-2:]), device=None if given is None else given.device)
    _, weights = weigh_parts(g, boxes, labels, weighting)
    if weights is None:
        weights = PixelWeights(torch.ones_like(g), is_relative=True)
    weight = weights.map / (shape[-2] * shape[-1]) if weights.is_relative else weights.map
    return weight.view(tuple(shape))


def frame_weights(frames: Frames, *, alpha: Alpha, normalize: bool, gamma: float = 1.0) -> Tensor:
    """Return the weight of every pixel of checked frames, (B, H, W)."""
    _, height, width = frames.shape
    n_frames = frames.per_image(torch.ones_like(frames.area))
    importance, background_importance = _importance(frames, n_frames, gamma)
    weight = frames.spread(importance / frames.area)
    background = torch.eq(weight, 0, out=torch.empty_like(weight))  # as 0 and 1, in one pass
    n_background = background.sum(dim=(1, 2))
    if alpha == "ratio":
        background_weight = 1 / frames.per_image(frames.area)
    elif alpha == "union":
        background_weight = 1 / (height * width - n_background)
    else:
        background_weight = alpha / n_background.clamp(min=1)
    background_weight = background_weight * background_importance
    # without frames all weight is on the background: the plain loss
    background_weight = torch.where(n_frames > 0, background_weight, 1 / (height * width))
    weight.addcmul_(background, background_weight[:, None, None])
    return (
        weight.div_((n_frames + background_weight * n_background)[:, None, None])
        if normalize
        else weight
    )


def _importance(frames: Frames, n_frames: Tensor, gamma: float) -> tuple[Tensor | float, Tensor | float]:
    """Return the weight of each frame beside the others of its image, and the factor of its alpha.

    Frame k weighs S_k^(1 - gamma) over the mean of these, the background K^(1 - gamma) alpha: 1 treats
    all frames alike, 0 weighs by area, which is the plain loss where no frames overlap.
    """
    if gamma == 1:
        return 1.0, 1.0
    powers = frames.area ** (1 - gamma)
    mean = frames.per_image(powers) / n_frames
    return powers / mean[frames.image], n_frames ** (1 - gamma)

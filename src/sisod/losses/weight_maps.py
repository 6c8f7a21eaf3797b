"""Parts -> the weight of every pixel that makes a mean over pixels size-invariant, in PyTorch."""

from collections.abc import Sequence

import torch
from torch import Tensor

from sisod.common.arguments import check_int
from sisod.common.exceptions import UsageError
from sisod.losses.box_sums import Frames, make_frames
from sisod.losses.boxes import check_boxes
from sisod.losses.label_sums import label_parts
from sisod.losses.labels import check_labels
from sisod.scoring.loss_options import PartKind, check_weighting
from sisod.scoring.partition import Alpha


def weight_map(
    boxes: Tensor | None,
    shape: Sequence[int],
    *,
    alpha: Alpha = "ratio",
    normalize: bool = True,
    parts: PartKind = "boxes",
    image_weight: float = 0.0,
    gamma: float = 1.0,
    labels: Tensor | None = None,
) -> Tensor:
    """Return the weights that make any per-pixel loss size-invariant: `(weight * loss).sum() / B`.

    Every frame adds 1/S_k to each of its pixels, so overlapping frames add up; a pixel in no frame has
    alpha/S_back. In cells and blobs a pixel has the sum of 1/(K S_k) over the parts that it is in.
    `sisod.scoring.size_invariant.weight_map` does the same for the boxes of one image in NumPy.

    Args:
        boxes: rows (image, y0, x0, y1, x1), as from `boxes_of`; None for cells and blobs.
        shape: (B, H, W) or (B, 1, H, W), for example `logits.shape`; the result has it too.
        alpha: as for `sisod.partition`.
        normalize: divide by K + alpha, so that the weights of an image sum to one; False is Eq. 16 as
            printed.
        parts: as for `SizeInvariantLoss`.
        image_weight: as for `SizeInvariantLoss`.
        gamma: as for `SizeInvariantLoss`.
        labels: of cells or blobs, as from `labels_of`.

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
    check_weighting(
        parts=parts, alpha=alpha, normalize=normalize, image_weight=image_weight, gamma=gamma
    )
    if len(shape) not in (3, 4) or (len(shape) == 4 and shape[1] != 1):
        raise ValueError(f"shape is {tuple(shape)}; expected (B, H, W) or (B, 1, H, W)")
    for side in shape:
        check_int("every side of shape", side, least=1)
    planes = (shape[0], shape[-2], shape[-1])
    if parts == "boxes":
        if boxes is None:
            raise UsageError("boxes is None but parts is 'boxes'; give boxes=boxes_of(gt)")
        check_boxes(boxes, planes)
        frames = make_frames(boxes, planes, reference=torch.empty(0, device=boxes.device))
        weight = frame_weights(frames, alpha=alpha, normalize=normalize, gamma=gamma)
        plain = torch.full_like(weight, 1 / (planes[1] * planes[2]))
        weight = torch.lerp(weight, plain, image_weight) if image_weight else weight
    else:
        if labels is None:
            raise UsageError(
                f"labels is None but parts is {parts!r}; give labels=labels_of(gt, {parts!r})"
            )
        labels = check_labels(labels, planes, parts)
        if boxes is not None:
            check_boxes(boxes, planes)
        reference = torch.empty(planes, device=labels.device)
        labelled = label_parts(
            labels, parts, reference=reference, boxes=boxes, image_weight=image_weight
        )
        weight = labelled.weights() / (planes[1] * planes[2])
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

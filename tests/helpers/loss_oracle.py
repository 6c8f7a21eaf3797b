"""A slow, independent implementation of the losses: crop by crop, from the paper's equations.

Nothing is shared with the library: frames are Python slices, the background a list of pixels, the AUC
loss a sum over all pairs. Gradients come from autograd through these crops.
"""

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor

Box = tuple[int, int, int, int]
Loss = Callable[[Tensor, Tensor], Tensor]


def bce(p: Tensor, g: Tensor) -> Tensor:
    """The paper's binary cross-entropy, its misplaced p and g corrected."""
    return -(g * p.log() + (1 - g) * (1 - p).log()).mean()


def mse(p: Tensor, g: Tensor) -> Tensor:
    return ((p - g) ** 2).mean()


def l1(p: Tensor, g: Tensor) -> Tensor:
    return (p - g).abs().mean()


def dice(p: Tensor, g: Tensor) -> Tensor:
    return 1 - 2 * (p * g).sum() / ((p * p).sum() + (g * g).sum()).clamp(min=1e-7)


def unsquared_dice(p: Tensor, g: Tensor) -> Tensor:
    return 1 - 2 * (p * g).sum() / (p.sum() + g.sum()).clamp(min=1e-7)


def iou(p: Tensor, g: Tensor) -> Tensor:
    return 1 - (p * g).sum() / ((p + g).sum() - (p * g).sum()).clamp(min=1e-7)


def auc(p: Tensor, g: Tensor) -> Tensor | None:
    """The mean over pairs of the square surrogate; a soft pixel is partly of either class."""
    pairs = g[:, None] * (1 - g)[None, :]
    if not pairs.sum() > 0:
        return None
    margins = (1 - (p[:, None] - p[None, :])) ** 2
    return (pairs * margins).sum() / pairs.sum()


def focal(p: Tensor, g: Tensor) -> Tensor:
    """The focal loss with exponent 2."""
    p_true = p * g + (1 - p) * (1 - g)
    return -((1 - p_true) ** 2 * (g * p.log() + (1 - g) * (1 - p).log())).mean()


def tversky(p: Tensor, g: Tensor) -> Tensor:
    """False positives weigh 0.3, false negatives 0.7."""
    hits, false_alarms, misses = (p * g).sum(), (p * (1 - g)).sum(), ((1 - p) * g).sum()
    return 1 - hits / (hits + 0.3 * false_alarms + 0.7 * misses).clamp(min=1e-7)


SEPARABLE: dict[str, Loss] = {"bce": bce, "mse": mse, "l1": l1, "focal(2)": focal}
REGION: dict[str, Callable[[Tensor, Tensor], Tensor | None]] = {
    "dice": dice,
    "iou": iou,
    "auc": auc,
    "dice(squared=false)": unsquared_dice,
    "tversky(0.3,0.7)": tversky,
}


def image_loss(
    p: Tensor,
    g: Tensor,
    boxes: Sequence[Box],
    *,
    term: str,
    alpha: float | Literal["ratio", "union"],
    normalize: bool,
) -> Tensor:
    """The loss of one map (H, W) of one image, Eq. 16, divided or not."""
    crops = [(p[y0:y1, x0:x1].flatten(), g[y0:y1, x0:x1].flatten()) for y0, x0, y1, x1 in boxes]
    if term in REGION:
        values = [value for crop in crops if (value := REGION[term](*crop)) is not None]
        total = torch.stack(values).sum() if values else p.new_zeros(())
        return total / max(len(values), 1) if normalize else total
    loss = SEPARABLE[term]
    background = torch.ones(p.shape, dtype=torch.bool)
    for y0, x0, y1, x1 in boxes:
        background[y0:y1, x0:x1] = False
    if not boxes:
        return loss(p, g)
    total = torch.stack([loss(*crop) for crop in crops]).sum()
    weight = float(len(boxes))
    n_background = int(background.sum())
    if n_background:
        framed = sum((y1 - y0) * (x1 - x0) for y0, x0, y1, x1 in boxes)
        union = p.numel() - n_background
        a = {"ratio": n_background / framed, "union": n_background / union}.get(str(alpha), alpha)
        assert isinstance(a, float | int)
        total = total + a * loss(p[background], g[background])
        weight += a
    return total / weight if normalize else total


def batch_loss(
    maps: Sequence[Tensor],
    gt: Tensor,
    boxes: Sequence[Sequence[Box]],
    *,
    terms: Sequence[str],
    alpha: float | Literal["ratio", "union"] = "ratio",
    normalize: bool = True,
    weights: Sequence[float] | None = None,
) -> Tensor:
    """The sum over terms and side outputs (probabilities, (B, H, W)) of the mean over images."""
    total = gt.new_zeros(())
    for term, weight in zip(terms, weights or [1.0] * len(terms), strict=True):
        for p in maps:
            for image, frames in enumerate(boxes):
                value = image_loss(
                    p[image], gt[image], frames, term=term, alpha=alpha, normalize=normalize
                )
                total = total + weight * value / len(boxes)
    return total

"""A slow, independent implementation of the losses of every mode: a loop over images and objects.

Written from the definitions, in NumPy, SciPy and autograd. Components come from `scipy.ndimage`, cells
from all pairs of pixels, and every term is computed on the pixels of one part.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import ndimage
from torch import Tensor

from helpers import loss_oracle

Mask = NDArray[np.bool_]


def find_objects(
    classes: NDArray[Any], connectivity: int = 8, min_area: float = 0
) -> list[tuple[int, Mask]]:
    """The class and the pixels of every object of one class map, ordered by first corner."""
    rank = classes.ndim if connectivity == 8 else 1
    structure = ndimage.generate_binary_structure(classes.ndim, rank)
    found = []
    for label in sorted({int(value) for value in classes.ravel()} - {0}):
        numbers, count = ndimage.label(classes == label, structure)
        found += [(label, numbers == k + 1) for k in range(count)]
    least = min_area if isinstance(min_area, int) else min_area * classes.size - 1e-9
    kept = [each for each in found if each[1].sum() >= least]
    if not kept and found:
        kept = [max(found, key=lambda each: (each[1].sum(), -int(np.argmax(each[1].ravel()))))]
    return sorted(
        kept, key=lambda each: (*np.argwhere(each[1]).min(axis=0), int(np.argmax(each[1].ravel())))
    )


def part_masks(objects: Sequence[tuple[int, Mask]], parts: str) -> list[Mask]:
    """The pixels of the part of every object: of its box, or nearer to it than to any other."""
    points = [np.argwhere(pixels) for _, pixels in objects]
    if not points:
        return []
    shape = objects[0][1].shape
    everywhere = np.argwhere(np.ones(shape))
    if parts == "boxes":
        inside = [((p.min(0) <= everywhere) & (everywhere <= p.max(0))).all(axis=1) for p in points]
    else:
        distances = [((everywhere[:, None] - p) ** 2).sum(axis=2).min(axis=1) for p in points]
        inside = [np.argmin(distances, axis=0) == k for k in range(len(points))]
    return [mask.reshape(shape) for mask in inside]


def binary_pixels(p: Tensor, g: Tensor, term: str) -> Tensor:
    """The loss of every pixel, as the mean over this pixel alone."""
    values = [loss_oracle.SEPARABLE[term](a, b) for a, b in zip(p.flatten(), g.flatten(), strict=True)]
    return torch.stack(values).view(p.shape)


def class_pixels(p: Tensor, classes: Tensor, term: str) -> Tensor:
    """The loss of every pixel of maps of classes (C, ...)."""
    hot = torch.stack([(classes == c).to(p.dtype) for c in range(len(p))])
    right = (p * hot).sum(dim=0)
    return {
        "bce": -right.log(),
        "focal(2)": -((1 - right) ** 2) * right.log(),
        "l1": (p - hot).abs().sum(dim=0) / 2,
        "mse": (p - hot).square().sum(dim=0) / 2,
    }[term]


def region(term: str, p: Tensor, g: Tensor) -> Tensor | None:
    return loss_oracle.REGION[term](p, g)


def mean(values: Sequence[Tensor | None], zero: Tensor) -> Tensor:
    """The mean of those that are defined."""
    known = [value for value in values if value is not None]
    return torch.stack(known).mean() if known else zero


def image_loss(
    p: Tensor,
    truth: Tensor,
    valid: Mask,
    *,
    term: str,
    parts: str,
    image_weight: float,
    is_multiclass: bool,
    **settings: Any,
) -> Tensor:
    """The loss of one image, or of one channel of an image.

    `p` is (C, ...) for classes, else (...); `image_weight` 1 is the plain loss.
    """
    zero, ok = 0 * p.sum(), torch.from_numpy(valid)
    truth = torch.where(ok, truth, 0)  # any value will do
    if not valid.any():
        return zero
    classes = truth.numpy() if is_multiclass else (truth.numpy() >= 0.5).astype(int)
    objects = find_objects(np.where(valid, classes, 0), **settings)
    masks = [torch.from_numpy(mask & valid) for mask in part_masks(objects, parts)]
    if term in loss_oracle.REGION:
        labels = [label for label, _ in objects]
        if is_multiclass:
            of = {c: (p[c], (truth == c).to(p.dtype)) for c in range(1, len(p))}
            there = sorted({int(c) for c in truth[ok]} - {0}) or [1]
        else:
            of, there = {1: (p, truth)}, [1]
        values = [
            region(term, of[label][0][mask], of[label][1][mask])
            for label, mask in zip(labels, masks, strict=True)
        ]
        plain = mean([region(term, of[c][0][ok], of[c][1][ok]) for c in there], zero)
        return (1 - image_weight) * mean(values, zero) + image_weight * plain
    pixels = class_pixels(p, truth, term) if is_multiclass else binary_pixels(p, truth, term)
    plain = pixels[ok].mean()
    if not objects:
        return plain
    total, divisor = sum((pixels[mask].mean() for mask in masks), zero), float(len(masks))
    outside = ok & ~torch.stack(masks).any(dim=0)
    if parts == "boxes" and outside.any():
        alpha = int(outside.sum()) / sum(int(mask.sum()) for mask in masks)
        total, divisor = total + alpha * pixels[outside].mean(), divisor + alpha
    return (1 - image_weight) * total / divisor + image_weight * plain


def batch_losses(
    logits: Tensor, target: Tensor, *, mode: str, ignore_index: int | None, **options: Any
) -> Tensor:
    """The loss of every image; `options` are those of `image_loss`."""
    values = []
    for maps, truth in zip(logits, target, strict=True):
        valid = np.ones(truth.shape, bool) if ignore_index is None else truth.numpy() != ignore_index
        if mode == "multiclass":
            values.append(image_loss(maps.softmax(dim=0), truth, valid, is_multiclass=True, **options))
        else:
            channels = [
                image_loss(one.sigmoid(), g, ok, is_multiclass=False, **options)
                for one, g, ok in zip(maps, truth, valid, strict=True)
            ]
            values.append(torch.stack(channels).mean())
    return torch.stack(values)

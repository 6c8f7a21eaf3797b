"""Parts of the images of a batch, and the weight of every pixel that makes a mean size-invariant."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from sisod.common.arguments import check_int
from sisod.common.exceptions import UsageError
from sisod.losses.checks import Target, read_batch
from sisod.losses.given import Boxes, check_fit, read_boxes, read_labels
from sisod.losses.parts import (
    Masks,
    PixelRuns,
    Regions,
    masks_with_planes,
    runs_of_boxes,
    runs_of_labels,
)
from sisod.losses.tracing import as_array, is_readable
from sisod.scoring.loss_options import Weighting


def weigh(
    target: Target, boxes: Tensor | None, labels: Tensor | None, weighting: Weighting, *, check: bool
) -> tuple[Regions, Tensor | None]:
    """Return the parts of region terms, and the weight of every pixel over that of the plain loss.

    Args:
        target: ground truth.
        boxes: as from `boxes_of`.
        labels: as from `labels_of`, for parts that are no boxes.
        weighting: how parts are weighed.
        check: whether the boxes fit the target.
    """
    if weighting.image_weight == 1:
        return _whole_images(target)
    kind, planes = weighting.parts, None
    if (boxes if kind == "boxes" else labels) is None:
        needed = "boxes" if kind == "boxes" else "labels"
        raise UsageError(f"{needed} is None but parts is {kind!r}; give {needed}={needed}_of(target)")
    if kind == "cells":
        planes = read_labels(cast("Tensor", labels), target)
        # one object in every image: exactly the plain loss
        if is_readable(planes) and target.mode != "multiclass" and not bool(planes.any()):
            return _whole_images(target)
    found = None if boxes is None else read_boxes(boxes, target)
    if torch.compiler.is_compiling():
        layout, found = _lay_out_masks(found, planes, target)
    else:
        if check and found is not None:
            check_fit(found, target)
        layout, found = _lay_out(found, planes, target)
    return _regions(layout, found, target, weighting)


def _lay_out_masks(
    boxes: Boxes | None, labels: Tensor | None, target: Target
) -> tuple[PixelRuns | Masks, Boxes]:
    """Return what `_lay_out` does inside a compiled graph, where nothing is read."""
    if boxes is None:
        raise UsageError("labels are not read inside a compiled graph; give boxes and labels")
    shape, device = tuple(target.truth.shape), target.truth.device
    if labels is None:
        mask = torch.ones((len(boxes.plane), *shape[1:]), dtype=torch.bool, device=device)
        for axis, side in enumerate(shape[1:]):
            position = torch.arange(side, device=device)
            inside = (position >= boxes.low[:, [axis]]) & (position < boxes.high[:, [axis]])
            mask &= inside.view(-1, *(side if at == axis else 1 for at in range(len(shape) - 1)))
    else:
        index = torch.arange(len(boxes.plane), device=device)
        index = index - torch.searchsorted(boxes.plane, boxes.plane)
        mask = labels.to(device)[boxes.plane] == index.view(-1, *[1] * (len(shape) - 1))
    dtype = target.truth.dtype if target.truth.is_floating_point() else torch.float32
    return masks_with_planes(mask.flatten(1).to(dtype), boxes.plane, shape), boxes


def _lay_out(
    boxes: Boxes | None, labels: Tensor | None, target: Target
) -> tuple[PixelRuns | Masks, Boxes]:
    """Return where the objects, the whole planes and the background of each are, and the objects."""
    shape, device = tuple(target.truth.shape), target.truth.device
    if labels is None:
        assert boxes is not None  # noqa: S101  (for the type checker)
        return runs_of_boxes(boxes.plane, boxes.low, boxes.high, shape, device), boxes
    array = as_array(labels)
    highest = array.reshape(len(array), -1).max(axis=1).astype(np.int64)
    if boxes is None:
        if target.mode == "multiclass":
            raise UsageError("labels do not say the classes of objects; give boxes=boxes_of(...) too")
        plane = np.repeat(np.arange(len(array)), highest + 1)
        boxes = Boxes(plane, 0 * plane, None, None)
    counts = np.bincount(boxes.plane, minlength=len(array))
    if (highest >= counts).any():
        raise ValueError("labels has more parts than there are boxes; both are of the same target")
    first = np.cumsum(counts) - counts
    return runs_of_labels(array, len(boxes.plane), first, device), boxes


def _regions(
    layout: PixelRuns | Masks, boxes: Boxes, target: Target, weighting: Weighting
) -> tuple[Regions, Tensor]:
    """Return the parts of region terms, and the weights of pixels."""
    n_planes, device = len(target.truth), target.truth.device
    plane = torch.as_tensor(boxes.plane, device=device)
    area = layout.area(target.valid, target.dtype)
    weights = layout.spread(_part_weights(area, plane, target, weighting))
    if target.valid is not None:
        weights = weights * target.valid
    image_weight = weighting.image_weight
    if target.mode == "multiclass":
        return _class_regions(layout, boxes, area, target, image_weight), weights
    if image_weight:
        plane = torch.cat([plane, torch.arange(n_planes, device=device)])
    exists = (area[: len(plane)] > 0).to(target.dtype)
    valid = None if target.valid is None else layout.select(target.valid)
    truth = layout.select(target.truth)
    return Regions(layout, truth, valid, plane, exists, len(boxes.plane), image_weight), weights


def _part_weights(area: Tensor, plane: Tensor, target: Target, weighting: Weighting) -> Tensor:
    """Return the weight of a pixel of each object, image and background over that of the plain loss.

    A frame has 1/S_k, the background alpha/S_back, all over K + alpha. Without objects all weight is on
    the background: the plain loss.
    """
    n_planes, size = len(target.truth), target.truth[0].numel()
    n_objects = len(plane)
    objects, (images, background) = area[:n_objects], area[n_objects:].view(2, n_planes)

    def per_plane(values: Tensor) -> Tensor:
        return values.new_zeros(n_planes).index_add(0, plane, values)

    exists = (objects > 0).to(area.dtype)
    count = per_plane(exists)
    # frame k weighs S_k^(1 - gamma) over the mean of these, the background K^(1 - gamma) alpha
    powers = exists if weighting.gamma == 1 else exists * objects ** (1 - weighting.gamma)
    importance = powers / (per_plane(powers) / count.clamp(min=1))[plane].clamp(min=1e-30)
    if weighting.parts != "boxes":
        outside = torch.zeros_like(count)
    elif weighting.alpha == "ratio":
        outside = 1 / per_plane(objects).clamp(min=1)
    elif weighting.alpha == "union":
        outside = 1 / (images - background).clamp(min=1)
    else:
        outside = weighting.alpha / background.clamp(min=1)
    if weighting.gamma != 1:
        outside = outside * count ** (1 - weighting.gamma)
    outside = torch.where(count > 0, outside, 1 / images.clamp(min=1))
    total = count + outside * background
    divisor = torch.where(total > 0, total, 1) if weighting.normalize else torch.ones_like(total)
    scale = (1 - weighting.image_weight) * size / divisor
    return torch.cat(
        [
            importance / objects.clamp(min=1) * scale[plane],
            weighting.image_weight * size / images.clamp(min=1),
            outside * scale,
        ]
    )


def _class_regions(
    layout: PixelRuns | Masks, boxes: Boxes, area: Tensor, target: Target, image_weight: float
) -> Regions:
    """Return the parts of maps of classes: every object, and image, in the map of its class."""
    n_objects, device = len(boxes.plane), target.truth.device
    plane, label = (torch.as_tensor(column, device=device) for column in (boxes.plane, boxes.label))
    exists = (area[:n_objects] > 0).to(target.dtype)
    if image_weight:
        image, of_image, is_there = _classes_of_images(target)
        plane, label = torch.cat([plane, image]), torch.cat([label, of_image])
        exists = torch.cat([exists, is_there])
    if isinstance(layout, Masks):
        return _class_planes(layout.mask, plane, label, exists, n_objects, target, image_weight)
    labels, planes = as_array(label), as_array(plane)[n_objects:]
    runs, pixel, of_pixel = layout.of_classes(labels, planes, target.n_classes)
    truth = (target.truth.flatten()[pixel] == of_pixel).to(target.dtype)
    valid = None if target.valid is None else target.valid.flatten()[pixel]
    truth = truth if valid is None else truth * valid
    return Regions(runs, truth, valid, plane, exists, n_objects, image_weight)


def _classes_of_images(target: Target) -> tuple[Tensor, Tensor, Tensor]:
    """Return the pairs of an image and a class that it has, and 1 for those that count.

    Class 1 stands for an image without objects, whose region terms are those of an empty mask.
    """
    shape = len(target.truth), target.n_classes
    valid = torch.ones_like(target.truth, dtype=target.dtype) if target.valid is None else target.valid
    counts = valid.new_zeros(shape).scatter_add(1, target.truth.flatten(1), valid.flatten(1))
    is_there = counts[:, 1:] > 0
    is_empty = ~is_there.any(dim=1) & (counts[:, 0] > 0)
    is_there = torch.cat([is_there[:, :1] | is_empty[:, None], is_there[:, 1:]], dim=1)
    every = is_there if is_readable(is_there) else torch.ones_like(is_there)
    if torch.compiler.is_compiling():
        image = torch.arange(shape[0], device=every.device).repeat_interleave(shape[1] - 1)
        label = torch.arange(shape[1] - 1, device=every.device).repeat(shape[0])
    else:
        image, label = every.nonzero().unbind(dim=1)
    return image, label + 1, is_there[image, label].to(target.dtype)


def _class_planes(
    mask: Tensor | None,
    plane: Tensor,
    label: Tensor,
    exists: Tensor,
    n_objects: int,
    target: Target,
    image_weight: float,
) -> Regions:
    """Return parts as masks of the first objects, and whole planes, of the maps of their classes."""
    if mask is not None:
        whole = torch.ones_like(mask[:1]).expand(len(plane) - n_objects, -1)
        mask = torch.cat([mask[:n_objects], whole])
    layout = Masks(mask, plane * target.n_classes + label, tuple(target.truth.shape))
    truth = (target.truth.flatten(1)[plane] == label[:, None]).to(target.dtype)
    valid = None if target.valid is None else target.valid.flatten(1)[plane]
    truth = truth if valid is None else truth * valid
    return Regions(layout, truth, valid, plane, exists, n_objects, image_weight)


def _whole_images(target: Target) -> tuple[Regions, Tensor | None]:
    """Return whole images as parts, for the plain loss."""
    n_planes, device, size = len(target.truth), target.truth.device, target.truth[0].numel()
    valid, weights = target.valid, None
    exists = torch.ones(n_planes, dtype=target.dtype, device=device)
    if valid is not None:
        area = valid.flatten(1).sum(dim=1)
        exists = (area > 0).to(target.dtype)
        relative = size / area.clamp(min=1)
        weights = valid * relative.view(-1, *[1] * (valid.ndim - 1))
    if target.mode == "multiclass":
        image, label, is_there = _classes_of_images(target)
        return _class_planes(None, image, label, is_there, 0, target, 1.0), weights
    plane = torch.arange(n_planes, device=device)
    layout = Masks(None, None, tuple(target.truth.shape))
    flat = None if valid is None else valid.flatten(1)
    return Regions(layout, target.truth.flatten(1), flat, plane, exists, 0, 1.0), weights


def weight_map(
    boxes: Tensor | None, shape: Sequence[int], *, labels: Tensor | None = None, **options: Any
) -> Tensor:
    """Return the weights that make any per-pixel loss size-invariant: `(weight * loss).sum() / B`.

    Every frame adds 1/S_k to each of its pixels, so overlapping frames add up; a pixel in no frame has
    alpha/S_back. In cells a pixel has 1/(K S_k). `sisod.scoring.size_invariant.weight_map` does the
    same for the boxes of one image in NumPy.

    Args:
        boxes: as from `boxes_of`; may be None for cells.
        shape: of the input, (B, H, W) or (B, C, H, W), or a volume's (B, C, D, H, W).
        labels: of cells, as from `labels_of`.
        options: `mode`, `parts`, `image_weight`, `alpha` and so on, as for `SizeInvariantLoss`.

    Returns:
        Weights of the shape of a loss per pixel: `shape`, and without C for `"multiclass"`. Those of an
        image, for `"multilabel"` of a channel, sum to one.

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
    for side in shape:
        check_int("every side of shape", side, least=1)
    weighting = Weighting(**options)
    given = boxes if labels is None else labels
    empty = torch.zeros(tuple(shape), device=None if given is None else given.device)
    is_multiclass = weighting.mode == "multiclass"
    classes = empty[:, 0].long() if is_multiclass else empty
    _, target = read_batch(empty, classes, mode=weighting.mode, ignore_index=None, from_probs=False)
    _, weights = weigh(target, boxes, labels, weighting, check=False)
    relative = torch.ones_like(target.truth, dtype=empty.dtype) if weights is None else weights
    return (relative / target.truth[0].numel()).view(classes.shape)

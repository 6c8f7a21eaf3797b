"""Sums over all cells or blobs of a batch in one call, at the same cost for any number of them.

Every pixel has one label, so all sums over labels are one pass over the pixels: each value is added
to the slot of its label. A blob also has every pixel without a label, whose sum is a slot of its own.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from sisod.losses.box_sums import multiply
from sisod.losses.checks import is_readable
from sisod.losses.labels import LabelKind


@dataclass(frozen=True)
class LabelledParts:
    """The cells or blobs of a batch, prepared for sums over them.

    Attributes:
        kind: what the labels are; only in blobs do pixels without a label count, in every one.
        shape: images, height, width.
        slot: of every pixel: the index of its part, or N plus the index of its image for no label.
        image: index of the image of each of the N parts.
        area: pixels of each part; 0 for a label that no pixel has.
    """

    kind: LabelKind
    shape: tuple[int, int, int]
    slot: Tensor
    image: Tensor
    area: Tensor

    def sums(self, values: Tensor, *factors: Tensor | None) -> tuple[Tensor, ...]:
        """Return, for each factor, the sums over each part of `values * factor`; None stands for 1."""
        return tuple(self.sum(multiply(values, factor)) for factor in factors)

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum over each part of any map."""
        return _sum_parts(values, self.slot, self.image, n_images=self.shape[0], kind=self.kind)

    def per_image(self, values: Tensor) -> Tensor:
        """Return, for each image, the sum of the values of its parts."""
        return values.new_zeros(self.shape[0]).index_add(0, self.image, values)

    def shares(self, counts: Tensor) -> Tensor:
        """Return 1/K for each part with count 1, and 0 for count 0; K parts of its image count."""
        counts = counts * (self.area > 0)
        return counts / self.per_image(counts).clamp(min=1)[self.image]

    def weights(self) -> Tensor:
        """Return the weight of every pixel over that of the plain loss: 1 for an image of one part."""
        n_images, height, width = self.shape
        exists = (self.area > 0).to(self.area.dtype)
        part_weight = self.shares(exists) * (height * width / self.area.clamp(min=1))
        in_every_part = self.per_image(part_weight)
        outside = in_every_part if self.kind == "blobs" else torch.zeros_like(in_every_part)
        outside = torch.where(self.per_image(exists) > 0, outside, 1)  # no parts: the plain loss
        return torch.cat([part_weight, outside])[self.slot].view(n_images, height, width)


def label_parts(labels: Tensor, kind: LabelKind, *, reference: Tensor) -> LabelledParts:
    """Return the parts of checked labels (B, H, W), with device and dtype of the reference map."""
    n_images, height, width = labels.shape
    labels = labels.to(reference.device, non_blocking=True)
    counts = labels.flatten(1).amax(dim=1).long() + 1
    n_parts = int(counts.sum())
    ends = counts.cumsum(0)
    image = torch.searchsorted(ends, torch.arange(n_parts, device=labels.device), right=True)
    offset = (ends - counts)[:, None, None]
    outside = n_parts + torch.arange(n_images, device=labels.device)[:, None, None]
    slot = torch.where(labels >= 0, labels + offset, outside).flatten()
    ones = torch.ones_like(reference)
    area = _sum_parts(ones, slot, image, n_images=n_images, kind=kind)
    if kind == "blobs":  # the background alone is no blob
        objects = _sum_parts(ones, slot, image, n_images=n_images, kind="cells")
        area = area * (objects > 0)
    return LabelledParts(kind, (n_images, height, width), slot, image, area)


def are_whole_images(labels: Tensor, kind: LabelKind) -> bool:
    """Say whether every image is a single part, as far as the labels may be read."""
    if not is_readable(labels):
        return False
    if kind == "cells":
        return not bool(labels.any())
    return bool((labels.flatten(1).amax(dim=1) == 0).all())


def _sum_parts(values: Tensor, slot: Tensor, image: Tensor, *, n_images: int, kind: LabelKind) -> Tensor:
    # in float64: a float32 sum of a hundred thousand values, one by one, loses three digits
    zeros = torch.zeros(len(image) + n_images, dtype=torch.float64, device=values.device)
    total = zeros.index_add(0, slot, values.flatten().double()).to(values.dtype)
    parts, outside = total[: len(image)], total[len(image) :]
    return parts + outside[image] if kind == "blobs" else parts

"""Sums over all cells or blobs of a batch in one call, at nearly the same cost for any number of them.

Every label is a *slot*, and so are, in each image, the pixels without one. A cell is its slot; a blob
has the pixels without a label too; a whole image is the sum of its slots. Neighbouring pixels mostly
share their slot, so the pixels of a batch, in raster order, are few *runs* of one slot: NumPy sums each
run at the speed of memory, and the sums of runs are added up in float64. Compilers, transforms and
devices need plain operations on pixels instead.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch._C._functorch import is_legacy_batchedtensor

from sisod.losses.box_sums import (
    Parts,
    can_use_custom_autograd,
    multiply,
    part_shares,
    sums_with_gradient,
)
from sisod.losses.checks import are_transforms_active, as_array, is_readable
from sisod.losses.objects import LabelKind


class SlotRuns(NamedTuple):
    """First pixel, number of pixels, and slot of every run."""

    start: NDArray[np.intp]
    length: NDArray[np.intp]
    slot: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Slots:
    """The slot of every pixel of a batch.

    Attributes:
        shape: images, height, width.
        count: number of slots.
        layout: the runs, or the slot of every pixel in raster order.
    """

    shape: tuple[int, int, int]
    count: int
    layout: SlotRuns | Tensor

    def sums(self, values: Tensor, *factors: Tensor | None) -> tuple[Tensor, ...]:
        """Return, for each factor, the sums over each slot of `values * factor`; None stands for 1.

        A factor is a constant map such as the ground truth, or `values` itself for the sum of squares.
        """
        if not self._use_runs(values):
            return tuple(self._sum_pixels(multiply(values, factor)) for factor in factors)
        return sums_with_gradient(self, values, factors)

    def sum_map(self, values: Tensor) -> Tensor:
        """Return the sum over each slot, by runs."""
        start, _, slot = cast("SlotRuns", self.layout)
        of_runs = np.add.reduceat(values.detach().flatten().numpy(), start)
        return torch.from_numpy(np.bincount(slot, of_runs, minlength=self.count)).to(values.dtype)

    def spread(self, values: Tensor) -> Tensor:
        """Return, for each pixel, the value of its slot."""
        if not self._use_runs(values):
            return values[self._pixels()].view(self.shape)
        return cast("Tensor", cast("Any", _Spread.apply)(values, self))

    def _use_runs(self, values: Tensor) -> bool:
        if isinstance(self.layout, Tensor) or not can_use_custom_autograd(values):
            return False
        return not is_legacy_batchedtensor(values)  # as in `torch.autograd.grad(is_grads_batched=True)`

    def _pixels(self) -> Tensor:
        if isinstance(self.layout, Tensor):
            return self.layout
        return torch.from_numpy(np.repeat(self.layout.slot, self.layout.length))

    def _sum_pixels(self, values: Tensor) -> Tensor:
        # in float64: a float32 sum of a hundred thousand values, one by one, loses three digits
        zeros = torch.zeros(self.count, dtype=torch.float64, device=values.device)
        return zeros.index_add(0, self._pixels(), values.flatten().double()).to(values.dtype)


class _Spread(torch.autograd.Function):
    """The value of the slot of every pixel; the gradient is a sum over slots."""

    @staticmethod
    def forward(values: Tensor, slots: Slots) -> Tensor:
        _, length, slot = cast("SlotRuns", slots.layout)
        # no view of a tensor, so that it may be changed in place
        return torch.from_numpy(np.repeat(values.detach().numpy()[slot], length).reshape(slots.shape))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG004
        ctx.slots = inputs[1]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return ctx.slots.sums(gradients[0], None)[0], None


@dataclass(frozen=True)
class LabelledParts(Parts):
    """The cells or blobs of a batch and, with a share of the plain loss, its images after them.

    Attributes:
        kind: what the labels are; only in blobs do pixels without a label count, in every one.
        slots: the N labels, then one for each image: the pixels without a label.
        image: index of the image of each of the N parts.
        area: pixels of each part; 0 for a label that no pixel has.
        image_weight: share of the plain loss; 0 leaves the images out.
    """

    kind: LabelKind
    slots: Slots
    image: Tensor
    area: Tensor
    image_weight: float

    def sums(self, values: Tensor, *factors: Tensor | None) -> tuple[Tensor, ...]:
        """Return, for each factor, the sums over each part of `values * factor`; None stands for 1."""
        return tuple(self._join(totals) for totals in self.slots.sums(values, *factors))

    def shares(self, counts: Tensor) -> Tensor:
        """Return the weight of each part, see `part_shares`; a label without a pixel does not count."""
        exists = self.area > 0
        if self.image_weight:
            exists = torch.cat([exists, exists.new_ones(self.slots.shape[0])])
        return part_shares(counts * exists, self.image, self.slots.shape[0], self.image_weight)

    def weights(self) -> Tensor:
        """Return the weight of every pixel over that of the plain loss: 1 for an image of one part."""
        _, height, width = self.slots.shape
        exists = (self.area > 0).to(self.area.dtype)
        part_weight = part_shares(exists, self.image, self.slots.shape[0], 0.0) * (
            height * width / self.area.clamp(min=1)
        )
        in_every_part = self._per_image(part_weight)
        outside = in_every_part if self.kind == "blobs" else torch.zeros_like(in_every_part)
        outside = torch.where(self._per_image(exists) > 0, outside, 1)  # no parts: the plain loss
        weights = torch.cat([part_weight, outside])
        return self.slots.spread(torch.lerp(weights, torch.ones_like(weights), self.image_weight))

    def _join(self, totals: Tensor) -> Tensor:
        """Return the sums over parts, and over images if they have a share, from those over slots."""
        parts, outside = totals[: len(self.image)], totals[len(self.image) :]
        joined = parts + outside[self.image] if self.kind == "blobs" else parts
        return torch.cat([joined, self._per_image(parts) + outside]) if self.image_weight else joined

    def _per_image(self, values: Tensor) -> Tensor:
        return values.new_zeros(self.slots.shape[0]).index_add(0, self.image, values)


def label_parts(
    labels: Tensor,
    kind: LabelKind,
    *,
    reference: Tensor,
    boxes: Tensor | None = None,
    image_weight: float = 0,
) -> LabelledParts:
    """Return the parts of checked labels (B, H, W), with device and dtype of the reference map.

    Where labels cannot be read the number of objects is that of the boxes, if there are any.
    """
    in_runs = is_readable(labels) and is_readable(reference) and not are_transforms_active()
    slots, image = _run_slots(labels) if in_runs else _pixel_slots(labels, boxes, reference.device)
    (totals,) = slots.sums(torch.ones_like(reference), None)
    area, outside = totals[: len(image)], totals[len(image) :]
    if kind == "blobs":
        area = torch.where(area > 0, area + outside[image], 0)  # the background alone is no blob
    return LabelledParts(kind, slots, image, area, image_weight)


def _run_slots(labels: Tensor) -> tuple[Slots, Tensor]:
    n_images, height, width = labels.shape
    flat = as_array(labels).reshape(n_images, -1)
    counts = flat.max(axis=1).astype(np.intp) + 1
    n_parts = int(counts.sum())
    is_first = np.empty(flat.shape, dtype=bool)
    is_first[:, 0] = True
    np.not_equal(flat[:, 1:], flat[:, :-1], out=is_first[:, 1:])
    start = np.flatnonzero(is_first)
    length = np.diff(start, append=flat.size)
    image, label = start // (height * width), flat.ravel()[start].astype(np.intp)
    slot = np.where(label >= 0, label + (counts.cumsum() - counts)[image], n_parts + image)
    slots = Slots((n_images, height, width), n_parts + n_images, SlotRuns(start, length, slot))
    return slots, torch.from_numpy(np.repeat(np.arange(n_images), counts))


def _pixel_slots(labels: Tensor, boxes: Tensor | None, device: torch.device) -> tuple[Slots, Tensor]:
    n_images, height, width = labels.shape
    images = torch.arange(n_images, device=device)
    if boxes is None or is_readable(labels):
        counts = labels.flatten(1).amax(dim=1).long() + 1
        n_parts = _read_count(counts)
        counts = counts.to(device, non_blocking=True)
        image = torch.searchsorted(counts.cumsum(0), torch.arange(n_parts, device=device), right=True)
    else:
        image, n_parts = boxes[:, 0].long().to(device, non_blocking=True), len(boxes)
        counts = (image == images[:, None]).sum(dim=1)
    labels = labels.to(device, non_blocking=True)
    offset = counts.cumsum(0) - counts
    slot = torch.where(labels >= 0, labels + offset[:, None, None], n_parts + images[:, None, None])
    return Slots((n_images, height, width), n_parts + n_images, slot.flatten()), image


def _sum_counts(counts: Tensor) -> int:
    return int(counts.sum())


_read_count: Callable[[Tensor], int] = torch.compiler.disable(  # type: ignore[no-untyped-call]
    _sum_counts, reason="labels are not read inside the graph; give boxes=boxes_of(gt) to the loss too"
)


def are_whole_images(labels: Tensor, kind: LabelKind) -> bool:
    """Say whether every image is a single part, as far as the labels may be read."""
    if not is_readable(labels):
        return False
    if kind == "cells":
        return not bool(labels.any())
    return bool((labels.flatten(1).amax(dim=1) == 0).all())

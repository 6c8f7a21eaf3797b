"""Sums over all boxes of a batch in one call, at nearly the same cost for any number of boxes.

A box is a range of rows times a range of columns, so its sum is an indicator of rows times the map
times an indicator of columns: two small matrix products. Unlike in a summed-area table, nothing is
subtracted, so in float32 the sum of a box of one pixel is as accurate as that of a million.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
import torch
from torch import Tensor
from torch.amp.autocast_mode import is_autocast_available
from torch.autograd.forward_ad import unpack_dual

from sisod.losses.checks import are_transforms_active, as_array, is_readable

_MAX_UNCUT = 24  # boxes of an image, up to which cutting it into bands costs more than it saves
_MIN_BAND = 48  # height of a band


class PartLayout(Protocol):
    """Where the parts of a batch are: a sum over each, and its transpose."""

    def sum_map(self, values: Tensor) -> Tensor:
        """Return the sum over each part."""

    def spread(self, values: Tensor) -> Tensor:
        """Return, for each pixel, the sum of the values of the parts that contain it."""


class Parts:
    """The frames, cells or blobs of a batch, or its whole images."""

    def sums(self, values: Tensor, *factors: Tensor | None) -> tuple[Tensor, ...]:
        """Return, for each factor, the sums over each part of `values * factor`; None stands for 1.

        A factor is a constant map such as the ground truth, or `values` itself for the sum of squares.
        """
        raise NotImplementedError

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum over each part of any map."""
        return self.sums(values, None)[0]

    def shares(self, counts: Tensor) -> Tensor:
        """Return the weight of each part with count 1, and 0 for count 0; those of an image sum to 1."""
        raise NotImplementedError


def part_shares(counts: Tensor, image: Tensor, n_images: int, image_weight: float) -> Tensor:
    """Return the weight of each part with count 1, and 0 for count 0.

    It is (1 - image_weight)/K, K parts of its image count, and `image_weight` for the image itself; with
    an `image_weight` above 0 the last parts are the whole images.
    """
    n_parts = len(counts) - n_images if image_weight else len(counts)
    parts, image = counts[:n_parts], image[:n_parts]
    n_counted = counts.new_zeros(n_images).index_add(0, image, parts)
    shares = parts / n_counted.clamp(min=1)[image]
    if not image_weight:
        return shares
    return torch.cat([(1 - image_weight) * shares, image_weight * counts[n_parts:]])


@dataclass(frozen=True)
class Frames(Parts):
    """The frames of a batch, prepared for sums over them.

    Attributes:
        shape: images, height, width.
        image: index of the image of each of the N frames.
        area: pixels of each frame, S_k.
        rows: (bands, slots, band height) indicators; a band is a strip of an image, or all of it.
        columns: (bands, slots, width) indicators.
        owner: (bands, slots) index of the frame in this slot; N for an empty slot.
        image_weight: share of the plain loss; above 0 the last frames are the whole images.
    """

    shape: tuple[int, int, int]
    image: Tensor
    area: Tensor
    rows: Tensor
    columns: Tensor
    owner: Tensor
    image_weight: float = 0.0

    def sums(self, values: Tensor, *factors: Tensor | None) -> tuple[Tensor, ...]:
        """Return, for each factor, the sums over each frame of `values * factor`; None stands for 1."""
        if not can_use_custom_autograd(values):
            return tuple(self.sum_map(multiply(values, factor)) for factor in factors)
        return sums_with_gradient(self, values, factors)

    def sum_map(self, values: Tensor) -> Tensor:
        """Return the sum over each frame, by plain operations."""
        strips = values.reshape(len(self.rows), self.rows.shape[2], self.columns.shape[2])
        with no_autocast(values):
            parts = (torch.bmm(self.rows, strips) * self.columns).sum(dim=2)
        n_frames = len(self.image)
        total = values.new_zeros(n_frames + 1).index_add(0, self.owner.flatten(), parts.flatten())
        return total[:n_frames]

    def spread(self, values: Tensor) -> Tensor:
        """Return, for each pixel, the sum of the values of the frames that contain it."""
        in_slots = self.columns * torch.cat([values, values.new_zeros(1)])[self.owner][..., None]
        if self.rows.shape[1] == 1:  # an outer product, for which matrix libraries are slow
            return (self.rows.transpose(1, 2) * in_slots).view(self.shape)
        with no_autocast(values):
            return torch.bmm(self.rows.transpose(1, 2), in_slots).view(self.shape)

    def per_image(self, values: Tensor) -> Tensor:
        """Return, for each image, the sum of the values of its frames."""
        return values.new_zeros(self.shape[0]).index_add(0, self.image, values)

    def shares(self, counts: Tensor) -> Tensor:
        """Return the weight of each frame, see `part_shares`."""
        return part_shares(counts, self.image, self.shape[0], self.image_weight)


class WholeImages(Parts):
    """Every image as one part, for the plain loss."""

    def sums(self, values: Tensor, *factors: Tensor | None) -> tuple[Tensor, ...]:
        """Return, for each factor, the sums over each image of `values * factor`; None stands for 1."""
        return tuple(multiply(values, factor).sum(dim=(1, 2)) for factor in factors)

    def shares(self, counts: Tensor) -> Tensor:
        """Return the counts unchanged: an image is its only frame."""
        return counts


def make_frames(boxes: Tensor, shape: tuple[int, int, int], *, reference: Tensor) -> Frames:
    """Return the frames of checked boxes, with device and dtype of the reference map."""
    n_images, height, width = shape
    boxes = boxes.long()  # areas overflow narrow types
    parts, owner = _bands(boxes, shape) if is_readable(boxes) else _slots(boxes, n_images)
    parts = parts.to(reference.device, non_blocking=True)
    boxes = boxes.to(reference.device, non_blocking=True)
    y0, x0, y1, x1 = parts.unsqueeze(-1).unbind(-2)
    y = torch.arange(height * n_images // len(parts), device=reference.device)
    x = torch.arange(width, device=reference.device)
    return Frames(
        shape=shape,
        image=boxes[:, 0],
        area=((boxes[:, 3] - boxes[:, 1]) * (boxes[:, 4] - boxes[:, 2])).to(reference.dtype),
        rows=((y >= y0) & (y < y1)).to(reference.dtype),
        columns=((x >= x0) & (x < x1)).to(reference.dtype),
        owner=owner.to(reference.device, non_blocking=True),
    )


def with_images(boxes: Tensor, shape: tuple[int, int, int]) -> Tensor:
    """Return the boxes of a batch and, after them, one box for each whole image."""
    n_images, height, width = shape
    images = torch.arange(n_images, device=boxes.device)
    corners = torch.tensor([0, 0, height, width], device=boxes.device)
    return torch.cat([boxes.long(), torch.cat([images[:, None], corners.expand(n_images, 4)], dim=1)])


def _slots(boxes: Tensor, n_images: int) -> tuple[Tensor, Tensor]:
    """Give every box a slot in every image, empty in all but its own.

    Shapes depend on the number of boxes alone, so no value is read. Needed for boxes on a device, and
    for compilation.
    """
    is_own = boxes[:, 0] == torch.arange(n_images, device=boxes.device)[:, None]
    parts = torch.where(is_own[..., None], boxes[:, 1:], 0)
    index = torch.arange(len(boxes), device=boxes.device)
    return parts, torch.where(is_own, index, len(boxes))


def _bands(boxes: Tensor, shape: tuple[int, int, int]) -> tuple[Tensor, Tensor]:
    """Give every box the next free slot of its image, or of each band of the image that it overlaps.

    The work is slots times pixels. If there are many boxes, each is small and overlaps few bands, so
    cutting the images into bands keeps the number of slots low.
    """
    n_images, height, _ = shape
    rows = as_array(boxes).astype(np.int64)
    most_boxes = np.bincount(rows[:, 0], minlength=1).max()
    n_bands = 1 if most_boxes <= _MAX_UNCUT else _largest_divisor(height, at_most=height // _MIN_BAND)
    band_height = height // n_bands
    tops = np.arange(n_bands) * band_height
    y0, y1 = (np.clip(rows[:, [column]] - tops, 0, band_height) for column in (1, 3))
    index, band = np.nonzero(y0 < y1)
    strip = rows[index, 0] * n_bands + band
    order = np.argsort(strip, kind="stable")
    index, band, strip = index[order], band[order], strip[order]
    slot = np.arange(len(strip)) - np.searchsorted(strip, strip)
    n_slots = int(slot.max(initial=0)) + 1
    parts = np.zeros((n_images * n_bands, n_slots, 4), dtype=np.int64)
    parts[strip, slot] = np.stack([y0[index, band], rows[index, 2], y1[index, band], rows[index, 4]], 1)
    owner = np.full((n_images * n_bands, n_slots), len(rows))
    owner[strip, slot] = index
    return torch.from_numpy(parts), torch.from_numpy(owner)


def _largest_divisor(number: int, *, at_most: int) -> int:
    """Return the largest divisor of a number up to a limit.

    Example:
        >>> _largest_divisor(384, at_most=9), _largest_divisor(383, at_most=9)
        (8, 1)
    """
    return next((n for n in range(at_most, 1, -1) if number % n == 0), 1)


def can_use_custom_autograd(values: Tensor) -> bool:
    """Say whether to use hand-written gradients; compiler and transforms need plain operations."""
    if torch.compiler.is_compiling() or are_transforms_active():
        return False
    dual = unpack_dual(values)  # type: ignore[no-untyped-call]
    return dual.tangent is None  # not in forward-mode differentiation


class _PartSums(torch.autograd.Function):
    """Sums over parts of values times constant maps, or times themselves (degree 2).

    Hand-written because autograd would allocate whole maps that are not needed. The gradient consists
    of operations that can be differentiated again (`factors` holds `values` with its graph), so
    gradients of any order are correct.
    """

    @staticmethod
    def forward(
        values: Tensor, degrees: list[int], layout: PartLayout, *factors: Tensor | None
    ) -> tuple[Tensor, ...]:
        del degrees  # for the gradient
        results, buffer = [], None
        for factor in factors:
            # one buffer for all products: allocating new memory is slow
            product = values if factor is None else (buffer := torch.mul(values, factor, out=buffer))
            results.append(layout.sum_map(product))
        return tuple(results)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:  # noqa: ARG004
        _, ctx.degrees, ctx.layout, *factors = inputs
        ctx.save_for_backward(*factors)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        factors = ctx.saved_tensors
        total: Tensor | None = None
        for gradient, degree, factor in zip(gradients, ctx.degrees, factors, strict=True):
            spread = ctx.layout.spread(degree * gradient)
            if total is None:
                total = spread if factor is None else spread.mul_(factor)
            else:
                total = total.add_(spread) if factor is None else total.addcmul_(spread, factor)
        return (total, *[None] * (2 + len(factors)))


def sums_with_gradient(
    layout: PartLayout, values: Tensor, factors: Sequence[Tensor | None]
) -> tuple[Tensor, ...]:
    """Return, for each factor, the sums over each part of `values * factor`, by `_PartSums`."""
    degrees = [2 if factor is values else 1 for factor in factors]
    return cast("tuple[Tensor, ...]", cast("Any", _PartSums.apply)(values, degrees, layout, *factors))


def multiply(values: Tensor, factor: Tensor | None) -> Tensor:
    """Return a map times a factor; None stands for 1."""
    return values if factor is None else values * factor


def no_autocast(reference: Tensor) -> AbstractContextManager[object]:
    """Return a context without autocast on the device of a tensor: matrix products stay in float32."""
    device = reference.device.type
    return torch.autocast(device, enabled=False) if is_autocast_available(device) else nullcontext()

"""Sums over boxes, exact in float32, one call for the batch, at nearly the same cost for any number.

A box is a range of rows times a range of columns, so its sum is an indicator of rows times the map
times an indicator of columns: two small matrix products. Nothing is subtracted, as a summed-area table
would, so a box of one pixel is as exact as one of a million.
"""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.amp.autocast_mode import is_autocast_available
from torch.autograd.forward_ad import unpack_dual

from sisod.losses.checks import as_array, on_host

_FEW = 24  # boxes an image, up to which cutting it into bands costs more than it saves
_BAND = 48  # least height of a band


@dataclass(frozen=True)
class Frames:
    """The frames of a batch, ready for sums.

    Attributes:
        shape: images, height, width.
        image: which image each of the N frames is of.
        area: pixels of each frame, S_k.
        rows: (bands, slots, band height) indicators; a band is a strip of an image, or all of it.
        columns: (bands, slots, width) indicators.
        owner: (bands, slots) the frame whose part is there; N where there is none.
    """

    shape: tuple[int, int, int]
    image: Tensor
    area: Tensor
    rows: Tensor
    columns: Tensor
    owner: Tensor

    def sums(self, values: Tensor, *times: Tensor | None) -> tuple[Tensor, ...]:
        """Return, for each of `times`, the sums over each frame of `values` times it; None is one.

        It is a constant map such as the ground truth, or `values` once more for the sum of squares.
        """
        layout = (self.rows, self.columns, self.owner, len(self.image))
        if not _by_hand(values):
            return tuple(_box_sum(_product(values, one), *layout) for one in times)
        degrees = [2 if one is values else 1 for one in times]
        return cast("tuple[Tensor, ...]", cast("Any", _BoxSums.apply)(values, degrees, *layout, *times))

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum over each frame of any map."""
        return self.sums(values, None)[0]

    def spread(self, values: Tensor) -> Tensor:
        """Return, for each pixel, the sum of the values of the frames that hold it."""
        return _spread(values, self.rows, self.columns, self.owner).view(self.shape)

    def per_image(self, values: Tensor) -> Tensor:
        """Return, for each image, the sum of the values of its frames."""
        return values.new_zeros(self.shape[0]).index_add(0, self.image, values)

    def shares(self, counts: Tensor) -> Tensor:
        """Return 1/K for each frame that counts (1, not 0), K the number of those of its image."""
        return counts / self.per_image(counts).clamp(min=1)[self.image]


class WholeImages:
    """Every image as one frame: what the plain loss sums over."""

    def sums(self, values: Tensor, *times: Tensor | None) -> tuple[Tensor, ...]:
        """Return, for each of `times`, the sums over each image of `values` times it; None is one."""
        return tuple(self.sum(_product(values, one)) for one in times)

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum over each image of any map."""
        return values.sum(dim=(1, 2))

    def shares(self, counts: Tensor) -> Tensor:
        """Return the counts: an image is its only frame."""
        return counts


def make_frames(boxes: Tensor, shape: tuple[int, int, int], *, like: Tensor) -> Frames:
    """Return the frames of checked boxes, on the device and with the type of the maps."""
    n_images, height, width = shape
    parts, owner = _bands(boxes, shape) if on_host(boxes) else _slots(boxes, n_images)
    parts = parts.to(like.device, non_blocking=True)
    boxes = boxes.to(like.device, non_blocking=True)
    y0, x0, y1, x1 = parts.unsqueeze(-1).unbind(-2)
    y = torch.arange(height * n_images // len(parts), device=like.device)
    x = torch.arange(width, device=like.device)
    return Frames(
        shape=shape,
        image=boxes[:, 0].long(),
        area=((boxes[:, 3] - boxes[:, 1]) * (boxes[:, 4] - boxes[:, 2])).to(like.dtype),
        rows=((y >= y0) & (y < y1)).to(like.dtype),
        columns=((x >= x0) & (x < x1)).to(like.dtype),
        owner=owner.to(like.device, non_blocking=True),
    )


def _slots(boxes: Tensor, n_images: int) -> tuple[Tensor, Tensor]:
    """Give every box a slot in every image, empty in all but its own.

    Shapes depend on the number of boxes alone, so no value is read: for boxes on a device, and for
    compilation.
    """
    own = boxes[:, 0] == torch.arange(n_images, device=boxes.device)[:, None]
    parts = torch.where(own[..., None], boxes[:, 1:], 0)
    index = torch.arange(len(boxes), device=boxes.device)
    return parts, torch.where(own, index, len(boxes))


def _bands(boxes: Tensor, shape: tuple[int, int, int]) -> tuple[Tensor, Tensor]:
    """Give every box the next free slot of its image, or of each band of the image that it meets.

    The work is slots times pixels. Where there are many boxes, each is small and meets few bands, so
    cutting the images into bands keeps the slots few.
    """
    n_images, height, _ = shape
    rows = as_array(boxes).astype(np.int64)
    most = np.bincount(rows[:, 0], minlength=1).max()
    n_bands = 1 if most <= _FEW else _divisor(height, at_most=height // _BAND)
    band_height = height // n_bands
    tops = np.arange(n_bands) * band_height
    y0, y1 = (np.clip(rows[:, [column]] - tops, 0, band_height) for column in (1, 3))
    index, band = np.nonzero(y0 < y1)
    place = rows[index, 0] * n_bands + band
    order = np.argsort(place, kind="stable")
    index, band, place = index[order], band[order], place[order]
    slot = np.arange(len(place)) - np.searchsorted(place, place)
    n_slots = int(slot.max(initial=0)) + 1
    parts = np.zeros((n_images * n_bands, n_slots, 4), dtype=np.int64)
    parts[place, slot] = np.stack([y0[index, band], rows[index, 2], y1[index, band], rows[index, 4]], 1)
    owner = np.full((n_images * n_bands, n_slots), len(rows))
    owner[place, slot] = index
    return torch.from_numpy(parts), torch.from_numpy(owner)


def _divisor(number: int, *, at_most: int) -> int:
    """Return the largest divisor of a number that is small enough.

    Example:
        >>> _divisor(384, at_most=9), _divisor(383, at_most=9)
        (8, 1)
    """
    return next((n for n in range(at_most, 1, -1) if number % n == 0), 1)


def _by_hand(values: Tensor) -> bool:
    """Say whether the gradient is ours; the compiler fuses as well, the others need plain operations."""
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return False
    dual = unpack_dual(values)  # type: ignore[no-untyped-call]
    return dual.tangent is None  # there is one in forward-mode differentiation


class _BoxSums(torch.autograd.Function):
    """Sums over boxes of values times constant maps, or times themselves (degree 2).

    By hand because autograd would allocate whole maps that are not needed. The gradient is made of
    operations that can be differentiated again (`times` holds `values` with its graph), so gradients of
    any order are right.
    """

    @staticmethod
    def forward(
        values: Tensor,
        degrees: list[int],  # noqa: ARG004  (for the gradient)
        rows: Tensor,
        columns: Tensor,
        owner: Tensor,
        n_frames: int,
        *times: Tensor | None,
    ) -> tuple[Tensor, ...]:
        results, buffer = [], None
        for one in times:
            # one buffer for all products: memory that is new to the process is slow
            product = values if one is None else (buffer := torch.mul(values, one, out=buffer))
            results.append(_box_sum(product, rows, columns, owner, n_frames))
        return tuple(results)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:  # noqa: ARG004
        values, ctx.degrees, *layout, _ = inputs[:6]
        ctx.shape = values.shape
        ctx.save_for_backward(*layout, *inputs[6:])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        rows, columns, owner, *times = ctx.saved_tensors
        total: Tensor | None = None
        for gradient, degree, one in zip(gradients, ctx.degrees, times, strict=True):
            spread = _spread(degree * gradient, rows, columns, owner).view(ctx.shape)
            if total is None:
                total = spread if one is None else spread.mul_(one)
            else:
                total = total.add_(spread) if one is None else total.addcmul_(spread, one)
        return (total, *[None] * (5 + len(times)))


def _product(values: Tensor, times: Tensor | None) -> Tensor:
    return values if times is None else values * times


def _box_sum(values: Tensor, rows: Tensor, columns: Tensor, owner: Tensor, n_frames: int) -> Tensor:
    strips = values.reshape(len(rows), rows.shape[2], columns.shape[2])
    with full_precision(values):
        parts = (torch.bmm(rows, strips) * columns).sum(dim=2)
    total = values.new_zeros(n_frames + 1).index_add(0, owner.flatten(), parts.flatten())
    return total[:n_frames]


def _spread(values: Tensor, rows: Tensor, columns: Tensor, owner: Tensor) -> Tensor:
    in_slots = columns * torch.cat([values, values.new_zeros(1)])[owner][..., None]
    if rows.shape[1] == 1:  # an outer product, which matrix libraries are slow at
        return rows.transpose(1, 2) * in_slots
    with full_precision(values):
        return torch.bmm(rows.transpose(1, 2), in_slots)


def full_precision(like: Tensor) -> AbstractContextManager[object]:
    """Return the context in which autocast leaves matrix products in float32."""
    device = like.device.type
    return torch.autocast(device, enabled=False) if is_autocast_available(device) else nullcontext()

"""Sums over groups of pixels in one call, at nearly the same cost for any number of groups.

Every pixel belongs to one *slot*. Neighbouring pixels mostly share theirs, so the pixels of a batch, in
raster order, are few *runs* of one slot: NumPy sums each run at the speed of memory, and the sums of
runs are added up in float64. Compilers, transforms and devices need plain operations on pixels instead.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch._C._functorch import is_legacy_batchedtensor

from sisod.losses.box_sums import can_use_custom_autograd, multiply, sums_with_gradient


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

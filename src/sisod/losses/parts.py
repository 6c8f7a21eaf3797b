"""Sums over the parts of a batch: frames, cells, the background between frames, whole images.

The pixels of a batch, in raster order, are *runs* that lie in the same parts. NumPy sums every run at
the speed of memory, the sums of runs are added up in float64, and nothing is subtracted, so the sum of
a part of one pixel is as accurate as that of a million. Frames and cells are a few runs a row.
"""

import functools
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch._C._functorch import is_legacy_batchedtensor
from torch.amp.autocast_mode import is_autocast_available
from torch.autograd.forward_ad import unpack_dual

from sisod.losses.components import Integers, ranges
from sisod.losses.tracing import are_transforms_active


@dataclass(frozen=True, eq=False)
class PixelRuns:
    """Runs that cover the pixels of flattened maps, and which parts each is in.

    Attributes:
        shape: of the maps.
        n_parts: number of parts.
        start: first pixel of each run.
        run: together with `part` the pairs of a run and a part that it is in.
        part: see `run`.
        device: of the maps.
        index: where the pixels are in maps of classes (B, C, ...), if the sums are taken of them.
    """

    shape: tuple[int, ...]
    n_parts: int
    start: Integers
    run: Integers
    part: Integers
    device: torch.device
    index: Tensor | None = None

    @cached_property
    def length(self) -> Integers:
        """Pixels of each run."""
        return np.diff(self.start, append=int(np.prod(self.shape)))

    def select(self, maps: Tensor) -> Tensor:
        """Return the maps, or the pixels of the class of each part in maps of all classes."""
        return maps if self.index is None else maps.flatten()[self.index]

    def sums(self, values: Tensor, *factors: Tensor | None) -> tuple[Tensor, ...]:
        """Return, for each factor, the sums over each part of `values * factor`; None stands for 1.

        A factor is a constant map such as the ground truth, or `values` itself for the sum of squares.
        """
        if not can_use_custom_autograd(values):
            return tuple(self._sum_pixels(_multiply(values, factor)) for factor in factors)
        degrees = [2 if factor is values else 1 for factor in factors]
        return cast("tuple[Tensor, ...]", cast("Any", _PartSums.apply)(values, degrees, self, *factors))

    @cached_property
    def blocks(self) -> list[tuple[slice, slice]]:
        """Runs and their pixels in pieces that fit into the processor's cache, if runs are short."""
        size = int(np.prod(self.shape))
        first = np.unique(np.searchsorted(self.start, np.arange(0, size, 2**16)))
        first = first[first < len(self.start)]
        runs, pixels = np.append(first, len(self.start)), np.append(self.start[first], size)
        return [
            (slice(*two_runs), slice(*ends))
            for two_runs, ends in zip(pairwise(runs.tolist()), pairwise(pixels.tolist()), strict=True)
        ]

    def sum_products(self, values: Tensor, factors: Sequence[Tensor | None]) -> tuple[Tensor, ...]:
        """Return for each factor the sums over each part of `values * factor`, in NumPy."""
        array = values.detach().numpy().reshape(-1)
        arrays = [None if factor is None else factor.detach().numpy().reshape(-1) for factor in factors]
        of_runs = np.empty((len(factors), len(self.start)), dtype=array.dtype)
        for runs, pixels in self.blocks:
            start = self.start[runs] - pixels.start
            for sums, factor in zip(of_runs, arrays, strict=True):
                product = array[pixels] if factor is None else array[pixels] * factor[pixels]
                np.add.reduceat(product, start, out=sums[runs])
        totals = [np.bincount(self.part, sums[self.run], minlength=self.n_parts) for sums in of_runs]
        return tuple(torch.from_numpy(total).to(values.dtype) for total in totals)

    def spread(self, values: Tensor) -> Tensor:
        """Return, for each pixel, the sum of the values of the parts that contain it."""
        if can_use_custom_autograd(values):
            return cast("Tensor", cast("Any", _Spread.apply)(values, self))
        run, part, pixel_run = self._tensors
        of_runs = values.new_zeros(len(self.start)).index_add(0, run, values[part])
        return of_runs[pixel_run].view(self.shape)

    def spread_products(self, values: Sequence[Tensor], factors: Sequence[Tensor | None]) -> Tensor:
        """Return for each pixel the sum of the values of its parts, each times its factor, in NumPy."""
        result = np.empty(int(np.prod(self.shape)), dtype=values[0].numpy().dtype)
        of_runs = [
            np.bincount(self.run, array.numpy()[self.part], len(self.start)).astype(result.dtype)
            for array in values
        ]
        arrays = [None if factor is None else factor.detach().numpy().reshape(-1) for factor in factors]
        for runs, pixels in self.blocks:
            length = self.length[runs]
            products = []
            for each, factor in zip(of_runs, arrays, strict=True):
                spread = np.repeat(each[runs], length)
                products.append(spread if factor is None else spread * factor[pixels])
            result[pixels] = functools.reduce(np.add, products)
        return torch.from_numpy(result).view(self.shape)

    @cached_property
    def _tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """The pairs, and the run of every pixel."""
        pixel_run = np.repeat(np.arange(len(self.start)), self.length)
        arrays = self.run, self.part, pixel_run
        run, part, pixels = (torch.from_numpy(a).to(self.device, non_blocking=True) for a in arrays)
        return run, part, pixels

    def _sum_pixels(self, values: Tensor) -> Tensor:
        # in float64: a float32 sum of a hundred thousand values, one by one, loses three digits
        run, part, pixel_run = self._tensors
        zeros = torch.zeros(len(self.start), dtype=torch.float64, device=values.device)
        of_runs = zeros.index_add(0, pixel_run, values.flatten().double())
        parts = of_runs.new_zeros(self.n_parts).index_add(0, part, of_runs[run])
        return parts.to(values.dtype)

    def area(self, valid: Tensor | None, dtype: torch.dtype) -> Tensor:
        """Return the pixels of each part, without ignored ones."""
        if valid is not None:
            return self.sums(valid, None)[0]
        area = np.bincount(self.part, self.length[self.run], minlength=self.n_parts)
        return torch.from_numpy(area).to(self.device, dtype)

    def of_classes(
        self, classes: Integers, planes: Integers, n_classes: int
    ) -> tuple["PixelRuns", Tensor, Tensor]:
        """Return sums over maps of classes (B, C, ...), each part over the map of its own class.

        Args:
            classes: of the first parts, which are kept, and of the whole planes that follow them.
            planes: the whole planes.
            n_classes: C.

        Returns:
            The layout; and of every pixel that is selected, its position in the target and its class.
        """
        size = int(np.prod(self.shape[1:]))
        n_kept = len(classes) - len(planes)
        kept = self.part < n_kept
        run = self.run[kept]
        part = np.concatenate([self.part[kept], n_kept + np.arange(len(planes))])
        first = np.concatenate([self.start[run], planes * size])
        length = np.concatenate([self.length[run], np.full(len(planes), size)])
        pixel = ranges(first, first + length)
        shift = (first // size * (n_classes - 1) + classes[part]) * size
        arrays = pixel, np.repeat(classes[part], length), pixel + np.repeat(shift, length)
        at, of_pixel, index = (torch.from_numpy(a).to(self.device, non_blocking=True) for a in arrays)
        start, pairs = np.cumsum(length) - length, np.arange(len(length))
        runs = PixelRuns((len(pixel),), len(classes), start, pairs, part, self.device, index)
        return runs, at, of_pixel


@dataclass(frozen=True, eq=False)
class Masks:
    """Parts as masks over planes, by plain operations: for whole images, and inside a compiled graph.

    Attributes:
        mask: (parts, pixels); None if all pixels of a plane count.
        plane: index of the plane of each part; None for one part per plane.
        shape: of the maps.
    """

    mask: Tensor | None
    plane: Tensor | None
    shape: tuple[int, ...]

    def select(self, maps: Tensor) -> Tensor:
        """Return the plane of each part, flattened."""
        planes = maps.reshape(-1, int(np.prod(self.shape[1:])))
        return planes if self.plane is None else planes[self.plane]

    def sums(self, values: Tensor, *factors: Tensor | None) -> tuple[Tensor, ...]:
        """Return, for each factor, the sums over each part of `values * factor`; None stands for 1."""
        return tuple(_multiply(_multiply(values, f), self.mask).sum(dim=1) for f in factors)

    def area(self, valid: Tensor | None, dtype: torch.dtype) -> Tensor:
        """Return the pixels of each part, without ignored ones."""
        assert self.mask is not None  # noqa: S101  (for the type checker)
        mask = self.mask if valid is None else self.mask * self.select(valid)
        return mask.sum(dim=1).to(dtype)

    def spread(self, values: Tensor) -> Tensor:
        """Return, for each pixel, the sum of the values of the parts that contain it."""
        assert self.mask is not None and self.plane is not None  # noqa: PT018, S101  (type checker)
        planes = values.new_zeros(self.shape).flatten(1)
        return planes.index_add(0, self.plane, self.mask * values[:, None]).view(self.shape)


@dataclass(frozen=True, eq=False)
class Regions:
    """The parts that region terms are taken over: objects, then whole images if they have a share.

    Attributes:
        layout: has these parts first, and may have more.
        truth: ground truth of the pixels that are selected, 0 where they are ignored.
        valid: 1 for pixels that count, 0 for ignored ones; None if all count.
        plane: index of the plane of each part.
        exists: 1 for parts that have a pixel, else 0.
        n_objects: number of objects.
        image_weight: share of the whole images.
    """

    layout: PixelRuns | Masks
    truth: Tensor
    valid: Tensor | None
    plane: Tensor
    exists: Tensor
    n_objects: int
    image_weight: float

    def select(self, maps: Tensor) -> Tensor:
        """Return the values of maps that belong to `truth`, 0 where they are ignored."""
        return _multiply(self.layout.select(maps), self.valid)

    def sums(self, values: Tensor, *factors: Tensor | None) -> tuple[Tensor, ...]:
        """Return, for each factor, the sums over each part of `values * factor`; None stands for 1."""
        return tuple(total[: len(self.plane)] for total in self.layout.sums(values, *factors))

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum over each part of any map, without ignored pixels."""
        return self.sums(values, self.valid)[0]

    def shares(self, counts: Tensor, n_planes: int) -> Tensor:
        """Return the weight of each part with count 1, and 0 for count 0.

        It is (1 - image_weight)/K, K objects of the plane count, and `image_weight` for the image itself
        or, divided among them, for its classes.
        """
        shares = []
        objects, images = slice(None, self.n_objects), slice(self.n_objects, None)
        for group, weight in ((objects, 1 - self.image_weight), (images, self.image_weight)):
            plane, each = self.plane[group], counts[group]
            n_counted = each.new_zeros(n_planes).index_add(0, plane, each)
            shares.append(weight * (each / n_counted.clamp(min=1)[plane]))
        return torch.cat(shares)


def box_rows(
    plane: Integers, low: Integers, high: Integers, shape: Sequence[int]
) -> tuple[Integers, ...]:
    """Return the rows of boxes: index of the box, first pixel, the pixel after the last one.

    Args:
        plane: of each box.
        low: first corner of each box.
        high: corner after the last one.
        shape: of the maps, (planes, ..., width).

    Example:
        >>> corners = np.array([[0, 1]]), np.array([[2, 3]])
        >>> [values.tolist() for values in box_rows(np.array([0]), *corners, (1, 2, 4))]
        [[0, 0], [1, 5], [3, 7]]
    """
    sides = (high - low)[:, :-1]
    count = sides.prod(axis=1)
    box = np.repeat(np.arange(len(count)), count)
    rest = ranges(np.zeros_like(count), count)
    position = []
    for axis in reversed(range(sides.shape[1])):
        rest, step = np.divmod(rest, sides[box, axis])
        position.append(low[box, axis] + step)
    row = np.ravel_multi_index((plane[box], *reversed(position)), tuple(shape[:-1]))
    return box, row * shape[-1] + low[box, -1], row * shape[-1] + high[box, -1]


def runs_of_boxes(
    plane: Integers, low: Integers, high: Integers, shape: tuple[int, ...], device: torch.device
) -> PixelRuns:
    """Return the layout of boxes, of whole planes after them, and then of the pixels in no box."""
    size = int(np.prod(shape))
    box, begin, end = box_rows(plane, low, high, shape)
    is_start = np.zeros(size + 1, dtype=bool)
    is_start[:: size // shape[0]] = is_start[begin] = is_start[end] = True
    start = np.flatnonzero(is_start[:-1])
    first, last = np.searchsorted(start, begin), np.searchsorted(start, end)
    run, part = ranges(first, last), np.repeat(box, last - first)
    return _with_planes(shape, len(plane), start, run, part, device)


def runs_of_labels(
    labels: NDArray[Any], n_parts: int, first: Integers, device: torch.device
) -> PixelRuns:
    """Return the layout of labels (planes, ...), of whole planes, and of the pixels without a label.

    Args:
        labels: index of the part of every pixel among those of its plane; -1 for none.
        n_parts: number of parts.
        first: index of the first part of each plane.
        device: of the maps.
    """
    flat = labels.reshape(len(labels), -1)
    is_start = np.empty(flat.shape, dtype=bool)
    is_start[:, 0] = True
    np.not_equal(flat[:, 1:], flat[:, :-1], out=is_start[:, 1:])
    start = np.flatnonzero(is_start)
    label = flat.ravel()[start].astype(np.int64)
    run = np.flatnonzero(label >= 0)
    part = label[run] + first[start[run] // flat.shape[1]]
    return _with_planes(labels.shape, n_parts, start, run, part, device)


def _with_planes(
    shape: tuple[int, ...],
    n_parts: int,
    start: Integers,
    run: Integers,
    part: Integers,
    device: torch.device,
) -> PixelRuns:
    """Add a part for every plane, and one for the pixels of every plane that are in no part."""
    n_planes = shape[0]
    plane = start // (int(np.prod(shape)) // n_planes)
    is_covered = np.zeros(len(start), dtype=bool)
    is_covered[run] = True
    outside = np.flatnonzero(~is_covered)
    run = np.concatenate([run, np.arange(len(start)), outside])
    part = np.concatenate([part, n_parts + plane, n_parts + n_planes + plane[outside]])
    return PixelRuns(shape, n_parts + 2 * n_planes, start, run, part, device)


def masks_with_planes(mask: Tensor, plane: Tensor, shape: tuple[int, ...]) -> Masks:
    """Return the layout of masks (parts, pixels), of whole planes, and of the pixels in no mask."""
    planes = torch.arange(shape[0], device=mask.device)
    covered = mask.new_zeros(shape).flatten(1).index_add(0, plane, mask)
    masks = torch.cat([mask, torch.ones_like(covered), (covered == 0).to(mask.dtype)])
    return Masks(masks, torch.cat([plane, planes, planes]), shape)


def can_use_custom_autograd(values: Tensor) -> bool:
    """Say whether to use NumPy and hand-written gradients; transforms need plain operations."""
    if values.device.type != "cpu" or torch.compiler.is_compiling() or are_transforms_active():
        return False
    dual = unpack_dual(values)  # type: ignore[no-untyped-call]
    # forward-mode differentiation, and `torch.autograd.grad(is_grads_batched=True)`
    return dual.tangent is None and not is_legacy_batchedtensor(values)


class _PartSums(torch.autograd.Function):
    """Sums over parts of values times constant maps, or times themselves (degree 2).

    Hand-written because autograd would allocate whole maps that are not needed. The gradient consists
    of operations that can be differentiated again (`factors` holds `values` with its graph), so
    gradients of any order are correct.
    """

    @staticmethod
    def forward(
        values: Tensor, degrees: list[int], runs: PixelRuns, *factors: Tensor | None
    ) -> tuple[Tensor, ...]:
        del degrees  # for the gradient
        return runs.sum_products(values, factors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:  # noqa: ARG004
        _, ctx.degrees, ctx.runs, *factors = inputs
        ctx.save_for_backward(*factors)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        factors = ctx.saved_tensors
        if not torch.is_grad_enabled() and all(map(can_use_custom_autograd, gradients)):
            scaled = [degree * gradient for gradient, degree in zip(gradients, ctx.degrees, strict=True)]
            return (ctx.runs.spread_products(scaled, factors), *[None] * (2 + len(factors)))
        total = gradients[0].new_zeros(())
        for gradient, degree, factor in zip(gradients, ctx.degrees, factors, strict=True):
            spread = ctx.runs.spread(degree * gradient)
            total = total + spread if factor is None else torch.addcmul(total, spread, factor)
        return (total, *[None] * (2 + len(factors)))


class _Spread(torch.autograd.Function):
    """The sum of the values of the parts of every pixel; the gradient is a sum over parts."""

    @staticmethod
    def forward(values: Tensor, runs: PixelRuns) -> Tensor:
        return runs.spread_products([values.detach()], [None])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:  # noqa: ARG004
        ctx.runs = inputs[1]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return ctx.runs.sums(gradients[0], None)[0], None


def _multiply(values: Tensor, factor: Tensor | None) -> Tensor:
    return values if factor is None else values * factor


def no_autocast(reference: Tensor) -> AbstractContextManager[object]:
    """Return a context without autocast on the device of a tensor: sums stay in float32."""
    device = reference.device.type
    return torch.autocast(device, enabled=False) if is_autocast_available(device) else nullcontext()

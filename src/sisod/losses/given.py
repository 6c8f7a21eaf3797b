"""Boxes and labels as the loss is given them: their columns, and whether they fit the target."""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from sisod.losses.checks import Target, check_tensor
from sisod.losses.components import ranges
from sisod.losses.parts import box_rows
from sisod.losses.tracing import as_array, is_readable, raise_if_vmapped

_SIGNED = (torch.int8, torch.int16, torch.int32, torch.int64)
_AXES = "zyx"


class Boxes(NamedTuple):
    """Boxes by column: arrays, or tensors where they may not be read."""

    plane: Any
    label: Any
    low: Any
    high: Any


def read_boxes(boxes: Tensor, target: Target) -> Boxes:
    """Return the columns of boxes; raise for a wrong shape or dtype and boxes outside the image."""
    check_tensor(boxes, "boxes")
    raise_if_vmapped(boxes, "boxes")
    shape = target.truth.shape
    dims, has_class = len(shape) - 1, target.mode != "binary"
    axes = _AXES[-dims:]
    columns = ["image", *["class"] * has_class, *(f"{axis}{end}" for end in (0, 1) for axis in axes)]
    is_integer = not boxes.is_floating_point() and boxes.dtype != torch.bool
    if boxes.ndim != 2 or boxes.shape[1] != len(columns) or not is_integer:
        raise ValueError(
            f"boxes has shape {tuple(boxes.shape)} and dtype {boxes.dtype}; in mode {target.mode!r} "
            f"expected integer rows ({', '.join(columns)}), as from boxes_of; collate_boxes joins those "
            "of single images"
        )
    # areas overflow narrow types
    is_traced = torch.compiler.is_compiling()
    rows: Any = boxes.long() if is_traced else as_array(boxes).astype(np.int64)
    image, low, high = rows[:, 0], rows[:, -2 * dims : -dims], rows[:, -dims:]
    label = rows[:, 1] if has_class else 0 * image
    if not is_traced:
        sides = np.array(shape[1:])
        valid = (image >= 0) & (image < len(target.truth) // target.channels)
        valid &= (label >= (target.mode == "multiclass")) & (label < target.n_classes)
        valid &= ((low >= 0) & (low < high) & (high <= sides)).all(axis=1)
        if not valid.all():
            wrong = int(np.argmin(valid))
            raise ValueError(
                f"boxes row {wrong} is {tuple(rows[wrong].tolist())}; expected ({', '.join(columns)}) "
                f"inside {len(target.truth) // target.channels} images of "
                f"{' x '.join(map(str, sides))}, {axes[0]}0 < {axes[0]}1 and so on"
            )
    return Boxes(image * target.channels + label * (target.mode == "multilabel"), label, low, high)


def read_labels(labels: Tensor, target: Target) -> Tensor:
    """Return labels as (planes, *spatial); raise for a wrong shape or dtype, or wrong values."""
    check_tensor(labels, "labels")
    raise_if_vmapped(labels, "labels")
    shape = target.truth.shape
    fits = labels.numel() == target.truth.numel() and labels.shape[-1] == shape[-1]
    if not fits or labels.dtype not in _SIGNED:
        raise ValueError(
            f"labels has shape {tuple(labels.shape)} and dtype {labels.dtype}; expected signed integers "
            f"of shape {tuple(shape)}, the part of every pixel, as from labels_of"
        )
    planes = labels.reshape(shape)
    if is_readable(planes):
        flat = planes.flatten(1)
        low, high = flat.amin(dim=1), flat.amax(dim=1)
        if int(low.min()) < -1 or bool(((low < 0) & (high >= 0)).any()):
            raise ValueError(
                f"labels holds {int(low.min())} beside the parts of an image; expected the index of a "
                "part in every pixel, or -1 in all of them; give labels=labels_of(target)"
            )
    return planes


def check_fit(boxes: Boxes, target: Target) -> None:
    """Raise if a box is not tight: no pixel of an object of its class on one of its sides.

    So boxes that were found before the mask was flipped, cropped or resized are noticed. Only the
    pixels on the sides are read.
    """
    if not is_readable(target.truth) or not len(boxes.plane):
        return
    shape, dims = target.truth.shape, boxes.low.shape[1]
    low, high = (np.repeat(corner[None], 2 * dims, axis=0) for corner in (boxes.low, boxes.high))
    for axis in range(dims):  # the first and the last line along every axis
        high[2 * axis, :, axis] = boxes.low[:, axis] + 1
        low[2 * axis + 1, :, axis] = boxes.high[:, axis] - 1
    plane, label = (np.tile(column, 2 * dims) for column in (boxes.plane, boxes.label))
    side, begin, end = box_rows(plane, low.reshape(-1, dims), high.reshape(-1, dims), shape)
    pixel, side = ranges(begin, end), np.repeat(side, end - begin)
    truth = as_array(target.truth).ravel()[pixel]
    is_salient = truth == label[side] if target.mode == "multiclass" else truth >= 0.5
    if target.valid is not None:
        is_salient &= as_array(target.valid).ravel()[pixel] > 0
    counts = np.bincount(side, is_salient, minlength=len(plane)).reshape(2 * dims, -1)
    if not counts.all():
        wrong = int(np.argmin(counts.all(axis=0)))
        raise ValueError(
            f"boxes row {wrong} does not fit the target: there is no object on one of its sides; find "
            "boxes after augmentation, or switch this check off with check_parts=False"
        )

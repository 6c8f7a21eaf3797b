"""Shapes, types and values of input and target in every mode. Wrong ones name the mode they are of.

Values are read on the CPU only, outside compilation.
"""

import functools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sisod.common.arguments import check_choice
from sisod.losses.tracing import as_array, is_readable
from sisod.scoring.loss_options import Mode, Weighting

Maps = Tensor | Sequence[Tensor]
_FORMS = {
    "binary": "one map per image, (B, 1, H, W), (B, H, W) or (B, 1, D, H, W)",
    "multilabel": "one map per class, (B, C, H, W) or (B, C, D, H, W)",
    "multiclass": "one map per class, (B, C, H, W) or (B, C, D, H, W), with at least two classes",
}


@dataclass(frozen=True, eq=False)
class Target:
    """The ground truth of a batch, its channels as planes of their own.

    Attributes:
        mode: says what the planes are.
        truth: (planes, *spatial): values in [0, 1]; for `"multiclass"` the class of every pixel.
        valid: 1 where pixels count and 0 where they are ignored; None if all count.
        channels: C of `"multilabel"`, whose planes are images times channels; else 1.
        n_classes: maps of an image.
        dtype: of sums and weights.
    """

    mode: Mode
    truth: Tensor
    valid: Tensor | None
    channels: int
    n_classes: int
    dtype: torch.dtype

    def salient(self) -> NDArray[np.integer | np.bool_]:
        """Return the class of every pixel that may belong to an object, 0 or False for all others."""
        classes = as_array(self.truth)
        salient = classes if self.mode == "multiclass" else classes >= 0.5
        return salient if self.valid is None else salient * as_array(self.valid).astype(salient.dtype)


def read_batch(
    input: Maps,  # noqa: A002  (PyTorch's name)
    target: Tensor,
    *,
    mode: Mode,
    ignore_index: int | None,
    from_probs: bool,
) -> tuple[list[Tensor], Target]:
    """Return the side outputs and the ground truth, in float32 or float64; raise if they do not fit.

    Side outputs are (planes, *spatial), for `"multiclass"` (B, C, *spatial).
    """
    is_single = isinstance(input, Tensor | Mapping)
    maps = cast("list[Tensor]", [input] if is_single else list(input))
    if not maps:
        raise ValueError("input is an empty sequence; expected at least one map")
    check_tensor(target, "target")
    for number, map_ in enumerate(maps):
        _check_map(map_, target, "input" if is_single else f"input[{number}]", mode)
    _check_values(maps, from_probs=from_probs)
    # sums over pixels need float32 at least, whatever dtype autocast gave the maps
    dtype = functools.reduce(torch.promote_types, [map_.dtype for map_ in maps], torch.float32)
    planes = [map_.to(dtype) for map_ in maps]
    if mode == "multilabel":
        planes = [plane.flatten(0, 1) for plane in planes]
    elif mode == "binary":  # a slice would cost a copy in the backward pass
        planes = [plane.squeeze(1) if plane.ndim > 3 else plane for plane in planes]
    n_classes = 1 if mode == "binary" else maps[0].shape[1]
    truth, valid = split_ignored(target.detach(), ignore_index)
    check_truth(truth, target, mode, n_classes)
    shape = planes[0].shape if mode != "multiclass" else (len(planes[0]), *planes[0].shape[2:])
    kind = torch.int64 if mode == "multiclass" else dtype
    return planes, Target(
        mode,
        truth.reshape(shape).to(kind),
        None if valid is None else valid.reshape(shape).to(dtype),
        n_classes if mode == "multilabel" else 1,
        n_classes,
        dtype,
    )


def read_target(gt: Tensor, weighting: Weighting, spatial_dims: int | None) -> Target:
    """Return a ground truth without a prediction, to find its parts.

    Args:
        gt: ground truth of a batch or of one image, as for `boxes_of`.
        weighting: says mode and ignored pixels.
        spatial_dims: as for `boxes_of`.
    """
    mode = weighting.mode
    n_extra = 1 if mode == "multiclass" else 2  # axes before the spatial ones
    dims = spatial_dims or (3 if gt.ndim == 3 + n_extra else 2)
    check_choice("spatial_dims", dims, (2, 3))
    channels = gt.shape[-dims - 1] if mode == "multilabel" and gt.ndim > dims else 1
    has_one_map = mode != "binary" or gt.ndim < 2 + dims or gt.shape[1] == 1
    least = dims + (mode == "multilabel")
    if not least <= gt.ndim <= dims + n_extra or gt.numel() == 0 or not has_one_map:
        raise ValueError(
            f"target has shape {tuple(gt.shape)}; in mode {mode!r} with {dims} spatial dimensions "
            f"expected {'(B, C, ...)' if mode == 'multilabel' else 'one map per image'}"
        )
    truth, valid = split_ignored(gt.detach(), weighting.ignore_index)
    check_truth(truth, gt, mode, None)
    if truth.is_floating_point():  # NumPy has no bfloat16
        truth = truth.to(torch.promote_types(truth.dtype, torch.float32))
    shape = (-1, *gt.shape[-dims:])
    counted = None if valid is None else valid.reshape(shape)
    return Target(mode, truth.reshape(shape), counted, channels, 0, torch.float32)


def split_ignored(target: Tensor, ignore_index: int | None) -> tuple[Tensor, Tensor | None]:
    """Return the target with 0 for the pixels to ignore, and which count; None if all do."""
    if ignore_index is None:
        return target, None
    valid = target != ignore_index
    if is_readable(valid) and bool(valid.all()):
        return target, None
    return target * valid, valid


def check_tensor(value: object, name: str) -> None:
    """Raise if a value is an array, a list or, for networks like LDF, a mapping of tensors."""
    if not isinstance(value, Tensor):
        advice = "see for_network" if isinstance(value, Mapping) else f"use torch.as_tensor({name})"
        raise TypeError(f"{name} is of type {type(value).__name__}; expected a tensor; {advice}")


def _check_map(map_: Tensor, target: Tensor, name: str, mode: Mode) -> None:
    """Raise if type, device or shape are not those of the mode."""
    check_tensor(map_, name)
    if not map_.is_floating_point():
        raise TypeError(f"{name} has dtype {map_.dtype}; expected floats; input comes before target")
    if map_.device != target.device:
        raise ValueError(f"{name} is on {map_.device} but target is on {target.device}")
    shape = tuple(map_.shape)
    is_flat = mode == "binary" and map_.ndim == 3
    fits = is_flat or map_.ndim in (4, 5)
    if fits and mode == "binary":
        fits = is_flat or shape[1] == 1
    elif fits and mode == "multiclass":
        fits = shape[1] >= 2
    if not fits or map_.numel() == 0:
        others = "'multiclass' or 'multilabel'" if mode == "binary" else "'binary'"
        raise ValueError(
            f"{name} has shape {shape}; mode {mode!r} takes {_FORMS[mode]}; for another number of maps "
            f"use mode {others}"
        )
    spatial = shape[1:] if is_flat else shape[2:]
    allowed = [shape] if mode == "multilabel" else [(len(map_), *spatial), (len(map_), 1, *spatial)]
    if tuple(target.shape) not in allowed:
        hint = "resize the prediction to the target"
        if mode == "multilabel" and target.ndim == map_.ndim - 1:
            hint = "one map of classes is of mode 'multiclass'"
        elif mode == "multiclass" and target.shape == map_.shape:
            hint = "one mask per class is of mode 'multilabel'"
        raise ValueError(
            f"{name} has shape {shape} but target has shape {tuple(target.shape)}; in mode {mode!r} "
            f"expected a target of shape {' or '.join(map(str, allowed))}; {hint}"
        )


def check_truth(truth: Tensor, target: Tensor, mode: Mode, n_classes: int | None) -> None:
    """Raise if values are not those of the mode, where reading needs no synchronisation.

    Args:
        truth: the target, with 0 for ignored pixels.
        target: as given, for the message.
        mode: of the loss.
        n_classes: of `"multiclass"`, if known.
    """
    if mode == "multiclass" and (truth.is_floating_point() or truth.dtype == torch.bool):
        raise TypeError(
            f"target has dtype {target.dtype}; mode 'multiclass' takes integers, the class of every "
            "pixel; masks are of mode 'binary' or 'multilabel'"
        )
    if truth.dtype == torch.bool or not is_readable(truth):
        return
    low, high = (float(extreme) for extreme in torch.aminmax(truth))
    most = 1 if mode != "multiclass" else np.inf if n_classes is None else n_classes - 1
    if low >= 0 and high <= most:
        return
    advice = "pixels to ignore are named by ignore_index"
    if mode != "multiclass":
        if bool(((target == 0) | (target == 255)).all()):
            advice = "divide by 255 if 255 is salient; use ignore_index=255 if it marks pixels to ignore"
        elif bool((target == target.round()).all()):
            advice = f"a map of classes is of mode 'multiclass'; {advice}"
    raise ValueError(
        f"target holds values from {low:g} to {high:g}; mode {mode!r} takes values from 0 to {most}; "
        + advice
    )


def _check_values(maps: Sequence[Tensor], *, from_probs: bool) -> None:
    """Raise if probabilities are outside [0, 1]; warn once where logits look like probabilities."""
    if from_probs:
        if not all(_in_unit_range(map_) for map_ in maps if is_readable(map_)):
            raise ValueError(
                "from_probs=True but there are values outside [0, 1]; pass probabilities, "
                "or logits without from_probs"
            )
    # a last layer that was initialised to zero gives a constant map
    elif all(
        is_readable(map_) and _in_unit_range(map_) and not bool((map_ == map_.flatten()[0]).all())
        for map_ in maps
    ):
        warn_once(
            "all values of input are in [0, 1]; if they are probabilities, pass from_probs=True or the "
            "logits before the sigmoid; if they are logits of an untrained network, ignore this warning"
        )


def _in_unit_range(map_: Tensor) -> bool:
    values = map_.detach()
    # one row nearly always tells logits from probabilities; reading all pixels costs a pass
    return all(bool(((part >= 0) & (part <= 1)).all()) for part in (values[..., :1, :], values))


def warn_if_empty(target: Target) -> None:
    """Warn once if an image without objects gets no gradient from a loss of region terms only."""
    if is_readable(target.truth) and not bool((target.truth.flatten(1).amax(dim=1) > 0).all()):
        warn_once(
            "the target of an image is empty, where region terms are constant, and the loss has no "
            "other terms: this image gives no gradient; add a separable term such as 'bce'"
        )


@functools.cache  # once a process
def warn_once(message: str) -> None:
    """Warn, if this was not said before."""
    warnings.warn(message, UserWarning, stacklevel=2)

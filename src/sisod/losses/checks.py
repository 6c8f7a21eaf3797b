"""Shapes, types and values of input and target in every mode. Wrong ones name the mode they are of.

Values are read on the CPU only, outside compilation.
"""

import functools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast, get_args

import torch
from torch import Tensor

from sisod.common.arguments import check_choice
from sisod.losses.tracing import is_readable
from sisod.scoring.loss_options import Mode

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

    def salient(self) -> Tensor:
        """Return the class of every pixel that may belong to an object, 0 or False for all others."""
        classes = self.truth if self.mode == "multiclass" else self.truth >= 0.5
        return classes if self.valid is None else classes * self.valid.to(classes.dtype)


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
    # sums over pixels need float32 at least, whatever dtype autocast gave the maps
    dtype = functools.reduce(
        torch.promote_types, [m.dtype for m in maps if isinstance(m, Tensor)], torch.float32
    )
    planes = []
    for number, map_ in enumerate(maps):
        name = "input" if is_single else f"input[{number}]"
        check_tensor(map_, name)
        if not map_.is_floating_point():
            raise TypeError(f"{name} has dtype {map_.dtype}; expected floats; input comes before target")
        if map_.device != target.device:
            raise ValueError(
                f"{name} is on {map_.device} but target is on {target.device}; move the target there "
                f"with target.to({str(map_.device)!r})"
            )
        _check_shapes(map_, target, name, mode)
        plane = map_.to(dtype)
        if mode == "multilabel":
            plane = plane.flatten(0, 1)
        elif mode == "binary" and map_.ndim > 3:
            plane = plane.squeeze(1)  # a slice would cost a copy in the backward pass
        planes.append(plane)
    _check_values(maps, from_probs=from_probs)
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


def salient_classes(
    gt: Tensor, mode: Mode, ignore_index: int | None, spatial_dims: int | None
) -> tuple[Tensor, int]:
    """Return the class of every salient pixel, (planes, *spatial), and the channels of an image.

    Args:
        gt: ground truth of a batch or of one image, as for `boxes_of`.
        mode: as for `boxes_of`.
        ignore_index: as for `boxes_of`.
        spatial_dims: as for `boxes_of`.
    """
    check_choice("mode", mode, get_args(Mode))
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
    truth, valid = split_ignored(gt, ignore_index)
    check_truth(truth, gt, mode, None)
    classes = truth if mode == "multiclass" else truth if truth.dtype == torch.bool else truth >= 0.5
    if valid is not None:
        classes = classes * valid
    return classes.reshape(-1, *gt.shape[-dims:]), channels


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


def _check_shapes(map_: Tensor, target: Tensor, name: str, mode: Mode) -> None:
    """Raise if the shapes are not those of the mode."""
    shape = tuple(map_.shape)
    is_flat = mode == "binary" and map_.ndim == 3
    fits = is_flat or map_.ndim in (4, 5)
    if mode == "binary":
        fits = fits and (is_flat or shape[1] == 1)
    elif mode == "multiclass":
        fits = fits and shape[1] >= 2
    if not fits or map_.numel() == 0:
        other = {"binary": "'multiclass' or 'multilabel'", "multiclass": "'binary'"}.get(
            mode, "'binary'"
        )
        raise ValueError(
            f"{name} has shape {shape}; mode {mode!r} takes {_FORMS[mode]}; for another number of maps "
            f"use mode {other}"
        )
    spatial = shape[1:] if is_flat else shape[2:]
    allowed = (
        [(shape[0], shape[1], *spatial)]
        if mode == "multilabel"
        else [(shape[0], *spatial), (shape[0], 1, *spatial)]
    )
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
    is_integer = not truth.is_floating_point() and truth.dtype != torch.bool
    if mode == "multiclass" and not is_integer:
        raise TypeError(
            f"target has dtype {target.dtype}; mode 'multiclass' takes integers, the class of every "
            "pixel; masks are of mode 'binary' or 'multilabel'"
        )
    if truth.dtype == torch.bool or not is_readable(truth):
        return
    low, high = (float(extreme) for extreme in torch.aminmax(truth))
    if mode == "multiclass":
        if low < 0 or (n_classes is not None and high >= n_classes):
            last = "" if n_classes is None else f" to {n_classes - 1}, one for each map of the input"
            raise ValueError(
                f"target holds classes from {low:g} to {high:g}; expected 0{last}; pixels to ignore "
                "are named by ignore_index"
            )
    elif not (low >= 0 and high <= 1):
        is_grey_mask = bool(((target == 0) | (target == 255)).all())
        is_classes = bool((target == target.round()).all())
        advice = "a map of classes is of mode 'multiclass'" if is_classes else "expected masks"
        if is_grey_mask:
            advice = "divide by 255 if 255 is salient; use ignore_index=255 if it marks pixels to ignore"
        elif is_classes:
            advice += "; pixels to ignore are named by ignore_index"
        raise ValueError(
            f"target holds values from {low:g} to {high:g}; mode {mode!r} takes masks in [0, 1]; "
            + advice
        )


def _check_values(maps: Sequence[Tensor], *, from_probs: bool) -> None:
    """Raise if probabilities are outside [0, 1]; warn once where logits look like probabilities."""
    if from_probs:
        for map_ in maps:
            if is_readable(map_) and not _in_unit_range(map_):
                raise ValueError(
                    "from_probs=True but there are values outside [0, 1]; pass probabilities, "
                    "or logits without from_probs"
                )
    elif all(is_readable(map_) and _in_unit_range(map_) and not _is_constant(map_) for map_ in maps):
        _warn_probabilities()


def _is_constant(map_: Tensor) -> bool:
    """Say whether all values are equal, as those of a last layer that was initialised to zero."""
    return bool((map_ == map_.flatten()[0]).all())


def _in_unit_range(map_: Tensor) -> bool:
    values = map_.detach()
    # one row nearly always tells logits from probabilities; reading all pixels costs a pass
    return all(bool(((part >= 0) & (part <= 1)).all()) for part in (values[..., :1, :], values))


@functools.cache  # once a process
def _warn_probabilities() -> None:
    warnings.warn(
        "all values of input are in [0, 1]; if they are probabilities, pass from_probs=True or the "
        "logits before the sigmoid; if they are the logits of an untrained network, ignore this warning",
        UserWarning,
        stacklevel=2,
    )


def warn_if_empty(target: Target) -> None:
    """Warn once if an image without objects gets no gradient from a loss of region terms only."""
    if is_readable(target.truth) and not bool((target.truth.flatten(1).amax(dim=1) > 0).all()):
        _warn_no_gradient()


@functools.cache  # once a process
def _warn_no_gradient() -> None:
    warnings.warn(
        "the target of an image is empty, where region terms are constant, and the loss has no other "
        "terms: this image gives no gradient; add a separable term such as 'bce'",
        UserWarning,
        stacklevel=2,
    )

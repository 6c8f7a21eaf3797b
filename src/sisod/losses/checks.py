"""Input validation, and the one warning. Values are read on the CPU only, outside compilation."""

import functools
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch._C._functorch import get_unwrapped, is_batchedtensor, is_functorch_wrapped_tensor

Maps = Tensor | Sequence[Tensor]


def is_readable(tensor: Tensor) -> bool:
    """Say whether values may be read: on the CPU, not traced by the compiler, not batched by vmap."""
    if tensor.device.type != "cpu" or torch.compiler.is_compiling():
        return False
    return not is_functorch_wrapped_tensor(tensor) or not is_batched(tensor)


def is_batched(tensor: Tensor) -> bool:
    """Say whether `torch.func.vmap` maps over a tensor."""
    while is_functorch_wrapped_tensor(tensor):
        if is_batchedtensor(tensor):
            return True
        tensor = get_unwrapped(tensor)
    return False


def are_transforms_active() -> bool:
    """Say whether a transform of `torch.func` is active: there is no access to the memory of tensors."""
    return bool(torch._C._are_functorch_transforms_active())


def as_array(tensor: Tensor) -> NDArray[Any]:
    """Return the values of a tensor that may be read."""
    if are_transforms_active():
        return np.array(tensor.tolist()).reshape(tensor.shape)
    return tensor.detach().numpy()


def as_planes(logits: Maps, gt: Tensor, *, from_probs: bool) -> tuple[list[Tensor], Tensor]:
    """Return the side outputs and the ground truth as (B, H, W), in float32 or float64."""
    is_single = isinstance(logits, Tensor | Mapping)
    maps = cast("list[Tensor]", [logits] if is_single else list(logits))
    names = ["logits"] if is_single else [f"logits[{i}]" for i in range(len(maps))]
    if not maps:
        raise ValueError("logits is an empty sequence; expected at least one map")
    target = _plane(gt, "gt")
    check_unit_range(gt, "gt")
    planes = []
    for map_, name in zip(maps, names, strict=True):
        plane = _plane(map_, name)
        if plane.shape != target.shape:
            raise ValueError(
                f"{name} has shape {tuple(map_.shape)} but gt has shape {tuple(gt.shape)}; "
                "resize the prediction to the ground truth"
            )
        if not map_.is_floating_point():
            raise TypeError(f"{name} has dtype {map_.dtype}; expected floats")
        if map_.device != gt.device:
            raise ValueError(
                f"{name} is on {map_.device} but gt is on {gt.device}; move gt there with "
                f"gt.to({str(map_.device)!r})"
            )
        planes.append(plane)
    _check_values(maps, from_probs=from_probs)
    # sums over pixels need float32 at least, whatever dtype autocast gave the maps
    dtype = functools.reduce(torch.promote_types, [map_.dtype for map_ in maps], torch.float32)
    return [plane.to(dtype) for plane in planes], target.detach().to(dtype)


def check_unit_range(values: Tensor, name: str) -> None:
    """Raise if there is NaN or a value outside [0, 1], where reading needs no synchronisation."""
    if values.dtype == torch.bool or values.numel() == 0 or not is_readable(values):
        return
    low, high = (float(extreme) for extreme in torch.aminmax(values.detach()))
    if not (low >= 0 and high <= 1):
        is_grey_mask = bool(((values == 0) | (values == 255)).all())  # 255 may mark pixels to ignore too
        advice = "divide by 255" if is_grey_mask else "the loss is binary and takes no map of classes"
        raise ValueError(
            f"{name} holds values from {low:g} to {high:g}; expected one mask per image, in [0, 1]; "
            + advice
        )


def check_tensor(value: object, name: str) -> None:
    """Raise if a value is an array, a list or, for networks like LDF, a mapping of tensors."""
    if not isinstance(value, Tensor):
        advice = "see for_network" if isinstance(value, Mapping) else f"use torch.as_tensor({name})"
        raise TypeError(f"{name} is of type {type(value).__name__}; expected a tensor; {advice}")


def _plane(map_: Tensor, name: str) -> Tensor:
    check_tensor(map_, name)
    if map_.numel() == 0:
        raise ValueError(f"{name} has shape {tuple(map_.shape)}; expected at least one pixel")
    if map_.ndim == 4 and map_.shape[1] == 1:
        return map_.squeeze(1)  # a slice would cost a copy in the backward pass
    if map_.ndim == 3:
        return map_
    raise ValueError(
        f"{name} has shape {tuple(map_.shape)}; the loss is binary and takes one map per image, "
        "(B, 1, H, W) or (B, H, W); classes and volumes are not supported"
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
        "all logits are in [0, 1]; if they are probabilities, pass from_probs=True or the logits before "
        "the sigmoid; if they are the logits of an untrained network, ignore this warning",
        UserWarning,
        stacklevel=2,
    )

"""What may be read of a tensor: inside the compiler, transforms and on devices nothing is."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch._C._functorch import get_unwrapped, is_batchedtensor, is_functorch_wrapped_tensor


def is_readable(tensor: Tensor) -> bool:
    """Say whether reading values costs no synchronisation: on the CPU, not traced, not batched."""
    if tensor.device.type != "cpu" or torch.compiler.is_compiling():
        return False
    return not is_batched(tensor)


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
    """Return the values of a tensor that may be read, or that the CPU has to wait for."""
    if are_transforms_active():
        return np.array(tensor.tolist()).reshape(tensor.shape)
    return np.asarray(tensor.detach().cpu().numpy())


def raise_if_vmapped(tensor: Tensor, name: str) -> None:
    """Raise if `torch.func.vmap` maps over a tensor."""
    if not torch.compiler.is_compiling() and is_batched(tensor):
        raise ValueError(
            f"torch.func.vmap maps over {name}, but images differ in their number of objects; map over "
            "the input only, with parts found outside, or loop over the images"
        )

"""Sizes that a network cannot be run at here, refused before the system runs out of memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from sisod.common.errors import UsageError
from sisod.common.memory import available_memory
from sisod.networks.network import Network

_MANY = 1 << 24  # pixels of a batch, from which it is worth a thought
_GIGA = 1e9


def check_memory(network: Network, *, batch: int, height: int, width: int, advice: str) -> None:
    """Refuse a size for which the memory that is there cannot suffice."""
    free = available_memory()
    if free is None or batch * height * width < _MANY:
        return
    needed = least_memory(network, batch=batch, height=height, width=width)
    if needed > free:
        raise UsageError(
            f"{batch} images of {height} x {width} need at least {needed / _GIGA:.3g} GB of memory, and "
            f"{free / _GIGA:.3g} GB are free; {advice}"
        )


def least_memory(network: Network, *, batch: int, height: int, width: int) -> int:
    """Return the bytes that no forward pass can do without: input and output of its largest layer.

    Shapes are computed on the device `meta`, and no pixel is.
    """
    most = 3 * batch * height * width * 5  # images of 8 bits, and the input in floats

    def note(_: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        nonlocal most
        tensors = [one for one in (*inputs, output) if isinstance(one, Tensor)]
        most = max(most, sum(one.numel() * one.element_size() for one in tensors))

    with torch.device("meta"):
        shape_only = type(network)(encoder=network.encoder_name, input_spec=network.input_spec).eval()
        for part in shape_only.modules():
            if not list(part.children()):
                part.register_forward_hook(note)
        with torch.no_grad():
            shape_only(torch.empty(batch, 3, height, width))
    return most


@contextmanager
def memory_errors(what: str) -> Iterator[None]:
    """Say in a sentence that memory ran out, which PyTorch calls a runtime error."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "memory" not in str(error):
            raise
        raise UsageError(f"there is not enough memory for {what}; take a smaller one") from error

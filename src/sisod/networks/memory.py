"""Input sizes for which the memory cannot suffice: an error before the system runs out of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from sisod.common.exceptions import UsageError
from sisod.common.memory import available_memory
from sisod.networks.network import Network

_MIN_CHECKED = 1 << 24  # pixels of a batch; smaller batches are not checked
_GIGA = 1e9


def check_memory(network: Network, *, batch: int, height: int, width: int, advice: str) -> None:
    """Raise if a size needs more than the available memory."""
    free = available_memory()
    if free is None or batch * height * width < _MIN_CHECKED:
        return
    needed = least_memory(network, batch=batch, height=height, width=width)
    if needed > free:
        raise UsageError(
            f"{batch} images of {height} x {width} need at least {needed / _GIGA:.3g} GB of memory, and "
            f"{free / _GIGA:.3g} GB are free; {advice}"
        )


def least_memory(network: Network, *, batch: int, height: int, width: int) -> int:
    """Return the bytes that a forward pass needs at least: input and output of its largest layer.

    Computed on the device `meta`, that is from shapes alone.
    """
    peak = 3 * batch * height * width * 5  # 8-bit images, and the input in float32

    def update_peak(_: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        nonlocal peak
        tensors = [tensor for tensor in (*inputs, output) if isinstance(tensor, Tensor)]
        peak = max(peak, sum(tensor.numel() * tensor.element_size() for tensor in tensors))

    shape_only = network.on_meta()
    if shape_only is None:
        return peak
    for part in shape_only.eval().modules():
        if not list(part.children()):
            part.register_forward_hook(update_peak)
    with torch.device("meta"), torch.no_grad():
        shape_only(torch.empty(batch, 3, height, width))
    return peak


@contextmanager
def memory_errors(task: str) -> Iterator[None]:
    """Turn an out-of-memory error, for PyTorch a RuntimeError, into one sentence."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "memory" not in str(error):
            raise
        raise UsageError(
            f"there is not enough memory for {task}; take smaller images or fewer at once"
        ) from error

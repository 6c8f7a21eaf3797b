"""Signatures as text, for tests that freeze them."""

import inspect
from typing import Any


def parameters(function: Any) -> str:
    """Return the parameters of a function with their defaults."""
    return ", ".join(
        f"{p.name}={p.default}" if p.default is not p.empty else p.name
        for p in inspect.signature(function).parameters.values()
    )


def parameter_names(function: Any) -> str:
    """Return the parameters of a function without their defaults."""
    return ", ".join(inspect.signature(function).parameters)

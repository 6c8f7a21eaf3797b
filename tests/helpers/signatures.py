"""Signatures as text, for tests that freeze them."""

import inspect


def parameters(function: object) -> str:
    """Return the parameters of a function with their defaults."""
    return ", ".join(
        f"{p.name}={p.default}" if p.default is not p.empty else p.name
        for p in _signature(function).parameters.values()
    )


def parameter_names(function: object) -> str:
    """Return the parameters of a function without their defaults."""
    return ", ".join(_signature(function).parameters)


def _signature(function: object) -> inspect.Signature:
    assert callable(function)
    return inspect.signature(function)

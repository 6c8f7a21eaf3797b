"""Values that must have the types of a dataclass's fields, which TOML nearly tells apart."""

import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from sisod.common.arguments import shown
from sisod.common.errors import UsageError


def check_types(part: Any) -> None:
    """Refuse values of another type, which a file cannot bring but a caller can."""
    for name, hint in get_type_hints(type(part)).items():
        found, value = fit(getattr(part, name), hint)
        if not found:
            raise UsageError(f"{name} must be {said(hint)}, got {shown(value)}")
        object.__setattr__(part, name, value)  # 1 for 1.0, a list for a tuple


def fit(value: Any, hint: Any) -> tuple[bool, Any]:
    """Say whether a value has a type, and return it as that type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return value in arguments, value
    if origin in (Union, types.UnionType):
        tried = [fit(value, argument) for argument in arguments]
        return next((one for one in tried if one[0]), (False, value))
    if origin is tuple:
        if not isinstance(value, list | tuple):
            return False, value
        each = [arguments[0]] * len(value) if Ellipsis in arguments else list(arguments)
        if len(each) != len(value):
            return False, value
        items = [fit(item, argument) for item, argument in zip(value, each, strict=True)]
        return all(found for found, _ in items), tuple(item for _, item in items)
    if hint is float and type(value) is int and abs(value) <= 2**63:
        return True, float(value)
    return type(value) is hint, value


_SAID = {int: "a whole number", float: "a number", bool: "true or false", str: "text in quotes"}


def said(hint: Any) -> str:
    """Return a type as messages call it."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return "one of " + ", ".join(arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(said(argument) for argument in arguments)
    if origin is tuple:
        of = {int: "whole numbers", float: "numbers", str: "texts in quotes"}[arguments[0]]
        return f"a list of {of}" if Ellipsis in arguments else f"a list of {len(arguments)} {of}"
    return _SAID.get(hint) or f"of the class {hint.__name__}"

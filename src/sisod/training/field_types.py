"""Checks that values have the types of a dataclass's fields."""

import math
import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from sisod.common.arguments import shown
from sisod.common.errors import UsageError


def check_types(part: Any) -> None:
    """Refuse fields of a dataclass with values of another type than declared."""
    for name, hint in get_type_hints(type(part)).items():
        matches, value = convert(getattr(part, name), hint)
        if not matches:
            raise UsageError(f"{name} must be {describe_type(hint)}, got {shown(value)}")
        object.__setattr__(part, name, value)  # 1 becomes 1.0, a list a tuple


def convert(value: Any, hint: Any) -> tuple[bool, Any]:
    """Return whether a value matches a type, and the value converted to it."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return value in arguments, value
    if origin in (Union, types.UnionType):
        attempts = [convert(value, argument) for argument in arguments]
        return next((attempt for attempt in attempts if attempt[0]), (False, value))
    if origin is tuple:
        if not isinstance(value, list | tuple):
            return False, value
        hints = [arguments[0]] * len(value) if Ellipsis in arguments else list(arguments)
        if len(hints) != len(value):
            return False, value
        items = [convert(item, argument) for item, argument in zip(value, hints, strict=True)]
        return all(matches for matches, _ in items), tuple(item for _, item in items)
    if origin is dict:
        return isinstance(value, dict) and all(map(_is_plain, value.values())), value
    if hint is float and type(value) is int and abs(value) <= 2**63:
        return True, float(value)
    return type(value) is hint, value


def _is_plain(value: Any) -> bool:
    """Tell whether a value of a table is text, a number, a flag, or a list of those."""
    if isinstance(value, list):
        return all(_is_plain(item) and not isinstance(item, list) for item in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, str | bool) or (isinstance(value, int) and abs(value) <= 2**63)


_DESCRIPTIONS = {int: "a whole number", float: "a number", bool: "true or false", str: "text in quotes"}


def describe_type(hint: Any) -> str:
    """Return the name of a type for error messages."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return "one of " + ", ".join(arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(describe_type(argument) for argument in arguments)
    if origin is dict:
        return "a table of texts, finite numbers, flags and lists of them"
    if origin is tuple:
        kind = {int: "whole numbers", float: "numbers", str: "texts in quotes"}[arguments[0]]
        return f"a list of {kind}" if Ellipsis in arguments else f"a list of {len(arguments)} {kind}"
    return _DESCRIPTIONS.get(hint) or f"of the class {hint.__name__}"

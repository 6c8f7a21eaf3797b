"""Checks of single arguments: choices, numbers, flags and names; each error is one sentence."""

import difflib
import math
import os
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress

import numpy as np

from sisod.common.exceptions import InputError, UsageError, printable


def check_choice(name: str, value: object, known: Sequence[object]) -> None:
    """Raise if a value is not one of the known ones.

    Example:
        >>> check_choice("normalize", "min-max", ("minmax", "none"))
        Traceback (most recent call last):
        sisod.common.exceptions.UsageError: normalize must be 'minmax' or 'none', got 'min-max'
    """
    # True is equal to 1, and an array cannot be compared
    if not any(type(value) is type(choice) and value == choice for choice in known):
        *others, last = (repr(choice) for choice in known)
        listed = f"{', '.join(others)} or {last}" if others else last
        raise UsageError(f"{name} must be {listed}, got {short_repr(value)}")


def check_int(name: str, value: object, *, least: int, most: int | None = None) -> int:
    """Return an integer, also one of NumPy, within bounds.

    Example:
        >>> check_int("gt_level", 300, least=1, most=255)
        Traceback (most recent call last):
        sisod.common.exceptions.UsageError: gt_level must be at most 255, got 300
    """
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise UsageError(f"{name} must be an integer, got {short_repr(value)}")
    if value < least:
        raise UsageError(f"{name} must be at least {least}, got {short_repr(value)}")
    if most is not None and value > most:
        raise UsageError(f"{name} must be at most {most}, got {short_repr(value)}")
    return int(value)


def check_number(
    name: str, value: object, *, least: float = 0.0, most: float = math.inf, above: bool = False
) -> float:
    """Return a finite number within bounds; with `above` the lower bound itself is refused.

    Example:
        >>> check_number("epsilon", float("nan"), above=True)
        Traceback (most recent call last):
        sisod.common.exceptions.UsageError: epsilon must be a number above 0, got nan
    """
    if is_number(value):
        number = float(value)  # type: ignore[arg-type]
        if math.isfinite(number) and least <= number <= most and not (above and number == least):
            return number
    if least == -math.inf:
        bounds = "a finite number"
    else:
        end = "" if most == math.inf else f" and at most {most:g}"
        bounds = f"a number above {least:g}{end}" if above else f"a number {least:g} or more"
        if end and not above:
            bounds = f"a number from {least:g} to {most:g}"
    raise UsageError(f"{name} must be {bounds}, got {short_repr(value)}")


def check_flag(name: str, value: object) -> None:
    """Raise if a value is not a boolean: the text "false" would count as true.

    Example:
        >>> check_flag("strict", "false")
        Traceback (most recent call last):
        sisod.common.exceptions.UsageError: strict must be True or False, got 'false'
    """
    if not isinstance(value, bool | np.bool_):
        raise UsageError(f"{name} must be True or False, got {short_repr(value)}")


def check_text(name: str, value: object) -> None:
    """Raise if a value is not text.

    Example:
        >>> check_text("name", 5)
        Traceback (most recent call last):
        sisod.common.exceptions.UsageError: name must be text, got 5
    """
    if not isinstance(value, str):
        raise UsageError(f"{name} must be text, got {short_repr(value)}")


def is_number(value: object) -> bool:
    """Tell whether a value is a real number that a float can hold; a boolean is not."""
    if isinstance(value, int) and not isinstance(value, bool):
        return abs(value) < 10**300
    return isinstance(value, float | np.integer | np.floating)


def short_repr(value: object, *, most: int = 80) -> str:
    """Return a value as a message shows it: in one short line.

    Example:
        >>> len(short_repr("x" * 5000))
        80
    """
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, lists in lists in lists
        text = f"a {type(value).__name__} that is too long to show"
    return one_line(text, most=most)


def one_line(text: str, *, most: int = 80) -> str:
    r"""Return a text as one printable line of at most `most` characters.

    Example:
        >>> one_line("two\nlines")
        'two lines'
    """
    text = printable(" ".join(text[:10_000].split()))
    return text if len(text) <= most else f"{text[: most - 20]}...{text[-17:]}"


_MOST_LISTED = 20  # names in a message
_LONGEST = 200  # characters of a name that are compared with the known ones


def check_known(what: str, name: object, known: Collection[str]) -> None:
    """Raise for an unknown name, and a value that is not text; see `unknown_name_message`."""
    if not isinstance(name, str) or name not in known:
        raise UsageError(unknown_name_message(what, name, known))


def unknown_name_message(
    what: str, name: object, known: Iterable[str], *, near: Sequence[str] = (), command: str = ""
) -> str:
    """Return the message for an unknown name: the nearest known ones, and all of them.

    Args:
        what: what the name is of, such as "protocol".
        name: the unknown name.
        known: all known names.
        near: the known names that are suggested; by default the one spelled most similarly, if any.
        command: that lists the names, for those that are too many for a message.

    Example:
        >>> unknown_name_message("protocol", "papr", ["default", "paper"])
        "unknown protocol 'papr'; did you mean 'paper'? available: default, paper"
    """
    names = sorted(known)
    similar = similar_names(name, names) if isinstance(name, str) else []
    suggested = " or ".join(map(repr, near or similar[:1]))
    hint = f" did you mean {suggested}?" if suggested else ""
    listed = ", ".join(names)
    if len(names) > _MOST_LISTED:
        listed = f"{len(names)} names" + (f", listed by {command!r}" if command else "")
    return f"unknown {what} {short_repr(name)};{hint} available: {listed}"


def similar_names(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> list[str]:
    """Return the known names that are spelled similarly, the most similar one first.

    Example:
        >>> similar_names("mea", ["mse", "mae", "auc"])
        ['mae', 'mse']
    """
    similar = difflib.get_close_matches(name[:_LONGEST], known, n=5, cutoff=cutoff)
    return sorted(similar, key=lambda other: sorted(other) != sorted(name))  # swapped letters first


def check_utf8(name: str, what: str) -> None:
    """Raise for names that tables and JSON cannot hold."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        advice = "rename the file"
        with suppress(UnicodeError):  # the name is valid, but the locale cannot decode it
            os.fsencode(name).decode("utf-8")
            advice = "set the environment variable PYTHONUTF8=1"
        raise InputError(f"{what} {name!r} is not valid UTF-8; {advice}") from None

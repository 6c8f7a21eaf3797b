"""Import of what a user names as `module:attribute`; this runs the code of the module."""

import importlib
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

from sisod.common.arguments import one_line, short_repr, unknown_name_message
from sisod.common.exceptions import InputError, UsageError

_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")  # module:attribute


def import_attribute(name: str, what: str) -> Any:
    """Return what `module:attribute` names; `what` it is of, such as "metric", is for messages.

    A module that is not installed is looked for in the current folder.
    """
    check_import_name(name)
    module_name, _, path = name.partition(":")
    try:
        attribute: Any = _import_module(module_name)
    except (Exception, SystemExit) as error:
        is_missing = isinstance(error, ModuleNotFoundError)
        advice = "; install it, or start in the folder that holds it" if is_missing else ""
        raise InputError(
            f"the {what} {name!r} cannot be imported: {describe_error(error)}{advice}"
        ) from error
    for part in path.split("."):
        if not hasattr(attribute, part):
            functions = [other for other, value in vars(attribute).items() if callable(value)]
            public = [other for other in functions if not other.startswith("_")]
            raise InputError(unknown_name_message(f"function of {module_name!r}", part, public))
        attribute = getattr(attribute, part)
    return attribute


def check_import_name(name: str) -> None:
    """Raise for what does not have the form `module:attribute`; imports nothing."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{short_repr(name)} does not name a function; expected package.module:function"
        )


def describe_error(error: BaseException) -> str:
    """Return the kind and the text of an exception in one short line."""
    return one_line(f"{type(error).__name__}: {error}".removesuffix(": "), most=200)


@contextmanager
def explain_errors(what: str, advice: str = "") -> Iterator[None]:
    """Turn any exception of foreign code into one sentence: what failed, why, and what to do.

    Example:
        >>> with explain_errors("m.onnx cannot be opened", "give another"):
        ...     raise OSError("empty")
        Traceback (most recent call last):
        sisod.common.exceptions.InputError: m.onnx cannot be opened (OSError: empty); give another
    """
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:
        text = f"{what} ({describe_error(error)})"
        raise InputError(f"{text}; {advice}" if advice else text) from error


def _import_module(name: str) -> ModuleType:
    package, folder = name.partition(".")[0], os.getcwd()  # noqa: PTH109  (an entry of sys.path)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != package or PathFinder.find_spec(package, [folder]) is None:
            raise
    sys.path.append(folder)  # as the last, so that it replaces no installed module
    return importlib.import_module(name)

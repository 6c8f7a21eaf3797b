"""Reading of TOML files and values, with an error message for every way to fail."""

import tomllib
from pathlib import Path
from typing import Any

from sisod.common.arguments import brief
from sisod.common.errors import InputError


def read_toml(path: Path, *, place: str, name: str) -> dict[str, Any]:
    """Return the tables of a file.

    Messages call the file `place` if it cannot be read and `name` if it is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{place} cannot be read: {error.strerror}") from error
    except RecursionError:
        raise InputError(f"{name} is not a TOML file: its lists are nested too deeply") from None
    except ValueError as error:  # not TOML, not UTF-8, a path with a NUL, a number of 5000 digits
        raise InputError(f"{name} is not a TOML file: {brief(str(error))}") from error


def toml_value(text: str) -> Any:
    """Return the TOML value of a text, or the text itself if it is none; text needs no quotes.

    Example:
        >>> toml_value("1e-4"), toml_value(" union "), toml_value("[1, 2]")
        (0.0001, 'union', [1, 2])
    """
    try:
        tables = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text.strip()
    return tables["value"] if len(tables) == 1 else text.strip()  # a line break may start another key


def is_utf8(text: str) -> bool:
    """Tell whether a text can be encoded; one from a terminal may contain undecodable bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

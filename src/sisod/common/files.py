"""Reading of JSON, TOML and Parquet files; what is wrong is said in one sentence with file and field."""

import dataclasses
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints, is_typeddict

from sisod.common.arguments import one_line, short_repr, similar_names
from sisod.common.exceptions import InputError, printable

if TYPE_CHECKING:
    import polars as pl

T = TypeVar("T")


def read_json(path: Path, kind: type[T], *, fmt: int | None = None, name: str = "") -> T:
    """Read a JSON file into a dataclass (or any type that msgspec converts to).

    Args:
        path: of the file.
        kind: type of the content.
        fmt: number that the field `format` must have; None for files without one.
        name: what messages call the file; by default its path.

    Raises:
        InputError: the file cannot be read, or has another format; or a field has the wrong type.
    """
    name = name or repr(str(path))
    content = _parse(path, name, "JSON", json.loads)
    if fmt is not None and isinstance(content, dict) and content.get("format") != fmt:
        raise InputError(
            f"{name} has the format {short_repr(content.get('format'))}, but this version of sisod "
            f"reads {fmt}; make it again"
        )
    return convert(content, kind, name=name)


def read_toml(path: Path, *, name: str = "") -> dict[str, Any]:
    """Return the tables of a TOML file, called `name` in messages; see `convert` for what follows."""
    tables: dict[str, Any] = _parse(path, name or repr(str(path)), "TOML", tomllib.loads)
    return tables


def _parse(path: Path, name: str, kind: str, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:  # no such content, not UTF-8, a path with a NUL
        raise InputError(f"{name} is not a {kind} file: {one_line(str(error))}") from error


def read_table(path: Path, data: bytes | None = None) -> "pl.DataFrame":
    """Read a Parquet file, whose bytes may have been read already."""
    import polars as pl

    try:  # of bytes: polars would take `*`, `?`, `[` and `~` in a path for patterns
        return pl.read_parquet(path.read_bytes() if data is None else data)
    # a damaged file may fail assertions inside polars
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = getattr(error, "strerror", None) or printable(str(error).split("\n")[0])
        raise InputError(f"{str(path)!r} is not a Parquet file that can be read: {reason}") from error


def convert(content: Any, kind: type[T], *, name: str, strict: bool = True) -> T:
    """Return plain data as a dataclass, checked field by field.

    Args:
        content: of dicts, lists, strings, numbers.
        kind: a dataclass, whose fields may be dataclasses; its `__post_init__` may raise ValueError.
        name: what messages call the content, such as the name of its file.
        strict: whether keys that no field has are an error.

    Example:
        >>> @dataclasses.dataclass
        ... class Part:
        ...     lr: float
        ...     name: str = "adam"
        >>> convert({"lr": 1}, Part, name="edn.toml")
        Part(lr=1.0, name='adam')
        >>> convert({"lr": "fast"}, Part, name="edn.toml")
        Traceback (most recent call last):
        sisod.common.exceptions.InputError: edn.toml: lr: expected float, got str
        >>> convert({"lrs": 1}, Part, name="t")
        Traceback (most recent call last):
        sisod.common.exceptions.InputError: t: unknown key 'lrs'; did you mean 'lr'? expected lr, name
    """
    import msgspec

    if strict:
        _check_keys(content, kind, name, "")
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        text, _, place = str(error).partition(" - at ")
        field = place.strip("`").removeprefix("$").lstrip(".")
        text = text.replace("`", "").replace("Object missing required field", "missing")
        if text.startswith("Expected"):
            text = text[0].lower() + text[1:]
        if text.startswith("Invalid enum value"):
            choices = get_args(get_type_hints(kind).get(field))
            text = f"expected {' or '.join(map(repr, choices))}, got {text[19:]}" if choices else text
        raise InputError(": ".join(filter(None, (name, field, one_line(text, most=300))))) from error


def _check_keys(content: Any, kind: Any, name: str, table: str) -> None:
    """Raise if the content of a dataclass has a key that none of its fields has."""
    kinds = [
        one for one in (kind, *get_args(kind)) if dataclasses.is_dataclass(one) or is_typeddict(one)
    ]
    if not kinds or not isinstance(content, dict):
        return
    hints = get_type_hints(kinds[0])
    for key, value in content.items():
        if key not in hints:
            known = sorted(hints)
            similar = similar_names(key, known)[:1] if isinstance(key, str) else []
            hint = f" did you mean {similar[0]!r}?" if similar else ""
            place = f" in [{table}]" if table else ""
            raise InputError(
                f"{name}: unknown key {short_repr(key)}{place};{hint} expected {', '.join(known)}"
            )
        _check_keys(value, hints[key], name, f"{table}.{key}" if table else key)


def toml_value(text: str) -> Any:
    """Return the TOML value of a string, or the string itself if it is none; strings need no quotes.

    Example:
        >>> toml_value("1e-4"), toml_value(" union "), toml_value("[1, 2]")
        (0.0001, 'union', [1, 2])
    """
    try:
        tables = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text.strip()
    return tables["value"] if len(tables) == 1 else text.strip()  # a line break may start another key

"""Reading and writing of Parquet files, all of it here, with paths taken literally.

polars takes `*`, `?` and `[` in a path for patterns and `~` for the home folder, but a method or a
folder may have any name.
"""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sisod.common.arguments import check_utf8
from sisod.common.exceptions import InputError, printable
from sisod.common.output import system_error

if TYPE_CHECKING:
    import polars as pl


def read_table(path: Path, data: bytes | None = None) -> "pl.DataFrame":
    """Read one file, whose bytes may have been read already."""
    import polars as pl

    try:
        source = literal(path) if data is None else data
        return pl.read_parquet(source, glob=False, hive_partitioning=False)
    except FileNotFoundError as error:
        raise InputError(f"{str(path)!r} does not exist") from error
    # a damaged file may fail assertions inside polars
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = printable(str(error).split("\n")[0])
        raise InputError(f"{str(path)!r} is not a Parquet file that can be read: {reason}") from error


def write_table(table: "pl.DataFrame", path: Path, *, compression_level: int | None = None) -> None:
    """Write one file."""
    options: dict[str, Any] = (
        {} if compression_level is None else {"compression_level": compression_level}
    )
    import polars as pl

    try:
        table.write_parquet(literal(path), **options)
    except pl.exceptions.PolarsError as error:  # it raises no OSError for a full disk
        raise system_error(error, path.parent) from error


def table_bytes(table: "pl.DataFrame") -> bytes:
    """Return a table as the bytes of a Parquet file."""
    buffer = io.BytesIO()
    table.write_parquet(buffer)
    return buffer.getvalue()


def literal(path: Path) -> Path:
    """Return a path that polars takes literally."""
    path = path.absolute()  # so that it does not begin with ~
    check_utf8(str(path), "the path")  # polars takes no other
    return path

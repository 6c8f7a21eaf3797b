"""Reading and writing of Parquet files, all of it here, with paths taken literally.

polars takes `*`, `?` and `[` in a path for patterns and `~` for the home folder, but a method or a
folder may have any name.
"""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sisod.common.arguments import check_utf8
from sisod.common.errors import InputError, printable
from sisod.common.forks import check_not_forked
from sisod.common.output import system_error

if TYPE_CHECKING:
    import polars as pl


def read_table(path: Path) -> "pl.DataFrame":
    """Read one file."""
    import polars as pl

    check_not_forked()
    try:
        return pl.read_parquet(literal(path), glob=False, hive_partitioning=False)
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
    with _writing(path):
        table.write_parquet(literal(path), **options)


def join_tables(parts: Sequence[Path], path: Path, *, row_group_size: int) -> None:
    """Write the rows of several files to one, in order, without reading all into memory."""
    import polars as pl

    with _writing(path):
        table = pl.scan_parquet([literal(part) for part in parts], glob=False, hive_partitioning=False)
        table.sink_parquet(literal(path), maintain_order=True, row_group_size=row_group_size)


def sort_tables(parts: Sequence[Path], path: Path, *, by: str, row_group_size: int) -> "pl.DataFrame":
    """Write the rows of several files to one, sorted by a column, where equal rows keep their order."""
    import polars as pl

    with _writing(path):
        table = pl.scan_parquet([literal(part) for part in parts], glob=False, hive_partitioning=False)
        in_order = table.sort(by, maintain_order=True).collect()
        in_order.write_parquet(literal(path), row_group_size=row_group_size)
    return in_order


def table_bytes(table: "pl.DataFrame") -> bytes:
    """Return a table as the bytes of a Parquet file."""
    check_not_forked()
    buffer = io.BytesIO()
    table.write_parquet(buffer)
    return buffer.getvalue()


def literal(path: Path) -> Path:
    """Return a path that polars takes literally."""
    path = path.absolute()  # so that it does not begin with ~
    check_utf8(str(path), "the path")  # polars takes no other
    return path


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn polars' errors into OSError, which it does not raise for a full disk."""
    import polars as pl

    check_not_forked()
    try:
        yield
    except pl.exceptions.PolarsError as error:
        raise system_error(error, path.parent) from error

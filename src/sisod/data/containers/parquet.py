"""Parquet files with the bytes of images, in Hugging Face's layout or as plain binary columns.

Rows are read in windows, a few of which are kept: neighbours are read once, and memory stays small
whatever the size of the file.
"""

import io
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sisod.common.errors import InputError, printable, shorten_list
from sisod.common.folders import is_url
from sisod.common.forks import check_not_forked
from sisod.common.output import stays_inside
from sisod.common.parquet import literal
from sisod.data.containers.source import file_state, read_all

if TYPE_CHECKING:
    import polars as pl

NAME_COLUMNS = ("name", "file_name", "filename", "image_id", "id", "key", "__key__", "path")
_WINDOW = 1 << 25  # bytes of rows that are read together
_ROW_GROUP = 100  # rows of a file that is written
_WINDOWS = 4  # that a process keeps: two files may be read in turns


class _Column(NamedTuple):
    """A column of images: whether it is a struct of bytes and path, and the column of names, if any."""

    name: str
    is_struct: bool
    names: str | None


def image_columns(file: str) -> list[str]:
    """Return the names of the columns that hold images."""
    return [name for name, kind in _schema(file).items() if _is_image(kind)]


def parquet_names(file: str, column: str) -> list[str]:
    """Return the name of every row, in order; the bytes of the images are not kept."""
    _windows.forget(file)
    chosen = _find_column(file, column)
    table = _query(file, lambda scan: scan.select(**_name_expressions(chosen)))
    return _names(file, table, chosen, first=0)


def parquet_rows(file: str, column: str) -> Iterator[tuple[str, bytes]]:
    """Yield name and bytes of every row, in order."""
    _windows.forget(file)
    chosen = _find_column(file, column)
    n_rows, step = _count(file), _window_rows(file)
    for begin in range(0, n_rows, step):
        table = _query(
            file,
            lambda scan, begin=begin: scan.slice(begin, step).select(
                bytes=_bytes_expression(chosen), **_name_expressions(chosen)
            ),
        )
        names = _names(file, table, chosen, first=begin)
        for index, name in enumerate(names):
            yield name, _not_null(table["bytes"][index], file, chosen.name, begin + index)


def parquet_bytes(file: str, column: str, row: int) -> bytes:
    """Return the bytes of one row."""
    begin, values = _windows.find(file, column, row)
    if row - begin >= len(values):
        raise InputError(f"{file!r} has no row {row} any more; it changed while it was read")
    return _not_null(values[row - begin], file, column, row)


def _not_null(content: bytes | None, file: str, column: str, row: int) -> bytes:
    if content is None:
        column = column or _find_column(file, "").name
        raise InputError(
            f"{file!r}: row {row} of {column!r} is null; expected the bytes of an image "
            "in every row; leave the row out"
        )
    return content


# ---------------------------------------------------------------------------------------------- columns


def _is_image(kind: "pl.DataType") -> bool:
    import polars as pl

    if isinstance(kind, pl.Struct):
        return any(field.name == "bytes" and field.dtype == pl.Binary for field in kind.fields)
    return kind == pl.Binary


def _find_column(file: str, column: str) -> _Column:
    import polars as pl

    schema = _schema(file)
    images = [name for name, kind in schema.items() if _is_image(kind)]
    if not images:
        raise InputError(
            f"{file!r} has no column of images; expected one of bytes, or of structs of bytes and path; "
            f"it has {shorten_list([f'{name} ({kind})' for name, kind in schema.items()])}"
        )
    if column and column not in images:
        raise InputError(
            f"{file!r} has no column {column!r} of images; expected one of {', '.join(images)}"
        )
    if not column and len(images) > 1:
        raise InputError(
            f"{file!r} has {len(images)} columns of images ({', '.join(images)}); choose one like "
            f"this: {Path(file).name}#{images[-1]}"
        )
    chosen = column or images[0]
    kind = schema[chosen]
    is_struct = isinstance(kind, pl.Struct)
    names = next(
        (
            name
            for name in NAME_COLUMNS
            if name != chosen and (schema.get(name) == pl.String or _is_integer(schema.get(name)))
        ),
        None,
    )
    has_path = isinstance(kind, pl.Struct) and any(
        field.name == "path" and field.dtype == pl.String for field in kind.fields
    )
    if names is None and not has_path:
        raise InputError(
            f"{file!r} does not name its images; expected a path beside the bytes of {chosen!r}, or a "
            f"column {', '.join(NAME_COLUMNS[:-1])} or {NAME_COLUMNS[-1]}"
        )
    return _Column(chosen, is_struct, names)


def _is_integer(kind: Any) -> bool:
    return kind is not None and kind.is_integer()


def _bytes_expression(column: _Column) -> "pl.Expr":
    import polars as pl

    chosen = pl.col(column.name)
    return chosen.struct.field("bytes") if column.is_struct else chosen


def _name_expressions(column: _Column) -> dict[str, "pl.Expr"]:
    import polars as pl

    expressions = {}
    if column.is_struct:
        expressions["path"] = pl.col(column.name).struct.field("path")
    if column.names is not None:
        expressions["name"] = pl.col(column.names).cast(pl.String)
    return expressions


def _names(file: str, table: "pl.DataFrame", column: _Column, *, first: int) -> list[str]:
    """Return the path of every image, or what the column of names says where there is none."""
    columns = [table[name].to_list() for name in ("path", "name") if name in table.columns]
    names = []
    for index, candidates in enumerate(zip(*columns, strict=True)):
        name = next((text.removeprefix("./") for text in candidates if text), None)
        if name is None:
            raise InputError(
                f"{file!r}: row {first + index} of {column.name!r} has no name; expected a path beside "
                f"its bytes, or a text in the column {column.names or NAME_COLUMNS[0]!r}"
            )
        if not stays_inside(name):
            raise InputError(
                f"{file!r}: row {first + index} has the name {printable(name)!r}, which is not a "
                "relative path; rename it"
            )
        names.append(name)
    return names


# ---------------------------------------------------------------------------------------------- reading


class _Windows:
    """The windows of rows that were read last, of any files."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str, int], list[bytes | None]] = OrderedDict()
        self._steps: dict[str, int] = {}  # rows of a window of each file

    def find(self, file: str, column: str, row: int) -> tuple[int, list[bytes | None]]:
        """Return the first row of the window that holds a row, and the values of the window."""
        with self._lock:  # threads that want the same window wait for the one that reads it
            if file not in self._steps:
                self._steps[file] = _window_rows(file)
            step = self._steps[file]
            begin = row - row % step
            key = file, column, begin
            if key not in self._kept:
                chosen = _find_column(file, column)
                table = _query(
                    file, lambda scan: scan.slice(begin, step).select(bytes=_bytes_expression(chosen))
                )
                self._kept[key] = table["bytes"].to_list()
                while len(self._kept) > _WINDOWS:
                    self._kept.popitem(last=False)
            else:
                self._kept.move_to_end(key)
            return begin, self._kept[key]

    def forget(self, file: str) -> None:
        """Drop what was read of a file; it is listed again, so it may have changed."""
        with self._lock:
            for key in [key for key in self._kept if key[0] == file]:
                del self._kept[key]
            self._steps.pop(file, None)
            _downloads.pop(file, None)


_windows = _Windows()
_downloads: OrderedDict[str, bytes] = OrderedDict()  # files behind URLs, which polars reads from memory


def _download(file: str) -> bytes:
    while len(_downloads) > 1 and file not in _downloads:
        _downloads.popitem(last=False)
    if file not in _downloads:
        _downloads[file] = read_all(file)
    return _downloads[file]


def _window_rows(file: str) -> int:
    size, n_rows = file_state(file).size, _count(file)
    return max(1, _WINDOW * n_rows // max(1, size))


def _count(file: str) -> int:
    import polars as pl

    return int(_query(file, lambda scan: scan.select(pl.len())).item())


def _schema(file: str) -> dict[str, "pl.DataType"]:
    return dict(_query(file, lambda scan: scan.head(0)).schema)


def _query(file: str, query: Any) -> "pl.DataFrame":
    """Run a query on a file; every failure is one sentence."""
    import polars as pl

    check_not_forked()
    try:
        source: Any = io.BytesIO(_download(file)) if is_url(file) else literal(Path(file))
        table: pl.DataFrame = query(
            pl.scan_parquet(source, glob=False, hive_partitioning=False)
        ).collect()
        return table
    except FileNotFoundError as error:
        raise InputError(f"{file!r} does not exist") from error
    # a damaged file may fail assertions inside polars
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = printable(str(error).split("\n")[0])
        raise InputError(f"{file!r} is not a Parquet file that can be read: {reason}") from error


def parquet_file(members: Mapping[str, bytes], *, column: str) -> bytes:
    """Return images as a Parquet file in Hugging Face's layout, a struct of bytes and path."""
    import polars as pl

    check_not_forked()
    rows = [{"bytes": content, "path": name} for name, content in members.items()]
    layout = pl.Struct({"bytes": pl.Binary, "path": pl.String})
    buffer = io.BytesIO()
    table = pl.DataFrame({column: rows}, schema={column: layout})
    # images are compressed already; small groups of rows can be read one by one
    table.write_parquet(buffer, compression="uncompressed", row_group_size=_ROW_GROUP)
    return buffer.getvalue()

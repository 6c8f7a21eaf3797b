"""Parquet files with the bytes of images, in Hugging Face's layout or as plain binary columns.

Rows are read in windows, a few of which are kept: neighbours are read once, and memory stays small
whatever the size of the file.
"""

import io
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sisod.common.arguments import check_utf8
from sisod.common.exceptions import InputError, printable, shorten_list
from sisod.common.output import is_safe_relative_path, is_url
from sisod.data.files import Place, Shard, StoredFile, file_state, is_hidden, read_file

if TYPE_CHECKING:
    import polars as pl

NAME_COLUMNS = ("name", "file_name", "filename", "image_id", "id", "key", "__key__", "path")
_NAME_COLUMNS = f"{', '.join(NAME_COLUMNS[:-1])} or {NAME_COLUMNS[-1]}"
_WINDOW = 1 << 25  # bytes of rows that are read together
_ROW_GROUP = 100  # rows of a file that is written


class _Column(NamedTuple):
    """How to read the bytes and the names of a column of images."""

    content: "pl.Expr"
    image_name: "pl.Expr"


def selections(file: str) -> list[str]:
    """Return the names of the columns that hold images."""
    return [name for name, kind in _schema(file).items() if _is_image(kind)]


def members(shard: Shard) -> Iterator[StoredFile]:
    """Yield the rows of a file in order; the bytes of the images are not kept."""
    for kept in (_window_rows, _read_window, _download):  # a file that is listed again may have changed
        kept.cache_clear()
    column = _find_column(shard.file, shard.selection)
    table = _query(shard.file, lambda scan: scan.select(name=column.image_name))
    for row, name in enumerate(table["name"]):
        if name is None or not is_safe_relative_path(name):
            raise InputError(
                f"{shard.file!r}: row {row} has the name {printable(str(name))!r}; expected a relative "
                f"path, beside the bytes or in a column {_NAME_COLUMNS}"
            )
        if not is_hidden(name):
            path = f"{shard.prefix}row {row}/{name}"
            yield StoredFile(path, shard.stamp, name, is_image=True)


def contents(shard: Shard) -> Iterator[tuple[StoredFile, bytes]]:
    """Yield the rows of a file in order with their content."""
    for member in members(shard):
        place = member.path.removeprefix(shard.prefix).partition("/")[0]
        yield member, read(Place(shard.file, shard.selection, place))


def read(member: Place) -> bytes:
    """Return the content of one row."""
    file, column, place = member
    row = int(place.removeprefix("row "))
    stamp = "" if is_url(file) else file_state(file).stamp
    step = _window_rows(file, stamp)
    window = _read_window(file, column, row // step, step, stamp)
    content = window[row % step] if row % step < len(window) else None  # the file may have changed
    if content is None:
        raise InputError(
            f"{file!r}: row {row} has no image{f' of {column!r}' if column else ''}; expected the bytes "
            "of an image in every row; leave the row out"
        )
    return content


# ---------------------------------------------------------------------------------------------- columns


def _is_image(kind: "pl.DataType") -> bool:
    import polars as pl

    if isinstance(kind, pl.Struct):
        return any(field.name == "bytes" and field.dtype == pl.Binary for field in kind.fields)
    return kind == pl.Binary


def _find_column(file: str, title: str) -> _Column:
    """Return the column of images of this title, or the only one if it is empty."""
    import polars as pl

    schema = _schema(file)
    images = [name for name, kind in schema.items() if _is_image(kind)]
    if title not in images and (title or len(images) != 1):
        columns = shorten_list([f"{name} ({kind})" for name, kind in schema.items()])
        raise InputError(
            f"{file!r} has {columns}; expected {f'a column {title!r}' if title else 'one column'} of "
            "images, that is of bytes or of structs of bytes and path; choose one of several like this: "
            f"{Path(file).name}#{images[-1] if images else 'image'}"
        )
    title = title or images[0]
    # by position: `pl.col` takes the names "^x$" and "*" for patterns
    by_name = {name: pl.nth(position) for position, name in enumerate(schema)}
    content, kind, names = by_name[title], schema[title], []
    if isinstance(kind, pl.Struct):
        if any(field.name == "path" and _is_text(field.dtype) for field in kind.fields):
            names.append(content.struct.field("path"))
        content = content.struct.field("bytes")
    named = (name for name in NAME_COLUMNS if name in schema and name != title)
    names += [by_name[name] for name in named if _is_text(schema[name]) or schema[name].is_integer()][:1]
    if not names:
        raise InputError(
            f"{file!r} does not name its images; expected a path beside the bytes of {title!r}, or a "
            f"column {_NAME_COLUMNS}"
        )
    texts = [name.cast(pl.String) for name in names]
    name = pl.coalesce(*(pl.when(text != "").then(text.str.strip_prefix("./")) for text in texts))
    return _Column(content, name)


def _is_text(kind: Any) -> bool:
    """Tell whether a column holds strings, dictionary-encoded or not."""
    import polars as pl

    return kind in (pl.String, pl.Categorical, pl.Enum)


# ---------------------------------------------------------------------------------------------- reading


@lru_cache(maxsize=1024)
def _window_rows(file: str, stamp: str) -> int:  # noqa: ARG001  (another stamp is another file)
    import polars as pl

    n_rows = int(_query(file, lambda scan: scan.select(pl.len())).item())
    return max(1, _WINDOW * n_rows // max(1, file_state(file).size))


@lru_cache(maxsize=4)  # two files may be read in turns
def _read_window(file: str, title: str, index: int, n_rows: int, stamp: str) -> list[bytes | None]:  # noqa: ARG001
    column = _find_column(file, title).content
    table = _query(file, lambda scan: scan.slice(index * n_rows, n_rows).select(content=column))
    return table["content"].to_list()


@lru_cache(maxsize=2)
def _download(url: str) -> bytes:
    return read_file(url)


def _schema(file: str) -> dict[str, "pl.DataType"]:
    return dict(_query(file, lambda scan: scan.head(0)).schema)


def _query(file: str, query: Any) -> "pl.DataFrame":
    """Run a query on a file; every failure is one sentence."""
    import polars as pl

    try:
        check_utf8(file, "the path")
        # absolute, so that it does not begin with ~, which polars takes for the home folder
        source: Any = io.BytesIO(_download(file)) if is_url(file) else Path(file).absolute()
        scan = pl.scan_parquet(source, glob=False, hive_partitioning=False)
        table: pl.DataFrame = query(scan).collect()
    # a damaged file may fail assertions inside polars
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = printable(str(error).split("\n")[0])
        raise InputError(f"{file!r} is not a Parquet file that can be read: {reason}") from error
    return table


def parquet_file(files: Mapping[str, bytes], *, column: str) -> bytes:
    """Return images as a Parquet file in Hugging Face's layout, a struct of bytes and path.

    Args:
        files: the images by name.
        column: name of the column.

    Example:
        >>> data = parquet_file({"night/im1.png": b"..."}, column="mask")
        >>> import polars as pl
        >>> pl.read_parquet(data)["mask"].to_list()
        [{'bytes': b'...', 'path': 'night/im1.png'}]
    """
    import polars as pl

    rows = [{"bytes": content, "path": name} for name, content in files.items()]
    layout = pl.Struct({"bytes": pl.Binary, "path": pl.String})
    buffer = io.BytesIO()
    table = pl.DataFrame({column: rows}, schema={column: layout})
    # images are compressed already; small groups of rows can be read one by one
    table.write_parquet(buffer, compression="uncompressed", row_group_size=_ROW_GROUP)
    return buffer.getvalue()

"""Parquet files and tar archives made from folders of images."""

import io
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import polars as pl

IMAGE = pl.Struct({"bytes": pl.Binary, "path": pl.String})  # Hugging Face's layout


def write_tar(path: Path | str, members: Mapping[str, bytes]) -> None:
    """Write plain files to an archive, in the given order."""
    with tarfile.open(path, "w") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def write_parquet(
    path: Path | str, members: Mapping[str, bytes], *, column: str = "image", rows: int = 16
) -> None:
    """Write files to one column of structs of bytes and path, in row groups of 16."""
    values = [{"bytes": content, "path": name} for name, content in members.items()]
    pl.DataFrame({column: values}, schema={column: IMAGE}).write_parquet(path, row_group_size=rows)


def in_shards(
    write: Callable[[Path, Mapping[str, bytes]], None],
    folder: Path,
    members: Mapping[str, bytes],
    extension: str,
    *,
    order: Sequence[str] | None = None,
    count: int = 3,
) -> Path:
    """Write files to several shards in a folder."""
    folder.mkdir()
    names = list(members) if order is None else order
    for index in range(count):
        part = {name: members[name] for name in names[index::count]}
        write(folder / f"train-{index:05d}-of-{count:05d}{extension}", part)
    return folder

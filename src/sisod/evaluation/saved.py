"""Reading of saved results.

run.json is decoded into the types below; it holds the SHA-256 of every other file, so that no file of
another result is taken for one of this.
"""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sisod.common.exceptions import InputError
from sisod.common.files import convert, read_json, read_table
from sisod.common.run_folder import DIGESTS, FORMAT, RUN_FILE, read_digested
from sisod.scoring.custom import add_stored
from sisod.scoring.metrics import METRICS
from sisod.scoring.protocols import Protocol

if TYPE_CHECKING:
    import polars as pl

SUMMARY_FILE = "summary.json"
_NEEDED = ("images", "objects", "curves", "dataset_curves")  # the others are not in every result


@dataclass(frozen=True)
class RunRecord:
    """The fields of run.json that loading needs; docs/evaluate.md describes the others."""

    kind: Literal["evaluation"]
    protocol: dict[str, Any]
    metrics: tuple[str, ...]
    images: int
    objects: int
    sha256: dict[str, str]
    undefined: dict[str, int] = field(default_factory=dict)
    inputs: dict[str, Any] = field(default_factory=dict)
    custom: dict[str, dict[str, Any]] = field(default_factory=dict)


def read_run(folder: Path) -> dict[str, Any]:
    """Read run.json: the record of settings, inputs and counts.

    Metrics of the user that it describes are added to `METRICS`; their functions are not imported.

    Raises:
        InputError: the folder is no result, or one of another version.
    """
    with _naming(folder):
        run = read_json(folder / RUN_FILE, dict[str, Any], fmt=FORMAT, name=RUN_FILE)
        record = convert(run, RunRecord, name=RUN_FILE, strict=False)
        try:
            Protocol(**record.protocol)
            add_stored(record.custom)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{RUN_FILE}: protocol or custom: {error}") from error
    return run


def read_summary(folder: Path, run: dict[str, Any]) -> tuple[dict[str, float], dict[str, int]]:
    """Read summary.json: values, and the number of images on which each is defined.

    Args:
        folder: the result's folder.
        run: what `read_run` returned.
    """
    with _naming(folder):
        rows = json.loads(read_digested(folder / SUMMARY_FILE, run[DIGESTS]))
        if unknown := [key for key in rows if key not in METRICS]:
            raise InputError(f"{SUMMARY_FILE} has {unknown[0]!r}, which this version does not know")
    values = {key: math.nan if row["value"] is None else row["value"] for key, row in rows.items()}
    return values, {key: row["images"] for key, row in rows.items()}


def read_tables(folder: Path, run: dict[str, Any]) -> "dict[str, pl.DataFrame]":
    """Read all tables that run.json lists, by name.

    Args:
        folder: the result's folder.
        run: what `read_run` returned.
    """
    listed = [file.removesuffix(".parquet") for file in run[DIGESTS] if file.endswith(".parquet")]
    with _naming(folder):
        return {
            name: read_table(folder / file, read_digested(folder / file, run[DIGESTS]))
            for name in dict.fromkeys((*_NEEDED, *listed))
            for file in [f"{name}.parquet"]
        }


@contextmanager
def _naming(folder: Path) -> Iterator[None]:
    """Name the result in an error, and say what to do."""
    try:
        yield
    except InputError as error:
        raise InputError(
            f"{str(folder)!r} is not a result of 'sisod evaluate' that can be read: {error}; evaluate "
            "again"
        ) from error

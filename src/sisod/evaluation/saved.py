"""Reading of saved results.

run.json is decoded into the types below; it holds the SHA-256 of every other file, so that no file of
another result is taken for one of this.
"""

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sisod.common.exceptions import InputError
from sisod.common.files import convert, read_json, read_table
from sisod.common.run_folder import DIGESTS, FORMAT, RUN_FILE, read_digested
from sisod.scoring.custom import add_stored
from sisod.scoring.families.family import Direction
from sisod.scoring.metrics import METRICS
from sisod.scoring.protocols import Protocol

if TYPE_CHECKING:
    import polars as pl

SUMMARY_FILE = "summary.json"
_NEEDED = ("images", "objects", "curves", "dataset_curves")  # the others are not in every result


@dataclass(frozen=True)
class RunInputs:
    """What run.json says of the scored files."""

    predictions: str
    ground_truths: str
    pred_suffix: str = ""
    gt_suffix: str = ""
    missing: tuple[str, ...] = ()
    extra: int = 0
    extra_names: tuple[str, ...] = ()
    listed: int | None = None
    labels: bool = False
    class_maps: bool = False


@dataclass(frozen=True)
class StoredMetric:
    """What run.json says of a metric of the user."""

    title: str
    direction: Direction
    si: Literal["separable", "composite"] | None
    function: str = ""


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """The fields of run.json that are read; for their meaning see docs/evaluate.md."""

    kind: Literal["evaluation"]
    protocol: dict[str, Any]
    metrics: tuple[str, ...]
    images: int
    objects: int
    sha256: dict[str, str]
    resized: int = 0
    looks_binary: int = 0
    kept_below_min_area: int = 0
    components: int = 0
    left_out: int = 0
    grey_masks: int = 0
    emptied_masks: int = 0
    looks_swapped: int = 0
    looks_inverted: int = 0
    predicted: int = 0
    undefined: dict[str, int] = field(default_factory=dict)
    inputs: RunInputs | None = None
    custom: dict[str, StoredMetric] = field(default_factory=dict)


def read_run(folder: Path) -> dict[str, Any]:
    """Read run.json: the record of settings, inputs and counts.

    Metrics of the user that it describes are added to `METRICS`; their functions are not imported.
    """
    with _naming(folder):
        run = read_json(folder / RUN_FILE, dict[str, Any], fmt=FORMAT, name=RUN_FILE)
        record = convert(run, RunRecord, name=RUN_FILE, strict=False)
        for field_name, check in (
            ("protocol", lambda: Protocol(**record.protocol)),
            ("custom", lambda: add_stored(run.get("custom", {}))),
        ):
            try:
                check()
            except (TypeError, ValueError) as error:
                raise InputError(f"{RUN_FILE}: {field_name}: {error}") from error
    return run


def read_summary(folder: Path, needed: Sequence[str] = ()) -> tuple[dict[str, float], dict[str, int]]:
    """Read summary.json: values, and the number of images on which each is defined.

    Args:
        folder: the result's folder.
        needed: metrics that must be present.
    """
    digests = read_run(folder)[DIGESTS]
    with _naming(folder):
        rows = json.loads(read_digested(folder / SUMMARY_FILE, digests))
        if unknown := [key for key in rows if key not in METRICS]:
            raise InputError(f"{SUMMARY_FILE} has {unknown[0]!r}, which this version does not know")
        if missing := [key for key in needed if key not in rows]:
            raise InputError(f"{SUMMARY_FILE} has no {missing[0]!r}")
    values = {key: math.nan if row["value"] is None else row["value"] for key, row in rows.items()}
    return values, {key: row["images"] for key, row in rows.items()}


def read_tables(folder: Path, run: dict[str, Any]) -> "dict[str, pl.DataFrame]":
    """Read all tables that run.json lists, by name."""
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

"""Reading of saved results: every file is checked once, so that all other code can rely on them.

Fields that an older version did not write may be missing; those that exist must have the right type.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sisod.common.arguments import check_utf8
from sisod.common.errors import InputError, UsageError, printable
from sisod.common.forks import check_not_forked
from sisod.common.parquet import read_table
from sisod.data.headers import MOST_PIXELS
from sisod.evaluation.rows import IMAGE_CURVES
from sisod.scoring.custom import add_stored
from sisod.scoring.errors import ERROR_COUNTS, OBJECT_CLASSES
from sisod.scoring.histograms import LEVELS
from sisod.scoring.metrics import METRICS, Metric
from sisod.scoring.objects import COUNTS, N_THRESHOLDS
from sisod.scoring.protocols import Protocol

if TYPE_CHECKING:
    import polars as pl

TABLES = ("images", "objects", "curves", "dataset_curves")
PREDICTED = ("predicted", "counts")  # results of older versions and of `official` have none
FILES = "files"  # the table of scored files; a result of arrays in memory has none


@dataclass(frozen=True, eq=False)
class SavedResult:
    """The content of the files of a result; the tables by their names."""

    summary: dict[str, float]
    defined: dict[str, int]
    tables: "dict[str, pl.DataFrame]"
    protocol: Protocol
    run: dict[str, Any]


class _FileError(Exception):
    """Says what is wrong with a file; the caller adds which result it belongs to."""


def read_saved(folder: Path) -> SavedResult:
    """Read all files of a result."""
    check_not_forked()
    check_utf8(str(folder.absolute()), "the folder name")  # polars opens no other
    summary, defined = read_summary(folder)
    run = read_run(folder)
    try:
        names = TABLES + PREDICTED * ("predicted" in run) + (FILES,) * (FILES in run.get("inputs", {}))
        tables = {name: _read_table(folder, name) for name in names}
        _check_tables(tables, tuple(summary))
        _check_consistency(tables, run, defined)
        _check_summary(tables, summary, defined)
    except _FileError as error:
        raise _refusal(folder, error) from error
    return SavedResult(summary, defined, tables, Protocol(**run["protocol"]), run)


def read_summary(folder: Path, needed: Sequence[str] = ()) -> tuple[dict[str, float], dict[str, int]]:
    """Read summary.json: values, and the number of images on which each is defined.

    Args:
        folder: the result's folder.
        needed: metrics that must be present.
    """
    try:
        rows = _read_object(folder / "summary.json")
        if not rows.keys() <= METRICS.keys():
            read_run(folder)  # which describes metrics of the user
        for key, row in rows.items():
            if key not in METRICS:
                raise _FileError(
                    f"summary.json has the metric {key!r}, which this version does not know"
                )
            _check_fields("summary.json", row, _ROW, f"{key}.", needed=tuple(_ROW))
        for key in needed:
            if key not in rows:
                raise _FileError(f"summary.json has no {key!r}")
    except _FileError as error:
        raise _refusal(folder, error) from error
    values = {key: row["value"] for key, row in rows.items()}
    values = {key: math.nan if value is None else float(value) for key, value in values.items()}
    return values, {key: row["images"] for key, row in rows.items()}


def read_run(folder: Path) -> dict[str, Any]:
    """Read run.json: the record of settings, inputs and counts.

    Metrics of the user that it describes are added to `METRICS`; their functions are not imported.
    """
    try:
        run = _read_object(folder / "run.json")
        _check_fields("run.json", run, _RUN, needed=("protocol",))
        if "inputs" in run:
            _check_fields("run.json", run["inputs"], _INPUTS, "inputs.")
        _check_fields("run.json", run["protocol"], _PROTOCOL, "protocol.", needed=("name",))
        unknown = set(run["protocol"]) - set(_PROTOCOL)
        if unknown:
            raise _FileError(f"run.json: protocol.{min(unknown)} is not known to this version")
        try:
            Protocol(**run["protocol"])
        except (ValueError, TypeError) as error:
            raise _FileError(f"run.json: protocol: {error}") from error
        try:
            add_stored(run.get("custom", {}))
        except UsageError as error:
            raise _FileError(f"run.json: {error}") from error
    except _FileError as error:
        raise _refusal(folder, error) from error
    return run


def _refusal(folder: Path, error: _FileError) -> InputError:
    return InputError(
        f"{str(folder)!r} is not a result of 'sisod evaluate' that can be read: {error}; evaluate again"
    )


# JSON: a field is described by a text for messages and a function that checks a value


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _are_counts(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_count, value.values()))


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value != value or -1e300 < value < 1e300


def _is_positive(value: Any) -> bool:
    return _is_number(value) and value >= 0


Field = tuple[str, Callable[[Any], bool]]
_TEXT: Field = ("a text", _is_text)
_TEXTS: Field = ("a list of texts", _are_texts)
_COUNT: Field = ("a whole number", _is_count)
_FLAG: Field = ("true or false", _is_flag)
_OBJECT: Field = ("an object", _is_object)


def _one_of(*choices: Any) -> Field:
    texts = [json.dumps(choice) for choice in choices]
    kinds = {(type(choice), choice) for choice in choices}
    return " or ".join(texts), lambda value: _is_plain(value) and (type(value), value) in kinds


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float)


_ROW: dict[str, Field] = {
    "value": ("a number or null", lambda value: value is None or _is_number(value)),
    "images": _COUNT,
}
_RUN: dict[str, Field] = {
    "sisod": _TEXT,
    "kind": _one_of("evaluation"),
    "protocol": _OBJECT,
    "metrics": _TEXTS,
    "images": _COUNT,
    "objects": _COUNT,
    "resized": _COUNT,
    "looks_binary": _COUNT,
    "tiny": _COUNT,
    "predicted": _COUNT,
    "components": _COUNT,
    "left_out": _COUNT,
    "grey_masks": _COUNT,
    "emptied_masks": _COUNT,
    "looks_swapped": _COUNT,
    "undefined": ("an object of whole numbers", _are_counts),
    "inputs": _OBJECT,
    "digest": _TEXT,
}
_INPUTS: dict[str, Field] = {
    "predictions": _TEXT,
    "ground_truths": _TEXT,
    "pred_suffix": _TEXT,
    "gt_suffix": _TEXT,
    "missing": _TEXTS,
    "extra": _COUNT,
    "extra_names": _TEXTS,
    "listed": _COUNT,
    FILES: _TEXT,
}
_PROTOCOL: dict[str, Field] = {
    "name": _TEXT,
    "kind": _one_of("boxes", "voronoi"),
    "connectivity": _one_of(4, 8),
    "min_area": ("a number from 0 on", _is_positive),
    "keep_ties": _FLAG,
    "alpha": (
        '"ratio", "union" or a number from 0 on',
        lambda value: value in ("ratio", "union") if _is_text(value) else _is_positive(value),
    ),
    "normalize": _one_of("minmax", "none"),
    "gt_level": _COUNT,
    "first_threshold": _one_of(0, 1),
    "detections": _FLAG,
    "released_code": _FLAG,
}


def _read_object(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _FileError(f"{path.name}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise _FileError(f"{path.name} is not JSON ({error})") from error
    if not isinstance(content, dict):
        raise _FileError(f"{path.name} holds {_short(content)}; expected an object")
    return content


def _check_fields(
    file: str, content: Any, fields: Mapping[str, Field], prefix: str = "", *, needed: Sequence[str] = ()
) -> None:
    if not isinstance(content, dict):
        raise _FileError(f"{file}: {prefix.removesuffix('.')} is {_short(content)}; expected an object")
    for name in needed:
        if name not in content:
            raise _FileError(f"{file} has no {prefix}{name}")
    for name, (expected, is_valid) in fields.items():
        if name in content and not is_valid(content[name]):
            raise _FileError(f"{file}: {prefix}{name} is {_short(content[name])}; expected {expected}")


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "..."


# tables: a column is described by the kind of its values


_BOX = ("y0", "x0", "y1", "x1")
_COLUMNS = {
    "images": {"image": "texts", "height": "sizes", "width": "sizes", "n_objects": "counts"}
    | {"alpha": "numbers"},
    "objects": {"image": "texts", "index": "counts", "area": "sizes", "share": "shares"}
    | dict.fromkeys(_BOX, "counts")
    | dict.fromkeys(("mae", "f_mean", "f_max", "auc", "iou_binary", "recall_binary"), "numbers"),
    "curves": {"image": "texts"} | dict.fromkeys(IMAGE_CURVES, "curves"),
    "dataset_curves": {"threshold": "counts"},
    "predicted": {"image": "texts", "index": "counts", "area": "sizes", "share": "shares"}
    | dict.fromkeys(_BOX, "counts")
    | dict.fromkeys(("mean", "peak", "precision", "iou"), "shares")
    | {"match": "integers", "touches_border": "flags", "false": "flags"},
    "counts": {"image": "texts"},
    FILES: dict.fromkeys(
        ("image", "prediction", "prediction_stamp", "ground_truth", "ground_truth_stamp"), "texts"
    ),
}
# columns of the error breakdown, which results of older versions do not have
_ERROR_COLUMNS = {
    "objects": {"error": "errors", "missed_pixels": "counts"},
    "predicted": {"holds": "counts", "spilled_pixels": "counts"},
    "counts": dict.fromkeys(ERROR_COUNTS, "sums"),
}
_EXPECTED = {
    "texts": "texts",
    "counts": "whole numbers from 0 on",
    "sizes": "whole numbers from 1 on",
    "numbers": "numbers",
    "shares": "numbers from 0 to 1",
    "curves": f"rows of {LEVELS} numbers",
    "integers": "whole numbers from -1 on",
    "flags": "true and false",
    "errors": "classes of errors",
    "sums": f"numbers from 0 on, or rows of {N_THRESHOLDS} of them",
}


def _read_table(folder: Path, name: str) -> "pl.DataFrame":
    try:
        return read_table(folder / f"{name}.parquet")
    except InputError as error:
        raise _FileError(str(error)) from error


def _check_tables(tables: "Mapping[str, pl.DataFrame]", metrics: Sequence[str]) -> None:
    has_errors = "counts" in tables and any(key in tables["counts"].columns for key in ERROR_COUNTS)
    for name, table in tables.items():
        columns = dict(_COLUMNS[name])
        if has_errors:
            columns |= _ERROR_COLUMNS.get(name, {})
        if name == "images":
            columns |= dict.fromkeys(metrics, "numbers")
        if name == "objects":
            kept = {METRICS[key].family.key for key in metrics if METRICS[key].family.per_object}
            columns |= {key: "numbers" for key in table.columns if key in kept}
        if name == "counts":
            columns |= {key: "sums" for key in (*COUNTS, *table.columns) if key != "image"}
        if name == "dataset_curves":
            columns |= {key: "numbers" for key in table.columns if key != "threshold"}
        for column, kind in columns.items():
            if column not in table.columns:
                raise _FileError(f"{name}.parquet has no column {column!r}")
            if not _has_kind(table[column], kind):
                raise _FileError(
                    f"{name}.parquet: column {printable(column)!r} does not hold {_EXPECTED[kind]} only"
                )
    unknown = [key for key in tables["images"].columns if key in METRICS and key not in metrics]
    if unknown:
        raise _FileError(f"summary.json has no {unknown[0]!r}, which images.parquet has")


def _has_kind(column: "pl.Series", kind: str) -> bool:
    """Tell whether a column holds values of a kind; none may be null."""
    import polars as pl

    if column.null_count():
        return False
    if kind == "texts":
        return column.dtype == pl.String
    if kind == "errors":
        return column.dtype == pl.Enum(OBJECT_CLASSES)
    if kind == "flags":
        return column.dtype == pl.Boolean
    if kind in ("counts", "sizes", "integers"):
        least = {"counts": 0, "sizes": 1, "integers": -1}[kind]
        # the integers of NumPy, here and on Windows; other types would give other types of results
        return column.dtype in (pl.Int64, pl.Int32) and bool((column >= least).all())
    if kind == "curves":
        return column.dtype == pl.Array(pl.Float32, LEVELS)
    if kind == "sums":
        values = column.explode() if column.dtype == pl.Array(pl.Float64, N_THRESHOLDS) else column
        return values.dtype == pl.Float64 and bool((values.is_finite() & (values >= 0)).all())
    if column.dtype != pl.Float64 or column.is_infinite().any():
        return False
    return kind == "numbers" or bool(column.is_between(0, 1).all())


def _check_consistency(
    tables: "Mapping[str, pl.DataFrame]", run: Mapping[str, Any], defined: Mapping[str, int]
) -> None:
    """Refuse tables that do not have the same images, objects and thresholds."""
    images, objects = tables["images"], tables["objects"]
    names = images["image"]
    if not images.height:
        raise _FileError("images.parquet has no rows")
    if "inputs" in run:  # it was scored from files, which have unique names and a limited size
        pixels = images["height"].to_numpy().astype(np.float64) * images["width"].to_numpy()
        if pixels.max() > MOST_PIXELS:
            raise _FileError(f"images.parquet: height x width is over {MOST_PIXELS}")
        if names.n_unique() < images.height:
            raise _FileError("images.parquet names an image twice")
    for name in ("curves", "counts", FILES):
        if name in tables and not tables[name]["image"].equals(names):
            raise _FileError(f"{name}.parquet is not of the images of images.parquet")
    _check_numbering(names, images["n_objects"], "objects", objects)
    if "predicted" in tables:
        _check_numbering(names, tables["counts"]["predicted"], "predicted", tables["predicted"])
    if tables["dataset_curves"]["threshold"].to_list() != list(range(LEVELS)):
        raise _FileError(f"dataset_curves.parquet: column 'threshold' is not 0 to {LEVELS - 1}")
    for what in ("images", "objects", "predicted"):
        if what in tables and run.get(what, tables[what].height) != tables[what].height:
            height = tables[what].height
            raise _FileError(f"run.json: {what} is {run[what]}, but {what}.parquet has {height}")
    for key, count in defined.items():
        if count > images.height:
            raise _FileError(
                f"summary.json: {key}.images is {count}, but there are {images.height} images"
            )


def _check_summary(
    tables: "Mapping[str, pl.DataFrame]", summary: Mapping[str, float], defined: Mapping[str, int]
) -> None:
    """Refuse values that the tables do not give: a file was changed, or is of another result."""
    sums = _object_sums(tables)
    for key, value in summary.items():
        values = tables["images"][key].drop_nans()
        if len(values) != defined[key]:
            raise _FileError(
                f"summary.json: {key}.images is {defined[key]}, but images.parquet has {len(values)}"
            )
        expected, source = _recomputed(METRICS[key], values, tables["dataset_curves"], sums)
        if source and not np.isclose(value, expected, rtol=1e-9, atol=1e-12, equal_nan=True):
            raise _FileError(
                f"summary.json: {key}.value is {value:.6g}, but {source}.parquet gives {expected:.6g}"
            )


def _object_sums(tables: "Mapping[str, pl.DataFrame]") -> dict[str, Any]:
    """Return the counts of objects summed over the images; none if the result has no such table."""
    if "counts" not in tables:
        return {}
    counts = tables["counts"].drop("image")
    return {name: counts[name].to_numpy().sum(axis=0) for name in counts.columns}


def _recomputed(
    metric: Metric, values: "pl.Series", curves: "pl.DataFrame", sums: Mapping[str, Any]
) -> tuple[float, str]:
    """Return the value of a metric as the tables have it, and the table; "" if none has it."""
    if metric.family.kind == "objects":
        return (float(metric.family.function(sums)), "counts") if sums else (math.nan, "")
    if metric.form == "max":
        name = "si_" * metric.size_invariant + metric.family.key
        if name not in curves.columns:
            return math.nan, ""
        curve = curves[name].drop_nans().to_numpy()
        return float(curve.max()) if len(curve) else math.nan, "dataset_curves"
    return float(np.mean(values.to_numpy())) if len(values) else math.nan, "images"


def _check_numbering(names: "pl.Series", n_rows: "pl.Series", what: str, table: "pl.DataFrame") -> None:
    """Refuse a table of objects that does not have so many rows of every image, numbered from 0 on."""
    # a damaged file may hold any counts, so their number is limited before it is used
    counts = np.minimum(n_rows.to_numpy(), table.height + 1).astype(np.int64)
    image_index = np.repeat(np.arange(len(names)), counts)
    source = "images" if what == "objects" else "counts"
    if len(image_index) != table.height or not table["image"].equals(names.gather(image_index)):
        raise _FileError(f"{what}.parquet does not have the objects that {source}.parquet counts")
    first = np.cumsum(counts) - counts
    if not np.array_equal(table["index"].to_numpy(), np.arange(len(image_index)) - first[image_index]):
        raise _FileError(
            f"{what}.parquet: column 'index' does not number each image's objects from 0 on"
        )

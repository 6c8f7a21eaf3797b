"""A table of image files as bytes -> a table of scores, for Ray, Spark and others that pass tables.

Arrow in, Arrow out, through polars: pyarrow is used only if the caller's table is one of it.
"""

import dataclasses
import functools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from sisod.common.arguments import check_flag, check_text, short_repr
from sisod.common.exceptions import InputError, UsageError, printable, shorten_list
from sisod.data.truths import decode_prediction, decode_truth
from sisod.evaluation.result import Evaluation
from sisod.evaluation.rows import Rows
from sisod.evaluation.tasks import BATCH, PairReader, score_images
from sisod.scoring.custom import add_stored, custom_record, find_custom
from sisod.scoring.engine import find_scorer
from sisod.scoring.metrics import MetricChoice
from sisod.scoring.protocols import Protocol, find_protocol
from sisod.scoring.scores import Scorer

if TYPE_CHECKING:
    import polars as pl

Table = TypeVar("Table")
DETAILS = "details"  # column with everything else of a result
_INTEGERS = ("height", "width", "n_objects")  # columns of scores, beside `image`; the others are float64


def score_table(
    batch: Table,
    *,
    name: str = "name",
    pred: str = "prediction",
    gt: str = "ground_truth",
    protocol: str | Protocol = "default",
    metrics: MetricChoice = None,
    strict: bool = False,
    details: bool = False,
) -> Table:
    """Score a table of images, each row a name and two encoded image files; return one row per image.

    The columns and their values are those of `Evaluation.images`, bit for bit, in the order of the rows.
    A function without state: the function for `map_batches` of Ray Data and `mapInArrow` of Spark.

    Args:
        batch: a polars DataFrame, a pyarrow Table or RecordBatch, a dict of columns, or any other object
            with the Arrow C stream interface. The same kind is returned; for the last, that of polars.
        name: column with the names of the images.
        pred: column with the predictions: the bytes of png, jpg, bmp, tif, webp or npy files, or structs
            with these in a field `bytes`, as in data sets of Hugging Face.
        gt: column with the ground truths, in the same forms.
        protocol: see `sisod.score`.
        metrics: see `sisod.score`.
        strict: refuse predictions of another size instead of resizing them bilinearly.
        details: add a binary column `details` with objects, curves and counts, in the first row of each
            batch, from which `combine_scores` makes an `Evaluation`.

    Example:
        >>> import cv2
        >>> import numpy as np
        >>> gt = np.zeros((4, 4), dtype=np.uint8)
        >>> gt[:2, :2] = 255
        >>> files = [cv2.imencode(".png", image)[1].tobytes() for image in (gt, 255 - gt)]
        >>> batch = {"name": ["perfect", "inverted"], "prediction": files, "ground_truth": files[:1] * 2}
        >>> scores = score_table(batch, metrics="mae")
        >>> [str(image) for image in scores["image"]], scores["mae"]
        (['perfect', 'inverted'], array([0., 1.]))
    """
    for option, value in (("strict", strict), ("details", details)):
        check_flag(option, value)
    protocol = find_protocol(protocol)
    scorer = find_scorer(protocol, metrics)
    files = _read_columns(_to_polars(batch), name=name, pred=pred, gt=gt)
    starts = range(0, len(files), BATCH)
    parts = [
        score_images(
            scorer, _readers(files, at, pred=pred, gt=gt), level=protocol.gt_level, strict=strict
        )
        for at in starts
    ]
    rows = Rows.joined(parts)
    images = rows.to_tables()["images"] if parts else _no_images(scorer)
    if details:
        import polars as pl

        settings = {
            "protocol": dataclasses.asdict(protocol),
            "metrics": list(scorer.keys),
            "custom": custom_record(find_custom(scorer.keys)),
        }
        cells: list[bytes | None] = [None] * len(images)
        if cells:  # in the first row the settings, a line of JSON, and all rows
            cells[0] = json.dumps(settings).encode() + b"\n" + rows.to_bytes()
        images = images.with_columns(pl.Series(DETAILS, cells, dtype=pl.Binary))
    converted: Table = _like(batch, images)
    return converted


def combine_scores(tables: Iterable[Any]) -> Evaluation:
    """Return the result of all images that `score_table(..., details=True)` scored, batch by batch.

    Summary and tables are those of one run over all images, bit for bit, in whatever order and however
    divided the rows are passed; the images are sorted by name.

    Args:
        tables: tables of scores, of any kind that `score_table` takes.

    Example:
        >>> import cv2
        >>> import numpy as np
        >>> file = cv2.imencode(".png", np.full((4, 4), 255, dtype=np.uint8))[1].tobytes()
        >>> batches = [{"name": [x], "prediction": [file], "ground_truth": [file]} for x in "ba"]
        >>> result = combine_scores(score_table(b, metrics="mae", details=True) for b in batches)
        >>> result.summary, result.images["image"].to_list()
        ({'mae': 0.0}, ['a', 'b'])
    """
    names: list[str] = []
    parts: list[Rows] = []
    all_settings: list[dict[str, Any]] = []
    for table in tables:
        frame = _to_polars(table)
        if missing := [column for column in ("image", DETAILS) if column not in frame.columns]:
            raise InputError(
                f"a table of scores has no column {missing[0]!r}, it has {_columns(frame)}; expected "
                "what score_table(..., details=True) returns"
            )
        names += frame["image"].to_list()
        for cell in frame[DETAILS].drop_nulls().to_list():
            settings, _, data = cell.partition(b"\n")
            parts.append(Rows.from_bytes(data, where=f"a cell of the column {DETAILS!r}"))
            all_settings.append(json.loads(settings))
    if not parts:
        raise InputError(
            "there are no scores to combine; pass what score_table(..., details=True) returns"
        )
    settings = all_settings[0]
    if any(other != settings for other in all_settings):
        raise InputError(
            "scores by different protocols or metrics cannot be combined; score all images in the same "
            "way"
        )
    add_stored(settings["custom"])
    record = {"custom": settings["custom"]} if settings["custom"] else {}
    protocol = Protocol(**settings["protocol"])
    result = Evaluation.from_rows(Rows.joined(parts), protocol, record=record, by_name=True)
    if sorted(names) != result.images["image"].to_list():
        raise InputError(
            f"the tables have {len(names)} rows, but the details of {result.images.height} images, "
            "not the same; pass all rows that score_table returned, each once"
        )
    return result


def _read_columns(
    frame: "pl.DataFrame", *, name: str, pred: str, gt: str
) -> list[tuple[str, bytes, bytes]]:
    """Return name, prediction and ground truth of every row."""
    import polars as pl

    columns = []
    for option, column, content in (
        ("name", name, "names of the images as text"),
        ("pred", pred, "predictions as the bytes of image files, or structs with a field 'bytes'"),
        ("gt", gt, "ground truths as the bytes of image files, or structs with a field 'bytes'"),
    ):
        check_text(option, column)
        if column not in frame.columns:
            raise InputError(
                f"the table has no column {column!r}, it has {_columns(frame)}; say with {option}= "
                f"which column has the {content}"
            )
        cells = frame[column]
        if option == "name" and cells.dtype in (pl.Categorical, pl.Enum):  # dictionary-encoded
            cells = cells.cast(pl.String)
        if option != "name" and isinstance(cells.dtype, pl.Struct) and "bytes" in cells.struct.fields:
            cells = cells.struct.field("bytes")
        dtype = pl.String if option == "name" else pl.Binary
        if cells.dtype != dtype and cells.null_count() < len(cells):
            raise InputError(f"column {column!r} is of type {frame[column].dtype}; expected {content}")
        if cells.null_count():
            raise InputError(
                f"row {cells.is_null().arg_max()}: column {column!r} is null; expected {content}"
            )
        columns.append(cells.to_list())
    return list(zip(*columns, strict=True))


def _columns(frame: "pl.DataFrame") -> str:
    return shorten_list(frame.columns, most=8) or "none"


def _readers(
    files: Sequence[tuple[str, bytes, bytes]], start: int, *, pred: str, gt: str
) -> Iterator[PairReader]:
    """Give the images of a batch."""
    for row, (image, pred_data, gt_data) in enumerate(files[start : start + BATCH], start):
        pred_label, gt_label = (f"row {row}, image {printable(image)!r}: {name}" for name in (pred, gt))
        yield PairReader(
            image,
            functools.partial(decode_prediction, pred_data, pred_label),
            functools.partial(decode_truth, gt_data, gt_label),
            pred_label,
            gt_label,
        )


def _no_images(scorer: Scorer[Any]) -> "pl.DataFrame":
    """Return the table of scores without a row: engines pass empty batches to learn the columns."""
    import polars as pl

    types: dict[str, Any] = {"image": pl.String} | dict.fromkeys(_INTEGERS, pl.Int64)
    return pl.DataFrame(schema=types | dict.fromkeys(("alpha", *scorer.keys), pl.Float64))


def _to_polars(table: Any) -> "pl.DataFrame":
    """Return any table as a polars DataFrame."""
    import polars as pl

    if isinstance(table, pl.DataFrame):
        return table
    if isinstance(table, Mapping):
        # as lists, for polars takes NumPy's objects as they are
        return pl.DataFrame({key: list(column) for key, column in table.items()})
    if hasattr(table, "__arrow_c_stream__"):
        return pl.DataFrame(table)
    raise UsageError(
        f"batch must be a table of Arrow, polars or pyarrow, or a dict, got {short_repr(table)}"
    )


def _like(table: Any, images: "pl.DataFrame") -> Any:
    """Return scores as the kind of table that was passed."""
    if isinstance(table, Mapping):
        return {name: images[name].to_numpy() for name in images.columns}
    kind = type(table)
    if kind.__module__.partition(".")[0] != "pyarrow":
        return images
    import pyarrow as pa

    # Spark knows only the types with small offsets
    small = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
    converted = images.to_arrow()
    fields = [(field.name, small.get(field.type, field.type)) for field in converted.schema]
    converted = converted.cast(pa.schema(fields))
    if kind.__name__ != "RecordBatch":
        return converted
    columns = [column.combine_chunks() for column in converted.columns]
    return pa.RecordBatch.from_arrays(columns, schema=converted.schema)

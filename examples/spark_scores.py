"""Scores a table of image files with Spark: pass `score_batches` to `DataFrame.mapInArrow`.

    table = spark.read.parquet("s3://bucket/shards")
    scores = table.mapInArrow(score_batches, schema=score_schema())
    scores.write.parquet("s3://bucket/scores")

The table has the columns name, prediction and ground_truth, the last two with image files as bytes.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa

import sisod

METRICS = "paper"


def score_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Give the scores of every batch; Spark calls this on its workers."""
    for batch in batches:
        yield sisod.score_table(batch, metrics=METRICS)


def score_schema() -> str:
    """Return the columns of the scores as Spark writes them: those of a table without rows."""
    columns = ("name", "prediction", "ground_truth")
    empty = pa.record_batch([pa.array([], pa.string())] * len(columns), names=columns)
    types = {pa.string(): "string", pa.int64(): "bigint", pa.float64(): "double"}
    scores = sisod.score_table(empty, metrics=METRICS)
    return ", ".join(f"{field.name} {types[field.type]}" for field in scores.schema)

"""Comparison of results to the last bit."""

import numpy as np

import sisod

TABLES = ("images", "objects", "curves", "image_curves", "predicted", "counts")


def assert_same_result(result: sisod.Evaluation, other: sisod.Evaluation) -> None:
    """Compare summary and tables bit for bit."""
    assert list(result.summary) == list(other.summary)
    values, other_values = (np.array(list(one.summary.values())) for one in (result, other))
    assert np.array_equal(values, other_values, equal_nan=True)
    assert result.defined == other.defined
    for name in TABLES:
        table, other_table = getattr(result, name), getattr(other, name)
        assert (table is None) == (other_table is None), name
        assert table is None or table.equals(other_table), name

"""Comparison of results to the last bit."""

import sisod

TABLES = ("images", "objects", "curves", "image_curves", "predicted", "counts")


def assert_same_result(result: sisod.Evaluation, other: sisod.Evaluation) -> None:
    """Compare summary and tables bit for bit."""
    assert result.summary == other.summary
    assert result.defined == other.defined
    for name in TABLES:
        table, other_table = getattr(result, name), getattr(other, name)
        assert (table is None) == (other_table is None), name
        assert table is None or table.equals(other_table), name

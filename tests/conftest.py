"""Fixtures shared by test files."""

from evaluate_runs import few, made, many, work

__all__ = ["few", "made", "many", "work"]

"""Fixtures shared by test files."""

from evaluate_runs import few, made, many, work
from report_runs import benchmark_root

__all__ = ["benchmark_root", "few", "made", "many", "work"]

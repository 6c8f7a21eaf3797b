"""Statistics of results: groups by size and number, ranks, intervals, comparisons; and of masks."""

from sisod.analysis.bootstrap import bootstrap_intervals
from sisod.analysis.comparison import Comparison, compare, compare_many
from sisod.analysis.error_breakdown import error_breakdown
from sisod.analysis.groups import (
    by_number,
    by_size,
    found_curve,
    predicted_by_size,
    size_bias,
    size_edges,
)
from sisod.analysis.masks import MaskStatistics, mask_statistics
from sisod.analysis.object_counts import object_curve
from sisod.analysis.ranks import RankChanges, kendall_tau, rank_changes

__all__ = [
    "Comparison",
    "MaskStatistics",
    "RankChanges",
    "bootstrap_intervals",
    "by_number",
    "by_size",
    "compare",
    "compare_many",
    "error_breakdown",
    "found_curve",
    "kendall_tau",
    "mask_statistics",
    "object_curve",
    "predicted_by_size",
    "rank_changes",
    "size_bias",
    "size_edges",
]

"""Runs with several seeds: methods named NAME@SEED."""

import math
import re
import statistics
from collections.abc import Iterable, Sequence


def group_seeds(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the runs of each method, in the order of the names.

    Two or more names that differ in the number behind the last `@` are runs of one method, which has the
    name before it. A single such name stays what it is, and so do all if a method has that name.

    Args:
        names: of methods.

    Returns:
        Method -> its names; one if it has no seeds.

    Example:
        >>> group_seeds(["EDN@0", "EDN@1", "ICON", "LDF@7"])
        {'EDN': ['EDN@0', 'EDN@1'], 'ICON': ['ICON'], 'LDF@7': ['LDF@7']}
    """
    names = list(names)
    methods = {name: re.sub(r"(?<=.)@\d+$", "", name) for name in names}
    runs: dict[str, list[str]] = {}
    for name, method in methods.items():
        seeds = [other for other in names if methods[other] == method]
        if len(seeds) > 1 and method not in names:
            runs[method] = seeds
        else:
            runs[name] = [name]
    return runs


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    """Return mean and standard deviation over the seeds with a defined score (not NaN).

    The deviation is that of a sample (n - 1 in the divisor). Undefined ones are NaN.

    Example:
        >>> mean_and_deviation([0.25, 0.75])
        (0.5, 0.3535533905932738)
        >>> mean_and_deviation([0.25])
        (0.25, nan)
    """
    defined = [value for value in values if not math.isnan(value)]
    mean = statistics.fmean(defined) if defined else math.nan
    return mean, statistics.stdev(defined) if len(defined) > 1 else math.nan

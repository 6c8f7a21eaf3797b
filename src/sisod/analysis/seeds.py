"""Runs with several seeds: methods named NAME@SEED, and the table of `sisod ablate`."""

import math
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sisod.common.exceptions import InputError
from sisod.common.files import convert, read_json
from sisod.scoring.metrics import PAPER_KEYS


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


@dataclass(frozen=True)
class AblationRow:
    """Scores of one variant of the loss on one data set by one metric, one value for each seed."""

    loss: str
    dataset: str
    metric: str
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean over seeds, see `mean_and_deviation`."""
        return mean_and_deviation(self.values)[0]

    @property
    def deviation(self) -> float:
        """Standard deviation over seeds, see `mean_and_deviation`."""
        return mean_and_deviation(self.values)[1]


@dataclass(frozen=True)
class _Row:
    variant: str
    dataset: str
    scores: dict[str, float | None]


def read_ablation(path: Path) -> list[AblationRow]:
    """Read the paper's metrics from ablation.json of `sisod ablate`.

    Raises:
        InputError: the file is not such a table.
    """
    groups: dict[tuple[str, str, str], list[float]] = {}
    try:
        records = read_json(path, dict[str, Any], name=path.name).get("rows")
        for row in convert(records, list[_Row], name=path.name, strict=False):
            for metric in (key for key in PAPER_KEYS if key in row.scores):
                value = row.scores[metric]
                values = groups.setdefault((row.variant, row.dataset, metric), [])
                values.append(math.nan if value is None else value)
        if not groups:
            raise InputError("it has no scores")
    except InputError as error:
        raise InputError(f"{str(path)!r} is not a table of 'sisod ablate': {error}") from error
    return [AblationRow(*key, tuple(values)) for key, values in groups.items()]

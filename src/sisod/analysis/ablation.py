"""The table that `sisod ablate` writes: scores of each variant of the loss, one for each seed."""

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sisod.common.errors import InputError, UsageError
from sisod.common.parquet import read_table
from sisod.scoring.metrics import PAPER_KEYS


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


def read_ablation(path: Path) -> list[AblationRow]:
    """Read the paper's metrics from ablation.json or ablation.parquet of `sisod ablate`."""
    try:
        if path.suffix == ".parquet":
            records = read_table(path).to_dicts()
        elif path.suffix == ".json":
            content = json.loads(path.read_text(encoding="utf-8"))
            records = [record | record["scores"] for record in content["rows"]]
        else:
            raise UsageError(f"{str(path)!r}: expected the ablation as a .json or .parquet file")
        rows = _grouped(records)
    except UsageError:
        raise
    except KeyError as error:
        raise InputError(f"{str(path)!r} is not a table of 'sisod ablate': no field {error}") from error
    except (OSError, ValueError, TypeError, ArithmeticError, RecursionError) as error:
        raise InputError(f"{str(path)!r} is not a table of 'sisod ablate': {error}") from error
    if not rows:
        raise InputError(f"{str(path)!r} is not a table of 'sisod ablate': it has no scores")
    return rows


def _grouped(records: list[dict[str, Any]]) -> list[AblationRow]:
    groups: dict[tuple[str, str, str], list[float]] = {}
    for record in records:
        for metric in PAPER_KEYS:
            if metric in record:
                key = (_text(record, "variant"), _text(record, "dataset"), metric)
                groups.setdefault(key, []).append(_score(record, metric))
    return [AblationRow(*key, tuple(values)) for key, values in groups.items()]


def _text(record: dict[str, Any], field: str) -> str:
    if not isinstance(record[field], str):
        raise ValueError(f"{field} is {record[field]!r}; expected a text")
    return str(record[field])


def _score(record: dict[str, Any], metric: str) -> float:
    value = record[metric]
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isinf(value):
        raise ValueError(f"{metric} is {value!r}; expected a number")
    return float(value)

"""The table that `sisod ablate` writes: one score of one training run a row."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sisod.errors import InputError, UsageError
from sisod.metrics import METRICS
from sisod.plots import COLOURS, new_figure, plain_text, say_nothing_there, style

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = ("loss", "alpha", "seed", "dataset", "metric", "value")


@dataclass(frozen=True)
class AblationRow:
    """The mean over seeds of one loss, on one data set, by one metric."""

    loss: str
    dataset: str
    metric: str
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean over the seeds where it is defined; NaN if none."""
        defined = [value for value in self.values if not math.isnan(value)]
        return float(np.mean(defined)) if defined else math.nan

    @property
    def deviation(self) -> float:
        """Standard deviation over seeds (one less than the seeds in the divisor); NaN for one seed."""
        defined = [value for value in self.values if not math.isnan(value)]
        return float(np.std(defined, ddof=1)) if len(defined) > 1 else math.nan


def read_ablation(path: Path) -> list[AblationRow]:
    """Read ablation.json or .parquet: columns loss, alpha, seed, dataset, metric, value."""
    import polars as pl

    try:
        if path.suffix == ".parquet":
            table = pl.read_parquet(path)
        elif path.suffix == ".json":
            records = json.loads(path.read_text(encoding="utf-8"))
            table = pl.DataFrame([{key: record.get(key) for key in COLUMNS} for record in records])
        else:
            raise UsageError(f"{str(path)!r}: expected the ablation as a .json or .parquet file")
    except (OSError, ValueError, AttributeError, TypeError, pl.exceptions.PolarsError) as error:
        if isinstance(error, UsageError):
            raise
        raise InputError(f"{str(path)!r} is not a table of 'sisod ablate': {error}") from error
    missing = [column for column in COLUMNS if column not in table.columns]
    if missing or table.height == 0:
        what = f"it has no column {missing[0]}" if missing else "it has no rows"
        raise InputError(f"{str(path)!r} is not a table of 'sisod ablate': {what}")
    return _grouped(table)


def _grouped(table: "pl.DataFrame") -> list[AblationRow]:
    groups: dict[tuple[str, str, str], list[float]] = {}
    for row in table.iter_rows(named=True):
        key = (loss_name(row["loss"], row["alpha"]), str(row["dataset"]), str(row["metric"]))
        value = row["value"]
        groups.setdefault(key, []).append(math.nan if value is None else float(value))
    return [AblationRow(*key, tuple(values)) for key, values in groups.items()]


def loss_name(loss: Any, alpha: Any) -> str:
    """Return how a row of the ablation is called: the loss, and alpha where it has one.

    Example:
        >>> loss_name("si", 0.0), loss_name("si", "ratio"), loss_name("plain", None)
        ('si, alpha 0', 'si, alpha ratio', 'plain')
    """
    if alpha is None or alpha == "":
        return str(loss)
    return f"{loss}, alpha {alpha:g}" if isinstance(alpha, float) else f"{loss}, alpha {alpha}"


def metric_title(key: str) -> str:
    """Return a metric's name as printed, or the key itself if it is not one of ours."""
    return METRICS[key].title if key in METRICS else key


def ablation_figure(rows: list[AblationRow]) -> "Figure":
    """Draw every loss: its seeds as dots, their mean and deviation; data sets down, metrics across."""
    losses = list(dict.fromkeys(row.loss for row in rows))
    datasets = list(dict.fromkeys(row.dataset for row in rows))
    metrics = list(dict.fromkeys(row.metric for row in rows))
    with style():
        figure = new_figure((0.24 * len(losses) + 0.75) * len(datasets), width=1.9 * len(metrics) + 1.2)
        panels = figure.subplots(len(datasets), len(metrics), squeeze=False, sharey=True)
        for down, dataset in enumerate(datasets):
            for across, metric in enumerate(metrics):
                here = [r for r in rows if (r.dataset, r.metric) == (dataset, metric)]
                axes = panels[down, across]
                _draw(axes, here, losses)
                better = METRICS[metric].direction if metric in METRICS else None
                hint = {"up": ", more is better", "down": ", less is better", None: ""}[better]
                axes.set_xlabel(plain_text(metric_title(metric)) + hint)
                axes.set_title(plain_text(dataset) if across == 0 else "", loc="left")
    return figure


def _draw(axes: "Axes", rows: list[AblationRow], losses: list[str]) -> None:
    axes.set_yticks(range(len(losses)), [plain_text(loss) for loss in losses])
    axes.set_ylim(len(losses) - 0.5, -0.5)
    if all(math.isnan(row.mean) for row in rows):
        say_nothing_there(axes, "undefined")
    for row in rows:
        place = losses.index(row.loss)
        axes.plot(
            row.values, [place] * len(row.values), "o", color="none", markeredgecolor="#777777", zorder=2
        )
        spread = 0.0 if math.isnan(row.deviation) else row.deviation
        axes.errorbar(
            row.mean, place, xerr=spread, fmt="D", color=COLOURS[0], capsize=3, zorder=3, markersize=4.5
        )

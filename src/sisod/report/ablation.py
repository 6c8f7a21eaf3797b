"""The figure of an ablation: every variant of the loss, its seeds, their mean and deviation."""

import math
from typing import TYPE_CHECKING

from sisod.analysis.ablation import AblationRow
from sisod.report.style import COLOURS, annotate_empty_axes, new_figure, plain_text, style
from sisod.scoring.metrics import METRICS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_DRAWN = ("mae", "si_mae", "f_mean", "si_f_mean")  # the others are in the report


def ablation_figure(rows: list[AblationRow]) -> "Figure":
    """Draw every loss: its seeds as dots, their mean and deviation; data sets down, metrics across."""
    losses = list(dict.fromkeys(row.loss for row in rows))
    datasets = list(dict.fromkeys(row.dataset for row in rows))
    metrics = [key for key in _DRAWN if any(row.metric == key for row in rows)]
    with style():
        figure = new_figure((0.24 * len(losses) + 0.75) * len(datasets), width=1.9 * len(metrics) + 1.2)
        panels = figure.subplots(len(datasets), len(metrics), squeeze=False, sharey=True)
        for down, dataset in enumerate(datasets):
            for across, metric in enumerate(metrics):
                here = [r for r in rows if (r.dataset, r.metric) == (dataset, metric)]
                axes = panels[down, across]
                _draw(axes, here, losses)
                hint = "more" if METRICS[metric].direction == "up" else "less"
                axes.set_xlabel(f"{METRICS[metric].title}, {hint} is better")
                axes.set_title(plain_text(dataset) if across == 0 else "", loc="left")
    return figure


def _draw(axes: "Axes", rows: list[AblationRow], losses: list[str]) -> None:
    axes.set_yticks(range(len(losses)), [plain_text(loss) for loss in losses])
    axes.set_ylim(len(losses) - 0.5, -0.5)
    if all(math.isnan(row.mean) for row in rows):
        annotate_empty_axes(axes, "undefined")
    for row in rows:
        place = losses.index(row.loss)
        axes.plot(
            row.values, [place] * len(row.values), "o", color="none", markeredgecolor="#777777", zorder=2
        )
        spread = 0.0 if math.isnan(row.deviation) else row.deviation
        axes.errorbar(
            row.mean, place, xerr=spread, fmt="D", color=COLOURS[0], capsize=3, zorder=3, markersize=4.5
        )

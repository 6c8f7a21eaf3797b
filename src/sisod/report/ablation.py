"""The figure of an ablation: every variant of the loss, its seeds, their mean and deviation."""

import math
from typing import TYPE_CHECKING

from sisod.analysis.ablation import AblationRow
from sisod.report.style import COLOURS, annotate_empty_axes, new_figure, plain_text, style
from sisod.scoring.metrics import METRICS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_DRAWN = ("mae", "si_mae", "f_mean", "si_f_mean")  # the report has the others too


def ablation_figure(rows: list[AblationRow]) -> "Figure":
    """Draw a row of panels per data set, one per metric: seeds as dots, mean and deviation per loss."""
    losses = list(dict.fromkeys(row.loss for row in rows))
    datasets = list(dict.fromkeys(row.dataset for row in rows))
    metrics = [key for key in _DRAWN if any(row.metric == key for row in rows)]
    with style():
        figure = new_figure((0.24 * len(losses) + 0.75) * len(datasets), width=1.9 * len(metrics) + 1.2)
        panels = figure.subplots(len(datasets), len(metrics), squeeze=False, sharey=True)
        for row, dataset in enumerate(datasets):
            for column, metric in enumerate(metrics):
                chosen = [r for r in rows if (r.dataset, r.metric) == (dataset, metric)]
                axes = panels[row, column]
                _draw(axes, chosen, losses)
                hint = "more" if METRICS[metric].direction == "up" else "less"
                axes.set_xlabel(f"{METRICS[metric].title}, {hint} is better")
                axes.set_title(plain_text(dataset) if column == 0 else "", loc="left")
    return figure


def _draw(axes: "Axes", rows: list[AblationRow], losses: list[str]) -> None:
    axes.set_yticks(range(len(losses)), [plain_text(loss) for loss in losses])
    axes.set_ylim(len(losses) - 0.5, -0.5)
    if all(math.isnan(row.mean) for row in rows):
        annotate_empty_axes(axes, "undefined")
    for row in rows:
        y = losses.index(row.loss)
        axes.plot(
            row.values, [y] * len(row.values), "o", color="none", markeredgecolor="#777777", zorder=2
        )
        spread = 0.0 if math.isnan(row.deviation) else row.deviation
        axes.errorbar(
            row.mean, y, xerr=spread, fmt="D", color=COLOURS[0], capsize=3, zorder=3, markersize=4.5
        )

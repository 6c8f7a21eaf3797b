"""The figure of an ablation: every variant of the loss, its seeds, their mean and deviation."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sisod.analysis.ablation import AblationRow
from sisod.report.drawing.layout import drawn_lines, text_height, widest, wrap_text
from sisod.report.style import (
    COLOURS,
    FONT,
    SMALL_FONT,
    TICK_FONT,
    Width,
    annotate_empty_axes,
    inches,
    new_figure,
    plain_text,
    style,
)
from sisod.scoring.metrics import METRICS, canonical_key, check_metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_DRAWN = ("mae", "si_mae", "f_mean", "si_f_mean")  # the report has the others too


def ablation_figure(
    rows: list[AblationRow], *, metrics: Sequence[str] = (), width: Width = "double"
) -> "Figure":
    """Draw rows of panels per data set, one per metric: seeds as dots, mean and deviation per loss.

    Args:
        rows: of the table.
        metrics: keys of the table; MAE, F and their size-invariant forms if none.
        width: of the figure.
    """
    losses = list(dict.fromkeys(row.loss for row in rows))
    stored = list(dict.fromkeys(row.metric for row in rows))
    chosen = list(dict.fromkeys(map(canonical_key, metrics)))
    for key in chosen:
        check_metric(key, stored, what="metric of the ablation")
    keys = chosen or [key for key in _DRAWN if key in stored] or stored[:4]
    names, total = list(dict.fromkeys(row.dataset for row in rows)), inches(width)
    columns = min(len(keys), 2 if width == "single" else 4)
    n_rows = math.ceil(len(keys) / columns)
    labels = [wrap_text(loss, total / 4, TICK_FONT) for loss in losses]
    left = widest((line for label in labels for line in label), TICK_FONT) + 0.15
    pitch = (total - left) / columns
    loss_height = max(0.24, text_height(max(map(len, labels)), TICK_FONT) + 0.04)
    with style():
        height = n_rows * len(names) * (loss_height * len(losses) + 0.85)
        figure = new_figure(height, width=total)
        panels = figure.subplots(n_rows * len(names), columns, squeeze=False, sharey=True)
        for axes in panels.flat:
            axes.set_axis_off()
        for number, name in enumerate(names):
            for index, key in enumerate(keys):
                row, column = divmod(index, columns)
                axes = panels[number * n_rows + row, column]
                axes.set_axis_on()
                _draw(axes, [r for r in rows if (r.dataset, r.metric) == (name, key)], losses)
                axes.set_yticks(range(len(losses)), [drawn_lines(label) for label in labels])
                hint = "more" if METRICS[key].direction == "up" else "less"
                label = wrap_text(f"{METRICS[key].title}, {hint} is better", pitch - 0.1, FONT)
                axes.set_xlabel(drawn_lines(label))
                if index == 0:
                    axes.set_title(plain_text(name), loc="left")
    return figure


def _draw(axes: "Axes", rows: list[AblationRow], losses: list[str]) -> None:
    # more ticks, or ticks of three digits, run together in a narrow panel
    axes.locator_params("x", nbins=2, min_n_ticks=2, steps=[1, 2, 5, 10])
    axes.tick_params("x", labelsize=SMALL_FONT)
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

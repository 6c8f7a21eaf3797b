"""The figure of an ablation: every variant of the loss, its seeds, their mean and deviation."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sisod.analysis.ablation import AblationRow
from sisod.report.style import (
    COLOURS,
    SMALL_FONT,
    TICK_FONT,
    Width,
    annotate_empty_axes,
    fit_height,
    inches,
    new_figure,
    plain_text,
    style,
    wrapped,
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
    datasets, total = list(dict.fromkeys(row.dataset for row in rows)), inches(width)
    columns = min(len(keys), 2 if width == "single" else 4)
    n_rows = math.ceil(len(keys) / columns)
    labels = [wrapped(loss, total / 4, TICK_FONT) for loss in losses]
    height = len(losses) * max(0.24, 0.13 * max(label.count("\n") + 1 for label in labels))
    with style():
        figure = new_figure(n_rows * len(datasets) * (height + 1), width=width)
        panels = figure.subplots(n_rows * len(datasets), columns, squeeze=False, sharey=True)
        for number, name in enumerate(datasets):
            block = panels[number * n_rows : (number + 1) * n_rows].flat
            block[0].set_title(plain_text(name), loc="left")
            for axes in block[len(keys) :]:
                axes.set_axis_off()
            for axes, key in zip(block, keys, strict=False):
                _draw(axes, [r for r in rows if (r.dataset, r.metric) == (name, key)], losses)
                axes.set_yticks(range(len(losses)), labels)
                hint = "more" if METRICS[key].direction == "up" else "less"
                label = f"{METRICS[key].title}, {hint} is better"
                axes.set_xlabel(wrapped(label, 0.75 * total / columns - 0.1))
        fit_height(figure, panels[:, 0], [height] * len(panels))
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

"""Figures of single studies: an ablation, the reliability of maps, the objects of a data set."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from sisod.analysis.masks import MaskStatistics
from sisod.analysis.reliability import N_BINS, ReliabilityCurve
from sisod.analysis.seeds import AblationRow, read_ablation
from sisod.common.exceptions import UsageError
from sisod.report import style
from sisod.report.style import FigureRequest
from sisod.scoring.metrics import METRICS, canonical_key, check_metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DRAWN = ("mae", "si_mae", "f_mean", "si_f_mean")  # the report has the others too


def ablation_figure(request: FigureRequest) -> "Figure":
    """Draw rows of panels per data set, one per metric: seeds as dots, mean and deviation per loss.

    Args:
        request: its table of `sisod ablate`; without metrics MAE, F and their size-invariant forms.
    """
    if request.ablation is None:
        raise UsageError(
            "the figure 'ablation' needs the table of 'sisod ablate'; pass it with --ablation"
        )
    rows, width = read_ablation(request.ablation), request.width
    losses = list(dict.fromkeys(row.loss for row in rows))
    stored = list(dict.fromkeys(row.metric for row in rows))
    chosen = list(dict.fromkeys(map(canonical_key, request.metrics)))
    for key in chosen:
        check_metric(key, stored, what="metric of the ablation")
    keys = chosen or [key for key in _DRAWN if key in stored] or stored[:4]
    datasets, total = list(dict.fromkeys(row.dataset for row in rows)), style.inches(width)
    columns = min(len(keys), 2 if width == "single" else 4)
    n_rows = math.ceil(len(keys) / columns)
    heights = [0.27 * len(losses)] * (n_rows * len(datasets))
    with style.new_panels(heights, columns, width, sharey=True) as (figure, panels):
        for name, block in zip(datasets, panels.reshape(len(datasets), -1), strict=True):
            block[0].set_title(style.plain_text(name), loc="left")
            for axes in block[len(keys) :]:
                axes.set_axis_off()
            for axes, key in zip(block, keys, strict=False):
                _draw(axes, [r for r in rows if (r.dataset, r.metric) == (name, key)], losses)
                axes.set_yticks(
                    range(len(losses)), [style.wrapped(loss, total / 4, most=2) for loss in losses]
                )
                hint = "more" if METRICS[key].direction == "up" else "less"
                label = f"{METRICS[key].title}, {hint} is better"
                axes.set_xlabel(style.wrapped(label, 0.75 * total / columns - 0.1))
    return figure


def _draw(axes: "Axes", rows: list[AblationRow], losses: list[str]) -> None:
    # more ticks, or ticks of three digits, run together in a narrow panel
    axes.locator_params("x", nbins=2, min_n_ticks=2, steps=[1, 2, 5, 10])
    axes.tick_params("x", labelsize=style.SMALL_FONT)
    axes.set_ylim(len(losses) - 0.5, -0.5)
    if all(math.isnan(row.mean) for row in rows):
        style.annotate_empty_axes(axes, "undefined")
    for row in rows:
        y = losses.index(row.loss)
        seeds = [y] * len(row.values)
        axes.plot(row.values, seeds, "o", color="none", markeredgecolor="#777777", zorder=2)
        spread = 0.0 if math.isnan(row.deviation) else row.deviation
        axes.errorbar(
            row.mean,
            y,
            xerr=spread,
            fmt="D",
            color=style.COLOURS[0],
            capsize=3,
            markersize=4.5,
            zorder=3,
        )


def reliability_figure(panels: Mapping[str, Mapping[str, ReliabilityCurve]]) -> "Figure":
    """Draw reliability curves, and below each the share of weight in every bin.

    Args:
        panels: title of a panel -> name of a curve, such as before and after -> the curve.
    """
    styles = style.line_styles(list(dict.fromkeys(n for curves in panels.values() for n in curves)))
    edges, columns = np.linspace(0, 1, N_BINS + 1), len(panels)
    with style.new_panels([1.7, 0.55], columns, sharex=True, sharey="row") as (figure, axes):
        for column, (title, curves) in enumerate(panels.items()):
            above, below = axes[:, column]
            errors = ", ".join(f"{name} {curve.error:.4f}" for name, curve in curves.items())
            above.set_title(f"{style.plain_text(title)}\n{style.plain_text(f'ECE: {errors}')}")
            above.plot([0, 1], [0, 1], color="#999999", linewidth=0.8, zorder=1)
            above.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
            for name, curve in curves.items():
                look = styles[name]
                above.plot(curve.probs, curve.shares, **look.options(), zorder=3)
                weights = np.maximum(curve.weights, 1e-9)
                below.stairs(weights, edges, color=look.colour, linestyle=look.dash)
            below.set(yscale="log", ylim=(1e-3, 1.5), xlabel="predicted probability")
        axes[0, 0].set_ylabel("share of salient pixels")
        axes[1, 0].set_ylabel("share of weight")
        style.add_legend(figure, styles)
    return figure


def statistics_figure(statistics: MaskStatistics) -> "Figure":
    """Draw the paper's Figure 1: share of objects by size, share of images by number of objects.

    Args:
        statistics: of the masks of a data set.
    """
    with style.new_panels([1.9], 2) as (figure, panels):
        left, right = panels[0]
        sizes = statistics.size_groups() / max(1, len(statistics.shares))
        left.bar(np.arange(10) * 10 + 5, 100 * sizes, width=9, color=style.COLOURS[0])
        left.set(xlabel="size of an object (% of the image)", ylabel="objects (%)")
        left.set_xticks(range(0, 101, 20))
        numbers = statistics.number_groups()
        shares = 100 * np.array(list(numbers.values())) / len(statistics.n_objects)
        right.bar(list(numbers), shares, color=style.COLOURS[1])
        right.set(xlabel="objects in an image", ylabel="images (%)")
    return figure

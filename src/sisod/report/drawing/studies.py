"""Figures of single studies: the reliability of maps, the objects of a data set."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from sisod.analysis.masks import MaskStatistics
from sisod.analysis.reliability import N_BINS, ReliabilityCurve
from sisod.report import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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

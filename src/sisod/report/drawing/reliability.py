"""Reliability diagrams: the share of salient pixels at each predicted probability."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from sisod.analysis.reliability import N_BINS, ReliabilityCurve
from sisod.report.style import LineStyle, add_legend, line_styles, new_figure, plain_text, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HEIGHT = 3.4  # inches


def reliability_figure(panels: Mapping[str, Mapping[str, ReliabilityCurve]]) -> "Figure":
    """Draw reliability curves, and below each the share of weight in every bin.

    Args:
        panels: title of a panel -> name of a curve, such as before and after -> the curve.
    """
    styles = line_styles(list(dict.fromkeys(name for curves in panels.values() for name in curves)))
    with style():
        figure = new_figure(_HEIGHT)
        axes = figure.subplots(
            2, len(panels), squeeze=False, sharex=True, sharey="row", height_ratios=(3, 1)
        )
        for column, (title, curves) in enumerate(panels.items()):
            _draw_curves(axes[0, column], curves, styles)
            errors = ", ".join(f"{name} {curve.error:.4f}" for name, curve in curves.items())
            axes[0, column].set_title(f"{plain_text(title)}\n{plain_text(f'ECE: {errors}')}")
            _draw_weights(axes[1, column], curves, styles)
        axes[0, 0].set_ylabel("share of salient pixels")
        axes[1, 0].set_ylabel("share of weight")
        add_legend(figure, styles)
    return figure


def _draw_curves(
    axes: "Axes", curves: Mapping[str, ReliabilityCurve], styles: Mapping[str, LineStyle]
) -> None:
    axes.plot([0, 1], [0, 1], color="#999999", linewidth=0.8, zorder=1)
    for name, curve in curves.items():
        axes.plot(curve.probs, curve.shares, **styles[name].options(), zorder=3)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))


def _draw_weights(
    axes: "Axes", curves: Mapping[str, ReliabilityCurve], styles: Mapping[str, LineStyle]
) -> None:
    edges = np.linspace(0, 1, N_BINS + 1)
    for name, curve in curves.items():
        look = {"color": styles[name].colour, "linestyle": styles[name].dash}
        axes.stairs(np.maximum(curve.weights, 1e-9), edges, **look)
    axes.set(yscale="log", ylim=(1e-3, 1.5), xlabel="predicted probability")

"""Figures of saved results: mean curves, ordinary and size-invariant."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sisod.common.errors import shorten_list
from sisod.evaluation.results import Result, datasets_of, methods_of
from sisod.report.drawing.layout import (
    LEFT,
    add_legend,
    add_notes,
    drawn_lines,
    legend_height,
    note_height,
    text_height,
    wrap_text,
)
from sisod.report.style import (
    FONT,
    LineStyle,
    Width,
    annotate_empty_axes,
    inches,
    line_styles,
    new_figure,
    style,
)

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# kind -> columns of x and y in the curve table, and the names of the axes
CURVES = {
    "pr": ("recall", "precision", "recall", "precision"),
    "roc": ("fpr", "recall", "false positive rate", "true positive rate"),
    "f": ("threshold", "f", "threshold", "F"),
    "iou": ("threshold", "iou", "threshold", "IoU"),
}


def curve_figure(results: Sequence[Result], kind: str, *, width: Width = "double") -> "Figure":
    """Draw a kind of curve: a row for each data set, ordinary left, size-invariant right."""
    names = datasets_of(results)
    styles = line_styles(methods_of(results))
    total = inches(width)
    notes = missing_curves(results, kind)
    titles = {
        (name, form): wrap_text(f"{name}, {form}", (total - LEFT) / 2 - 0.05, FONT)
        for name in names
        for form in ("ordinary", "size-invariant")
    }
    row = 0.32 * total + 0.25 + text_height(max(map(len, titles.values())), FONT)
    with style():
        height = row * len(names) + 0.2 + legend_height(list(styles), total) + note_height(notes, total)
        figure = new_figure(height, width=total)
        panels = figure.subplots(len(names), 2, squeeze=False, sharex=True, sharey=True)
        for name, axes_row in zip(names, panels, strict=True):
            chosen = [result for result in results if result.dataset == name]
            for axes, prefix in zip(axes_row, ("", "si_"), strict=True):
                draw_curves(axes, chosen, kind, prefix, styles)
                form = "size-invariant" if prefix else "ordinary"
                axes.set_title(drawn_lines(titles[name, form]))
        for axes in panels.flat:
            axes.label_outer()
        add_notes(figure, notes)
        add_legend(figure, styles)
    return figure


def draw_curves(
    axes: "Axes", results: Sequence[Result], kind: str, prefix: str, styles: dict[str, LineStyle]
) -> None:
    """Draw the mean curves of methods into a panel; without any, the reason instead of empty axes."""
    x_key, y_key, x_name, y_name = CURVES[kind]
    drawn = False
    for i, result in enumerate(results):
        x, y = curve_points(result.evaluation.curves, x_key, y_key, prefix)
        drawn |= bool(np.isfinite(x + y).any())
        # the markers of different methods are at different thresholds
        axes.plot(x, y, **styles[result.method].options(), markevery=(32 * i // len(results), 32))
    if prefix and kind in ("f", "iou"):
        y_name = f"SI-{y_name}"
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel=x_name, ylabel=y_name)
    if not drawn:
        axes.set_axis_off()
        annotate_empty_axes(axes, why_no_curve([result.evaluation.curves for result in results], kind))


def why_no_curve(tables: "Sequence[pl.DataFrame]", kind: str) -> str:
    """Say why a panel is empty: a curve is saved only if a metric that needs it was evaluated."""
    for key in CURVES[kind][:2]:
        if not any(key in table.columns for table in tables):
            return f"{key} was not evaluated"
    return "undefined on every image"


def missing_curves(results: Sequence[Result], kind: str) -> list[str]:
    """Say which results have no curve of a kind, and how to get it."""
    missing: dict[str, list[str]] = {}
    several = len(datasets_of(results)) > 1
    for result in results:
        for key in CURVES[kind][:2]:
            if key not in result.evaluation.curves.columns:
                name = f"{result.method} on {result.dataset}" if several else result.method
                missing.setdefault(key, []).append(name)
    if any(result.evaluation.protocol.released_code for result in results):
        advice = "evaluate again under another protocol than 'official', which has no such curve"
    else:
        advice = "evaluate again with --metrics all, or with {key}_mean among them"
    return [
        ("" if len(names) == len(results) else f"{shorten_list(names)}: ")
        + f"{key} was not evaluated; {advice.format(key=key)}"
        for key, names in missing.items()
    ]


def curve_points(
    curves: "pl.DataFrame", x_key: str, y_key: str, prefix: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the two coordinates of a mean curve, thresholds in [0, 1]."""
    y = _column(curves, prefix + y_key)
    if x_key == "threshold":
        return curves["threshold"].to_numpy() / 255, y
    return _column(curves, prefix + x_key), y


def _column(curves: "pl.DataFrame", key: str) -> NDArray[np.float64]:
    """A curve; NaN if it was not saved."""
    if key not in curves.columns:
        return np.full(curves.height, np.nan)
    return curves[key].to_numpy().astype(np.float64)

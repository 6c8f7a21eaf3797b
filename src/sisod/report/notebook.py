"""Figures of a single result, as a notebook shows them."""

from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np

from sisod.analysis.groups import by_number, by_size
from sisod.analysis.scores import title
from sisod.common.exceptions import UsageError, pluralize
from sisod.evaluation.results import Result
from sisod.report import style
from sisod.report.drawing.curves import CURVES, FORMS, curve_points, has_line, why_no_curve
from sisod.report.drawing.groups import short_count
from sisod.report.drawing.request import FigureRequest
from sisod.report.gallery import draw

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sisod.evaluation.result import Evaluation


def evaluation_figure(
    evaluation: "Evaluation",
    name: str | None = None,
    *,
    metrics: Sequence[str] = (),
    width: style.Width = "double",
) -> "Figure":
    """Draw a figure of the gallery for one result, or by default an overview.

    Args:
        evaluation: the result.
        name: of a figure of `sisod plot`; None for F and PR curves, MAE by size and SI-MAE by number.
        metrics: scores to draw, for figures of scores.
        width: of the figure.
    """
    if name is None:
        if metrics:
            raise UsageError("the overview has no choice of metrics; choose a figure, such as size-log")
        return _overview(evaluation, width)
    predictions = evaluation.run.get("inputs", {}).get("predictions")
    method = PurePath(predictions).name if predictions else "this method"
    result = Result(pluralize(evaluation.images.height, "image"), method, evaluation)
    return draw(name, FigureRequest([result], metrics=metrics, width=width))


def _overview(evaluation: "Evaluation", width: style.Width) -> "Figure":
    """F and PR curves in both forms, MAE of objects by size and SI-MAE by number."""
    with style.context():
        is_single = width == "single"
        figure = style.new_figure(8.0 if is_single else 4.6, width=width)
        f, pr, size, number = figure.subplots(*((4, 1) if is_single else (2, 2))).ravel()
        _draw_both_forms(f, evaluation, "f")
        _draw_both_forms(pr, evaluation, "pr")
        _draw_bars(size, by_size(evaluation, groups="log"), "mae", "objects")
        size.set(xlabel="size of an object (% of the image)", ylabel=title("object_mae"))
        size.tick_params("x", rotation=90)
        if "si_mae" in evaluation.images.columns:
            _draw_bars(number, by_number(evaluation, metrics=["si_mae"]), "si_mae", "images")
        else:
            style.annotate_empty_axes(number, "si_mae was not evaluated")
        number.set(xlabel="objects in an image", ylabel="SI-MAE")
    return figure


def _draw_both_forms(axes: "Axes", evaluation: "Evaluation", kind: str) -> None:
    x_key, y_key, x_name, y_name = CURVES[kind]
    for (prefix, label), look in zip(FORMS.items(), style.line_styles("ab").values(), strict=True):
        x, y = curve_points(evaluation.curves, x_key, y_key, prefix)
        axes.plot(x, y, color=look.colour, linestyle=look.dash, label=label)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel=x_name, ylabel=y_name)
    if has_line(axes):
        axes.legend(loc="lower left" if kind == "pr" else "lower center")
    else:
        axes.set_axis_off()
        style.annotate_empty_axes(axes, why_no_curve([evaluation.curves], kind))


def _draw_bars(axes: "Axes", table: "pl.DataFrame", key: str, counted: str) -> None:
    """A bar for each group, its number of objects or images above."""
    names = [group.removesuffix(" %") for group in table["group"]]
    bars = axes.bar(names, np.nan_to_num(table[key].to_numpy()), color=style.COLOURS[1])
    counts = list(map(short_count, table[counted]))
    axes.bar_label(bars, counts, fontsize=style.SMALL_FONT, color="#555555")
    axes.tick_params("x", labelsize=style.SMALL_FONT)
    axes.margins(y=0.12)  # the highest label stays below the panel's end
    axes.grid(visible=False)

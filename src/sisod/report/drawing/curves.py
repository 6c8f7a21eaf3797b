"""Figures of curves: mean curves of pixels, plain and size-invariant, and curves of objects."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sisod.evaluation.results import Result, datasets_of, methods_of
from sisod.report import style
from sisod.report.drawing.request import FigureRequest
from sisod.report.missing import missing_curves, missing_objects
from sisod.report.objects import HALF_INDEX, object_points, require_counts

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
FORMS = {"": "plain", "si_": "size-invariant"}
_SIZES = {"": "all objects", "_small": "objects under 1 % of the image"}
_Draw = Callable[["Axes", Sequence[Result], str, dict[str, style.LineStyle]], None]


def curve_figure(request: FigureRequest, kind: str) -> "Figure":
    """Draw a kind of curve: a row for each data set, plain left, size-invariant right.

    Args:
        request: the results and options.
        kind: a key of `CURVES`, such as `"pr"`.
    """

    def draw(
        axes: "Axes", group: Sequence[Result], prefix: str, styles: dict[str, style.LineStyle]
    ) -> None:
        x_key, y_key, x_name, y_name = CURVES[kind]
        for i, result in enumerate(group):
            x, y = curve_points(result.evaluation.curves, x_key, y_key, prefix)
            # the markers of different methods are at different thresholds
            axes.plot(x, y, **styles[result.method].options(), markevery=(32 * i // len(group), 32))
        si = "SI-" if prefix and kind in ("f", "iou") else ""
        axes.set(xlabel=x_name, ylabel=f"{si}{y_name}")
        if not has_line(axes):
            axes.set_axis_off()
            style.annotate_empty_axes(axes, why_no_curve([one.evaluation.curves for one in group], kind))

    return _two_columns(request, FORMS, draw, missing_curves(request.chosen, CURVES[kind][:2]))


def object_figure(request: FigureRequest) -> "Figure":
    """Draw object precision over object recall at every threshold, with a marker at one half."""
    require_counts(request.chosen, "curve of objects")

    def draw(
        axes: "Axes", group: Sequence[Result], suffix: str, styles: dict[str, style.LineStyle]
    ) -> None:
        for result in group:
            options = styles[result.method].options() | {"markevery": [HALF_INDEX], "markersize": 5.5}
            # not clipped: the marker of a perfect method would lose its upper half
            axes.plot(*object_points(result.evaluation, suffix), **options, clip_on=False)
        axes.set(xlabel="object recall", ylabel="object precision")
        if not has_line(axes):
            counted = any(result.evaluation.counts is not None for result in group)
            why = "no such objects, or none predicted" if counted else "no predicted objects saved"
            style.annotate_empty_axes(axes, style.wrapped(why, style.inches(request.width) / 3))

    return _two_columns(request, _SIZES, draw, missing_objects(request.chosen, curves=True))


def _two_columns(
    request: FigureRequest, columns: Mapping[str, str], draw: _Draw, notes: Sequence[str]
) -> "Figure":
    """A row of two panels for each data set; both axes of all panels are shares."""
    results, width = request.chosen, request.width
    datasets, styles = datasets_of(results), style.line_styles(methods_of(results))
    panel = 0.32 * style.inches(width)
    with style.context():
        figure = style.new_figure((panel + 1) * len(datasets) + 2, width=width)
        panels = figure.subplots(len(datasets), 2, squeeze=False, sharex=True, sharey=True)
        for row, name in zip(panels, datasets, strict=True):
            group = [result for result in results if result.dataset == name]
            for axes, (key, title) in zip(row, columns.items(), strict=True):
                draw(axes, group, key, styles)
                axes.set_title(style.wrapped(f"{name}, {title}", style.inches(width) * 0.42))
                axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        for axes in panels.flat:
            axes.label_outer()
        style.add_notes(figure, notes)
        style.add_legend(figure, styles)
        style.fit_height(figure, panels[:, 0], panel * len(datasets))
    return figure


def has_line(axes: "Axes") -> bool:
    """Say whether some point of a panel's lines is defined."""
    return any(np.isfinite(line.get_xydata()).all(axis=1).any() for line in axes.get_lines())


def why_no_curve(tables: "Sequence[pl.DataFrame]", kind: str) -> str:
    """Say why a panel is empty: a curve is saved only if a metric that needs it was evaluated."""
    for key in CURVES[kind][:2]:
        if not any(key in table.columns for table in tables):
            return f"{key} was not evaluated"
    return "undefined on every image"


def curve_points(
    curves: "pl.DataFrame", x_key: str, y_key: str, prefix: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the two coordinates of a mean curve, thresholds in [0, 1]; NaN if it was not saved."""

    def column(key: str) -> NDArray[np.float64]:
        if key not in curves.columns:
            return np.full(curves.height, np.nan)
        return curves[key].to_numpy().astype(np.float64)

    x = curves["threshold"].to_numpy() / 255 if x_key == "threshold" else column(prefix + x_key)
    return x, column(prefix + y_key)

"""Figures of curves: mean curves of pixels, plain and size-invariant, and curves of objects."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sisod.analysis.object_counts import object_curve
from sisod.evaluation.result import Evaluation
from sisod.evaluation.results import Result, methods_of
from sisod.report import style
from sisod.report.missing import has_curve, missing_curves, missing_objects, require_counts
from sisod.report.style import FigureRequest
from sisod.scoring.counting.objects import N_THRESHOLDS
from sisod.scoring.families.objects import precision, recall

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
HALF_INDEX = N_THRESHOLDS // 2  # p > 0.5, the threshold of every other metric of objects
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
        for i, result in enumerate(group):
            x, y = curve_points(result.evaluation.curves, kind, prefix)
            # the markers of different methods are at different thresholds
            axes.plot(x, y, **styles[result.method].options(), markevery=(32 * i // len(group), 32))
        finish_curves(axes, [result.evaluation.curves for result in group], kind, prefix)

    return _two_columns(request, FORMS, draw, missing_curves(request.chosen, CURVES[kind][:2]))


def object_figure(request: FigureRequest) -> "Figure":
    """Draw object precision over object recall at every threshold, with a marker at one half.

    Args:
        request: the results and options.
    """
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
            why = "no such objects,\nor none predicted" if counted else "no predicted objects saved"
            style.annotate_empty_axes(axes, why)

    return _two_columns(request, _SIZES, draw, missing_objects(request.chosen, curves=True))


def _two_columns(
    request: FigureRequest, columns: Mapping[str, str], draw: _Draw, notes: Sequence[str]
) -> "Figure":
    """A row of two panels for each data set; both axes of all panels are shares."""
    total, styles = style.inches(request.width), style.line_styles(methods_of(request.chosen))
    heights = [0.32 * total] * len(request.by_dataset)
    shared = {"sharex": True, "sharey": True}
    with style.new_panels(heights, 2, request.width, notes=notes, **shared) as (figure, panels):
        for row, (name, group) in zip(panels, request.by_dataset.items(), strict=True):
            for axes, (key, title) in zip(row, columns.items(), strict=True):
                draw(axes, group, key, styles)
                axes.set_title(style.wrapped(f"{name}, {title}", 0.42 * total))
                axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
                axes.label_outer()
        style.add_legend(figure, styles)
    return figure


def finish_curves(axes: "Axes", tables: "Sequence[pl.DataFrame]", kind: str, prefix: str = "") -> None:
    """Name the axes of a panel of curves; write into an empty one why it is empty.

    Args:
        axes: the panel.
        tables: of the curves; one is saved only if a metric that needs it was evaluated.
        kind: a key of `CURVES`.
        prefix: "si_" for the size-invariant form.
    """
    *keys, x_name, y_name = CURVES[kind]
    axes.set(xlabel=x_name, ylabel=f"SI-{y_name}" if prefix and kind in ("f", "iou") else y_name)
    if not has_line(axes):
        axes.set_axis_off()
        known = {"threshold", *(name for table in tables for name in table.columns)}
        missing = [f"{key} was not evaluated" for key in keys if key not in known]
        style.annotate_empty_axes(axes, [*missing, "undefined on every image"][0])


def has_line(axes: "Axes") -> bool:
    """Say whether some point of a panel's lines is defined."""
    return any(np.isfinite(line.get_xydata()).all(axis=1).any() for line in axes.get_lines())


def curve_points(
    curves: "pl.DataFrame", kind: str, prefix: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the two coordinates of a mean curve, thresholds in [0, 1]; NaN if it was not saved.

    Args:
        curves: the table of an evaluation.
        kind: a key of `CURVES`.
        prefix: "" for the plain form, "si_" for the size-invariant one.
    """

    def column(key: str) -> NDArray[np.float64]:
        if key == "threshold":
            return curves["threshold"].to_numpy() / 255
        if prefix + key not in curves.columns:
            return np.full(curves.height, np.nan)
        return curves[prefix + key].to_numpy().astype(np.float64)

    x_key, y_key, _, _ = CURVES[kind]
    return column(x_key), column(y_key)


def object_points(
    evaluation: Evaluation, suffix: str = ""
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return object recall and object precision at every threshold.

    Without a saved curve they are NaN at all but one half; without predicted objects at this one too.

    Args:
        evaluation: the result.
        suffix: "" for all objects, "_small" for those below 1 % of the image.
    """
    if has_curve(evaluation):
        curve = object_curve(evaluation)
        return curve[f"recall{suffix}"].to_numpy(), curve[f"precision{suffix}"].to_numpy()
    points = np.full((2, N_THRESHOLDS), np.nan)
    if evaluation.counts is not None:
        names = [f"{name}{suffix}" for name in ("found", "objects", "precise", "predicted")]
        sums = {name: np.asarray(evaluation.counts[name].sum()) for name in names}
        points[:, HALF_INDEX] = recall(sums, suffix), precision(sums, suffix)
    return points[0], points[1]

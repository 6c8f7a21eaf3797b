"""Figures of curves: mean curves of pixels, plain and size-invariant, and curves of objects."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sisod.analysis.object_counts import object_curve
from sisod.evaluation.result import Evaluation
from sisod.report import style
from sisod.report.missing import has_curve, missing_curves, missing_objects, require_counts
from sisod.report.style import FigureRequest
from sisod.scoring.counting.objects import N_THRESHOLDS
from sisod.scoring.families.objects import precision, recall

if TYPE_CHECKING:
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
Runs = Mapping[str, Sequence[Evaluation]]  # method -> its results, of several seeds or one


def curve_figure(request: FigureRequest, kind: str) -> "Figure":
    """Draw a kind of curve: a row for each data set, plain left, size-invariant right.

    Args:
        request: the results and options; of several seeds of a method, the mean is drawn.
        kind: a key of `CURVES`, such as `"pr"`.
    """
    styles = request.line_styles

    def draw(axes: "Axes", methods: Runs, prefix: str) -> None:
        for i, (method, runs) in enumerate(methods.items()):
            x, y = seed_mean([curve_points(run, kind, prefix) for run in runs])
            # the markers of different methods are at different thresholds
            axes.plot(x, y, **styles[method].options(), markevery=(32 * i // len(methods), 32))
        finish_curves(axes, [run for runs in methods.values() for run in runs], kind, prefix)

    return _two_columns(request, FORMS, draw, missing_curves(request.chosen, CURVES[kind][:2]))


def object_figure(request: FigureRequest) -> "Figure":
    """Draw object precision over object recall at every threshold, with a marker at one half.

    Args:
        request: the results and options; of several seeds of a method, the mean is drawn.
    """
    require_counts(request.chosen, "curve of objects")
    styles = request.line_styles

    def draw(axes: "Axes", methods: Runs, suffix: str) -> None:
        for method, runs in methods.items():
            x, y = seed_mean([object_points(run, suffix) for run in runs])
            options = styles[method].options() | {"markevery": [HALF_INDEX], "markersize": 5.5}
            # not clipped: the marker of a perfect method would lose its upper half
            axes.plot(x, y, **options, clip_on=False)
        axes.set(xlabel="object recall", ylabel="object precision")
        if not has_line(axes):
            counted = any(run.counts is not None for runs in methods.values() for run in runs)
            why = "no such objects,\nor none predicted" if counted else "no predicted objects saved"
            style.annotate_empty_axes(axes, why)

    return _two_columns(request, _SIZES, draw, missing_objects(request.chosen, curves=True))


def _two_columns(
    request: FigureRequest,
    columns: Mapping[str, str],
    draw: "Callable[[Axes, Runs, str], None]",
    notes: Sequence[str],
) -> "Figure":
    """A row of two panels for each data set; both axes of all panels are shares."""
    total, by_dataset = style.inches(request.width), request.by_dataset
    heights = [0.32 * total] * len(by_dataset)
    shared = {"sharex": True, "sharey": True}
    with style.new_panels(heights, 2, request.width, notes=notes, **shared) as (figure, panels):
        for row, (name, methods) in zip(panels, by_dataset.items(), strict=True):
            for axes, (key, title) in zip(row, columns.items(), strict=True):
                draw(axes, methods, key)
                axes.set_title(style.wrapped(f"{name}, {title}", 0.42 * total))
                axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
                axes.label_outer()
        style.add_legend(figure, request.line_styles)
    return figure


def finish_curves(axes: "Axes", results: Sequence[Evaluation], kind: str, prefix: str = "") -> None:
    """Name the axes of a panel of curves; write into an empty one why it is empty.

    Args:
        axes: the panel.
        results: what is drawn; a curve is saved only if a metric that needs it was evaluated.
        kind: a key of `CURVES`.
        prefix: "si_" for the size-invariant form.
    """
    *keys, x_name, y_name = CURVES[kind]
    axes.set(xlabel=x_name, ylabel=f"SI-{y_name}" if prefix and kind in ("f", "iou") else y_name)
    if not has_line(axes):
        axes.set_axis_off()
        known = {"threshold", *(name for result in results for name in result.curves.columns)}
        missing = [f"{key} was not evaluated" for key in keys if key not in known]
        style.annotate_empty_axes(axes, [*missing, "undefined on every image"][0])


def has_line(axes: "Axes") -> bool:
    """Say whether some point of a panel's lines is defined."""
    return any(np.isfinite(line.get_xydata()).all(axis=1).any() for line in axes.get_lines())


def seed_mean(values: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the means of arrays over the seeds of a method, NaN where no seed has a value.

    Example:
        >>> seed_mean([np.array([0.25, np.nan]), np.array([0.75, 1.0])])
        array([0.5, 1. ])
    """
    stacked = np.array(values, dtype=np.float64)
    n_defined = np.isfinite(stacked).sum(axis=0)
    means = np.nansum(stacked, axis=0) / np.maximum(n_defined, 1)
    return np.asarray(np.where(n_defined > 0, means, np.nan))


def curve_points(evaluation: Evaluation, kind: str, prefix: str) -> NDArray[np.float64]:
    """Return the two coordinates of a mean curve, thresholds in [0, 1]; NaN if it was not saved.

    Args:
        evaluation: the result.
        kind: a key of `CURVES`.
        prefix: "" for the plain form, "si_" for the size-invariant one.
    """
    curves = evaluation.curves
    points = np.full((2, curves.height), np.nan)
    for row, key in enumerate(CURVES[kind][:2]):
        if key == "threshold":
            points[row] = curves["threshold"].to_numpy() / 255
        elif prefix + key in curves.columns:
            points[row] = curves[prefix + key].to_numpy()
    return points


def object_points(evaluation: Evaluation, suffix: str = "") -> NDArray[np.float64]:
    """Return object recall and object precision at every threshold.

    Without a saved curve they are NaN at all but one half; without predicted objects at this one too.

    Args:
        evaluation: the result.
        suffix: "" for all objects, "_small" for those below 1 % of the image.
    """
    if has_curve(evaluation):
        return object_curve(evaluation).select(f"recall{suffix}", f"precision{suffix}").to_numpy().T
    points = np.full((2, N_THRESHOLDS), np.nan)
    if evaluation.counts is not None:
        names = [f"{name}{suffix}" for name in ("found", "objects", "precise", "predicted")]
        sums = {name: np.asarray(evaluation.counts[name].sum()) for name in names}
        points[:, HALF_INDEX] = recall(sums, suffix), precision(sums, suffix)
    return points

"""Figures of a single result, as a notebook shows them."""

from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from sisod.analysis.scores import title
from sisod.common.exceptions import UsageError, pluralize
from sisod.evaluation.results import Result
from sisod.report import style
from sisod.report.drawing.curves import FORMS, curve_points, finish_curves, has_line
from sisod.report.drawing.groups import GroupScores, draw_groups
from sisod.report.gallery import draw

if TYPE_CHECKING:
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
    return draw(name, style.FigureRequest([result], metrics=metrics, width=width))


def _overview(evaluation: "Evaluation", width: style.Width) -> "Figure":
    """F and PR curves in both forms, MAE of objects by size and SI-MAE by number."""
    plain, si = style.line_styles(FORMS.values()).values()
    columns = 1 if width == "single" else 2
    with style.new_panels([1.6] * (4 // columns), columns, width) as (figure, panels):
        f, pr, size, number = panels.flat
        for axes, kind in ((f, "f"), (pr, "pr")):
            for (prefix, label), look in zip(FORMS.items(), (plain, si), strict=True):
                x, y = curve_points(evaluation.curves, kind, prefix)
                axes.plot(x, y, color=look.colour, linestyle=look.dash, label=label)
            axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
            finish_curves(axes, [evaluation.curves], kind)
            if has_line(axes):
                axes.legend(loc="lower left" if kind == "pr" else "lower center")
        sizes = GroupScores.by_size("log", evaluation, "object_mae")
        draw_groups(size, {"": (sizes, plain)}, style.inches(width) / columns)
        size.set(xlabel="size of an object (% of the image)", ylabel=title("object_mae"))
        if "si_mae" in evaluation.images.columns:
            numbers = GroupScores.by_number(evaluation, "si_mae")
            draw_groups(number, {"": (numbers, si)}, style.inches(width) / columns)
        else:
            style.annotate_empty_axes(number, "si_mae was not evaluated")
        number.set(xlabel="objects in an image", ylabel="SI-MAE")
    return figure

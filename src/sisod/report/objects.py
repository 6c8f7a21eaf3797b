"""Figures of objects: what maps find and what they invent, at every threshold and by size."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sisod.analysis.groups import predicted_by_size, size_edges
from sisod.analysis.object_counts import no_predicted_objects, object_curve
from sisod.common.errors import shorten_list
from sisod.evaluation.result import Evaluation
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
    SMALL_FONT,
    LineStyle,
    Width,
    annotate_empty_axes,
    inches,
    line_styles,
    new_figure,
    style,
)
from sisod.scoring.object_metrics import precision, recall
from sisod.scoring.objects import N_THRESHOLDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Values = NDArray[np.float64]
HALF_INDEX = N_THRESHOLDS // 2  # p > 0.5, the threshold of every other metric of objects
_COLUMNS = {"": "all objects", "_small": "objects under 1 % of the image"}
_BARS = 0.86  # share of a size group's width that its bars take


def has_curve(evaluation: Evaluation) -> bool:
    """Say whether objects were counted at every threshold."""
    return evaluation.counts is not None and "curve_found" in evaluation.counts.columns


def object_points(evaluation: Evaluation, suffix: str = "") -> tuple[Values, Values]:
    """Return object recall and object precision at the 32 thresholds.

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


def false_by_size(evaluation: Evaluation) -> Values:
    """Return false objects per image in each logarithmic size group; NaN without predicted objects."""
    if evaluation.predicted is None:
        return np.full(len(size_edges("log")) - 1, np.nan)
    return predicted_by_size(evaluation, groups="log")["false"].to_numpy() / evaluation.images.height


def missing_notes(results: Sequence[Result], *, curves: bool) -> list[str]:
    """Say which results have no predicted objects; with `curves`, also which have no curve."""
    several = len(datasets_of(results)) > 1
    notes: dict[str, list[str]] = {}
    for result in results:
        note = _missing_note(result.evaluation, curves=curves)
        if note:
            name = f"{result.method} on {result.dataset}" if several else result.method
            notes.setdefault(note, []).append(name)
    return [
        note[0].upper() + note[1:] if len(names) == len(results) else f"{shorten_list(names)}: {note}"
        for note, names in notes.items()
    ]


def _missing_note(evaluation: Evaluation, *, curves: bool) -> str:
    if evaluation.protocol.released_code:
        return f"the protocol {evaluation.protocol.name!r} has no predicted objects"
    if evaluation.counts is None:
        return "saved before predicted objects were counted; evaluate again"
    if curves and not has_curve(evaluation):
        return (
            "the curve was not evaluated, so only the threshold 0.5 is shown; evaluate again with "
            "--metrics all, or with object_ap among the metrics"
        )
    return ""


def object_figure(results: Sequence[Result], *, width: Width = "double") -> "Figure":
    """Draw object precision over object recall at every threshold, with a marker at one half."""
    _check_any(results, "curve of objects")
    names, styles, total = datasets_of(results), line_styles(methods_of(results)), inches(width)
    notes = missing_notes(results, curves=True)
    titles = [
        [wrap_text(f"{name}, {title}", (total - LEFT) / 2 - 0.05, FONT) for title in _COLUMNS.values()]
        for name in names
    ]
    n_lines = max(len(title) for row in titles for title in row)
    row_height = 0.34 * total + 0.25 + text_height(n_lines, FONT)
    with style():
        height = row_height * len(names) + 0.2 + legend_height(list(styles), total)
        figure = new_figure(height + note_height(notes, total), width=total)
        panels = figure.subplots(len(names), 2, squeeze=False, sharex=True, sharey=True)
        for row, name in enumerate(names):
            chosen = [result for result in results if result.dataset == name]
            for column, suffix in enumerate(_COLUMNS):
                _draw_points(panels[row, column], chosen, suffix, styles)
                panels[row, column].set_title(drawn_lines(titles[row][column]))
        for axes in panels.flat:
            axes.label_outer()
        add_notes(figure, notes)
        add_legend(figure, styles)
    return figure


def _draw_points(
    axes: "Axes", results: Sequence[Result], suffix: str, styles: dict[str, LineStyle]
) -> None:
    drawn = False
    for result in results:
        x, y = object_points(result.evaluation, suffix)
        drawn |= bool(np.isfinite(x + y).any())
        options = styles[result.method].options()
        # not clipped: the marker of a perfect method would lose its upper half
        axes.plot(x, y, **options, markevery=[HALF_INDEX], markersize=5.5, clip_on=False)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="object recall", ylabel="object precision")
    if not drawn:
        counted = any(result.evaluation.counts is not None for result in results)
        annotate_empty_axes(
            axes, "no such objects, or none predicted" if counted else "no predicted objects saved"
        )


def false_object_figure(results: Sequence[Result], *, width: Width = "double") -> "Figure":
    """Draw false objects per image by their size, the methods side by side."""
    _check_any(results, "false objects")
    names, styles, total = datasets_of(results), line_styles(methods_of(results)), inches(width)
    notes = missing_notes(results, curves=False)
    edges = size_edges("log")
    with style():
        height = 1.85 * len(names) + 0.2 + legend_height(list(styles), total)
        figure = new_figure(height + note_height(notes, total), width=total)
        panels = figure.subplots(len(names), 1, squeeze=False, sharex=True)
        for axes, name in zip(panels.flat, names, strict=True):
            _draw_bars(axes, [result for result in results if result.dataset == name], styles)
            axes.set_title(drawn_lines(wrap_text(name, total - 2 * LEFT, FONT)))
            axes.set(xlim=(0, len(edges) - 1), ylabel="false objects per image")
            axes.set_xticks(
                range(len(edges)), [f"{100 * edge:.3g}" for edge in edges], fontsize=SMALL_FONT
            )
        panels[-1, 0].set_xlabel("size of a false object (% of the image)")
        add_notes(figure, notes)
        add_legend(figure, styles, bars=True)
    return figure


def _draw_bars(axes: "Axes", results: Sequence[Result], styles: dict[str, LineStyle]) -> None:
    heights = {result.method: false_by_size(result.evaluation) for result in results}
    counted = {method: values for method, values in heights.items() if not np.isnan(values).any()}
    width = _BARS / max(1, len(counted))
    for i, (method, values) in enumerate(counted.items()):
        left = np.arange(len(values)) + (1 - _BARS) / 2 + i * width
        axes.bar(left, values, width, align="edge", **styles[method].bar_options())
    axes.grid(visible=False, axis="x")
    if not any(values.any() for values in counted.values()):
        annotate_empty_axes(axes, "no false objects" if counted else "no predicted objects saved")
        axes.set_ylim(0, 1)


def _check_any(results: Sequence[Result], what: str) -> None:
    """Refuse results none of which has predicted objects."""
    if all(result.evaluation.counts is None for result in results):
        raise no_predicted_objects(results[0].evaluation, what)

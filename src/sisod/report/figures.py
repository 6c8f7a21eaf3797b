"""Figures of saved results: curves, and scores by size and number of objects."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sisod.analysis.groups import SizeKind, by_number, by_size
from sisod.common.errors import InputError
from sisod.evaluation.results import Result, datasets_of, methods_of
from sisod.report.style import (
    WIDTH,
    LineStyle,
    annotate_empty_axes,
    line_styles,
    new_figure,
    plain_text,
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
_ROW_HEIGHT = 2.3  # inches of a row of panels
_KEY_WIDTH, _LETTER_WIDTH = 0.6, 0.06  # inches of a legend's line with its gaps, and of a letter


def curve_figure(results: Sequence[Result], kind: str) -> "Figure":
    """Draw a kind of curve: a row for each data set, ordinary left, size-invariant right."""
    names = datasets_of(results)
    styles = line_styles(methods_of(results))
    with style():
        figure = new_figure(_ROW_HEIGHT * len(names) + 0.4)
        panels = figure.subplots(len(names), 2, squeeze=False, sharex=True, sharey=True)
        for row, name in enumerate(names):
            chosen = [result for result in results if result.dataset == name]
            for column, prefix in enumerate(("", "si_")):
                draw_curves(panels[row, column], chosen, kind, prefix, styles)
                title = "size-invariant" if prefix else "ordinary"
                panels[row, column].set_title(f"{plain_text(name)}, {title}")
        for axes in panels.flat:
            axes.label_outer()
        add_legend(figure, styles)
    return figure


def draw_curves(
    axes: "Axes", results: Sequence[Result], kind: str, prefix: str, styles: dict[str, LineStyle]
) -> None:
    """Draw the mean curves of methods into a panel."""
    x_key, y_key, x_name, y_name = CURVES[kind]
    drawn = False
    for i, result in enumerate(results):
        x, y = curve_points(result.evaluation.curves, x_key, y_key, prefix)
        drawn |= bool(np.isfinite(x + y).any())
        axes.plot(x, y, **styles[result.method].options(), markevery=(8 * i % 32, 32))
    if prefix and kind in ("f", "iou"):
        y_name = f"SI-{y_name}"
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel=x_name, ylabel=y_name)
    if not drawn:
        annotate_empty_axes(axes, why_no_curve([result.evaluation.curves for result in results], kind))


def why_no_curve(tables: "Sequence[pl.DataFrame]", kind: str) -> str:
    """Say why a panel is empty: a curve is saved only if a metric that needs it was evaluated."""
    for key in CURVES[kind][:2]:
        if not any(key in table.columns for table in tables):
            return f"{key} was not evaluated"
    return "undefined on every image"


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


def add_legend(figure: "Figure", styles: dict[str, LineStyle], *, bars: bool = False) -> None:
    """Add one legend for all panels below them, of lines or of bars."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    keys = [
        Patch(**style.bar_options()) if bars else Line2D([], [], **style.options())
        for style in styles.values()
    ]
    # matplotlib leaves out labels that start with an underscore
    labels = [f" {plain_text(method)}" for method in styles]
    widest = _KEY_WIDTH + _LETTER_WIDTH * max((len(label) for label in labels), default=0)
    columns = max(1, min(5, len(keys), int(figure.get_figwidth() / widest)))
    figure.legend(keys, labels, loc="outside lower center", ncols=columns)


def size_figure(results: Sequence[Result], groups: SizeKind) -> "Figure":
    """Draw SI-MAE of objects by their size, in panels of networks x data sets."""
    points = {
        (r.dataset, r.method): GroupScores.by_size(by_size(r.evaluation, groups=groups)) for r in results
    }
    return _draw_panels(results, points, "size of an object (% of the image)")


def number_figure(results: Sequence[Result]) -> "Figure":
    """Draw SI-MAE of images by their number of objects, in panels of networks x data sets."""
    for result in results:
        if "si_mae" not in result.evaluation.images.columns:
            raise InputError(
                f"the result of {result.method!r} has no si_mae; evaluate it again with this metric"
            )
    points = {
        (r.dataset, r.method): GroupScores.by_number(by_number(r.evaluation, metrics=["si_mae"]))
        for r in results
    }
    return _draw_panels(results, points, "objects in an image")


@dataclass(frozen=True, eq=False)
class GroupScores:
    """A score by groups, one point for each.

    Attributes:
        values: NaN where a group is empty.
        counts: number of objects or images of each group.
        ticks: positions on the axis; group i extends from i to i + 1.
        names: labels of the ticks.
    """

    values: NDArray[np.float64]
    counts: NDArray[np.int64]
    ticks: NDArray[np.float64]
    names: tuple[str, ...]

    @classmethod
    def by_size(cls, table: "pl.DataFrame") -> "GroupScores":
        """Ticks are the edges of the groups."""
        edges = [*table["low"].to_list(), table["high"].to_list()[-1]]
        return cls(
            table["mae"].to_numpy(),
            table["objects"].to_numpy(),
            np.arange(len(edges), dtype=np.float64),
            tuple(f"{100 * edge:.3g}" for edge in edges),
        )

    @classmethod
    def by_number(cls, table: "pl.DataFrame") -> "GroupScores":
        """Ticks are in the middle of the groups."""
        names = tuple(table["group"].to_list())
        return cls(
            table["si_mae"].to_numpy(),
            table["images"].to_numpy(),
            np.arange(len(names), dtype=np.float64) + 0.5,
            names,
        )


def network_of(method: str) -> str:
    """Return the network of a method: the part of its name before a plus sign.

    Example:
        >>> network_of("EDN+si"), network_of("EDN")
        ('EDN', 'EDN')
    """
    return method.partition("+")[0] or method


def short_count(count: int) -> str:
    """Return a count in at most four characters.

    Example:
        >>> short_count(950), short_count(1234), short_count(98765)
        ('950', '1.2k', '99k')
    """
    if count < 1000:
        return str(count)
    if count < 9950:
        return f"{count / 1000:.1f}k"
    return f"{count / 1000:.0f}k" if count < 999_500 else f"{count / 1e6:.0f}M"


def _draw_panels(
    results: Sequence[Result], points: dict[tuple[str, str], GroupScores], x_name: str
) -> "Figure":
    """A row for each data set, a column for each network; methods of other networks in grey."""
    names, methods = datasets_of(results), methods_of(results)
    networks = list(dict.fromkeys(network_of(method) for method in methods))
    styles = line_styles(methods)
    with style():
        width = max(WIDTH / 2, min(2 * WIDTH, 1.9 * len(networks) + 0.6))
        figure = new_figure(1.9 * len(names) + 0.5, width=width)
        panels = figure.subplots(len(names), len(networks), squeeze=False, sharex="row", sharey="row")
        for row, name in enumerate(names):
            for column, network in enumerate(networks):
                axes = panels[row, column]
                own = {m: styles[m] for m in methods if network_of(m) == network}
                groups = {method: p for (dataset, method), p in points.items() if dataset == name}
                _draw_groups(axes, groups, own)
                axes.set_title(f"{plain_text(network)} on {plain_text(name)}", pad=10)
                axes.set_xlabel(x_name if row == len(names) - 1 else "")
                axes.set_ylabel("SI-MAE" if column == 0 else "")
        add_legend(figure, styles)
    return figure


def _draw_groups(axes: "Axes", points: dict[str, GroupScores], own: dict[str, LineStyle]) -> None:
    for method, group in points.items():
        middles = np.arange(len(group.values)) + 0.5
        if method in own:
            axes.plot(middles, group.values, **own[method].options(), zorder=3)
        else:
            axes.plot(middles, group.values, color="#bbbbbb", linewidth=0.8, zorder=2)
    shown = [group for method, group in points.items() if method in own]
    if not shown or all(np.isnan(group.values).all() for group in shown):
        annotate_empty_axes(axes, "no objects")
    for group in shown[:1]:
        for i, count in enumerate(group.counts.tolist()):
            axes.text(
                i + 0.5, 1.01, short_count(count), transform=axes.get_xaxis_transform(),
                ha="center", va="bottom", fontsize=5, color="#555555",
            )  # fmt: skip
        axes.set_xticks(group.ticks, group.names)
        axes.set_xlim(0, len(group.values))
    axes.set_ylim(bottom=0)

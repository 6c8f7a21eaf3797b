"""Figures of scores by groups: by the size of objects, and by their number in an image."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from sisod.analysis.bootstrap import heading, title
from sisod.analysis.groups import SizeKind
from sisod.common.errors import InputError, UsageError
from sisod.evaluation.result import Evaluation
from sisod.evaluation.results import Result, datasets_of, methods_of
from sisod.report.drawing.group_scores import (
    GroupScores,
    check_object_score,
    find_object_score,
    has_groups,
    score_key,
    short_count,
)
from sisod.report.drawing.layout import (
    LEFT,
    POINTS,
    add_legend,
    add_notes,
    drawn_lines,
    legend_height,
    note_height,
    text_height,
    text_width,
    widest,
    wrap_text,
)
from sisod.report.style import (
    FONT,
    MARKER_SIZE,
    PAGE_HEIGHT,
    SMALL_FONT,
    TICK_FONT,
    LineStyle,
    Width,
    annotate_empty_axes,
    inches,
    line_styles,
    new_figure,
    style,
)
from sisod.scoring.metrics import METRICS, check_metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEW = 20  # objects or images; the marker of a smaller group is hollow
_GAP = 0.14  # inches between panels


def size_figure(
    results: Sequence[Result],
    groups: SizeKind,
    *,
    metrics: Sequence[str] = (),
    width: Width = "double",
) -> "Figure":
    """Draw scores of objects by their size, in panels of networks x data sets.

    Args:
        results: saved results.
        groups: kind of size groups.
        metrics: `found`, or metrics of the object table; its MAE if none.
        width: of the figure.
    """
    scores = [find_object_score(name, by="size") for name in metrics or ("object_mae",)]
    for score in scores:
        check_object_score(results, score)

    def points(evaluation: Evaluation, score: str) -> GroupScores:
        return GroupScores.by_size(evaluation, groups, score)

    axis = ("size of an object (% of the image)", "objects")
    return _draw_panels(results, list(dict.fromkeys(scores)), points, axis, width)


def number_figure(
    results: Sequence[Result], *, metrics: Sequence[str] = (), width: Width = "double"
) -> "Figure":
    """Draw scores of images by their number of objects, in panels of networks x data sets.

    Args:
        results: saved results.
        metrics: keys of the image table; SI-MAE if none.
        width: of the figure.
    """
    keys = list(dict.fromkeys(map(score_key, metrics or ("si_mae",))))
    for key in keys:
        check_metric(key, METRICS)
        if not has_groups(key):
            raise UsageError(
                f"{key} is the maximum of a mean curve, which groups of images do not have; "
                "choose another metric"
            )
        for result in results:
            if key not in result.evaluation.images.columns:
                raise InputError(
                    f"the result of {result.method!r} has no {key}; evaluate it again with this metric"
                )
    return _draw_panels(results, keys, GroupScores.by_number, ("objects in an image", "images"), width)


def network_of(method: str) -> str:
    """Return the network of a method: the part of its name before a plus sign.

    Example:
        >>> network_of("EDN+si"), network_of("EDN")
        ('EDN', 'EDN')
    """
    return method.partition("+")[0] or method


@dataclass(frozen=True, eq=False)
class _Grid:
    """The panels of a figure, in inches: a block for each data set and score.

    Attributes:
        total: width of the figure.
        panels: name -> methods that are drawn in colour; the others are grey.
        columns: of the panels of a block.
        height: of a panel.
        titles: (data set, panel) -> its title, in lines.
        labels: how ticks and counts are written.
    """

    total: float
    panels: dict[str, list[str]]
    columns: int
    height: float
    titles: dict[tuple[str, str], list[str]]
    labels: "_Labels"

    @classmethod
    def by_network(
        cls, methods: Sequence[str], datasets: Sequence[str], groups: Sequence[GroupScores], width: Width
    ) -> "_Grid":
        """A panel for each network; as few rows as possible, and as few columns as that allows."""
        panels: dict[str, list[str]] = {}
        for method in methods:
            panels.setdefault(network_of(method), []).append(method)
        choices = (1, 2) if width == "single" else (1, 2, 3, 4)
        columns = min(choices, key=lambda n: (math.ceil(len(panels) / n), n))
        pitch = _pitch(inches(width), columns)
        titles = {(name, one): _title(one, name, pitch - 0.04) for name in datasets for one in panels}
        labels = _Labels.fit(groups, pitch - _GAP)
        height = 1.6 if columns == 1 else 1.0 if width == "single" or columns == 4 else 1.25
        return cls(inches(width), panels, columns, height, titles, labels)

    @classmethod
    def together(
        cls,
        methods: Sequence[str],
        datasets: Sequence[str],
        groups: Sequence[GroupScores],
        width: Width,
        n_blocks: int,
    ) -> "_Grid":
        """One panel for all methods, lower if there are many blocks."""
        pitch = _pitch(inches(width), 1)
        titles = {(name, ""): wrap_text(name, pitch - 0.04, FONT) for name in datasets}
        labels = _Labels.fit(groups, pitch - _GAP)
        height = min(2.0, max(1.2, PAGE_HEIGHT / n_blocks - 1.0))
        return cls(inches(width), {"": list(methods)}, 1, height, titles, labels)

    @property
    def pitch(self) -> float:
        """From one panel to the next."""
        return _pitch(self.total, self.columns)

    @cached_property
    def title_heights(self) -> list[float]:
        """Of each row of panels."""
        lines = [
            max(len(title) for (_, panel), title in self.titles.items() if panel == one)
            for one in self.panels
        ]
        rows = [max(lines[start : start + self.columns]) for start in range(0, len(lines), self.columns)]
        return [text_height(n_lines, FONT) + 0.1 for n_lines in rows]

    @property
    def block(self) -> float:
        """Height of a block with its ticks and counts."""
        return sum(self.title_heights) + len(self.title_heights) * self.height + self.labels.height

    def place(self, index: int) -> tuple[float, float]:
        """Left end of a panel, and its lower end below the top of the block."""
        row, column = divmod(index, self.columns)
        down = (row + 1) * self.height + sum(self.title_heights[: row + 1]) + self.labels.count_size
        return LEFT + column * self.pitch, down

    def is_lowest(self, index: int) -> bool:
        """Whether no panel is below."""
        return index + self.columns >= len(self.panels)


def _pitch(total: float, columns: int) -> float:
    return (total - LEFT - 0.03) / columns


def _draw_panels(
    results: Sequence[Result],
    keys: Sequence[str],
    points: Callable[[Evaluation, str], GroupScores],
    axis: tuple[str, str],
    width: Width,
) -> "Figure":
    """Blocks for each data set and score, a panel for each network; other networks' methods in grey.

    All text is measured beforehand: the automatic layout of matplotlib does not know how wide titles
    are, and needs seconds for many panels.
    """
    methods, datasets = methods_of(results), datasets_of(results)
    blocks = {
        (name, key): {r.method: points(r.evaluation, key) for r in results if r.dataset == name}
        for name in datasets
        for key in keys
    }
    groups = [group for block in blocks.values() for group in block.values()]
    grid = _Grid.by_network(methods, datasets, groups, width)
    if len(blocks) * grid.block > PAGE_HEIGHT - 1:
        grid = _Grid.together(methods, datasets, groups, width, len(blocks))
    styles = line_styles(methods)
    notes = [_explanation(groups, axis[1], others=len(grid.panels) > 1)]
    # if every panel has one method, its title is the name of the method
    legend = legend_height(methods, grid.total) if len(grid.panels) < len(methods) else 0.0
    top = len(blocks) * grid.block + text_height(1, FONT) + 0.06 + legend
    height = top + note_height(notes, grid.total)
    with style():
        figure = new_figure(height, width=grid.total, arranged=False)
        for (name, key), block in blocks.items():
            _draw_block(figure, grid, top, name, key, block, styles)
            top -= grid.block
        middle = (LEFT + grid.total) / 2 / grid.total
        figure.text(middle, (legend + 0.03) / height, axis[0], ha="center", va="bottom")
        add_notes(figure, notes)
        if legend:
            add_legend(figure, styles)
    return figure


def _draw_block(
    figure: "Figure",
    grid: _Grid,
    top: float,
    dataset: str,
    key: str,
    points: dict[str, GroupScores],
    styles: dict[str, LineStyle],
) -> None:
    """Draw the panels of a data set and a score, all with the same y axis."""
    first: Axes | None = None
    for index, (panel, methods) in enumerate(grid.panels.items()):
        left, down = grid.place(index)
        axes = _add_axes(figure, (left, top - down), (grid.pitch - _GAP, grid.height), first)
        first = first or axes
        shown = _draw_groups(axes, points, {method: styles[method] for method in methods})
        is_top, is_left = index < grid.columns, index % grid.columns == 0
        pad = grid.labels.write(axes, shown, counts=is_top, ticks=grid.is_lowest(index))
        axes.set_title(drawn_lines(grid.titles[dataset, panel]), pad=pad)
        axes.tick_params("y", labelleft=is_left)
        axes.set_ylim(0, _highest(points.values()))
        if is_left:
            axes.set_ylabel(drawn_lines(_axis_name(key, grid.height + 0.2)), fontsize=TICK_FONT)


def _axis_name(key: str, length: float) -> list[str]:
    """Name of a score in lines, the arrow of its better direction at the end of the last."""
    arrow = heading(key).removeprefix(title(key))
    *lines, last = wrap_text(title(key), length - text_width(arrow, TICK_FONT), TICK_FONT)
    return [*lines, last + arrow]


def _title(network: str, dataset: str, width: float) -> list[str]:
    """Name of a panel in lines; the data set is not torn from its "on"."""
    lines = wrap_text(network, width, FONT)
    if text_width(f"{lines[-1]} on {dataset}", FONT) <= width:
        return [*lines[:-1], f"{lines[-1]} on {dataset}"]
    return [*lines, *wrap_text(f"on {dataset}", width, FONT)]


def _highest(groups: Iterable[GroupScores]) -> float:
    """Upper end of the y axis of a block, above all intervals."""
    values = np.concatenate([np.append(group.values, group.intervals) for group in groups])
    finite = values[np.isfinite(values)]
    return 1.06 * float(finite.max()) if finite.any() else 1.0


def _add_axes(
    figure: "Figure", corner: tuple[float, float], size: tuple[float, float], first: "Axes | None"
) -> "Axes":
    """Add a panel at a place in inches, with the y axis of the first panel of its block."""
    width, height = figure.get_size_inches()
    box = (corner[0] / width, corner[1] / height, size[0] / width, size[1] / height)
    return figure.add_axes(box, sharey=first)


def _explanation(groups: Sequence[GroupScores], counted: str, *, others: bool) -> str:
    """What is drawn beside the lines, in one sentence for each that occurs."""
    parts = [f"Above: number of {counted}."]
    if any(np.isfinite(group.intervals).any() for group in groups):
        parts.append("Bars: 95 % interval, bootstrap over images.")
    if any(((group.counts > 0) & (group.counts < FEW)).any() for group in groups):
        parts.append(f"Hollow: fewer than {FEW} {counted}.")
    if others:
        parts.append("Grey: the other methods.")
    return " ".join(parts)


def _draw_groups(
    axes: "Axes", points: dict[str, GroupScores], own: dict[str, LineStyle]
) -> GroupScores | None:
    """Draw a panel; return what gives it ticks and counts."""
    shown = [method for method in points if method in own]
    for method, group in points.items():
        middles = np.arange(len(group.values)) + 0.5
        if method not in own:
            axes.plot(middles, group.values, color="#bbbbbb", linewidth=0.8, zorder=2)
            continue
        # intervals of several methods are side by side
        step = min(0.14, 0.8 / len(shown))
        middles = middles + step * (shown.index(method) - (len(shown) - 1) / 2)
        look = own[method]
        # not clipped: a marker at zero would lose its lower half
        axes.plot(middles, group.values, **look.options(), zorder=3, clip_on=False)
        axes.vlines(middles, *group.intervals.T, color=look.colour, linewidth=0.9, zorder=3)
        few = (group.counts > 0) & (group.counts < FEW)
        axes.scatter(
            middles[few], group.values[few], s=MARKER_SIZE ** 2, marker=look.marker,
            facecolors="white", edgecolors=look.colour, linewidths=0.8, zorder=4,
            clip_on=False,
        )  # fmt: skip
    if not shown or all(np.isnan(points[method].values).all() for method in shown):
        annotate_empty_axes(axes, "no objects" if shown else "no result")
    one = points[shown[0]] if shown else next(iter(points.values()), None)
    if one is not None:
        axes.set_xlim(0, len(one.values))
    return one


@dataclass(frozen=True)
class _Labels:
    """How ticks and counts are written: upright only if they do not fit side by side."""

    tick_rotation: int
    count_rotation: int
    tick_size: float
    count_size: float

    @classmethod
    def fit(cls, groups: Sequence[GroupScores], width: float) -> "_Labels":
        rotations, sizes = [], []
        for texts in (
            [group.names for group in groups],
            [tuple(map(short_count, group.counts.tolist())) for group in groups],
        ):
            space = min(width / len(group.values) for group in groups)
            fits = all(
                (text_width(a, SMALL_FONT) + text_width(b, SMALL_FONT)) / 2 + 0.04 <= space
                for one in texts
                for a, b in pairwise(one)
            )
            rotations.append(0 if fits else 90)
            longest = max(widest(one, SMALL_FONT) for one in texts)
            sizes.append(text_height(1, SMALL_FONT) if fits else longest)
        return cls(*rotations, *sizes)

    @property
    def height(self) -> float:
        """Inches of both together."""
        return self.tick_size + self.count_size + 0.1

    def write(self, axes: "Axes", group: GroupScores | None, *, counts: bool, ticks: bool) -> float:
        """Write ticks and counts of a panel; return the room of the counts, in points."""
        if group is None:
            axes.set_xticks([])
            return 4.0
        axes.set_xticks(group.ticks, group.names)
        axes.tick_params("x", labelsize=SMALL_FONT, rotation=self.tick_rotation, labelbottom=ticks)
        if not counts:
            return 4.0
        for i, count in enumerate(group.counts.tolist()):
            axes.annotate(
                short_count(count), (i + 0.5, 1), (0, 2), xycoords=axes.get_xaxis_transform(),
                textcoords="offset points", ha="center", va="bottom", fontsize=SMALL_FONT,
                color="#555555", rotation=self.count_rotation,
            )  # fmt: skip
        return POINTS * self.count_size + 5.0

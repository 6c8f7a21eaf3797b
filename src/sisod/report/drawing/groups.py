"""Figures of scores by groups: by the size of objects, and by their number in an image."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sisod.analysis.bootstrap import number_intervals, size_intervals
from sisod.analysis.groups import SizeKind, by_number, by_size, size_edges
from sisod.analysis.scores import OBJECT_SCORES, heading
from sisod.common.exceptions import InputError, UsageError
from sisod.evaluation.result import Evaluation
from sisod.evaluation.results import Result, datasets_of, methods_of
from sisod.report import style
from sisod.report.drawing.request import FigureRequest
from sisod.report.missing import missing_objects
from sisod.report.objects import false_by_size, require_counts
from sisod.scoring.metrics import METRICS, canonical_key, check_metric, squeeze

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEW = 20  # objects or images; the marker of a smaller group is hollow
_MOST_ROWS = 4  # of panels; with more, all methods share one panel
_PANEL = 1.0  # inches: height of a panel
_BARS = 0.86  # share of a size group's width that its bars take


def score_key(name: str) -> str:
    """Return the key of a metric or of a score of objects that is called otherwise.

    A score of objects has the key of its metric, with or without `object_`. An unknown name is returned
    as it is.

    Example:
        >>> [score_key(name) for name in ("SI-MAE", "Object F mean", "Found", "unheard")]
        ['si_mae', 'object_f_mean', 'found', 'unheard']
    """
    if squeeze(name) == "found":  # elsewhere another name of object_recall
        return "found"
    key = canonical_key(name)
    if key in METRICS:
        return key
    score = f"object_{canonical_key(re.sub(r'(?i)^objects?[ _-]+', '', name))}"
    return score if score in OBJECT_SCORES else name


def object_score(name: str) -> str | None:
    """Return the score of objects that a name means, None if there is none.

    Example:
        >>> object_score("object_mae"), object_score("MAE"), object_score("si_mae")
        ('object_mae', 'object_mae', None)
    """
    key = score_key(name)
    return next((score for score in (key, f"object_{key}") if score in OBJECT_SCORES), None)


def find_object_score(name: str, results: Sequence[Result], *, without: str = "") -> str:
    """Return the score of objects that a name means; raise if it means none, or a result lacks it.

    Args:
        name: of a score.
        results: which must have it.
        without: a score that is not possible here.
    """
    score, key = object_score(name), score_key(name)
    if score is None:
        check_metric(key, METRICS)
    if score is None or score == without:
        # the names that people type; `object_` before them is allowed
        names = [one.removeprefix("object_") for one in OBJECT_SCORES if one != without]
        raise UsageError(f"an object has no {key}; choose one of {', '.join(names)}")
    _require_column(results, "objects", OBJECT_SCORES[score], score)
    return score


def has_groups(key: str) -> bool:
    """Say whether a metric has a value for a group of images."""
    return key in METRICS and METRICS[key].form != "max"


def _require_column(results: Sequence[Result], table: str, column: str, key: str) -> None:
    for result in results:
        if column not in getattr(result.evaluation, table).columns:
            raise InputError(
                f"the result of {result.method!r} has no {key}; evaluate it again with this metric"
            )


@dataclass(frozen=True, eq=False)
class GroupScores:
    """A score by groups, one point for each.

    Attributes:
        values: NaN where a group is empty.
        intervals: 95 % interval of each value, groups x 2; NaN where too few images have one.
        counts: number of objects or images of each group.
        names: of the groups, or of their edges, which are one more.
    """

    values: NDArray[np.float64]
    intervals: NDArray[np.float64]
    counts: NDArray[np.int64]
    names: tuple[str, ...]

    @property
    def ticks(self) -> NDArray[np.float64]:
        """Positions of the names on the axis, on which group i extends from i to i + 1."""
        start = 0.5 if len(self.names) == len(self.values) else 0.0
        return np.arange(len(self.names), dtype=np.float64) + start

    @classmethod
    def by_size(cls, evaluation: Evaluation, groups: SizeKind, score: str) -> "GroupScores":
        """Return the scores of objects by their size."""
        table = by_size(evaluation, groups=groups)
        edges = [*table["low"].to_list(), table["high"].to_list()[-1]]
        return cls(
            table["found" if score == "found" else OBJECT_SCORES[score]].to_numpy(),
            size_intervals(evaluation, score, edges),
            table["objects"].to_numpy(),
            percent_labels(edges),
        )

    @classmethod
    def by_number(cls, evaluation: Evaluation, key: str) -> "GroupScores":
        """Return the scores of images by their number of objects."""
        table = by_number(evaluation, metrics=[key])
        return cls(
            table[key].to_numpy(),
            number_intervals(evaluation, key),
            table["images"].to_numpy(),
            tuple(table["group"].to_list()),
        )


def percent_labels(edges: Sequence[float]) -> tuple[str, ...]:
    """Return shares as percentages of two digits, of three where two would not tell them apart.

    Example:
        >>> percent_labels([0, 0.00316, 0.1]), percent_labels([0.331, 0.333])
        (('0', '0.32', '10'), ('33.1', '33.3'))
    """
    short, long = ([f"{100 * edge:.{digits}g}" for edge in edges] for digits in (2, 3))
    # two digits of 100 are 1e+02
    short = [a if "e" not in a else b for a, b in zip(short, long, strict=True)]
    return tuple(short if len(set(short)) == len(short) else long)


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


def network_of(method: str) -> str:
    """Return the network of a method: the part of its name before a plus sign.

    Example:
        >>> network_of("EDN+si"), network_of("EDN")
        ('EDN', 'EDN')
    """
    return method.partition("+")[0] or method


def size_figure(request: FigureRequest, groups: SizeKind) -> "Figure":
    """Draw scores of objects by their size, in panels of networks x data sets.

    Args:
        request: the results and options; MAE of objects if it names no metric.
        groups: kind of size groups.
    """
    names = request.metrics or ("object_mae",)
    scores = dict.fromkeys(find_object_score(name, request.chosen) for name in names)

    def points(evaluation: Evaluation, score: str) -> GroupScores:
        return GroupScores.by_size(evaluation, groups, score)

    x_name = "size of an object (% of the image)"
    return _draw_panels(request, list(scores), points, x_name, "objects")


def number_figure(request: FigureRequest) -> "Figure":
    """Draw scores of images by their number of objects, in panels of networks x data sets.

    Args:
        request: the results and options; SI-MAE if it names no metric.
    """
    keys = list(dict.fromkeys(map(score_key, request.metrics or ("si_mae",))))
    for key in keys:
        check_metric(key, METRICS)
        if not has_groups(key):
            raise UsageError(
                f"{key} is the maximum of a mean curve, which groups of images do not have; "
                "choose another metric"
            )
        _require_column(request.chosen, "images", key, key)
    return _draw_panels(request, keys, GroupScores.by_number, "objects in an image", "images")


def _draw_panels(
    request: FigureRequest,
    keys: Sequence[str],
    points: Callable[[Evaluation, str], GroupScores],
    x_name: str,
    counted: str,
) -> "Figure":
    """A block for each data set and score, in it a panel for each network, other methods in grey."""
    results, width = request.chosen, request.width
    methods = methods_of(results)
    styles = style.line_styles(methods)
    blocks = {
        (name, key): {r.method: points(r.evaluation, key) for r in results if r.dataset == name}
        for name in datasets_of(results)
        for key in keys
    }
    networks: dict[str, list[str]] = {}
    for method in methods:
        networks.setdefault(network_of(method), []).append(method)
    # as few rows as possible, and as few columns as that allows
    n_rows = math.ceil(len(networks) / (2 if width == "single" else 4))
    if n_rows * len(blocks) > _MOST_ROWS:
        networks, n_rows = {"": methods}, 1
    n_columns = math.ceil(len(networks) / n_rows)
    n_lines, panel_width = n_rows * len(blocks), (style.inches(width) - 0.5) / n_columns
    with style.context():
        figure = style.new_figure(n_lines * (_PANEL + 1) + 2, width=width)
        inner: Any = figure.subfigures()  # its label stays apart from the legend
        panels = inner.subplots(n_lines, n_columns, squeeze=False)
        for block, ((name, key), scores) in enumerate(blocks.items()):
            cells = panels[block * n_rows : (block + 1) * n_rows].ravel()
            values = [np.append(one.values, one.intervals) for one in scores.values()]
            highest = np.nanmax(np.concatenate(values), initial=0.0)
            for axes in cells[len(networks) :]:
                axes.set_axis_off()
            for index, (axes, network) in enumerate(zip(cells, networks, strict=False)):
                is_left = index % n_columns == 0
                shown = _draw_groups(axes, scores, {m: styles[m] for m in networks[network]})
                axes.set_title(style.wrapped(f"{network} on {name}" if network else name, panel_width))
                axes.set_ylim(0, 1.06 * highest or 1.0)
                axes.tick_params("y", labelleft=is_left)
                if is_left:
                    axes.set_ylabel(style.wrapped(heading(key), _PANEL + 0.25), fontsize=style.TICK_FONT)
                _label_groups(axes, shown, panel_width, counts=index < n_columns)
                axes.tick_params("x", labelbottom=index + n_columns >= len(networks))
        inner.supxlabel(x_name)
        notes = f"Above: number of {counted}. Bars: 95 % interval, bootstrap over images. "
        notes += f"Hollow: fewer than {FEW} {counted}."
        style.add_notes(figure, [notes + (" Grey: the other methods." if len(networks) > 1 else "")])
        if len(networks) < len(methods):  # else the title of a panel is the name of its method
            style.add_legend(figure, styles)
        style.fit_height(figure, panels[:, 0], n_lines * _PANEL * (1 if n_columns > 1 else 1.5))
    return figure


def _draw_groups(
    axes: "Axes", points: Mapping[str, GroupScores], own: Mapping[str, style.LineStyle]
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
        if few.any():
            hollow = look.options() | {"linestyle": "none", "markerfacecolor": "white"}
            axes.plot(middles[few], group.values[few], **hollow, zorder=4, clip_on=False)
    if not shown or all(np.isnan(points[method].values).all() for method in shown):
        style.annotate_empty_axes(axes, "no objects" if shown else "no result")
    return points[shown[0]] if shown else next(iter(points.values()), None)


def _label_groups(axes: "Axes", group: GroupScores | None, width: float, *, counts: bool) -> None:
    """Write the names of groups below a panel, and their counts above it."""
    if group is None:
        axes.set_xticks([])
        return
    axes.set_xlim(0, len(group.values))
    rotation = 90 if width / len(group.values) < 0.35 else 0
    axes.set_xticks(group.ticks, group.names, fontsize=style.SMALL_FONT, rotation=rotation)
    if counts:
        above = axes.secondary_xaxis("top")
        above.set_xticks(
            np.arange(len(group.values)) + 0.5, list(map(short_count, group.counts.tolist())),
            fontsize=style.SMALL_FONT, rotation=rotation, color="#555555",
        )  # fmt: skip
        above.tick_params(length=0, pad=1)
        above.spines["top"].set_visible(False)


def false_object_figure(request: FigureRequest) -> "Figure":
    """Draw false objects per image by their size, the methods side by side."""
    results, width = request.chosen, request.width
    require_counts(results, "false objects")
    datasets, styles = datasets_of(results), style.line_styles(methods_of(results))
    edges = size_edges("log")
    with style.context():
        figure = style.new_figure(2 * len(datasets) + 2, width=width)
        panels = figure.subplots(len(datasets), 1, squeeze=False, sharex=True)
        for axes, name in zip(panels.flat, datasets, strict=True):
            _draw_bars(axes, [result for result in results if result.dataset == name], styles)
            axes.set_title(style.wrapped(name, style.inches(width) - 1))
            axes.set(xlim=(0, len(edges) - 1), ylabel="false objects per image")
            axes.set_xticks(range(len(edges)), percent_labels(edges.tolist()), fontsize=style.SMALL_FONT)
        panels[-1, 0].set_xlabel("size of a false object (% of the image)")
        style.add_notes(figure, missing_objects(results, curves=False))
        style.add_legend(figure, styles, bars=True)
        style.fit_height(figure, panels.flat, 1.5 * len(datasets))
    return figure


def _draw_bars(axes: "Axes", results: Sequence[Result], styles: dict[str, style.LineStyle]) -> None:
    heights = {result.method: false_by_size(result.evaluation) for result in results}
    counted = {method: values for method, values in heights.items() if not np.isnan(values).any()}
    width = _BARS / max(1, len(counted))
    for i, (method, values) in enumerate(counted.items()):
        left = np.arange(len(values)) + (1 - _BARS) / 2 + i * width
        axes.bar(left, values, width, align="edge", **styles[method].bar_options())
    axes.grid(visible=False, axis="x")
    if not any(values.any() for values in counted.values()):
        style.annotate_empty_axes(axes, "no false objects" if counted else "no predicted objects saved")
        axes.set_ylim(0, 1)

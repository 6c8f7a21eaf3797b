"""Figures of scores by groups: by the size of objects, and by their number in an image."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sisod.analysis.bootstrap import number_intervals, size_intervals
from sisod.analysis.groups import SizeKind, by_number, by_size, predicted_by_size, size_edges
from sisod.analysis.scores import heading, object_scores
from sisod.common.exceptions import InputError, UsageError
from sisod.evaluation.result import Evaluation
from sisod.evaluation.results import Result
from sisod.report import style
from sisod.report.drawing.curves import seed_mean
from sisod.report.missing import missing_objects, require_counts
from sisod.report.style import FigureRequest
from sisod.scoring.metrics import METRICS, canonical_key, check_metric, squeeze

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEW = 20  # objects or images; the marker of a smaller group is hollow
_MOST_PANELS = {"single": 1, "double": 4}  # side by side; of more networks all methods share one
_BARS = 0.86  # share of a size group's width that its bars take


def find_object_score(name: str, results: Sequence[Result], *, without: str = "") -> str:
    """Return the score of objects that a name means: `found`, or a metric with or without `object_`.

    Args:
        name: of a score.
        results: which must have it.
        without: a score that is not possible here.

    Raises:
        UsageError: for a name that no score of objects has.

    Example:
        >>> [find_object_score(name, []) for name in ("object_mae", "MAE", "Object F mean", "Found")]
        ['object_mae', 'object_mae', 'object_f_mean', 'found']
    """
    key = canonical_key(re.sub(r"(?i)^objects?[ _-]+", "", name))
    is_found = squeeze(name) == "found"  # elsewhere another name of object_recall
    score = "found" if is_found else f"object_{key}"
    if score not in object_scores() or score == without:
        if not is_found:
            check_metric(key, METRICS)
        # the names that people type; `object_` before them is allowed
        names = [one.removeprefix("object_") for one in object_scores() if one != without]
        raise UsageError(
            f"an object has no {'found' if is_found else key}; choose one of {', '.join(names)}"
        )
    _require_column(results, "objects", object_scores()[score], score)
    return score


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

    @classmethod
    def by_size(cls, groups: SizeKind, evaluation: Evaluation, score: str) -> "GroupScores":
        """Return the scores of objects by their size.

        Args:
            groups: kind of size groups.
            evaluation: the result.
            score: a key of `object_scores`.
        """
        table = by_size(evaluation, groups=groups)
        edges = [*table["low"].to_list(), table["high"].to_list()[-1]]
        return cls(
            table["found" if score == "found" else object_scores()[score]].to_numpy(),
            size_intervals(evaluation, score, edges),
            table["objects"].to_numpy(),
            tuple(f"{100 * edge:.3g}" for edge in edges),
        )

    @classmethod
    def by_number(cls, evaluation: Evaluation, key: str) -> "GroupScores":
        """Return the scores of images by their number of objects.

        Args:
            evaluation: the result.
            key: of a metric of images.
        """
        table = by_number(evaluation, metrics=[key])
        return cls(
            table[key].to_numpy(),
            number_intervals(evaluation, key),
            table["images"].to_numpy(),
            tuple(table["group"].to_list()),
        )


def mean_scores(runs: Sequence[GroupScores]) -> GroupScores:
    """Return the means of values and of intervals over the seeds of a method.

    Args:
        runs: scores by the same groups.
    """
    return replace(
        runs[0],
        values=seed_mean([run.values for run in runs]),
        intervals=seed_mean([run.intervals for run in runs]),
    )


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
    scores = list(dict.fromkeys(find_object_score(name, request.chosen) for name in names))
    x_name = "size of an object (% of the image)"
    return _draw_panels(request, scores, partial(GroupScores.by_size, groups), x_name, "objects")


def number_figure(request: FigureRequest) -> "Figure":
    """Draw scores of images by their number of objects, in panels of networks x data sets.

    Args:
        request: the results and options; SI-MAE if it names no metric.
    """
    keys = list(dict.fromkeys(map(canonical_key, request.metrics or ("si_mae",))))
    for key in keys:
        check_metric(key, METRICS)
        if METRICS[key].form == "max":
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
    """A row of panels for each data set and score; side by side the networks, each with its variants."""
    styles, total = request.line_styles, style.inches(request.width)
    networks: dict[str, list[str]] = {}
    for method in styles:
        networks.setdefault(network_of(method), []).append(method)
    if len(networks) > _MOST_PANELS[request.width]:
        networks = {"": list(styles)}
    rows = [(name, runs, key) for name, runs in request.by_dataset.items() for key in keys]
    heights = [1.0 if len(networks) > 1 else 1.5] * len(rows)
    width = (total - 0.5) / len(networks)
    notes = f"Above: number of {counted}. Bars: 95 % interval, bootstrap over images. "
    notes += f"Hollow: fewer than {FEW} {counted}."
    shared = {"sharey": "row", "notes": [notes]}
    with style.new_panels(heights, len(networks), request.width, **shared) as (figure, panels):
        for row, (name, runs, key) in zip(panels, rows, strict=True):
            scores = {m: mean_scores([points(run, key) for run in seeds]) for m, seeds in runs.items()}
            for axes, (network, methods) in zip(row, networks.items(), strict=True):
                shown = {m: (scores[m], styles[m]) for m in methods if m in scores}
                draw_groups(axes, shown, width)
                axes.set_title(style.wrapped(f"{network} on {name}" if network else name, width))
            row[0].set_ylabel(style.wrapped(heading(key), 1.25), fontsize=style.TICK_FONT)
            row[0].set_ylim(bottom=0)
        for axes in panels[-1]:
            axes.set_xlabel(style.wrapped(x_name, width))
        if len(networks) < len(styles):  # else the title of a panel is the name of its method
            style.add_legend(figure, styles)
    return figure


def draw_groups(
    axes: "Axes", scores: Mapping[str, tuple[GroupScores, style.LineStyle]], width: float
) -> None:
    """Draw scores by groups, with their intervals and, above the panel, the number of objects or images.

    Args:
        axes: the panel.
        scores: method -> its scores and its line style.
        width: of the panel in inches, about: in a narrow one the names of groups are upright.
    """
    if not scores:
        style.annotate_empty_axes(axes, "no result")
        axes.set_xticks([])
        return
    step = min(0.14, 0.8 / len(scores))  # intervals of several methods are side by side
    for index, (group, look) in enumerate(scores.values()):
        middles = np.arange(len(group.values)) + 0.5 + step * (index - (len(scores) - 1) / 2)
        # not clipped: a marker at zero would lose its lower half
        axes.plot(middles, group.values, **look.options(), zorder=3, clip_on=False)
        axes.vlines(middles, *group.intervals.T, color=look.colour, linewidth=0.9, zorder=3)
        few = (group.counts > 0) & (group.counts < FEW)
        if few.any():  # the layout cannot place a line without points
            hollow = look.options() | {"linestyle": "none", "markerfacecolor": "white"}
            axes.plot(middles[few], group.values[few], **hollow, zorder=4, clip_on=False)
    if all(np.isnan(group.values).all() for group, _ in scores.values()):
        style.annotate_empty_axes(axes, "no objects")
    axes.set_xlim(0, len(group.values))
    rotation = 90 if width / len(group.values) < 0.35 else 0
    text: dict[str, Any] = {"fontsize": style.SMALL_FONT, "rotation": rotation}
    start = 0.5 if len(group.names) == len(group.values) else 0.0  # else they name the edges
    axes.set_xticks(np.arange(len(group.names)) + start, group.names, **text)
    above = axes.secondary_xaxis("top")
    counts = [f"{count:,}" for count in group.counts.tolist()]
    above.set_xticks(np.arange(len(counts)) + 0.5, counts, color="#555555", **text)
    above.tick_params(length=0, pad=1)
    above.spines["top"].set_visible(False)


def false_object_figure(request: FigureRequest) -> "Figure":
    """Draw false objects per image by their size, the methods side by side.

    Args:
        request: the results and options; of several seeds of a method, the mean is drawn.
    """
    require_counts(request.chosen, "false objects")
    styles, edges, by_dataset = request.line_styles, size_edges("log"), request.by_dataset
    heights, shared = [1.5] * len(by_dataset), {"sharex": True}
    notes = missing_objects(request.chosen, curves=False)
    with style.new_panels(heights, 1, request.width, notes=notes, **shared) as (figure, panels):
        for axes, (name, methods) in zip(panels.flat, by_dataset.items(), strict=True):
            means = {m: seed_mean([false_by_size(run) for run in runs]) for m, runs in methods.items()}
            counted = {m: values for m, values in means.items() if not np.isnan(values).any()}
            width = _BARS / max(1, len(counted))
            for i, (method, values) in enumerate(counted.items()):
                left = np.arange(len(values)) + (1 - _BARS) / 2 + i * width
                axes.bar(left, values, width, align="edge", **styles[method].bar_options())
            if not any(values.any() for values in counted.values()):
                why = "no false objects" if counted else "no predicted objects saved"
                style.annotate_empty_axes(axes, why)
                axes.set_ylim(0, 1)
            axes.grid(visible=False, axis="x")
            axes.set_title(style.wrapped(name, style.inches(request.width) - 1))
            axes.set(xlim=(0, len(edges) - 1), ylabel="false objects per image")
            names = [f"{100 * edge:.3g}" for edge in edges.tolist()]
            axes.set_xticks(range(len(edges)), names, fontsize=style.SMALL_FONT)
        panels[-1, 0].set_xlabel("size of a false object (% of the image)")
        style.add_legend(figure, styles, bars=True)
    return figure


def false_by_size(evaluation: Evaluation) -> NDArray[np.float64]:
    """Return false objects per image in each logarithmic size group; NaN without predicted objects."""
    if evaluation.predicted is None:
        return np.full(len(size_edges("log")) - 1, np.nan)
    return predicted_by_size(evaluation, groups="log")["false"].to_numpy() / evaluation.images.height

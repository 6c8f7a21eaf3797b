"""The figure of examples: image, ground truth with frames, maps of methods with scores of objects."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from sisod.analysis.scores import OBJECT_SCORES, title
from sisod.common.exceptions import InputError, UsageError, shorten_list
from sisod.evaluation.results import (
    PREDICTIONS,
    TRUTHS,
    PixelFiles,
    Result,
    check_photographs,
    datasets_of,
    methods_of,
)
from sisod.report import style
from sisod.report.drawing.groups import find_object_score

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Box = tuple[float, float, float, float]
_N_EXAMPLES = 4  # at most, if none are named
_MOST_LINES = 6  # of pictures then, if every data set has one example
_MOST_LISTED = 12  # objects of an image whose scores are written
_LONG_SIDE = 480  # pixels of a picture in the figure: at least 300 per inch
_LEAST_WIDTH = 0.95  # style.inches of a picture with its gap
_GAP = 0.02  # style.inches on each side of it
_TALLEST = 1.1  # height of a picture's panel over its width
_SCORE = 0.42  # style.inches of a number with its score
_NUMBER = (0.11, 0.1)  # style.inches of a number in the picture
# of frames in turn, all light enough for a black map
_FRAMES = tuple(style.COLOURS[i] for i in (1, 5, 2, 3, 4))


def example_figure(
    results: Sequence[Result],
    *,
    image_roots: Mapping[str, Path],
    names: Sequence[str] = (),
    fetch: bool = False,
    metrics: Sequence[str] = (),
    width: style.Width = "double",
) -> "Figure":
    """Draw examples: by default the images on which the methods differ most, at most a page of them.

    The objects are numbered in the ground truth; below each map is the score of every number. An
    example with many methods has several lines of pictures.

    Args:
        results: saved results, which record the folders of their maps.
        image_roots: data set -> folder of its photographs; if empty, there is no column of photographs.
        names: of the images to draw; each must be in a data set.
        fetch: whether to read maps from URLs too.
        metrics: the score to write, of the object table; the mean of F if none.
        width: of the figure.
    """
    check_photographs(results, image_roots)
    for result in results:
        if result.evaluation.protocol.released_code:
            raise InputError(
                f"{result.method!r} was scored under the protocol "
                f"{result.evaluation.protocol.name!r}, whose frames do not match the pixels of "
                "the image; evaluate it under another"
            )
    if len(metrics) > 1:
        raise UsageError(f"the figure 'examples' writes one score, got {shorten_list(list(metrics))}")
    score = find_object_score(metrics[0] if metrics else "object_f_mean", results, without="found")
    methods = methods_of(results)
    titles = (*(["image"] if image_roots else []), "ground truth", *methods)
    n_lines = math.ceil(len(titles) / int(style.inches(width) / _LEAST_WIDTH))
    columns = max(math.ceil(len(titles) / n_lines), 2 if width == "single" else 3)
    examples = _choose(results, names, n_lines)
    picture = style.inches(width) / columns - 2 * _GAP  # width in style.inches
    shapes = [_shape(group[0], name) for group, name in examples for _ in range(n_lines)]
    heights = [picture * min(_TALLEST, high / wide) for high, wide in shapes]
    with style.context():
        figure = style.new_figure(sum(heights) + 0.4 * len(heights) + 1, width=width)
        figure.get_layout_engine().set(w_pad=_GAP, h_pad=_GAP, wspace=0, hspace=0)  # type: ignore[union-attr,call-arg]
        panels = figure.subplots(len(heights), columns, squeeze=False, height_ratios=heights)
        for axes in panels.flat:
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
        for index, (group, name) in enumerate(examples):
            block = panels[index * n_lines : (index + 1) * n_lines].flat
            if index == 0 or n_lines > 1:
                for axes, text in zip(block, titles, strict=False):
                    axes.set_title(
                        style.wrapped(text, picture - 0.08, style.TICK_FONT),
                        fontsize=style.TICK_FONT,
                        pad=2,
                    )
            *left, truth = block[: len(titles) - len(methods)]
            panels_of = dict(zip(methods, block[len(left) + 1 :], strict=False))
            root = image_roots.get(group[0].dataset)
            files = {result.method: PixelFiles(result.evaluation, root, fetch) for result in group}
            _draw_truth(truth, left, files[group[0].method], group[0], name)
            for result in group:
                _draw_map(panels_of[result.method], files[result.method], result, name, score)
            label = style.wrapped(f"{group[0].dataset} {name}", picture - 0.08, style.SMALL_FONT)
            block[0].set_xlabel(label, fontsize=style.SMALL_FONT, color="#555555")
        style.add_notes(
            figure, [f"Below each map: {title(score)}, by their numbers in the ground truth."]
        )
        style.fit_height(figure, panels[:, 0], heights)
    return figure


def _choose(
    results: Sequence[Result], names: Sequence[str], n_lines: int
) -> list[tuple[list[Result], str]]:
    """The images to draw, each with the results of its data set."""
    datasets = datasets_of(results)
    count = max(1, min(_N_EXAMPLES, _MOST_LINES // n_lines) // len(datasets))
    examples = []
    for dataset in datasets:
        group = [result for result in results if result.dataset == dataset]
        known = set(group[0].evaluation.images["image"].to_list())
        different = [] if names else most_different([r.evaluation.objects for r in group], count)
        examples += [(group, name) for name in names or different if name in known]
    unknown = [name for name in names if name not in {name for _, name in examples}]
    if unknown:
        raise InputError(
            f"no result has the image {shorten_list(unknown)}; name an image of the results"
        )
    if not examples:
        raise InputError("the results have no image with an object, so there are no examples to draw")
    return examples


def most_different(tables: "Sequence[pl.DataFrame]", count: int) -> list[str]:
    """Return the images whose mean F over objects differs most, those with several objects first."""
    import polars as pl

    scores = pl.concat(
        [table.group_by("image").agg(score=pl.col("f_mean").mean(), n=pl.len()) for table in tables]
    )
    spread = scores.group_by("image").agg(
        spread=pl.col("score").max() - pl.col("score").min(),
        # if there is a single method, the worst come first
        score=pl.col("score").mean(),
        several=pl.col("n").max() > 1,
    )
    order = spread.sort(["several", "spread", "score", "image"], descending=[True, True, False, False])
    return [str(name) for name in order["image"].head(count).to_list()]


def _shape(result: Result, name: str) -> tuple[int, int]:
    """Height and width of an image."""
    images = result.evaluation.images
    return images.filter(images["image"] == name).select("height", "width").row(0)


def _draw_truth(
    axes: "Axes", photo_panels: "Sequence[Axes]", files: PixelFiles, result: Result, name: str
) -> None:
    """Draw mask and numbered frames, and the photograph if it has a panel."""
    mask = files.mask(name)
    if mask is None:
        raise InputError(f"the ground truth of {name!r} cannot be shown: {files.why(TRUTHS)}")
    _show(axes, mask.astype(np.uint8) * np.uint8(255), mask.shape)
    boxes = _rows(result, name).select("x0", "y0", "x1", "y1").rows()
    _draw_frames(axes, boxes)
    _write_numbers(axes, boxes[:_MOST_LISTED], mask.shape)
    photo = files.image(name)
    if photo is not None:
        for panel in photo_panels:
            _show(panel, photo[..., ::-1], mask.shape)


def _draw_map(axes: "Axes", files: PixelFiles, result: Result, name: str, score: str) -> None:
    """Draw the map of a method with frames, and below it the score of each object."""
    rows, shape = _rows(result, name), _shape(result, name)
    pred = files.prediction(name, shape)
    if pred is None:
        why = files.why(PREDICTIONS)
        raise InputError(f"the map of {result.method!r} for {name!r} cannot be shown: {why}")
    _show(axes, pred, shape)
    _draw_frames(axes, rows.select("x0", "y0", "x1", "y1").rows())
    values = rows[OBJECT_SCORES[score]].to_list()
    axes.set_xlabel(_score_lines(values, _panel_width(axes)), fontsize=style.SMALL_FONT)


def _rows(result: Result, name: str) -> "pl.DataFrame":
    objects = result.evaluation.objects
    return objects.filter(objects["image"] == name)


def _panel_width(axes: "Axes") -> float:
    """Inches, about."""
    columns: int = axes.get_subplotspec().get_gridspec().ncols  # type: ignore[union-attr]
    figure: Any = axes.get_figure()
    return float(figure.get_figwidth()) / columns - 2 * _GAP


def _score_lines(values: Sequence[float], width: float) -> str:
    """Number and score of each object, in lines of as many as fit."""
    entries = [
        f"{i}: {'-' if math.isnan(value) else f'{value:.2f}'.removeprefix('0')}"
        for i, value in enumerate(values[:_MOST_LISTED], start=1)
    ]
    if len(values) > _MOST_LISTED:
        entries.append("...")
    per_line = max(1, int(width / _SCORE))
    starts = range(0, len(entries), per_line)
    return "\n".join("  ".join(entries[start : start + per_line]) for start in starts)


def _show(axes: "Axes", picture: Any, shape: tuple[int, ...]) -> None:
    height, width = shape
    scale = min(1.0, _LONG_SIDE / max(height, width))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    small = cv2.resize(np.ascontiguousarray(picture), size, interpolation=cv2.INTER_AREA)
    # with the extent, coordinates are those of the full image
    axes.imshow(small, cmap="gray", vmin=0, vmax=255, extent=(0, width, height, 0), aspect="auto")
    free = max(0.0, height / _TALLEST - width) / 2  # beside a picture that is taller than its panel
    axes.set_xlim(-free, width + free)


def _draw_frames(axes: "Axes", boxes: Sequence[Box]) -> None:
    from matplotlib.patches import Rectangle

    for i, (x0, y0, x1, y1) in enumerate(boxes):
        colour = _FRAMES[i % len(_FRAMES)]
        frame = Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, edgecolor=colour, linewidth=0.8)
        axes.add_patch(frame)


def _write_numbers(axes: "Axes", boxes: Sequence[Box], shape: tuple[int, ...]) -> None:
    """Write the number of each frame at the first free place in or at it."""
    height, width = shape
    scale = max(width, height / _TALLEST) / _panel_width(axes)  # pixels of the image per inch
    across, down = (side * scale for side in _NUMBER)
    taken: list[tuple[float, float]] = []
    for i, (x0, y0, x1, y1) in enumerate(boxes):
        left, right, top, bottom = x0 + across / 2, x1 - across / 2, y0 + down / 2, y1 - down / 2
        inside = [(left, top), (right, top), (left, bottom), (right, bottom)]
        x, y = (x0 + x1) / 2, (y0 + y1) / 2
        beside = [(x, top - down), (x, bottom + down), (right + across, y), (left - across, y)]
        beside += [(x, top - 2 * down), (x, bottom + 2 * down), (right + 2 * across, y)]
        fits = x1 - x0 >= 2 * across and y1 - y0 >= 2 * down  # and most of the object is seen
        places = [
            (min(max(x, across / 2), width - across / 2), min(max(y, down / 2), height - down / 2))
            for x, y in (inside + beside if fits else beside + inside)
        ]
        free = [
            (x, y) for x, y in places
            if all(abs(x - a) >= across or abs(y - b) >= down for a, b in taken)
        ]  # fmt: skip
        taken.append((free or places)[0])
        axes.text(
            *taken[-1], str(i + 1), fontsize=style.SMALL_FONT, ha="center", va="center_baseline",
            bbox={"boxstyle": "square,pad=0.08", "facecolor": _FRAMES[i % len(_FRAMES)], "linewidth": 0},
        )  # fmt: skip

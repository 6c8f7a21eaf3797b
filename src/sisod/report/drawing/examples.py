"""The figure of examples: image, ground truth with frames, maps of methods with scores of objects."""

import math
from collections.abc import Sequence
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
from sisod.report.drawing.request import FigureRequest

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_N_EXAMPLES = 4  # at most, if none are named
_MOST_LINES = 6  # of pictures then, if every data set has one example
_MOST_LISTED = 12  # objects of an image whose scores are written
_LONG_SIDE = 480  # pixels of a picture in the figure: at least 300 per inch
_LEAST_WIDTH = 0.95  # inches of a picture with its gap
_GAP = 0.02  # inches on each side of it
_TALLEST = 1.1  # height of a picture's panel over its width
_SCORE = 0.42  # inches of a number with its score
_NUMBER = 0.11  # inches of the square with a number in a picture
# of frames in turn, all light enough for a black map
_FRAMES = tuple(style.COLOURS[i] for i in (1, 5, 2, 3, 4))


def example_figure(request: FigureRequest) -> "Figure":
    """Draw examples: by default the images on which the methods differ most, at most a page of them.

    The objects are numbered in the ground truth; below each map is the score of every number. An
    example with many methods has several lines of pictures.

    Args:
        request: the results, which record the folders of their maps, and options. Without photographs
            there is no column of them; the score is the mean of F if it names no metric.
    """
    results, image_roots, metrics = request.chosen, request.image_roots, request.metrics
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
    n_lines = math.ceil(len(titles) / int(style.inches(request.width) / _LEAST_WIDTH))
    columns = max(math.ceil(len(titles) / n_lines), 2 if request.width == "single" else 3)
    examples = _choose(results, request.examples, n_lines)
    picture = style.inches(request.width) / columns - 2 * _GAP  # width in inches
    shapes = [_shape(group[0], name) for group, name in examples for _ in range(n_lines)]
    heights = [picture * min(_TALLEST, high / wide) for high, wide in shapes]
    with style.context():
        figure = style.new_figure(sum(heights) + 0.4 * len(heights) + 1, width=request.width)
        figure.get_layout_engine().set(w_pad=_GAP, h_pad=_GAP, wspace=0, hspace=0)  # type: ignore[union-attr,call-arg]
        panels = figure.subplots(len(heights), columns, squeeze=False, height_ratios=heights)
        for axes in panels.flat:
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
        for index, (group, name) in enumerate(examples):
            block = panels[index * n_lines : (index + 1) * n_lines].ravel()
            if index == 0 or n_lines > 1:
                for axes, text in zip(block, titles, strict=False):
                    axes.set_title(style.wrapped(text, picture), fontsize=style.TICK_FONT, pad=2)
            by_title = dict(zip(titles, block, strict=False))
            root = image_roots.get(group[0].dataset)
            files = {r.method: PixelFiles(r.evaluation, root, request.fetch) for r in group}
            photo = block[0] if image_roots else None
            truth = block[len(titles) - len(methods) - 1]
            _draw_truth(truth, photo, files[group[0].method], group[0], name, picture)
            for result in group:
                _draw_map(by_title[result.method], files[result.method], result, name, score, picture)
            label = style.wrapped(f"{group[0].dataset} {name}", picture)
            block[0].set_xlabel(label, fontsize=style.SMALL_FONT, color="#555555")
        note = f"Below each map: {title(score)}, by their numbers in the ground truth."
        style.add_notes(figure, [note])
        style.fit_height(figure, panels[:, 0], sum(heights))
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
    axes: "Axes", photo_axes: "Axes | None", files: PixelFiles, result: Result, name: str, width: float
) -> None:
    """Draw mask and numbered frames, and the photograph if it has a panel."""
    mask = files.mask(name)
    if mask is None:
        raise InputError(f"the ground truth of {name!r} cannot be shown: {files.why(TRUTHS)}")
    _show(axes, mask.astype(np.uint8) * np.uint8(255), mask.shape)
    _draw_frames(axes, _rows(result, name))
    _write_numbers(axes, _rows(result, name).head(_MOST_LISTED), mask.shape, width)
    photo = files.image(name)
    if photo is not None and photo_axes is not None:
        _show(photo_axes, photo[..., ::-1], mask.shape)


def _draw_map(
    axes: "Axes", files: PixelFiles, result: Result, name: str, score: str, width: float
) -> None:
    """Draw the map of a method with frames, and below it the score of each object."""
    rows, shape = _rows(result, name), _shape(result, name)
    pred = files.prediction(name, shape)
    if pred is None:
        why = files.why(PREDICTIONS)
        raise InputError(f"the map of {result.method!r} for {name!r} cannot be shown: {why}")
    _show(axes, pred, shape)
    _draw_frames(axes, rows)
    values = rows[OBJECT_SCORES[score]].head(_MOST_LISTED).to_list()
    texts = ["-" if math.isnan(value) else f"{value:.2f}".removeprefix("0") for value in values]
    entries = [f"{i}: {text}" for i, text in enumerate(texts, start=1)]
    entries += ["..."] if rows.height > _MOST_LISTED else []
    per_line = max(1, int(width / _SCORE))
    lines = ["  ".join(entries[start : start + per_line]) for start in range(0, len(entries), per_line)]
    axes.set_xlabel("\n".join(lines), fontsize=style.SMALL_FONT)


def _rows(result: Result, name: str) -> "pl.DataFrame":
    objects = result.evaluation.objects
    return objects.filter(objects["image"] == name)


def _show(axes: "Axes", picture: Any, shape: tuple[int, ...]) -> None:
    height, width = shape
    scale = min(1.0, _LONG_SIDE / max(height, width))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    small = cv2.resize(np.ascontiguousarray(picture), size, interpolation=cv2.INTER_AREA)
    # with the extent, coordinates are those of the full image
    axes.imshow(small, cmap="gray", vmin=0, vmax=255, extent=(0, width, height, 0), aspect="auto")
    free = max(0.0, height / _TALLEST - width) / 2  # beside a picture that is taller than its panel
    axes.set_xlim(-free, width + free)


def _draw_frames(axes: "Axes", rows: "pl.DataFrame") -> None:
    from matplotlib.patches import Rectangle

    for i, (x0, y0, x1, y1) in enumerate(rows.select("x0", "y0", "x1", "y1").iter_rows()):
        colour = _FRAMES[i % len(_FRAMES)]
        frame = Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, edgecolor=colour, linewidth=0.8)
        axes.add_patch(frame)


def _write_numbers(
    axes: "Axes", rows: "pl.DataFrame", shape: tuple[int, ...], panel_width: float
) -> None:
    """Write the number of each frame in or beside it, where no other number is."""
    height, width = shape
    side = _NUMBER * max(width, height / _TALLEST) / panel_width  # in pixels of the image
    taken: list[tuple[float, float]] = []
    for i, (x0, y0, x1, y1) in enumerate(rows.select("x0", "y0", "x1", "y1").iter_rows()):
        is_large = min(x1 - x0, y1 - y0) >= 2 * side  # so that most of the object is seen
        # the distance of the number from the frame's edge, inwards
        places = [
            (min(max(x, side / 2), width - side / 2), min(max(y, side / 2), height - side / 2))
            for gap in ((side / 2, -side / 2, -1.5 * side) if is_large else (-side / 2, -1.5 * side))
            for x in (x0 + gap, x1 - gap, (x0 + x1) / 2)
            for y in (y0 + gap, y1 - gap, (y0 + y1) / 2)
        ]
        free = [p for p in places if all(max(abs(p[0] - x), abs(p[1] - y)) >= side for x, y in taken)]
        taken.append((free or places)[0])
        axes.text(
            *taken[-1], str(i + 1), fontsize=style.SMALL_FONT, ha="center", va="center_baseline",
            bbox={"boxstyle": "square,pad=0.08", "facecolor": _FRAMES[i % len(_FRAMES)], "linewidth": 0},
        )  # fmt: skip

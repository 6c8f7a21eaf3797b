"""The figure of examples: image, ground truth with frames, maps of methods with scores of objects."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from sisod.analysis.scores import object_scores, title
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
from sisod.report.style import FigureRequest

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_LINES = 6  # of pictures, if no images are named
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
    results, metrics = request.chosen, request.metrics
    check_photographs(results, request.image_roots)
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
    titles = [*(["image"] if request.image_roots else []), "ground truth", *methods_of(results)]
    total = style.inches(request.width)
    n_lines = math.ceil(len(titles) / int(total / _LEAST_WIDTH))
    columns = max(math.ceil(len(titles) / n_lines), 2 if request.width == "single" else 3)
    width = total / columns - 2 * _GAP  # of a picture
    examples = _choose(request, min(4, _MOST_LINES // n_lines))
    shapes = [_shape(group[0], name) for group, name in examples for _ in range(n_lines)]
    heights = [width * min(_TALLEST, high / wide) for high, wide in shapes]
    note = f"Below each map: {title(score)}, by their numbers in the ground truth."
    with style.new_panels(heights, columns, request.width, notes=[note]) as (figure, panels):
        figure.get_layout_engine().set(w_pad=_GAP, h_pad=_GAP, wspace=0, hspace=0)  # type: ignore[union-attr,call-arg]
        for axes in panels.flat:
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
        blocks = panels.reshape(len(examples), -1)
        for index, (block, (group, name)) in enumerate(zip(blocks, examples, strict=True)):
            by_title = dict(zip(titles, block, strict=False))
            _draw_example(by_title, group, name, score, request, width)
            for text, axes in by_title.items() if index == 0 or n_lines > 1 else ():
                axes.set_title(style.wrapped(text, width), fontsize=style.TICK_FONT, pad=2)
            label = style.wrapped(f"{group[0].dataset} {name}", width)
            block[0].set_xlabel(label, fontsize=style.SMALL_FONT, color="#555555")
    return figure


def _choose(request: FigureRequest, count: int) -> list[tuple[list[Result], str]]:
    """The images to draw, each with the results of its data set."""
    examples = []
    datasets = datasets_of(request.chosen)
    for dataset in datasets:
        group = [result for result in request.chosen if result.dataset == dataset]
        known = set(group[0].evaluation.images["image"].to_list())
        tables = [result.evaluation.objects for result in group]
        names = request.examples or most_different(tables, max(1, count // len(datasets)))
        examples += [(group, name) for name in names if name in known]
    unknown = [name for name in request.examples if name not in {name for _, name in examples}]
    if unknown or not examples:
        named = f"the image {shorten_list(unknown)}" if unknown else "an image with an object"
        raise InputError(f"no result has {named}; name an image of the results")
    return examples


def most_different(tables: "Sequence[pl.DataFrame]", count: int) -> list[str]:
    """Return the images whose mean F over objects differs most, those with several objects first.

    Args:
        tables: the object tables of the methods; of a single one, the worst images come first.
        count: of images, at most.

    Example:
        >>> import polars as pl
        >>> a = pl.DataFrame({"image": ["x", "y"], "f_mean": [0.9, 0.5]})
        >>> b = pl.DataFrame({"image": ["x", "y"], "f_mean": [0.8, 0.9]})
        >>> most_different([a, b], 1)
        ['y']
    """
    import polars as pl

    scores = pl.concat(
        [table.group_by("image").agg(score=pl.col("f_mean").mean(), n=pl.len()) for table in tables]
    )
    spread = scores.group_by("image").agg(
        spread=pl.col("score").max() - pl.col("score").min(),
        score=pl.col("score").mean(),
        several=pl.col("n").max() > 1,
    )
    order = spread.sort(["several", "spread", "score", "image"], descending=[True, True, False, False])
    return [str(name) for name in order["image"].head(count).to_list()]


def _shape(result: Result, name: str) -> tuple[int, int]:
    """Height and width of an image."""
    images = result.evaluation.images
    return images.filter(images["image"] == name).select("height", "width").row(0)


def _draw_example(
    panels: "Mapping[str, Axes]",
    results: Sequence[Result],
    name: str,
    score: str,
    request: FigureRequest,
    width: float,
) -> None:
    """Draw photograph, mask with numbered frames, and the map of each method with scores below."""
    shape, root = _shape(results[0], name), request.image_roots.get(results[0].dataset)
    for result in results:
        files = PixelFiles(result.evaluation, root, request.fetch)
        rows = result.evaluation.objects.filter(result.evaluation.objects["image"] == name)
        mask, photo, picture = files.mask(name), files.image(name), files.prediction(name, shape)
        if mask is None or picture is None:
            what, why = f"the ground truth of {name!r}", files.why(TRUTHS)
            if mask is not None:
                what, why = f"the map of {result.method!r} for {name!r}", files.why(PREDICTIONS)
            raise InputError(f"{what} cannot be shown: {why}")
        if result is results[0]:
            _show(panels["ground truth"], mask.astype(np.uint8) * np.uint8(255), shape, rows)
            _write_numbers(panels["ground truth"], rows.head(_MOST_LISTED), shape, width)
            if photo is not None:
                _show(panels["image"], photo[..., ::-1], shape)
        _show(panels[result.method], picture, shape, rows)
        values = rows[object_scores()[score]].head(_MOST_LISTED).to_list()
        texts = ["-" if math.isnan(value) else f"{value:.2f}".removeprefix("0") for value in values]
        entries = [f"{i}: {text}" for i, text in enumerate(texts, start=1)]
        entries += ["..."] if rows.height > _MOST_LISTED else []
        per_line = max(1, int(width / _SCORE))
        lines = ["  ".join(entries[i : i + per_line]) for i in range(0, len(entries), per_line)]
        panels[result.method].set_xlabel("\n".join(lines), fontsize=style.SMALL_FONT)


def _show(
    axes: "Axes", picture: Any, shape: tuple[int, int], rows: "pl.DataFrame | None" = None
) -> None:
    """Draw a picture, and the frames of objects."""
    from matplotlib.patches import Rectangle

    height, width = shape
    scale = min(1.0, _LONG_SIDE / max(height, width))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    small = cv2.resize(np.ascontiguousarray(picture), size, interpolation=cv2.INTER_AREA)
    # with the extent, coordinates are those of the full image
    axes.imshow(small, cmap="gray", vmin=0, vmax=255, extent=(0, width, height, 0), aspect="auto")
    free = max(0.0, height / _TALLEST - width) / 2  # beside a picture that is taller than its panel
    axes.set_xlim(-free, width + free)
    boxes = [] if rows is None else rows.select("x0", "y0", "x1", "y1").rows()
    for i, (x0, y0, x1, y1) in enumerate(boxes):
        frame = Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, linewidth=0.8)
        frame.set_edgecolor(_FRAMES[i % len(_FRAMES)])
        axes.add_patch(frame)


def _write_numbers(
    axes: "Axes", rows: "pl.DataFrame", shape: tuple[int, int], panel_width: float
) -> None:
    """Write the number of each frame outside one of its corners, where no other number is."""
    height, width = shape
    side = _NUMBER * max(width, height / _TALLEST) / panel_width  # in pixels of the image
    taken: list[tuple[float, float]] = []
    for i, (x0, y0, x1, y1) in enumerate(rows.select("x0", "y0", "x1", "y1").iter_rows()):
        places = [
            (min(max(x, side / 2), width - side / 2), min(max(y, side / 2), height - side / 2))
            for gap in (side / 2, 1.5 * side)
            for x in (x0 - gap, x1 + gap, (x0 + x1) / 2)
            for y in (y0 - gap, y1 + gap, (y0 + y1) / 2)
        ]
        free = [p for p in places if all(max(abs(p[0] - x), abs(p[1] - y)) >= side for x, y in taken)]
        taken.append((free or places)[0])
        axes.text(
            *taken[-1], str(i + 1), fontsize=style.SMALL_FONT, ha="center", va="center_baseline",
            bbox={"boxstyle": "square,pad=0.08", "facecolor": _FRAMES[i % len(_FRAMES)], "linewidth": 0},
        )  # fmt: skip

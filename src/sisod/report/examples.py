"""The figure of examples: image, ground truth with frames, maps of methods with scores of objects."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np

from sisod.analysis.bootstrap import OBJECT_SCORES, title
from sisod.common.errors import InputError, UsageError, shorten_list
from sisod.common.forks import check_not_forked
from sisod.evaluation.results import (
    PREDICTIONS,
    TRUTHS,
    Picture,
    PixelFiles,
    Result,
    datasets_of,
    methods_of,
)
from sisod.report.drawing.group_scores import check_object_score, find_object_score
from sisod.report.drawing.layout import drawn_lines, number_places, text_height, text_width, wrap_text
from sisod.report.style import COLOURS, PAGE_HEIGHT, SMALL_FONT, Width, inches, new_figure, style

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_N_EXAMPLES = 4  # at most, if none are named
_MOST_LISTED = 12  # objects of an image whose scores are written
_LONG_SIDE = 480  # pixels of a picture in the figure: at least 300 per inch
_LEAST_WIDTH = 0.92  # inches of a picture
_GAP = 0.05  # inches between pictures
_TITLE_FONT = 7.0
# of frames in turn, all light enough for a black map
_FRAMES = tuple(COLOURS[i] for i in (1, 5, 2, 3, 4))


def example_figure(
    results: Sequence[Result],
    *,
    image_roots: Mapping[str, Path],
    names: Sequence[str] = (),
    fetch: bool = False,
    metrics: Sequence[str] = (),
    width: Width = "double",
) -> "Figure":
    """Draw examples: by default the images on which the methods differ most, at most a page of them.

    The objects are numbered in the ground truth; below each map is the score of every number.

    Args:
        results: saved results, which record the folders of their maps.
        image_roots: data set -> folder of its photographs; if empty, there is no column of photographs.
        names: of the images to draw; each must be in a data set.
        fetch: whether to read maps from URLs too.
        metrics: the score to write, of the object table; the mean of F if none.
        width: of the figure.
    """
    check_not_forked()
    for result in results:
        if result.evaluation.protocol.released_code:
            raise InputError(
                f"{result.method!r} was scored under the protocol "
                f"{result.evaluation.protocol.name!r}, whose frames do not match the pixels of "
                "the image; evaluate it under another"
            )
    column, caption = _score(results, metrics)
    grid = _Grid.fit(methods_of(results), inches(width), photographs=bool(image_roots))
    rows = [
        _Row(grid, results, dataset, name)
        for dataset in datasets_of(results)
        for name in _choose(results, dataset, names, max(1, _N_EXAMPLES // len(datasets_of(results))))
    ]
    unknown = [name for name in names if name not in {row.name for row in rows}]
    if unknown or not rows:
        raise InputError(
            f"no result has the image {shorten_list(unknown)}; name an image of the results"
            if unknown
            else "the results have no image with an object, so there are no examples to draw"
        )
    lines = wrap_text(caption, grid.total - 0.1, SMALL_FONT)
    bottom = text_height(len(lines), SMALL_FONT) + 0.06
    if not names:
        rows = _one_page(rows, bottom)
    files = {
        (r.dataset, r.method): PixelFiles(r.evaluation, image_roots.get(r.dataset), fetch)
        for r in results
    }
    top = sum(row.height for row in rows) + grid.extra + bottom
    with style():
        figure = new_figure(top, width=grid.total, arranged=False)
        figure.text(0.5, 0.03 / top, drawn_lines(lines), ha="center", va="bottom", fontsize=SMALL_FONT)
        for row in rows:
            panels = row.add_panels(figure, top, titles=grid.lines > 1 or row is rows[0])
            _draw_row(row, panels, files, column)
            top -= row.height + (grid.extra if row is rows[0] else 0.0)
    return figure


def _score(results: Sequence[Result], metrics: Sequence[str]) -> tuple[str, str]:
    """Column of the object table, and the caption that names it."""
    if len(metrics) > 1:
        raise UsageError(f"the figure 'examples' writes one score, got {shorten_list(list(metrics))}")
    key = find_object_score(metrics[0] if metrics else "object_f_mean", without="found")
    check_object_score(results, key)
    column = OBJECT_SCORES[key]
    return column, f"Below each map: {title(key)}, by their numbers in the ground truth."


@dataclass(frozen=True)
class _Grid:
    """Columns of pictures, in inches; an example with many methods has several lines of them."""

    total: float
    titles: tuple[str, ...]
    n_methods: int
    lines: int

    @classmethod
    def fit(cls, methods: Sequence[str], total: float, *, photographs: bool) -> "_Grid":
        titles = (*(["image"] if photographs else []), "ground truth", *methods)
        most = max(1, int((total + _GAP) / (_LEAST_WIDTH + _GAP)))
        return cls(total, titles, len(methods), math.ceil(len(titles) / most))

    @property
    def columns(self) -> int:
        return math.ceil(len(self.titles) / self.lines)

    @property
    def width(self) -> float:
        """Of a picture; a single one does not fill the page."""
        return min(2.0, (self.total - _GAP) / self.columns - _GAP)

    @cached_property
    def wrapped(self) -> list[list[str]]:
        """The titles in lines."""
        return [wrap_text(title, self.width, _TITLE_FONT) for title in self.titles]

    @property
    def title_height(self) -> float:
        """Of the highest title."""
        return text_height(max(map(len, self.wrapped)), _TITLE_FONT) + 0.04

    @property
    def extra(self) -> float:
        """Height of the titles above the first example; with several lines, every line has its own."""
        return self.title_height if self.lines == 1 else 0.0


@dataclass(frozen=True, eq=False)
class _Row:
    """One example: an image of a data set, and the objects in it."""

    grid: _Grid
    results: Sequence[Result]
    dataset: str
    name: str

    @cached_property
    def group(self) -> list[Result]:
        """The results of the data set."""
        return [result for result in self.results if result.dataset == self.dataset]

    @cached_property
    def picture_height(self) -> float:
        """In inches; a tall picture is narrower than its column."""
        images = self.group[0].evaluation.images
        row = images.row(images["image"].to_list().index(self.name), named=True)
        return self.grid.width * min(1.1, float(row["height"] / row["width"]))

    @property
    def n_objects(self) -> int:
        objects = self.group[0].evaluation.objects["image"]
        return int((objects == self.name).sum())

    @property
    def per_line(self) -> int:
        """Scores in a line below a map."""
        entry = f"{min(self.n_objects, _MOST_LISTED)}: .88  "
        return max(1, int((self.grid.width + 0.06) / text_width(entry, SMALL_FONT)))

    @cached_property
    def label(self) -> list[str]:
        """Data set and image, below the first picture."""
        return wrap_text(f"{self.dataset} {self.name}", self.grid.width, SMALL_FONT)

    @property
    def line_height(self) -> float:
        """Picture and scores."""
        n_scores = math.ceil(min(self.n_objects, _MOST_LISTED + 1) / self.per_line)
        return self.picture_height + text_height(max(n_scores, len(self.label)), SMALL_FONT) + 0.08

    @property
    def height(self) -> float:
        """All lines, with their titles if there are several."""
        if self.grid.lines == 1:
            return self.line_height
        return self.grid.lines * (self.line_height + self.grid.title_height)

    def add_panels(self, figure: "Figure", top: float, *, titles: bool) -> "list[Axes]":
        """Add a panel for each picture, below a distance from the lower end of the figure."""
        grid = self.grid
        total, height = figure.get_size_inches()
        left = (total - grid.columns * (grid.width + _GAP) + _GAP) / 2
        panels = []
        for index, lines in enumerate(grid.wrapped):
            line, column = divmod(index, grid.columns)
            drop = (line + 1) * (grid.title_height if titles else 0.0) + line * self.line_height
            corner = (left + column * (grid.width + _GAP), top - drop - self.picture_height)
            axes = figure.add_axes(
                (corner[0] / total, corner[1] / height, grid.width / total, self.picture_height / height)
            )
            axes.set_axis_off()
            if titles:
                axes.set_title(drawn_lines(lines), fontsize=_TITLE_FONT, pad=2)
            panels.append(axes)
        return panels


def _one_page(rows: list[_Row], bottom: float) -> list[_Row]:
    """As many examples as fit on a page, at least one of each data set."""
    while sum(row.height for row in rows) + rows[0].grid.extra + bottom > PAGE_HEIGHT:
        counts = Counter(row.dataset for row in rows)
        dataset, count = counts.most_common(1)[0]
        if count == 1:
            break
        rows = [row for row in rows if row is not [r for r in rows if r.dataset == dataset][-1]]
    return rows


def _draw_row(
    row: _Row, panels: "list[Axes]", files: dict[tuple[str, str], PixelFiles], column: str
) -> None:
    methods = row.grid.titles[-row.grid.n_methods :]
    *left, gt_panel = panels[: -row.grid.n_methods]
    first = row.group[0]
    shape = _draw_truth(gt_panel, left, first, files[row.dataset, first.method], row.name)
    _write_numbers(gt_panel, first, row, shape)
    _write_below(panels[0], drawn_lines(row.label), color="#555555")
    for result in row.group:
        axes = panels[len(panels) - len(methods) + methods.index(result.method)]
        _draw_prediction(axes, result, files[row.dataset, result.method], row.name, shape)
        _write_below(axes, _score_lines(result, row, column))


def _score_lines(result: Result, row: _Row, column: str) -> str:
    """Number and score of each object, in lines of as many as fit."""
    import polars as pl

    values = result.evaluation.objects.filter(pl.col("image") == row.name)[column].to_list()
    entries = [f"{i + 1}: {_short(value)}" for i, value in enumerate(values[:_MOST_LISTED])]
    if len(values) > _MOST_LISTED:
        entries.append("...")
    starts = range(0, len(entries), row.per_line)
    return "\n".join("  ".join(entries[start : start + row.per_line]) for start in starts)


def _short(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}".removeprefix("0")


def _write_below(axes: "Axes", text: str, **options: Any) -> None:
    axes.annotate(
        text, (0.5, 0), (0, -2), xycoords="axes fraction", textcoords="offset points", ha="center",
        va="top", fontsize=SMALL_FONT, annotation_clip=False, **options,
    )  # fmt: skip


def _choose(results: Sequence[Result], dataset: str, names: Sequence[str], count: int) -> list[str]:
    group = [result for result in results if result.dataset == dataset]
    images = set(group[0].evaluation.images["image"].to_list())
    if names:
        return [name for name in names if name in images]
    return most_different([result.evaluation.objects for result in group], count)


def most_different(tables: "Sequence[pl.DataFrame]", count: int) -> list[str]:
    """Return the images whose mean F over objects differs most, those with several objects first."""
    import polars as pl

    scores = pl.concat(
        [
            table.group_by("image")
            .agg(score=pl.col("f_mean").mean(), n=pl.len())
            .with_columns(table=index)
            for index, table in enumerate(tables)
        ]
    )
    spread = scores.group_by("image").agg(
        spread=pl.col("score").max() - pl.col("score").min(),
        # if there is a single method, the worst come first
        score=pl.col("score").mean(),
        several=pl.col("n").max() > 1,
    )
    order = spread.sort(["several", "spread", "score", "image"], descending=[True, True, False, False])
    return [str(name) for name in order["image"].head(count).to_list()]


def _draw_truth(
    axes: "Axes", photo_panels: "list[Axes]", result: Result, files: PixelFiles, name: str
) -> tuple[int, int]:
    """Draw mask and frames, and the photograph if it has a panel; return the shape of the image."""
    mask = files.mask(name)
    if mask is None:
        raise InputError(f"the ground truth of {name!r} cannot be shown: {files.why(TRUTHS)}")
    shape = (mask.shape[0], mask.shape[1])
    _show(axes, mask.astype(np.uint8) * np.uint8(255), shape)
    _draw_frames(axes, result, name)
    photo = files.image(name)
    if photo is not None:
        for panel in photo_panels:
            _show(panel, photo[..., ::-1], shape)
    return shape


def _draw_prediction(
    axes: "Axes", result: Result, files: PixelFiles, name: str, shape: tuple[int, int]
) -> None:
    pred = files.prediction(name, shape)
    if pred is None:
        raise InputError(
            f"the map of {result.method!r} for {name!r} cannot be shown: {files.why(PREDICTIONS)}"
        )
    _show(axes, pred, shape)
    _draw_frames(axes, result, name)


def _show(axes: "Axes", picture: Picture, shape: tuple[int, ...]) -> None:
    height, width = shape[:2]
    scale = min(1.0, _LONG_SIDE / max(height, width))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    small = cv2.resize(np.ascontiguousarray(picture), size, interpolation=cv2.INTER_AREA)
    # with the extent, coordinates are those of the full image
    axes.imshow(small, cmap="gray", vmin=0, vmax=255, extent=(0, width, height, 0))


def _boxes(result: Result, name: str) -> list[tuple[float, float, float, float]]:
    import polars as pl

    objects = result.evaluation.objects.filter(pl.col("image") == name)
    return objects.select("x0", "y0", "x1", "y1").rows()


def _draw_frames(axes: "Axes", result: Result, name: str) -> None:
    from matplotlib.patches import Rectangle

    for i, (x0, y0, x1, y1) in enumerate(_boxes(result, name)):
        colour = _FRAMES[i % len(_FRAMES)]
        frame = Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, edgecolor=colour, linewidth=0.8)
        axes.add_patch(frame)


def _write_numbers(axes: "Axes", result: Result, row: _Row, shape: tuple[int, int]) -> None:
    height, width = shape
    scale = max(width / row.grid.width, height / row.picture_height)  # pixels per inch of the figure
    places = number_places(_boxes(result, row.name)[:_MOST_LISTED], (width, height), scale)
    for i, (x, y) in enumerate(places):
        tag = {"boxstyle": "square,pad=0.08", "facecolor": _FRAMES[i % len(_FRAMES)], "linewidth": 0}
        axes.text(
            x, y, str(i + 1), fontsize=SMALL_FONT, ha="center", va="center_baseline", bbox=tag
        )  # fmt: skip

"""The figure of examples: image, ground truth with frames, maps of methods with scores of objects."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import cv2
import numpy as np

from sisod.common.errors import InputError, shorten_list
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
from sisod.report.style import COLOURS, WIDTH, new_figure, plain_text, style

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_N_EXAMPLES = 4  # if none are named
_LONG_SIDE = 480  # pixels of a picture in the figure: at least 300 per inch


def example_figure(
    results: Sequence[Result],
    *,
    image_roots: Mapping[str, Path],
    names: Sequence[str] = (),
    fetch: bool = False,
) -> "Figure":
    """Draw examples: by default the images on which the methods differ most.

    Args:
        results: saved results, which record the folders of their maps.
        image_roots: data set -> folder of its photographs; if empty, there is no column of photographs.
        names: of the images to draw; each must be in a data set.
        fetch: whether to read maps from URLs too.
    """
    check_not_forked()
    for result in results:
        if result.evaluation.protocol.released_code:
            raise InputError(
                f"{result.method!r} was scored under the protocol "
                f"{result.evaluation.protocol.name!r}, whose frames do not match the pixels of "
                "the image; evaluate it under another"
            )
    rows = [
        (dataset, name)
        for dataset in datasets_of(results)
        for name in _choose(results, dataset, names, max(1, _N_EXAMPLES // len(datasets_of(results))))
    ]
    known = {name for _, name in rows}
    unknown = [name for name in names if name not in known]
    if unknown or not rows:
        raise InputError(
            f"no result has the image {shorten_list(unknown)}; name an image of the results"
            if unknown
            else "the results have no image with an object, so there are no examples to draw"
        )
    files = {
        (r.dataset, r.method): PixelFiles(r.evaluation, image_roots.get(r.dataset), fetch)
        for r in results
    }
    methods = methods_of(results)
    titles = [*(["image"] if image_roots else []), "ground truth", *methods]
    with style():
        heights = [_aspect(results, dataset, name) for dataset, name in rows]
        width = WIDTH / len(titles)
        figure = new_figure(sum(width * height for height in heights) + 0.3)
        panels = figure.subplots(len(rows), len(titles), squeeze=False, height_ratios=heights)
        figure.set_layout_engine("constrained", w_pad=0.01, h_pad=0.01, wspace=0.01, hspace=0.01)
        for axes in panels.flat:
            axes.set_axis_off()
        for row, (dataset, name) in enumerate(rows):
            group = [r for r in results if r.dataset == dataset]
            *left, gt_panel = panels[row, : len(titles) - len(methods)]
            shape = _draw_truth(gt_panel, left, group[0], files[dataset, group[0].method], name)
            for result in group:
                column = len(titles) - len(methods) + methods.index(result.method)
                axes = panels[row, column]
                _draw_prediction(axes, result, files[dataset, result.method], name, shape)
        for axes, title in zip(panels[0], titles, strict=True):
            axes.set_title(plain_text(title))
    return figure


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


def _aspect(results: Sequence[Result], dataset: str, name: str) -> float:
    images = next(r.evaluation.images for r in results if r.dataset == dataset)
    row = images.row(images["image"].to_list().index(name), named=True)
    return float(row["height"] / row["width"])


def _draw_truth(
    axes: "Axes", photo_panels: "list[Axes]", result: Result, files: PixelFiles, name: str
) -> tuple[int, int]:
    """Draw mask and frames, and the photograph if it has a panel; return the shape of the image."""
    mask = files.mask(name)
    if mask is None:
        raise InputError(f"the ground truth of {name!r} cannot be shown: {files.why(TRUTHS)}")
    shape = (mask.shape[0], mask.shape[1])
    _show(axes, mask.astype(np.uint8) * np.uint8(255), shape)
    _draw_objects(axes, result, name, scores=False)
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
    _draw_objects(axes, result, name, scores=True)


def _show(axes: "Axes", picture: Picture, shape: tuple[int, ...]) -> None:
    height, width = shape[:2]
    scale = min(1.0, _LONG_SIDE / max(height, width))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    small = cv2.resize(np.ascontiguousarray(picture), size, interpolation=cv2.INTER_AREA)
    # with the extent, coordinates are those of the full image
    axes.imshow(small, cmap="gray", vmin=0, vmax=255, extent=(0, width, height, 0))


def _draw_objects(axes: "Axes", result: Result, name: str, *, scores: bool) -> None:
    import polars as pl
    from matplotlib.patches import Rectangle
    from matplotlib.patheffects import withStroke

    objects = result.evaluation.objects.filter(pl.col("image") == name)
    height, width = axes.get_ylim()[0], axes.get_xlim()[1]
    for row in objects.iter_rows(named=True):
        box = Rectangle(
            (row["x0"], row["y0"]), row["x1"] - row["x0"], row["y1"] - row["y0"],
            fill=False, edgecolor=COLOURS[1], linewidth=0.7,
        )  # fmt: skip
        axes.add_patch(box)
        if scores:
            right = row["x1"] < 0.8 * width
            axes.text(
                row["x1"] + 0.015 * width if right else row["x0"] - 0.015 * width,
                min(max((row["y0"] + row["y1"]) / 2, 0.06 * height), 0.94 * height),
                f"{row['f_mean']:.2f}".removeprefix("0"),
                color="white", fontsize=5.5, va="center", ha="left" if right else "right",
                path_effects=[withStroke(linewidth=1.2, foreground="black")],
            )  # fmt: skip

"""What a figure writes where: all drawn text with its boxes, and results with long names to draw."""

import dataclasses
from itertools import combinations
from typing import Any
from unittest.mock import patch

import polars as pl

from sisod.evaluation.results import Result

METHODS = (
    "PoolNet-ResNet50-finetuned-DUTS-TR",
    "BiRefNet_dynamic-matting",
    "EDN",
    "EDN+si",
    "U2Net",
    "InSPyReNet-SwinB",
    "PiCANet-R",
    "Amulet",
    "DSS",
    "ICON-PVTv2-finetuned-DUTS-TR+si",
    "GateNet",
    "AVeryLongNameWithoutAnySeparatorInItAtAllAsSomePeopleWriteThem",
)
_TOLERANCE = 0.6  # pixels
_GAP = 2.0  # pixels
_DPI = 100


def named_results(results: list[Result], n_methods: int, *, repeats: int = 1) -> list[Result]:
    """Results of two data sets under long names; with `repeats`, as if each image were there often."""
    by_dataset: dict[str, list[Result]] = {}
    for result in results:
        by_dataset.setdefault(result.dataset, []).append(result)
    return [
        Result(name, METHODS[i], _repeated(group[i % len(group)], repeats))
        for name, group in zip(("MSOD", "DUTS-TE_cleaned"), by_dataset.values(), strict=True)
        for i in range(n_methods)
    ]


def _repeated(result: Result, repeats: int) -> Any:
    evaluation = result.evaluation
    if repeats == 1:
        return evaluation
    tables = {name: getattr(evaluation, name) for name in ("images", "objects", "counts", "predicted")}
    return dataclasses.replace(
        evaluation, **{name: pl.concat([table] * repeats) for name, table in tables.items()}
    )


@dataclasses.dataclass(frozen=True)
class DrawnText:
    """A text of a figure, its font size in points, and its box in pixels as (x0, y0, x1, y1)."""

    text: str
    size: float
    box: tuple[float, float, float, float]


def drawn_texts(figure: Any) -> list[DrawnText]:
    """Draw a figure; return every text that was drawn."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    texts: list[DrawnText] = []

    def record(self: Text, renderer: Any, *_: object) -> None:
        if self.get_visible() and self.get_text().strip():
            box = self.get_window_extent(renderer)
            ends = (box.x0, box.y0, box.x1, box.y1)
            texts.append(DrawnText(self.get_text(), float(self.get_fontsize()), ends))

    figure.set_dpi(_DPI)
    with patch.object(Text, "draw", record):
        FigureCanvasAgg(figure).draw()  # type: ignore[no-untyped-call]
    return texts


def layout_faults(figure: Any) -> list[str]:
    """Return what is wrong: overlapping text, text outside the figure or too small, covered panels."""
    texts = drawn_texts(figure)
    width, height = figure.bbox.width, figure.bbox.height
    faults = [f"{t.text!r} has {t.size} pt" for t in texts if t.size < 6]
    faults += [
        f"{t.text!r} is outside: {t.box} of {width} x {height}"
        for t in texts
        if min(t.box[:2]) < -_TOLERANCE
        or t.box[2] > width + _TOLERANCE
        or t.box[3] > height + _TOLERANCE
    ]
    faults += [
        f"{a.text!r} {a.box} and {b.text!r} {b.box} overlap, or touch in one line"
        for a, b in combinations(texts, 2)
        if _overlap(a.box, b.box, gap=_GAP)
    ]
    panels = [tuple(axes.get_window_extent().extents) for axes in figure.get_axes()]
    for legend in figure.legends:
        box = tuple(legend.get_window_extent().extents)
        faults += [f"the legend covers a panel: {box}, {p}" for p in panels if _overlap(box, p)]
    return faults


def _overlap(a: tuple[float, ...], b: tuple[float, ...], *, gap: float = 0.0) -> bool:
    """Whether two boxes overlap; `gap` is the least distance of boxes side by side."""
    across = min(a[2], b[2]) - max(a[0], b[0])
    return across > _TOLERANCE - gap and min(a[3], b[3]) - max(a[1], b[1]) > _TOLERANCE

"""Draws the figures of docs/real-data.md from the saved rows; nothing is trained or scored again.

`python -m benchmarks.real_data.figures` writes `docs/real_data_*.svg`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchmarks.real_data import losses
from benchmarks.real_data.runs import TESTS
from benchmarks.real_data.tables import EDGES, LOSSES, SMALL, Results
from sisod.analysis.groups import by_size
from sisod.report.style import (
    LineStyle,
    add_legend,
    context,
    line_styles,
    new_figure,
    save_figure,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DOCS = Path(__file__).parents[2] / "docs"
_PAIR = {"plain": "plain", "si": "size-invariant"}
_LOOKS = line_styles(list(_PAIR.values()))
_LEAST_MARKED = 0.003  # left end of the axis; below it almost no object is found


def main() -> None:
    """Write every figure."""
    results = Results()
    for name, draw in FIGURES.items():
        save_figure(draw(results), DOCS / f"real_data_{name}.svg")
    save_figure(draw_losses(), DOCS / "real_data_losses.svg")


def main_result(results: Results) -> "Figure":
    """Draw objects found by size on the two sets with many objects, and beside it the price: MAE."""
    with context():
        figure = new_figure(2.3)
        *found_panels, mae_panel = figure.subplots(1, 3)
        for axes, dataset in zip(found_panels, TESTS[:2], strict=True):
            for loss, title in _PAIR.items():
                tables = [by_size(result, groups=EDGES) for result in results.by_seed(loss, dataset)]
                _draw_seeds(axes, [100 * table["found"].to_numpy() for table in tables], title)
            _label_sizes(axes)
            axes.set(title=dataset, ylim=(0, 100))
        found_panels[0].set_ylabel("objects found (%)")
        _draw_mae(mae_panel, results)
        add_legend(figure, _LOOKS)
    return figure


def _draw_mae(axes: "Axes", results: Results) -> None:
    """Draw a bar for the mean over the seeds, a dot for each seed."""
    for offset, (loss, title) in zip((-0.19, 0.19), _PAIR.items(), strict=True):
        colour = _LOOKS[title].colour
        for position, dataset in enumerate(TESTS):
            values = [result.summary["mae"] for result in results.by_seed(loss, dataset)]
            axes.bar(position + offset, float(np.mean(values)), 0.34, color=colour, alpha=0.45)
            axes.plot([position + offset] * len(values), values, ".", color=colour, markersize=4)
    axes.set_xticks(range(len(TESTS)), TESTS)
    axes.set(title="The price: a higher MAE", ylabel="MAE (lower is better)")


def _label_sizes(axes: "Axes") -> None:
    """Write the edges of the size groups between the points."""
    axes.set_xticks(np.arange(len(EDGES)) - 0.5, [f"{100 * edge:g}" for edge in EDGES])
    axes.set_xlim(-0.5, len(EDGES) - 1.5)
    axes.set_xlabel("size of an object (% of the image)")


def price(results: Results) -> "Figure":
    """Draw small objects found against background marked, one point for each threshold, seed 0."""
    runs = {f"edn-{key}-0": title for key, title in LOSSES.items()}
    # only the first seven: more curves cannot be distinguished, the table has the others
    titles = {run: title for run, title in list(runs.items())[:7] if run in results.records}
    looks = line_styles(list(titles.values()))
    with context():
        figure = new_figure(3.2)
        panels = figure.subplots(1, 2, sharey=True)
        for axes, dataset in zip(panels, TESTS, strict=False):
            for run, title in titles.items():
                marked, found = _price_curve(results, run, dataset)
                axes.plot(marked, found, **looks[title].options(), markevery=[128], markersize=5)
            axes.set_xscale("log")
            axes.set(xlim=(_LEAST_MARKED, 1), ylim=(0, 1.02), title=dataset)
            axes.set_xticks([0.01, 0.1, 1], ["1", "10", "100"])
            axes.set_xlabel("background marked (%)")
        panels[0].set_ylabel("share of objects under 1 % found")
        add_legend(figure, looks)
    return figure


def _price_curve(
    results: Results, run: str, dataset: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    chosen = (pl.col("run") == run) & (pl.col("dataset") == dataset)
    marked = results.marked.filter(chosen).sort("threshold")["marked"].to_numpy().astype(np.float64)
    levels = results.objects.filter(chosen & (pl.col("share") < SMALL))["level"].to_numpy()
    return marked, (levels[None, :] >= np.arange(256)[:, None]).mean(axis=1)


def _draw_seeds(axes: "Axes", seeds: list[NDArray[np.float64]], title: str) -> None:
    look = _LOOKS[title]
    for values in seeds:
        axes.plot(values, color=look.colour, linewidth=0.6, alpha=0.5)
    axes.plot(np.mean(seeds, axis=0), **look.options())


_COMPARED = {
    "iou": "plain, IoU",
    "plain": "plain, Dice as printed",
    "tversky-plain": "plain, Tversky",
    "si": "size-invariant",
    "cells": "cells, half image",
    "tversky": "balanced",
}
_COMPARED_METRICS = {
    "mae": "MAE",
    "si_mae": "SI-MAE",
    "false_objects": "false objects\nper image",
    "object_recall_small": "small objects\nfound",
}


def draw_losses() -> "Figure":
    """Draw each loss minus EDN's own, a marker for each seed; the better half of a panel is shaded."""
    looks = line_styles(list(losses.KINDS.values()))
    with context():
        figure = new_figure(4.4)
        panels = figure.subplots(2, len(_COMPARED_METRICS), sharex=True, sharey="col")
        for row, dataset in zip(panels, TESTS[:2], strict=True):
            row[0].set_ylabel(f"{dataset}\nminus EDN's own loss")
            for axes, key in zip(row, _COMPARED_METRICS, strict=True):
                for offset, (end, kind) in zip((-0.16, 0.16), losses.KINDS.items(), strict=True):
                    changes = [losses.changes(loss, end, dataset, key) for loss in _COMPARED]
                    _draw_changes(axes, offset, changes, looks[kind])
        for column, (key, title) in zip(panels.T, _COMPARED_METRICS.items(), strict=True):
            column[0].set_title(title)
            _shade_better(column, higher=key == "object_recall_small")
        panels[0, 0].set_xticks(range(len(_COMPARED)), list(_COMPARED.values()))
        for axes in panels[1]:
            axes.tick_params(axis="x", labelrotation=90)
        add_legend(figure, looks)
    return figure


def _draw_changes(axes: "Axes", offset: float, losses: list[list[float]], look: LineStyle) -> None:
    """Draw for each loss a marker for each seed and a short line at their mean."""
    for position, changes in enumerate(losses):
        x = position + offset
        axes.plot([x] * len(changes), changes, look.marker, color=look.colour, markersize=3, alpha=0.7)
        axes.plot([x - 0.13, x + 0.13], [np.mean(changes)] * 2, color=look.colour, linewidth=2)


def _shade_better(column: "NDArray[Any]", *, higher: bool) -> None:
    low, high = column[0].get_ylim()
    for axes in column:
        axes.axhline(0, color="#555555", linewidth=0.8)
        axes.axhspan(*((0, high) if higher else (low, 0)), color="#2e7d32", alpha=0.08, linewidth=0)
        axes.set_ylim(low, high)


FIGURES: dict[str, "Callable[[Results], Figure]"] = {
    "main": main_result,
    "price": price,
}


if __name__ == "__main__":
    main()

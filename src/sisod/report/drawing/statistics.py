"""The figure of a data set: sizes and numbers of its objects."""

from pathlib import Path

import numpy as np

from sisod.analysis.masks import MaskStatistics
from sisod.report.style import COLOURS, check_plot_path, new_figure, save_figure, style


def plot_statistics(statistics: MaskStatistics, path: Path) -> None:
    """Draw the paper's Figure 1: share of objects by size, share of images by number of objects."""
    check_plot_path(path)
    with style():
        figure = new_figure(2.4)
        left, right = figure.subplots(1, 2)
        sizes = statistics.size_groups() / max(1, len(statistics.shares))
        left.bar(np.arange(10) * 10 + 5, 100 * sizes, width=9, color=COLOURS[0])
        left.set(
            xlabel="size of an object (% of the image)", ylabel="objects (%)", xticks=range(0, 101, 20)
        )
        numbers = statistics.number_groups()
        shares = 100 * np.array(list(numbers.values())) / len(statistics.n_objects)
        right.bar(list(numbers), shares, color=COLOURS[1])
        right.set(xlabel="objects in an image", ylabel="images (%)")
        save_figure(figure, path)

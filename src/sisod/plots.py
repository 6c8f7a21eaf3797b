"""Figures for papers: one style, colour-blind safe, readable in print."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sisod.errors import InputError, UsageError

if TYPE_CHECKING:
    from sisod.statistics import MaskStatistics

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 200,
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
}


def plot_statistics(found: "MaskStatistics", path: Path) -> None:
    """Draw the paper's Figure 1: share of objects by size, share of images by number of objects."""
    check_plot_path(path)
    mpl = _matplotlib()
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7, 2.6))
        left, right = figure.subplots(1, 2)
        sizes = found.size_groups() / max(1, len(found.shares))
        left.bar(np.arange(10) * 10 + 5, 100 * sizes, width=9, color=COLOURS[0])
        left.set(
            xlabel="size of an object (% of the image)", ylabel="objects (%)", xticks=range(0, 101, 20)
        )
        numbers = found.number_groups()
        shares = 100 * np.array(list(numbers.values())) / len(found.n_objects)
        right.bar(list(numbers), shares, color=COLOURS[1])
        right.set(xlabel="objects in an image", ylabel="images (%)")
        _save(figure, path)


def check_plot_path(path: Path) -> None:
    """Refuse, before any work is done, a name that cannot be drawn to."""
    if path.suffix.lower() not in (".pdf", ".png", ".svg"):
        raise UsageError(f"{str(path)!r}: expected a name ending in .pdf, .png or .svg")
    _matplotlib()


def _matplotlib() -> Any:
    try:
        import matplotlib as mpl
    except ImportError:
        raise InputError(
            "drawing needs matplotlib; install it with: pip install 'sisod[report]'"
        ) from None
    return mpl


def _save(figure: Any, path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror or error}") from error

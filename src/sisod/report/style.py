"""The style of all figures, safe for colour-blind readers and readable in print; saving them."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from sisod.common.arguments import check_choice
from sisod.common.errors import UsageError, printable, require
from sisod.common.output import write_output

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sisod.analysis.masks import MaskStatistics

Width = Literal["single", "double"]

# Okabe and Ito without yellow, which is too light on white; the last is wine of Paul Tol
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#882255")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = (
    "-", "--", "-.", (0, (1, 1.2)), (0, (5, 1, 1, 1, 1, 1)), (0, (7, 2.2)), (0, (2, 2.4)),
    (0, (6, 1, 2, 1)),
)  # fmt: skip
HATCHES = ("", "////", "....", "xxxx", "----", "++++", "\\\\\\\\", "||||")
N_STYLES = len(COLOURS)
WIDTHS = {"single": 3.25, "double": 6.875}  # inches: a column, and the text of a two-column paper
WIDTH = WIDTHS["double"]
PAGE_HEIGHT = 8.9  # inches: the text of such a paper
FONT, TICK_FONT, SMALL_FONT = 8.0, 7.0, 6.0  # points; no text in figures is smaller
HANDLE = 3.6  # length of a line in the legend, in font sizes: it shows the longest dashes
MARKER_SIZE = 3.6  # points
FORMATS = (".pdf", ".png", ".svg")
STYLE = {
    "font.size": FONT,
    "axes.titlesize": FONT,
    "axes.labelsize": FONT,
    "xtick.labelsize": TICK_FONT,
    "ytick.labelsize": TICK_FONT,
    "legend.fontsize": FONT,
    "legend.frameon": False,
    "legend.handlelength": HANDLE,
    "hatch.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.3,
    "lines.markersize": MARKER_SIZE,
    "savefig.dpi": 200,
    "svg.fonttype": "none",
    "svg.hashsalt": "sisod",  # the same figure gives the same file
    "pdf.fonttype": 42,
}


@dataclass(frozen=True)
class LineStyle:
    """The line and the bars of a method; its colour, dash, marker and hatch each identify it."""

    colour: str
    marker: str
    dash: Any
    hatch: str

    def options(self) -> dict[str, Any]:
        """Return keyword arguments of matplotlib's plot."""
        return {"color": self.colour, "marker": self.marker, "linestyle": self.dash}

    def bar_options(self) -> dict[str, Any]:
        """Return keyword arguments of matplotlib's bar; the edge colour is that of the hatch."""
        return {"facecolor": self.colour, "edgecolor": "white", "hatch": self.hatch, "linewidth": 0}


def line_styles(methods: Sequence[str]) -> dict[str, LineStyle]:
    """Return a line style for each method.

    The first 8 differ in colour, marker, dash and hatch, the first 32 in at least two of colour, marker
    and dash: the second eight have the colours of the first, but other markers and dashes.
    """
    return {method: _line_style(*divmod(i, N_STYLES)[::-1]) for i, method in enumerate(methods)}


def _line_style(index: int, turn: int) -> LineStyle:
    return LineStyle(
        COLOURS[index],
        MARKERS[(index + 3 * turn) % N_STYLES],
        DASHES[(index + 5 * turn) % N_STYLES],
        HATCHES[(index + 3 * turn) % N_STYLES],
    )


def plot_statistics(statistics: "MaskStatistics", path: Path) -> None:
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


def inches(width: Width) -> float:
    """Return the width of a figure that fills a column, or the text, of a two-column paper."""
    check_choice("width", width, get_args(Width))
    return WIDTHS[width]


def new_figure(height: float, *, width: float = WIDTH, arranged: bool = True) -> "Figure":
    """Return an empty figure, sized in inches, that notebooks display.

    `arranged` says whether matplotlib places the panels; if not, the caller does.
    """
    _matplotlib()
    from sisod.report.notebook_figure import NotebookFigure

    return NotebookFigure(figsize=(width, height), layout="constrained" if arranged else None)


def style() -> Any:
    """Return a context in which matplotlib draws in this style, whatever the user's own settings are."""
    _matplotlib()
    from matplotlib.style import context

    return context(["default", STYLE])


def check_plot_path(path: Path) -> None:
    """Refuse a file name without the ending of a figure format, before any work is done."""
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"{str(path)!r}: expected a name ending in .pdf, .png or .svg")
    _matplotlib()


def plain_text(name: str) -> str:
    """Return a name escaped for matplotlib: a dollar sign would start a formula."""
    return printable(name).replace("$", r"\$")


def annotate_empty_axes(axes: "Axes", text: str) -> None:
    """Write the reason into an empty panel."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", va="center", color="#666666")


def save_figure(figure: "Figure", path: Path) -> None:
    """Write a figure to a file, atomically."""
    write_output(path, figure_bytes(figure, path.suffix.lower()[1:]))


def figure_bytes(figure: "Figure", kind: str) -> bytes:
    """Return the content of a figure's file; the same figure gives the same bytes."""
    metadata = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}
    buffer = io.BytesIO()
    with style():
        figure.savefig(buffer, format=kind, metadata=metadata[kind])
    return buffer.getvalue()


def _matplotlib() -> Any:
    require("drawing", "matplotlib")
    import matplotlib as mpl

    return mpl
